package bulk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"parley/internal/cli/exit"
	"parley/internal/kit/files"
	"parley/llm"
)

// maxRecord is the maximum length of a record that is read back.
const maxRecord = 512 << 20

// keptLine is the largest buffer for a record that is kept for the next one.
const keptLine = 1 << 20

// syncEvery is how often records are synced to the disk. A power cut can lose the records since the last sync; a
// killed process loses nothing.
const syncEvery = time.Second

// staleSuffix ends the name of the file for answers that are no longer asked for, and for failures that cost something.
const staleSuffix = ".stale"

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
	lost    bool // a record could not be written
	synced  time.Time
	kept    map[recordKey]keptRecord   // the last answer of earlier runs by id and sample, until it is used or another record takes its place
	older   map[recordKey][]keptRecord // the answers before it, to the same question or another one
	others  []int64                    // offsets of answers to other questions that are to be moved away
	paid    []int64                    // offsets of the failures of earlier runs that cost something
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
func OpenOut(ctx context.Context, path string, ids Keyer) (*outFile, error) {
	f, err := files.OpenLocked(path)
	if errors.Is(err, files.ErrHeld) {
		return nil, exit.Usagef("--out: %s is in use by another run", path)
	}
	if err != nil {
		return nil, exit.AsUsage(fmt.Errorf("--out: %w", err))
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	o := &outFile{path: path, keys: ids, f: f, synced: time.Now(), kept: map[recordKey]keptRecord{}, older: map[recordKey][]keptRecord{}}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = exit.Usagef("%s is not a regular file", path)
	}
	if err == nil {
		o.end, err = readRecords(f, path, "move the file away, or name another", o.keep)
	}
	if err == nil {
		err = o.collectInFlight(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--out: %w", err), f.Close())
	}
	return o, nil
}

// Spent returns what the records of earlier runs cost: failures, and records that were moved away, included.
func (o *outFile) Spent() (llm.Money, error) {
	f, _, cost, err := o.openStale(0)
	if errors.Is(err, fs.ErrNotExist) {
		return o.spent, nil
	}
	if err != nil {
		return 0, fmt.Errorf("--out: %w", err)
	}
	return o.spent.Plus(cost), f.Close()
}

// readRecords reads a file to its end, and returns where that is. A last line without a newline gets one if it is a record, and is removed
// if it is a truncated one. For any other line that is not a record, the error gives the advice.
func readRecords(f *os.File, path, advice string, each func(old oldRecord, off int64)) (end int64, err error) {
	for lines := files.NewLineReader(f, maxRecord); ; {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		var old oldRecord
		if err == nil {
			old, err = readRecord(line)
		}
		n := min(len(line), len(recordStart))
		switch {
		case err == nil:
			each(old, lines.Start)
			if end = lines.At; !lines.Ended {
				_, err = f.WriteAt([]byte("\n"), end)
				return end + 1, err
			}
		case errors.Is(err, errNoRecord) && !lines.Ended && string(line[:n]) == recordStart[:n]:
			return end, f.Truncate(end)
		default:
			return 0, exit.Usagef("%s:%d: %w; %s", path, max(1, lines.Number), err, advice)
		}
	}
}

func (o *outFile) keep(old oldRecord, off int64) {
	o.records++
	o.spent = o.spent.Plus(old.cost)
	if !old.ok {
		if old.cost > 0 {
			o.paid = append(o.paid, off)
		}
		return
	}
	at := o.keys.key(old.id, old.sample)
	if before, ok := o.kept[at]; ok {
		o.older[at] = append(o.older[at], before)
	}
	o.kept[at] = keptRecord{off: off, digest: old.digest}
}

// earlier returns the answers of earlier runs with a key.
func (o *outFile) earlier(at recordKey) []keptRecord {
	last, ok := o.kept[at]
	if !ok {
		return nil
	}
	return append(o.older[at], last)
}

// have reuses the answer of an earlier run to the same question.
func (o *outFile) have(slot int, at recordKey, d digest) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, old := range slices.Backward(o.earlier(at)) {
		if old.digest == d {
			o.set(slot, at, old.off)
			return true
		}
	}
	return false
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
	err := r.writeTo(&o.line)
	if err == nil {
		_, err = o.f.WriteAt(o.line.Bytes(), o.end)
	}
	if err != nil {
		o.lost = true
		return fmt.Errorf("--out: %w", err)
	}
	o.set(slot, o.keys.key(r.ID, r.Sample), o.end)
	o.end += int64(o.line.Len())
	if o.line.Cap() > keptLine {
		o.line = bytes.Buffer{}
	}
	o.records++
	o.dirty = true
	if time.Since(o.synced) >= syncEvery {
		return o.sync()
	}
	return nil
}

// set makes the record at an offset the one of a slot. The answers of earlier runs with its key give way to it.
func (o *outFile) set(slot int, at recordKey, off int64) {
	for len(o.slots) <= slot {
		o.slots = append(o.slots, -1)
	}
	o.slots[slot] = off
	for _, old := range o.earlier(at) {
		if old.off != off {
			o.others = append(o.others, old.off)
		}
	}
	delete(o.kept, at)
	delete(o.older, at)
}

