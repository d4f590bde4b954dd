package runfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// walDamaged reports whether a log has a damaged frame that was good once. unsynced is how many
// commits at the end of the log may not have been synced, and pageSize is the size of a page
// where the header does not say it. A log that does not exist is not damaged.
//
// SQLite reads a log up to the first frame whose checksum is wrong, because that is where a
// power failure ends it. It cannot distinguish that from a damaged frame in the middle, after
// which it drops whole commits silently. walDamaged can: a commit is synced before one of
// the next commits is written, so if a frame of a later commit is good, the frames before it
// were good once.
func walDamaged(path string, unsynced, pageSize int) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it is only read
	s, ok := newWALScanner(bufio.NewReaderSize(f, 1<<20), pageSize)
	if !ok {
		return false, nil
	}
	s.unsynced = unsynced
	for s.next() {
		if s.damaged {
			return true, nil
		}
	}
	return s.damaged, nil
}

// walScanner reads the frames of a log.
type walScanner struct {
	in       io.Reader
	order    binary.ByteOrder
	page     []byte
	frame    [24]byte
	salts    uint64
	seeds    [][2]uint32 // possible checksums before the next frame: one, or several after a bad frame
	bad      bool        // there was a bad frame
	commits  int         // commits that ended at the bad frame or after it
	unsynced int         // how many of these may not have been synced
	others   int         // consecutive frames of an earlier log
	damaged  bool        // a bad frame was good once
}

// newWALScanner reads the header of a log. It returns false if the log has no frames.
func newWALScanner(in io.Reader, pageSize int) (*walScanner, bool) {
	var head [32]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, false
	}
	u := func(i int) uint32 { return binary.BigEndian.Uint32(head[i:]) }
	s := &walScanner{in: in, order: binary.LittleEndian, salts: binary.BigEndian.Uint64(head[16:])}
	if u(0)&1 != 0 {
		s.order = binary.BigEndian
	}
	size := u(8)
	sum := s.checksum([2]uint32{}, head[:24])
	if u(0)&^1 != 0x377f0682 || sum != [2]uint32{u(24), u(28)} || size < 512 || size > 1<<16 {
		s.page = make([]byte, pageSize)
		return s, s.headless()
	}
	s.page, s.seeds = make([]byte, size), [][2]uint32{sum}
	return s, true
}

// headless handles a log with a bad header, which SQLite treats as empty. If the log has a
// frame, the header was good once.
func (s *walScanner) headless() bool {
	if !s.read() {
		return false
	}
	s.damaged = binary.BigEndian.Uint32(s.frame[:]) != 0 && binary.BigEndian.Uint64(s.frame[8:]) != 0
	return s.damaged
}

func (s *walScanner) read() bool {
	_, err := io.ReadFull(s.in, s.frame[:])
	if err == nil {
		_, err = io.ReadFull(s.in, s.page)
	}
	return err == nil
}

// next reads a frame. It returns false at the end.
func (s *walScanner) next() bool {
	const enough = 64 // a flipped bit makes one frame look like one of an earlier log, not many
	if s.damaged || s.others > enough || !s.read() {
		return false
	}
	ours := binary.BigEndian.Uint64(s.frame[8:]) == s.salts
	if s.others++; ours {
		s.others = 0
	}
	commit := binary.BigEndian.Uint32(s.frame[4:]) != 0
	stored := [2]uint32{binary.BigEndian.Uint32(s.frame[16:]), binary.BigEndian.Uint32(s.frame[20:])}
	var computed [2]uint32
	for _, seed := range s.seeds {
		computed = s.checksum(s.checksum(seed, s.frame[:8]), s.page)
		if ours && computed == stored {
			s.damaged = s.bad && s.commits >= s.unsynced
			if s.bad && commit {
				s.commits++
			}
			s.seeds = append(s.seeds[:0], stored)
			return true
		}
	}
	s.bad = true
	if ours && commit {
		s.commits++
	}
	s.seeds = append(s.seeds[:0], stored, computed)
	return true
}

// checksum continues SQLite's checksum with b.
func (s *walScanner) checksum(sum [2]uint32, b []byte) [2]uint32 {
	if s.order == binary.LittleEndian { // nearly always: a loop without calls
		for ; len(b) >= 8; b = b[8:] {
			sum[0] += binary.LittleEndian.Uint32(b) + sum[1]
			sum[1] += binary.LittleEndian.Uint32(b[4:]) + sum[0]
		}
		return sum
	}
	for ; len(b) >= 8; b = b[8:] {
		sum[0] += binary.BigEndian.Uint32(b) + sum[1]
		sum[1] += binary.BigEndian.Uint32(b[4:]) + sum[0]
	}
	return sum
}
