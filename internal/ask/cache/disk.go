package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/kit/files"
)

// disk holds every value in its own file, root/ab/cd…, named by its key.
type disk struct {
	root  string
	limit int64 // bytes
	now   func() time.Time

	written atomic.Int64 // bytes, since the directory was last scanned

	mu       sync.Mutex
	looked   bool // the directory was scanned once
	trimming bool
	closed   bool
	wg       sync.WaitGroup
}

// touchEvery is how often the file of an entry in use is marked as used.
const touchEvery = time.Hour

// A file is a header and the value. The header distinguishes a complete file of ours from any
// other.
const (
	magic      = "parleyc\x01"
	headerSize = len(magic) + 32 + 8 + sha256.Size // magic, key, length, checksum
	maxValue   = 1 << 30
)

// Frame returns a value as it is stored and sent: with its key and a checksum.
func Frame(key [32]byte, value []byte) []byte { return append(header(key, value), value...) }

// Unframe returns the value that Frame made b of, or an error if b is damaged or of another key.
func Unframe(key [32]byte, b []byte) ([]byte, error) {
	if len(b) < headerSize || !bytes.Equal(b[:headerSize], header(key, b[headerSize:])) {
		return nil, errors.New("damaged: wrong checksum")
	}
	return b[headerSize:], nil
}

func header(key [32]byte, value []byte) []byte {
	h := make([]byte, 0, headerSize)
	h = append(h, magic...)
	h = append(h, key[:]...)
	h = binary.BigEndian.AppendUint64(h, uint64(len(value)))
	sum := sha256.Sum256(value)
	return append(h, sum[:]...)
}

func (d *disk) path(key [32]byte) string {
	name := hex.EncodeToString(key[:])
	return filepath.Join(d.root, name[:2], name[2:])
}

// read returns the value of key, or nil. A damaged file is removed and reported; that is no more
// than a miss.
func (d *disk) read(key [32]byte) ([]byte, error) {
	path := d.path(key)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value, used, err := readFile(f, key)
	f.Close()
	if err != nil {
		_ = os.Remove(path) // if it cannot be removed, the next read misses again
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if now := d.now(); now.Sub(used) > touchEvery {
		d.touch(key, now)
	}
	return value, nil
}

// readFile reads and checks a file. used is when it was last marked as used.
func readFile(f *os.File, key [32]byte) (value []byte, used time.Time, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, used, err
	}
	size := info.Size() - int64(headerSize)
	if !info.Mode().IsRegular() || size < 0 || size > maxValue {
		return nil, used, fmt.Errorf("damaged: %d bytes", info.Size())
	}
	all := make([]byte, headerSize+int(size))
	if _, err := io.ReadFull(f, all); err != nil {
		return nil, used, err
	}
	value, err = Unframe(key, all)
	return value, info.ModTime(), err
}

// touch marks a file as used. It may fail on a read-only directory, which does no harm.
func (d *disk) touch(key [32]byte, now time.Time) { _ = os.Chtimes(d.path(key), now, now) }

// write writes a value.
func (d *disk) write(key [32]byte, value []byte) error {
	if len(value) > maxValue {
		return fmt.Errorf("%d bytes are too many", len(value))
	}
	path, framed := d.path(key), Frame(key, value)
	err := files.Publish(path, 0o600, framed)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = files.Publish(path, 0o600, framed)
		}
	}
	if err != nil {
		return err
	}
	d.written.Add(int64(len(framed)))
	d.trimIfDue()
	return nil
}

// The directory is scanned when a tenth of its limit was written since the last scan, so that
// scanning costs a fixed share of writing. Above nine tenths of the limit, the least recently used
// entries are removed until eight tenths are left.
const (
	lookAfter = 0.1
	trimAbove = 0.9
	trimTo    = 0.8
)

// trimIfDue starts a trim in the background when it is time for one.
func (d *disk) trimIfDue() {
	d.mu.Lock()
	defer d.mu.Unlock()
	due := !d.looked || float64(d.written.Load()) >= lookAfter*float64(d.limit)
	if !due || d.trimming || d.closed {
		return
	}
	d.looked, d.trimming = true, true
	d.wg.Go(func() {
		d.trim()
		d.mu.Lock()
		d.trimming = false
		d.mu.Unlock()
	})
}

// close stops a trim and waits for it.
func (d *disk) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.wg.Wait()
}

func (d *disk) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// trim removes the least recently used entries if there are too many. One process does so at a
// time; others leave it to that one.
func (d *disk) trim() {
	d.written.Store(0)
	lock, err := files.TakeLock(d.lockPath())
	if errors.Is(err, files.ErrHeld) {
		return
	}
	// A file system may have no locks. Two processes that trim at once remove some entries too many.
	if err == nil {
		defer func() { _ = lock.Release() }() // it ends with the process at the latest
	}
	found := new(ages)
	now := d.now()
	d.walk(func(_ string, info fs.FileInfo) { found.add(now.Sub(info.ModTime()), info.Size()) })
	if float64(found.total) <= trimAbove*float64(d.limit) {
		return
	}
	edge, some := found.cutoff(found.total - int64(trimTo*float64(d.limit)))
	d.walk(func(path string, info fs.FileInfo) {
		age := bucket(now.Sub(info.ModTime()))
		if age < edge || age == edge && some <= 0 || os.Remove(path) != nil {
			return
		}
		if age == edge {
			some -= info.Size()
		}
	})
}

// walk visits every entry, and removes temporary files of processes that were killed.
func (d *disk) walk(visit func(path string, info fs.FileInfo)) {
	for i := range 256 {
		if d.isClosed() {
			return
		}
		dir := filepath.Join(d.root, fmt.Sprintf("%02x", i))
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			path := filepath.Join(dir, e.Name())
			switch {
			case len(e.Name()) == 62:
				visit(path, info)
			case strings.HasPrefix(e.Name(), files.TempPrefix) && d.now().Sub(info.ModTime()) > touchEvery:
				_ = os.Remove(path)
			}
		}
	}
}

// ages sums sizes by age in minutes. It takes the same memory for any number of entries. Use is
// noted by the hour anyway.
type ages struct {
	total int64
	bytes [90 * 24 * 60]int64
}

func (a *ages) add(age time.Duration, size int64) {
	a.total += size
	a.bytes[bucket(age)] += size
}

// cutoff returns what to remove to free excess bytes: all that is older than edge, and some bytes
// of that age.
func (a *ages) cutoff(excess int64) (edge int, some int64) {
	edge, some = len(a.bytes)-1, excess
	for ; edge > 0 && some > a.bytes[edge]; edge-- {
		some -= a.bytes[edge]
	}
	return edge, some
}

func bucket(age time.Duration) int {
	return int(min(max(age/time.Minute, 0), 90*24*60-1))
}

func (d *disk) lockPath() string { return filepath.Join(d.root, "trim.lock") }