// Finish sorts the file into the input's order. Answers to other questions, and what earlier failures cost, are moved to a second file. After
// a stop, answers whose id and sample have no other record stay at the end.
func (o *outFile) Finish(complete bool) (note string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { err = errors.Join(err, o.Close()) }()
	if err = o.sync(); err == nil && !o.lost {
		err = o.removeInFlight() // before the file is replaced, when another process can take it
	}
	if err != nil {
		return "", err
	}
	var unread []int64
	for at := range o.kept {
		for _, k := range o.earlier(at) {
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
	if slices.IsSorted(order) && len(order) == o.records {
		return "", o.sync()
	}
	if err := o.rewrite(order, slices.Sorted(slices.Values(append(o.paid, o.others...)))); err != nil {
		return "", fmt.Errorf("--out: put in order: %w", err)
	}
	if n := len(o.others); n > 0 {
		note = fmt.Sprintf("%d answers to requests that are gone or changed were moved to %s", n, o.path+staleSuffix)
	}
	if err := files.SyncFolder(filepath.Dir(o.path)); err != nil {
		return note, fmt.Errorf("--out: %w", err)
	}
	return note, nil
}

// sync syncs the file.
func (o *outFile) sync() error {
	if !o.dirty {
		return nil
	}
	o.dirty, o.synced = false, time.Now()
	if err := o.f.Sync(); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// rewrite moves records to the second file, and atomically replaces the file by the others in the given order. If it fails, both are as before.
func (o *outFile) rewrite(order, moved []int64) (err error) {
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
	if len(moved) > 0 {
		var f *os.File
		var end int64
		if f, end, _, err = o.openStale(os.O_CREATE); err != nil {
			return err
		}
		defer func() {
			if err != nil { // such as a full disk
				err = errors.Join(err, f.Truncate(end))
			}
			err = errors.Join(err, f.Close())
		}()
		if err := errors.Join(o.copyTo(f, moved), f.Sync()); err != nil {
			return err
		}
	}
	if runtime.GOOS == "windows" { // it does not replace an open file
		if err := o.Close(); err != nil {
			return err
		}
	}
	return os.Rename(tmp.Name(), o.path)
}

// Close closes the file, once, and leaves it as it is.
func (o *outFile) Close() error {
	if o.f == nil {
		return nil
	}
	f := o.f
	o.f = nil
	return f.Close()
}

// openStale opens the file of records that were moved away, at its end, and returns what they cost. It is as private as the file itself.
func (o *outFile) openStale(flag int) (f *os.File, end int64, cost llm.Money, err error) {
	info, err := o.f.Stat()
	if err != nil {
		return nil, 0, 0, err
	}
	path := o.path + staleSuffix
	if old, err := os.Lstat(path); err == nil && !old.Mode().IsRegular() {
		return nil, 0, 0, exit.Usagef("%s exists and is not a regular file; move it away", path)
	}
	if f, err = os.OpenFile(path, os.O_RDWR|flag, info.Mode().Perm()); err != nil {
		return nil, 0, 0, err
	}
	end, err = readRecords(f, path, "it is needed for answers that are no longer asked for: move the file away, and --budget forgets what its records cost",
		func(old oldRecord, _ int64) { cost = cost.Plus(old.cost) })
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		return nil, 0, 0, errors.Join(err, f.Close())
	}
	return f, end, cost, nil
}

func (o *outFile) copyTo(w io.Writer, order []int64) error {
	out := bufio.NewWriterSize(w, 1<<20)
	in := files.NewLines(o.f, o.end)
	for _, off := range order {
		line, err := in.At(off)
		if err != nil {
			return err
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// inFlightSuffix ends the name of the file that has one record: of what the calls in flight can cost.
const inFlightSuffix = ".open"

// Expose makes durable what the calls in flight can cost: see budget.Budget. A process that is killed leaves it behind.
func (o *outFile) Expose(_ context.Context, worst llm.Money) error {
	line, err := inFlightRecord(worst)
	if err != nil {
		return err
	}
	return files.Replace(o.path+inFlightSuffix, 0o600, line)
}

func inFlightRecord(worst llm.Money) ([]byte, error) {
	return (&Record{ID: json.RawMessage("null"), Error: &llm.Error{
		Kind: llm.KindCanceled, Message: "the process was killed: the most that its calls in flight can cost", Metadata: llm.Metadata{Cost: worst},
	}}).bytes()
}

// collectInFlight moves the record that a killed process left behind to the second file, so that its cost counts for good.
func (o *outFile) collectInFlight(ctx context.Context) error {
	const maxStaked = 4096
	line, err := files.Read(ctx, o.path+inFlightSuffix, maxStaked)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var old oldRecord
	if err == nil {
		old, err = readRecord(line)
	}
	if err != nil {
		return exit.Usagef("%s: %w; it should say what calls in flight can cost. If you move the file away, --budget does not count them", o.path+inFlightSuffix, err)
	}
	if line, err = inFlightRecord(old.cost); err != nil {
		return err
	}
	f, _, _, err := o.openStale(os.O_CREATE)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Remove(o.path + inFlightSuffix) // if it is still there after a power failure, it counts twice
}

// removeInFlight removes the record of calls in flight: all of them have their own.
func (o *outFile) removeInFlight() error {
	if err := os.Remove(o.path + inFlightSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
