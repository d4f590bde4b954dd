package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// Stream takes the key out of a stream of server-sent events, also where it is split over the
// texts of several. It follows the texts as clients put them together: see lanes. It holds
// events back only while a text ends with 4 to 11 characters of the beginning of the key.
// From the 12th on they are taken out at once.
type Stream struct {
	r       *Redactor
	next    *Stream          // of the next key
	lanes   map[uint64]*lane // those whose text ends with a part of the key
	waiting int              // lanes that make events wait
	full    bool             // there were more lanes than maxLanes
	held    []event
	size    int     // of what is held
	text    []piece // of an event that is being read
	scan    scanner
}

const (
	holdFrom = 4        // characters of the key that make an event wait for the next one
	cutFrom  = 12       // characters of the key that do not occur by chance
	maxHeld  = 64 << 10 // bytes that are held
	maxLanes = 1 << 16  // texts that end with a part of the key
)

var errLanes = errors.New("redact: too many texts of the answer end with a part of the key")

// lane is a text that goes on from one value to the next.
type lane struct {
	got int  // characters of the key that its text ends with
	cut bool // they are taken out
}

func (l *lane) waits() bool { return l.got >= holdFrom && !l.cut }

// event is one that is held.
type event struct {
	raw  []byte
	text []piece
	cuts []cut
}

// piece is what an event adds to a lane, as a part of its bytes.
type piece struct {
	lane     uint64
	from, to int
}

type cut struct {
	from, to int
	mark     bool // the mark goes there
}

// Stream returns what watches over one stream, or nil where the key is too short for that.
func (r *Redactor) Stream() *Stream {
	if r == nil {
		return nil
	}
	next := r.also.Stream()
	if !r.answers() {
		return next
	}
	return &Stream{r: r, next: next}
}

// Body returns the body of an answer without the key, also where it is split over several
// texts. It fails where that cannot be decided.
func (r *Redactor) Body(b []byte, events bool) ([]byte, error) {
	for ; r != nil; r = r.also {
		if !r.answers() {
			continue
		}
		s := &Stream{r: r}
		if !events {
			e := event{raw: r.only(b)}
			s.json(&e, e.raw, 0)
			if s.full {
				return nil, errLanes
			}
			b = e.bytes()
			continue
		}
		var out []byte
		emit := func(p []byte) error { out = append(out, p...); return nil }
		for len(b) > 0 {
			n := eventEnd(b)
			if err := s.Add(b[:n], emit); err != nil {
				return nil, err
			}
			b = b[n:]
		}
		_ = s.Flush(emit) // emit does not fail
		b = out
	}
	return b, nil
}

// eventEnd returns where the first event of b ends: after an empty line.
func eventEnd(b []byte) int {
	for i := 0; i < len(b); {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
		if n == 0 || n == 1 && b[i-2] == '\r' {
			return i
		}
	}
	return len(b)
}

// Add takes the next event in and hands those on that are complete. What emit is given is
// good until it returns.
func (s *Stream) Add(raw []byte, emit func([]byte) error) error {
	if s == nil {
		return emit(raw)
	}
	emit = s.through(emit)
	e := event{raw: s.r.only(raw), text: s.text[:0]}
	s.read(&e)
	s.text = e.text
	if s.full {
		return errLanes
	}
	if s.waiting == 0 {
		if err := s.flush(emit); err != nil {
			return err
		}
		return emit(e.bytes())
	}
	e.raw, e.text = bytes.Clone(e.raw), slices.Clone(e.text)
	s.held = append(s.held, e)
	if s.size += len(e.raw); s.size > maxHeld {
		s.cutHeld()
		return s.flush(emit)
	}
	return nil
}

// through hands events on by way of the redactor of the next key.
func (s *Stream) through(emit func([]byte) error) func([]byte) error {
	if s.next == nil {
		return emit
	}
	return func(b []byte) error { return s.next.Add(b, emit) }
}

// Flush hands on what is held. It must follow the last event.
func (s *Stream) Flush(emit func([]byte) error) error {
	if s == nil {
		return nil
	}
	if err := s.flush(s.through(emit)); err != nil {
		return err
	}
	return s.next.Flush(emit)
}

func (s *Stream) flush(emit func([]byte) error) error {
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
func (s *Stream) Holds() bool { return s != nil && (len(s.held) > 0 || s.next.Holds()) }

// cutHeld takes out what events are held for, although it may not be the key: too much is held.
func (s *Stream) cutHeld() {
	for key, l := range s.lanes {
		if l.waits() {
			last := &s.held[len(s.held)-1]
			s.cutBack(last, key, l.got)
			l.cut = true
		}
	}
	s.waiting = 0
}

// read follows the key through the texts of an event: through those of its data, as a client
// joins it.
func (s *Stream) read(e *event) {
	lines := 0
	var from, to int
	eachData(e.raw, func(a, b int) { lines, from, to = lines+1, a, b })
	if lines == 1 {
		s.json(e, e.raw[from:to], from)
		return
	}
	if lines == 0 {
		return
	}
	joined := bytes.Repeat([]byte{' '}, len(e.raw)) // everything stays where it is
	eachData(e.raw, func(a, b int) { copy(joined[a:b], e.raw[a:b]) })
	if json.Valid(joined) {
		s.json(e, joined, 0)
		return
	}
	eachData(e.raw, func(a, b int) { s.json(e, e.raw[a:b], a) }) // some clients read line by line
}

// eachData calls each with where the data of every line of an event is.
func eachData(b []byte, each func(from, to int)) {
	for i := 0; i < len(b); {
		n := lineEnd(b[i:])
		line := bytes.TrimLeft(bytes.TrimPrefix(b[i:i+n], []byte("\ufeff")), " \t")
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			each(i+n-len(data), i+n)
		}
		i += n + 1
	}
}

