package gateway

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// readiness starts the watches of connections as soon as there is something to read, be it the end. One goroutine waits for all
// connections. Its zero value is ready to use. end must be called after the last wait.
type readiness struct {
	mu    sync.Mutex
	epoll *os.File // nil: it is not open, or cannot be
	fd    int      // of epoll
	done  chan struct{}
	ended bool
	last  uint64                 // number of a wait
	waits map[uint64]*clientConn // by number
}

// wait calls c.isReady with a number, once, when there is something to read. It returns 0 if it cannot.
func (r *readiness) wait(c *clientConn) (number uint64) {
	raw := rawOf(c)
	if raw == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.epoll == nil && !r.open() {
		return 0
	}
	r.last++
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(r.last), Pad: int32(r.last >> 32)}
	var failed error
	err := raw.Control(func(fd uintptr) {
		if failed = unix.EpollCtl(r.fd, unix.EPOLL_CTL_ADD, int(fd), &e); failed == unix.EEXIST { // from a wait that is over
			failed = unix.EpollCtl(r.fd, unix.EPOLL_CTL_MOD, int(fd), &e)
		}
	})
	if err != nil || failed != nil {
		return 0
	}
	r.waits[r.last] = c
	return r.last
}

// cancel ends a wait.
func (r *readiness) cancel(c *clientConn, number uint64) {
	if raw := rawOf(c); raw != nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.EpollCtl(r.fd, unix.EPOLL_CTL_DEL, int(fd), nil) }) // a closed connection is not there
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waits, number)
}

// open begins to wait. readiness.mu is held.
func (r *readiness) open() bool {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return false
	}
	if unix.SetNonblock(fd, true) != nil {
		_ = unix.Close(fd) // nobody uses it
		return false
	}
	file := os.NewFile(uintptr(fd), "epoll")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close() // nobody uses it
		return false
	}
	r.epoll, r.fd, r.done, r.waits = file, fd, make(chan struct{}), map[uint64]*clientConn{}
	go func() {
		defer close(r.done)
		_ = raw.Read(r.next) // until end
	}()
	return true
}

// next starts the watches of the connections that have something to read. It returns false, which waits for more of them.
func (r *readiness) next(fd uintptr) bool {
	var events [64]unix.EpollEvent
	for {
		n, err := unix.EpollWait(int(fd), events[:], 0)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			return false
		}
		for _, e := range events[:n] {
			number := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
			r.mu.Lock()
			c := r.waits[number]
			delete(r.waits, number)
			r.mu.Unlock()
			if c != nil {
				c.isReady(number)
			}
		}
	}
}

// end stops waiting.
func (r *readiness) end() {
	r.mu.Lock()
	file, done := r.epoll, r.done
	r.epoll, r.ended = nil, true
	r.mu.Unlock()
	if file != nil {
		_ = file.Close() // nothing is written to it
		<-done
	}
}

// rawOf returns the system's connection, or nil.
func rawOf(c *clientConn) syscall.RawConn {
	s, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
