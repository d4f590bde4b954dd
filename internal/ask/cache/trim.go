package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

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
	if d.limit < 0 {
		return
	}
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
	written := d.written.Swap(0)
	unlock, ok := d.lock()
	if !ok {
		d.known.Add(written)
		return
	}
	defer unlock()
	found := new(ages)
	now := d.now()
	d.walk(func(_ string, info fs.FileInfo) { found.add(now.Sub(info.ModTime()), info.Size()) })
	d.known.Store(found.total)
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
		d.known.Add(-info.Size())
		d.evicted.Add(1)
	})
}

// walk visits every entry, and removes temporary files of processes that were killed.
func (d *disk) walk(visit func(path string, info fs.FileInfo)) {
	for i := range 256 {
		if d.isClosed() {
			return
		}
		_ = os.Chtimes(d.lockPath(), time.Time{}, d.now()) // the lock is still in use
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
			case strings.HasPrefix(e.Name(), tempPrefix) && d.now().Sub(info.ModTime()) > touchEvery:
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

// staleAfter is the age at which a lock is taken to be of a process that was killed.
const staleAfter = 10 * time.Minute

func (d *disk) lockPath() string { return filepath.Join(d.root, "trim.lock") }

// lock takes the lock for trimming. Two processes that find the same stale lock may both get it,
// which does no harm: each file is removed once.
func (d *disk) lock() (unlock func(), ok bool) {
	for range 2 {
		f, err := os.OpenFile(d.lockPath(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			f.Close()
			return func() { _ = os.Remove(d.lockPath()) }, true
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, false
		}
		if info, err := os.Stat(d.lockPath()); err == nil && d.now().Sub(info.ModTime()) < staleAfter {
			return nil, false
		}
		_ = os.Remove(d.lockPath())
	}
	return nil, false
}
