package bulk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"parley/internal/cli/exit"
	"parley/internal/filelock"
	"parley/llm"
)

// maxRecord is the maximum length of a record that is read back.
const maxRecord = 512 << 20

// keptLine is the largest buffer for a record that is kept for the next one.
const keptLine = 1 << 20

// syncEvery is how often records are synced to the disk. A power cut can lose the records since the last sync; a
// killed process loses nothing.
const syncEvery = time.Second

// stale ends the name of the file for answers that are no longer asked for.
const stale = ".stale"

// outFile is the file of --out. Records are appended as they arrive, and sorted into the input's order when the
// run ends. It is safe for use by several goroutines.
type outFile struct {
	path string
	keys Keyer

	mu      sync.Mutex
	f       *os.File
	end     int64
	records int // in the file, including failures
	spent   llm.Money
	dirty   bool
	synced  time.Time
	kept    map[recordKey]keptRecord   // the last answer of earlier runs by id and sample, until this run comes to its question
	older   map[recordKey][]keptRecord // the answers before it, to the same question or another one
	others  []int64                    // offsets of answers that are not those to the questions of this run
	slots   []int64                    // offset of the record by slot; -1 before it is written
	line    bytes.Buffer               // the record that is being written
}

// keptRecord is an answer of an earlier run.
type keptRecord struct {
	off    int64
	digest digest
}

// OpenOut opens or creates the file and reads its records. A truncated last line, which a kill leaves behind, is
// removed. Any other line that is not a record is an error: the file then belongs to something else.
func OpenOut(path string, ids Keyer) (*outFile, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := filelock.Open(path)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, exit.Usagef("--out: %s is in use by another run", path)
	}
	if err != nil {
		return nil, exit.AsUsage(fmt.Errorf("--out: %w", err))
	}
	o := &outFile{path: path, keys: ids, f: f, synced: time.Now(), kept: map[recordKey]keptRecord{}, older: map[recordKey][]keptRecord{}}
	if err := o.load(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return o, nil
}

// Spent returns what the records of earlier runs cost: failures, and answers that were moved away, included.
func (o *outFile) Spent() (llm.Money, error) {
	moved, err := costOf(o.path+stale, math.MaxInt)
	return o.spent.Plus(moved), err
}

func (o *outFile) load() error {
	info, err := o.f.Stat()
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if !info.Mode().IsRegular() {
		return exit.Usagef("--out: %s is not a regular file", o.path)
	}
	lines := NewLineReader(o.f, maxRecord)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return exit.Usagef("--out: %s:%d: %w", o.path, lines.Number, err)
		}
		old, err := readRecord(line)
		switch {
		case !lines.ended:
			return o.mend(line, err == nil, old, lines)
		case err != nil:
			return exit.Usagef("--out: %s:%d: %w; move the file away, or name another", o.path, lines.Number, err)
		}
		o.keep(old, lines.start)
		o.end = lines.at
	}
}

// mend handles a last line without a newline: a complete record gets one, a truncated one is removed.
func (o *outFile) mend(line []byte, whole bool, old oldRecord, lines *lineReader) error {
	if whole {
		if _, err := o.f.WriteAt([]byte("\n"), lines.at); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		o.keep(old, lines.start)
		o.end = lines.at + 1
		return nil
	}
	if n := min(len(line), len(recordStart)); string(line[:n]) != recordStart[:n] {
		return exit.Usagef("--out: %s:%d: %w; move the file away, or name another", o.path, lines.Number, errNoRecord)
	}
	if err := o.f.Truncate(lines.start); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

func (o *outFile) keep(old oldRecord, off int64) {
	o.records++
	o.spent = o.spent.Plus(old.cost)
	if !old.ok {
		return
	}
	at := o.keys.of(old.id, old.sample)
	if before, ok := o.kept[at]; ok {
		o.older[at] = append(o.older[at], before)
	}
	o.kept[at] = keptRecord{off: off, digest: old.digest}
}

// have reuses the answer of an earlier run to the same question.
func (o *outFile) have(slot int, at recordKey, d digest) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, ok := o.kept[at]
	if !ok {
		return false
	}
	found := false
	for _, old := range slices.Backward(append(o.older[at], last)) {
		if found || old.digest != d {
			o.others = append(o.others, old.off)
			continue
		}
		o.set(slot, old.off)
		found = true
	}
	delete(o.kept, at)
	delete(o.older, at)
	return found
}

// admit lets every slot begin at once: no record waits in memory.
func (o *outFile) admit(int, <-chan struct{}) bool { return true }

// put appends a record. After a failed write, the next record overwrites the partial one.
func (o *outFile) put(slot int, r *Record) error {
	if r == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line.Reset()
	if err := r.writeTo(&o.line); err != nil {
		return err
	}
	if _, err := o.f.WriteAt(o.line.Bytes(), o.end); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	o.set(slot, o.end)
	o.end += int64(o.line.Len())
	if o.line.Cap() > keptLine {
		o.line = bytes.Buffer{}
	}
	o.records++
	o.dirty = true
	if time.Since(o.synced) >= syncEvery {
		return o.settle()
	}
	return nil
}

