package redact

import (
	"bytes"
	"slices"
)

// Stream takes the key out of a stream of server-sent events, also where it is spread over the
// texts of several: in the same member of one event after another. It holds events back only
// while they may be the beginning of the key.
type Stream struct {
	r     *Redactor
	lanes []lane
	held  []event
	size  int     // of what is held
	text  []piece // of an event that is being read
}

const (
	holdFrom = 4        // characters of the key that make an event wait for the next one
	maxHeld  = 64 << 10 // bytes that are held
	maxLanes = 64
)

// lane is a text that goes on from one event to the next: a member by its name, and the index
// that stands before it.
type lane struct {
	name, index string
	got         int // characters of the key that its text ends with
}

// event is one that is held.
type event struct {
	raw  []byte
	text []piece
	cuts []cut
}

// piece is what an event adds to a lane, as a part of its bytes.
type piece struct{ lane, from, to int }

type cut struct {
	from, to int
	mark     bool // the mark goes there
}

// Stream returns what watches over one stream, or nil where the key is too short for that.
func (r *Redactor) Stream() *Stream {
	if !r.answers() {
		return nil
	}
	return &Stream{r: r}
}

// Add takes the next event in and hands those on that are complete. What emit is given is
// good until it returns.
func (s *Stream) Add(raw []byte, emit func([]byte) error) error {
	if s == nil {
		return emit(raw)
	}
	e := event{raw: s.r.Bytes(raw), text: s.text[:0]}
	s.read(&e)
	s.text = e.text
	if !s.waits() {
		if err := s.Flush(emit); err != nil {
			return err
		}
		return emit(e.bytes())
	}
	e.raw, e.text = bytes.Clone(e.raw), slices.Clone(e.text)
	s.held = append(s.held, e)
	if s.size += len(e.raw); s.size > maxHeld {
		return s.Flush(emit)
	}
	return nil
}

// Flush hands on what is held. It must follow the last event.
func (s *Stream) Flush(emit func([]byte) error) error {
	if s == nil {
		return nil
	}
	held := s.held
	s.held, s.size = nil, 0
	for i := range held {
		if err := emit(held[i].bytes()); err != nil {
			return err
		}
	}
	return nil
}

// Holds says whether events are held back.
func (s *Stream) Holds() bool { return s != nil && len(s.held) > 0 }

// waits says whether a text may end in the middle of the key.
func (s *Stream) waits() bool {
	for i := range s.lanes {
		if s.lanes[i].got >= holdFrom {
			return true
		}
	}
	return false
}

// read finds the texts of an event, and follows the key through them.
func (s *Stream) read(e *event) {
	b := e.raw
	var name, index []byte
	for i := 0; i < len(b); {
		open := bytes.IndexByte(b[i:], '"')
		if open < 0 {
			return
		}
		from := i + open + 1
		to := closing(b, from)
		if to < 0 {
			return
		}
		i = to + 1
		after := bytes.TrimLeft(b[i:], " \t")
		if len(after) == 0 || after[0] != ':' {
			s.follow(e, piece{s.lane(name, index), from, to})
			continue
		}
		if name = b[from:to]; bytes.HasSuffix(name, []byte("index")) {
			index = number(after[1:])
		}
	}
}

// closing returns where the string ends that begins at i, or -1.
func closing(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

func number(b []byte) []byte {
	b = bytes.TrimLeft(b, " \t")
	n := 0
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	return b[:n]
}

// lane finds the lane of a member.
func (s *Stream) lane(name, index []byte) int {
	for i := range s.lanes {
		if l := &s.lanes[i]; l.name == string(name) && l.index == string(index) {
			return i
		}
	}
	if len(s.lanes) == maxLanes { // nobody has so many: they share one
		return maxLanes - 1
	}
	s.lanes = append(s.lanes, lane{name: string(name), index: string(index)})
	return len(s.lanes) - 1
}

// follow takes the characters of a piece in.
func (s *Stream) follow(e *event, p piece) {
	l, r := &s.lanes[p.lane], s.r
	for i := p.from; i < p.to; {
		c, size := unescape(e.raw[i:p.to])
		i += size
		for l.got > 0 && c != r.key[l.got] {
			l.got = r.back[l.got]
		}
		if c == r.key[l.got] {
			l.got++
		}
		if l.got == len(r.key) {
			s.cut(e, p, i)
			l.got = 0
			p.from = i
		}
	}
	e.text = append(e.text, p)
}

// cut takes the key out, which ends at end in a piece of e and began in pieces before it.
func (s *Stream) cut(e *event, p piece, end int) {
	left := len(s.r.key)
	at, n := back(e.raw[p.from:end], left)
	first := &e.cuts
	e.cuts = append(e.cuts, cut{from: p.from + at, to: end})
	for i := len(s.held) - 1; i >= 0 && left > n; i-- {
		left -= n
		n = 0
		h := &s.held[i]
		for _, q := range slices.Backward(h.text) {
			if q.lane != p.lane || left == 0 {
				continue
			}
			at, got := back(h.raw[q.from:q.to], left)
			h.cuts = append(h.cuts, cut{from: q.from + at, to: q.to})
			first = &h.cuts
			left -= got
		}
	}
	(*first)[len(*first)-1].mark = true
}

// back returns where the last n characters of a text begin, and how many there are.
func back(text []byte, n int) (at, got int) {
	var starts []int
	for i := 0; i < len(text); {
		starts = append(starts, i)
		_, size := unescape(text[i:])
		i += size
	}
	got = min(n, len(starts))
	if got == 0 {
		return len(text), 0
	}
	return starts[len(starts)-got], got
}

// bytes are those of the event, without what was cut out.
func (e *event) bytes() []byte {
	if len(e.cuts) == 0 {
		return e.raw
	}
	slices.SortFunc(e.cuts, func(a, b cut) int { return a.from - b.from })
	var out []byte
	from := 0
	for _, c := range e.cuts {
		out = append(out, e.raw[from:c.from]...)
		if c.mark {
			out = append(out, Mark...)
		}
		from = c.to
	}
	return append(out, e.raw[from:]...)
}
