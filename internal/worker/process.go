package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// maxLine limits the size of a line.
const maxLine = 64 << 20

// stepLimit is how long a step may take. The worker reports it with the line of code; if it does not, it is killed.
const stepLimit = time.Minute

// process is one worker. Its methods may be called from any goroutine.
type process struct {
	conn net.Conn
	cmd  *exec.Cmd // nil: it was not started here
	said description

	writing sync.Mutex // a worker that writes an answer may not read: whoever writes must not hold mu
	mu      sync.Mutex
	next    int                   // the id of the next request
	waiting map[int]chan<- []byte // the lines of answers, without their ids
	err     error                 // why it ended
	ended   chan struct{}         // closed when it has ended

	// Guarded by the pool.
	live    int  // episodes
	retired bool // it gets no new ones
}

// greet exchanges the first lines, and starts to read answers.
func greet(conn net.Conn, cmd *exec.Cmd, h hello) (*process, error) {
	p := &process{conn: conn, cmd: cmd, waiting: map[int]chan<- []byte{}, ended: make(chan struct{})}
	line, err := json.Marshal(h)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(stepLimit))
	}
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	if err == nil {
		line, err = readLine(in)
	}
	if err == nil {
		err = json.Unmarshal(line, &p.said)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	go p.read(in, err)
	switch {
	case err != nil:
		err = fmt.Errorf("the worker did not say what it plays: %w", p.stop(err))
	case p.said.Parley != protocol:
		err = p.stop(fmt.Errorf("the worker speaks version %d of the protocol, and this program version %d: install the same version of both", p.said.Parley, protocol))
	case p.said.Error != nil:
		err = p.stop(p.said.Error)
	}
	return p, err
}

// readLine reads a line. The result is valid until the next call.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(long) > maxLine {
			return nil, fmt.Errorf("a line has more than %d MiB", maxLine>>20)
		}
		line, err = in.ReadSlice('\n')
		long = append(long, line...)
	}
	return long, err
}

// read passes answers to those who wait for them, until the connection ends.
func (p *process) read(in *bufio.Reader, err error) {
	for err == nil {
		var line []byte
		if line, err = readLine(in); err != nil {
			break
		}
		var id int
		var rest []byte
		if id, rest, err = cutID(line); err != nil {
			break
		}
		p.mu.Lock()
		to := p.waiting[id]
		delete(p.waiting, id)
		p.mu.Unlock()
		if to == nil {
			err = fmt.Errorf("it answered request %d, which was not asked", id)
			break
		}
		to <- bytes.Clone(rest)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it ended")
	}
	_ = p.conn.Close() // the error that matters is the first
	if p.cmd != nil {
		if p.kill(); p.cmd.Wait() != nil && p.cmd.ProcessState != nil {
			err = fmt.Errorf("%w (%v)", err, p.cmd.ProcessState)
		}
	}
	p.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	all := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	for _, to := range all {
		close(to)
	}
	close(p.ended)
}

// cutID returns the id of an answer, which is its first field, and the object without it. It changes line.
func cutID(line []byte) (int, []byte, error) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"id":`))
	end := bytes.IndexAny(rest, ",}")
	if !ok || end < 0 {
		return 0, nil, fmt.Errorf("its answer does not begin with {\"id\":…: %.80q", line)
	}
	id, err := strconv.Atoi(string(bytes.TrimSpace(rest[:end])))
	if err != nil {
		return 0, nil, fmt.Errorf("its answer has the id %.20q: want a whole number", rest[:end])
	}
	if rest = rest[end:]; rest[0] == '}' {
		return id, []byte("{}"), nil
	}
	rest[0] = '{'
	return id, rest, nil
}

// send writes a request, which is a JSON object, with an id. The channel gets the answer without its id, and is closed if
// the process ends first.
func (p *process) send(body []byte) (<-chan []byte, error) {
	p.mu.Lock()
	if p.waiting == nil || p.err != nil {
		defer p.mu.Unlock()
		return nil, p.err
	}
	p.next++
	id := p.next
	answered := make(chan []byte, 1)
	p.waiting[id] = answered
	p.mu.Unlock()
	line := make([]byte, 0, len(body)+20)
	line = strconv.AppendInt(append(line, `{"id":`...), int64(id), 10)
	return answered, p.write(append(append(append(line, ','), body[1:]...), '\n'))
}

// write writes a line. If it fails, the process is of no use.
func (p *process) write(line []byte) error {
	p.writing.Lock()
	_, err := p.conn.Write(line)
	p.writing.Unlock()
	if err != nil {
		_ = p.stop(err)
		return p.reason()
	}
	return nil
}

// ask sends a request and waits for its answer. It kills a process that does not answer in time.
func (p *process) ask(ctx context.Context, body []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	answered, err := p.send(body)
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(stepLimit+stepLimit/2, func() {
		_ = p.stop(fmt.Errorf("a step took longer than %v", stepLimit))
	})
	defer late.Stop()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case line, ok := <-answered:
		if !ok {
			return nil, p.reason()
		}
		return line, nil
	}
}

// tell sends a request that has no answer. A process that has ended need not know.
func (p *process) tell(body []byte) { _ = p.write(append(body, '\n')) }

// reason returns why the process ended.
func (p *process) reason() error {
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// alive reports whether the process has not ended.
func (p *process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == nil && p.waiting != nil
}

// kill ends the process at once.
func (p *process) kill() {
	if p.cmd != nil && p.cmd.Process != nil {
		_ = p.cmd.Process.Kill() // it may have ended
	}
}

// stop ends the process, waits for it, and returns why.
func (p *process) stop(why error) error {
	p.mu.Lock()
	if p.err == nil {
		p.err = why
	}
	p.mu.Unlock()
	_ = p.conn.Close() // read sees it
	<-p.ended
	return why
}