// lineEnd returns where the first line of b ends.
func lineEnd(b []byte) int {
	if n := bytes.IndexByte(b, '\n'); n >= 0 {
		b = b[:n]
	}
	if n := bytes.IndexByte(b, '\r'); n >= 0 {
		return n
	}
	return len(b)
}

// json follows the key through the texts of b, which are at base in the event.
func (s *Stream) json(e *event, b []byte, base int) {
	plain := bytes.TrimLeft(b, " \t\r\n")
	if len(plain) == 0 {
		return
	}
	if c := plain[0]; c != '{' && c != '[' && c != '"' { // not JSON: the data is the text
		s.follow(e, piece{0, base, base + len(b)})
		return
	}
	if len(s.lanes) == 0 && !s.r.suspectsTexts(b) {
		return
	}
	s.scan.read(b)
	for _, v := range s.scan.values {
		s.scan.lanes(v, func(lane uint64) { s.follow(e, piece{lane, base + v.from, base + v.to}) })
	}
}

// follow takes the characters of a piece in.
func (s *Stream) follow(e *event, p piece) {
	l := s.lanes[p.lane]
	known := l != nil
	if !known {
		if !s.r.partly(e.raw[p.from:p.to]) {
			return
		}
		l = &lane{}
	}
	waited := l.waits()
	s.match(e, p, l)
	switch waits := l.waits(); {
	case waits && !waited:
		s.waiting++
	case waited && !waits:
		s.waiting--
	}
	switch {
	case l.got == 0 && known:
		delete(s.lanes, p.lane)
	case l.got > 0:
		if !known {
			s.keep(p.lane, l)
		}
		if p.from < p.to {
			e.text = append(e.text, p)
		}
	}
}

func (s *Stream) keep(key uint64, l *lane) {
	if len(s.lanes) >= maxLanes {
		s.full = true
		return
	}
	if s.lanes == nil {
		s.lanes = map[uint64]*lane{}
	}
	s.lanes[key] = l
}

// match compares the characters of a piece with the key, and takes out what is the key.
func (s *Stream) match(e *event, p piece, l *lane) {
	r := s.r
	least := min(cutFrom, len(r.key))
	var starts [cutFrom]int // of the last characters
	count := 0
	for i := p.from; i < p.to; {
		at := i
		starts[count%cutFrom] = at
		count++
		c, size := unescape(e.raw[i:p.to])
		i += size
		for l.got > 0 && c != r.key[l.got] {
			l.got = r.back[l.got]
		}
		if l.got == 0 {
			l.cut = false
		}
		if c != r.key[l.got] {
			continue
		}
		l.got++
		if l.cut {
			e.cuts = append(e.cuts, cut{from: at, to: i})
		} else if l.got >= least {
			here := min(l.got, count)
			e.cuts = append(e.cuts, cut{from: starts[(count-here)%cutFrom], to: i})
			s.cutBack(e, p.lane, l.got-here)
			l.cut = true
		}
		if l.got == len(r.key) {
			l.got, l.cut = 0, false
		}
	}
}

// cutBack takes out the last n characters of the pieces of a lane: those of e and then those
// that are held. Where the first cut is, the mark goes.
func (s *Stream) cutBack(e *event, lane uint64, n int) {
	first := &e.cuts
	before := func(h *event) {
		for i := len(h.text) - 1; i >= 0 && n > 0; i-- {
			if q := h.text[i]; q.lane == lane {
				at, got := back(h.raw[q.from:q.to], n)
				h.cuts = append(h.cuts, cut{from: q.from + at, to: q.to})
				first = &h.cuts
				n -= got
			}
		}
	}
	before(e)
	for i := len(s.held) - 1; i >= 0 && n > 0; i-- {
		if h := &s.held[i]; h != e {
			before(h)
		}
	}
	if len(*first) > 0 {
		(*first)[len(*first)-1].mark = true
	}
}

// back returns where the last n characters of a text begin, and how many there are.
func back(text []byte, n int) (at, got int) {
	starts, count := make([]int, n), 0
	for i := 0; i < len(text); count++ {
		starts[count%n] = i
		_, size := unescape(text[i:])
		i += size
	}
	if got = min(n, count); got == 0 {
		return len(text), 0
	}
	return starts[(count-got)%n], got
}

// bytes are those of the event, without what was cut out.
func (e *event) bytes() []byte {
	if len(e.cuts) == 0 {
		return e.raw
	}
	slices.SortStableFunc(e.cuts, func(a, b cut) int { return a.from - b.from })
	var out []byte
	from := 0
	for _, c := range e.cuts {
		if c.from >= from {
			out = append(out, e.raw[from:c.from]...)
			if c.mark {
				out = append(out, Mark...)
			}
		}
		from = max(from, c.to)
	}
	return append(out, e.raw[from:]...)
}