func (o *outFile) set(slot int, off int64) {
	for len(o.slots) <= slot {
		o.slots = append(o.slots, -1)
	}
	o.slots[slot] = off
}

// Finish sorts the file into the input's order. Answers to other questions than those of the input are moved to a
// second file. Of the ids that were not read, they stay at the end.
func (o *outFile) Finish(complete bool) (note string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { err = errors.Join(err, o.close()) }()
	var unread []int64
	for at, last := range o.kept {
		for _, k := range append(o.older[at], last) {
			unread = append(unread, k.off)
		}
	}
	slices.Sort(unread)
	order := slices.DeleteFunc(o.slots, func(off int64) bool { return off < 0 })
	if complete {
		o.others = append(o.others, unread...)
	} else {
		order = append(order, unread...)
	}
	if len(o.others) > 0 {
		slices.Sort(o.others)
		if _, err := costOf(o.path+stale, 1); err != nil {
			return "", err
		}
		if err := o.appendTo(o.path+stale, o.others); err != nil {
			return "", fmt.Errorf("--out: %w", err)
		}
		note = fmt.Sprintf("%d answers to requests that are gone or changed were moved to %s", len(o.others), o.path+stale)
	}
	if slices.IsSorted(order) && len(order) == o.records {
		return note, o.settle()
	}
	if err := o.rewrite(order); err != nil {
		return note, fmt.Errorf("--out: put in order: %w", err)
	}
	return note, nil
}

// settle syncs the file.
func (o *outFile) settle() error {
	if !o.dirty {
		return nil
	}
	o.dirty, o.synced = false, time.Now()
	if err := o.f.Sync(); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// rewrite atomically replaces the file by its records in the given order.
func (o *outFile) rewrite(order []int64) (err error) {
	info, err := o.f.Stat()
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(o.path), filepath.Base(o.path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	if err := errors.Join(o.copyTo(tmp, order), tmp.Chmod(info.Mode().Perm()), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return replace(o, tmp.Name())
}

// close closes the file, once.
func (o *outFile) close() error {
	if o.f == nil {
		return nil
	}
	f := o.f
	o.f = nil
	return f.Close()
}

// costOf returns what the first n records of a file of answers that were moved away cost. It refuses a file with
// anything else in these lines.
func costOf(path string, n int) (cost llm.Money, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return 0, exit.Usagef("--out: %s exists and is not a regular file; move it away", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("--out: %w", err)
	}
	defer f.Close() // read only
	for lines := NewLineReader(f, maxRecord); lines.Number < n && err == nil; {
		var line []byte
		var old oldRecord
		if line, err = lines.Next(); err == nil {
			old, err = readRecord(line)
		}
		cost = cost.Plus(old.cost)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, exit.Usagef("--out: %s is needed for answers that are no longer asked for: %w; move it away", path, err)
	}
	return cost, nil
}

func (o *outFile) appendTo(path string, order []int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		err = o.copyTo(f, order)
	}
	if err != nil { // such as a full disk: leave no record that is cut off
		err = errors.Join(err, f.Truncate(end))
	}
	return errors.Join(err, f.Sync(), f.Close())
}

func (o *outFile) copyTo(w io.Writer, order []int64) error {
	out := bufio.NewWriterSize(w, 1<<20)
	in := &window{f: o.f, end: o.end}
	for _, off := range order {
		line, err := in.line(off)
		if err != nil {
			return err
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// window reads lines of a file in nearly their order: most are near the one before.
type window struct {
	f    io.ReaderAt
	end  int64 // of the file
	from int64 // offset of buf
	buf  []byte
}

// around is how much a window reads before and after a line, if the line is not longer.
const around = 256 << 10

// line returns the line at off with its newline. It is valid until the next call.
func (w *window) line(off int64) ([]byte, error) {
	for ahead := int64(around); ; ahead *= 2 {
		if at := off - w.from; at >= 0 && at < int64(len(w.buf)) {
			if n := bytes.IndexByte(w.buf[at:], '\n'); n >= 0 {
				return w.buf[at : at+int64(n)+1], nil
			}
		}
		if ahead > 2*max(w.end-off, around) {
			return nil, io.ErrUnexpectedEOF
		}
		w.from = max(0, off-around)
		size := min(off-w.from+ahead, w.end-w.from)
		w.buf = slices.Grow(w.buf[:0], int(max(0, size)))[:max(0, size)]
		if n, err := w.f.ReadAt(w.buf, w.from); n < len(w.buf) {
			w.buf = w.buf[:n]
			return nil, err
		}
	}
}
