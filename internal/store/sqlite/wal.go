package sqlite

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// SQLite takes a log up to the first frame whose checksum is wrong, since that is where a
// power cut ends it. It cannot tell a cut from a frame in the middle that is damaged, after
// which whole commits are lost without a word. Here they are told apart: a commit is synced
// before the next one is written, so where a frame of a later commit is good, what is before
// it was good once. In a file that is marked with syncedLater, a commit is synced before the
// maxUnsynced-th after it is written.

// maxUnsynced is how many commits SyncLater leaves unsynced at most.
const maxUnsynced = 256

// syncedLater is the bit of user_version that marks a file whose commits are synced later than they
// are written.
const syncedLater = 1 << 16

// markedLater says whether the file itself is marked, whatever is in its log.
func markedLater(target string) bool {
	_, version, err := marks(address(target, "mode=ro&immutable=1"))
	return err == nil && version&syncedLater != 0
}

// checkLog says if commits in the log of a run file cannot be read.
func checkLog(path, target string) error {
	most := 1     // commits that a power cut can spoil
	for range 2 { // somebody may have begun the log anew while we read it
		damaged, err := logDamaged(target+"-wal", most)
		if err != nil {
			return fmt.Errorf("sqlite: %s: the log beside it: %w", path, err)
		}
		if !damaged {
			return nil
		}
		if markedLater(target) {
			most = maxUnsynced
		}
	}
	return fmt.Errorf("sqlite: %s: %w: its log %s-wal is damaged in the middle, and commits after that cannot be read "+
		"(put back a copy of both files; or, to go on without those commits: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)')", path, ErrDamaged, target)
}

func logDamaged(path string, most int) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it is only read
	w, ok := newWalk(bufio.NewReaderSize(f, 1<<20))
	if !ok {
		return false, nil
	}
	w.most = most
	for w.next() {
		if w.damaged {
			return true, nil
		}
	}
	return w.damaged, nil
}

// walk goes through a log.
type walk struct {
	in     io.Reader
	order  binary.ByteOrder
	page   []byte
	frame  [24]byte
	salts  uint64
	seeds  [][2]uint32 // what the checksum may go on from: one, or several after a frame that is bad
	bad    bool        // there was a frame that is
	ended  int         // how many commits ended at it, or after it
	most   int         // how many of them may not have been synced
	others int         // how many frames in a row are of an earlier log
	// damaged means that a frame is bad that was good once.
	damaged bool
}

// newWalk reads the head of a log. It is false where there is no more than that.
func newWalk(in io.Reader) (*walk, bool) {
	var head [32]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, false
	}
	u := func(i int) uint32 { return binary.BigEndian.Uint32(head[i:]) }
	w := &walk{in: in, order: binary.LittleEndian, salts: binary.BigEndian.Uint64(head[16:])}
	if u(0)&1 != 0 {
		w.order = binary.BigEndian
	}
	size := u(8)
	sum := w.checksum([2]uint32{}, head[:24])
	if u(0)&^1 != 0x377f0682 || sum != [2]uint32{u(24), u(28)} || size < 512 || size > 1<<16 {
		w.page = make([]byte, pageSize)
		return w, w.headless()
	}
	w.page, w.seeds = make([]byte, size), [][2]uint32{sum}
	return w, true
}

// headless is for a log whose head is bad, which SQLite takes for empty: if there is a frame,
// the head was good once.
func (w *walk) headless() bool {
	if !w.read() {
		return false
	}
	w.damaged = binary.BigEndian.Uint32(w.frame[:]) != 0 && binary.BigEndian.Uint64(w.frame[8:]) != 0
	return w.damaged
}

func (w *walk) read() bool {
	_, err := io.ReadFull(w.in, w.frame[:])
	if err == nil {
		_, err = io.ReadFull(w.in, w.page)
	}
	return err == nil
}

// next takes in a frame. It is false at the end.
func (w *walk) next() bool {
	const enough = 64 // a flipped bit makes one frame look like that, not many
	if w.damaged || w.others > enough || !w.read() {
		return false
	}
	ours := binary.BigEndian.Uint64(w.frame[8:]) == w.salts
	if w.others++; ours {
		w.others = 0
	}
	commit := binary.BigEndian.Uint32(w.frame[4:]) != 0
	stored := [2]uint32{binary.BigEndian.Uint32(w.frame[16:]), binary.BigEndian.Uint32(w.frame[20:])}
	var computed [2]uint32
	for _, seed := range w.seeds {
		computed = w.checksum(w.checksum(seed, w.frame[:8]), w.page)
		if ours && computed == stored {
			w.damaged = w.bad && w.ended >= w.most
			if w.bad && commit {
				w.ended++
			}
			w.seeds = append(w.seeds[:0], stored)
			return true
		}
	}
	w.bad = true
	if ours && commit {
		w.ended++
	}
	w.seeds = append(w.seeds[:0], stored, computed)
	return true
}

// checksum is SQLite's, of b after what was summed up before.
func (w *walk) checksum(s [2]uint32, b []byte) [2]uint32 {
	if w.order == binary.LittleEndian { // nearly always: a loop without calls
		for ; len(b) >= 8; b = b[8:] {
			s[0] += binary.LittleEndian.Uint32(b) + s[1]
			s[1] += binary.LittleEndian.Uint32(b[4:]) + s[0]
		}
		return s
	}
	for ; len(b) >= 8; b = b[8:] {
		s[0] += binary.BigEndian.Uint32(b) + s[1]
		s[1] += binary.BigEndian.Uint32(b[4:]) + s[0]
	}
	return s
}
