package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"parley/internal/kit/sse"
)

// Stream removes a key from a stream of server-sent events, even if it is split over the texts of
// several events. It follows the texts as clients join them: see scanner. It holds events back only
// while a text ends with the first 4 to 11 characters of the key. From the 12th on it removes them
// at once.
type Stream struct {
	r       *Redactor
	next    *Stream            // of the next key
	threads map[uint64]*thread // whose text ends with a part of the key
	waiting int                // threads that hold events back
	full    bool               // there were more threads than maxThreads
	held    []event
	size    int     // of the held events
	text    []piece // of the current event
	scan    scanner
}

const (
	holdFrom   = 4        // characters of the key that make an event wait for the next one
	cutFrom    = 12       // characters of the key that do not occur by chance
	maxHeld    = 64 << 10 // bytes that are held
	maxThreads = 1 << 16  // texts that end with a part of the key
)

var errThreads = errors.New("too many texts of the answer end with a part of a key")

// thread is a text that continues from one value to the next.
type thread struct {
	got int  // number of the key's characters at its end
	cut bool // they are removed
}

func (l *thread) waits() bool { return l.got >= holdFrom && !l.cut }

// event is an event that may be held back.
type event struct {
	raw  []byte
	text []piece
	cuts []cut
}

// piece is the part of an event's bytes that belongs to a thread.
type piece struct {
	thread   uint64
	from, to int
}

type cut struct {
	from, to int
	mark     bool // insert the mark here
}

// Stream returns a Stream, or nil if all keys are too short.
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

// Body returns the body of an answer without the keys, even if one is split over several texts. It
// fails if that cannot be decided.
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
				return nil, errThreads
			}
			b = e.bytes()
			continue
		}
		var out []byte
		emit := func(p []byte) error { out = append(out, p...); return nil } //nolint:unparam // Add and Flush take it
		for raw := range sse.Split(b) {
			if err := s.Add(raw, emit); err != nil {
				return nil, err
			}
		}
		_ = s.Flush(emit) // emit does not fail
		b = out
	}
	return b, nil
}

// Add adds the next event, and calls emit with the events that need not be held back. Their bytes
// are valid until emit returns.
func (s *Stream) Add(raw []byte, emit func([]byte) error) error {
	if s == nil {
		return emit(raw)
	}
	emit = s.through(emit)
	e := event{raw: s.r.only(raw), text: s.text[:0]}
	s.read(&e)
	s.text = e.text
	if s.full {
		return errThreads
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

// through passes events to the Stream of the next key.
func (s *Stream) through(emit func([]byte) error) func([]byte) error {
	if s.next == nil {
		return emit
	}
	return func(b []byte) error { return s.next.Add(b, emit) }
}

// Flush emits the held events. Call it after the last event.
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

// Holds reports whether events are held back.
func (s *Stream) Holds() bool { return s != nil && (len(s.held) > 0 || s.next.Holds()) }

// cutHeld removes the beginnings of keys from the held events, although they may not be keys,
// because too many bytes are held.
func (s *Stream) cutHeld() {
	for key, l := range s.threads {
		if l.waits() {
			last := &s.held[len(s.held)-1]
			s.cutBack(last, key, l.got)
			l.cut = true
		}
	}
	s.waiting = 0
}

// read follows the key through the texts in the data of an event.
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
	joined := bytes.Repeat([]byte{' '}, len(e.raw)) // positions do not change
	eachData(e.raw, func(a, b int) { copy(joined[a:b], e.raw[a:b]) })
	if json.Valid(joined) {
		s.json(e, joined, 0)
		return
	}
	eachData(e.raw, func(a, b int) { s.json(e, e.raw[a:b], a) }) // some clients read line by line
}

// eachData calls each with the position of the data in every line of an event.
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

// lineEnd returns the end of the first line of b.
func lineEnd(b []byte) int {
	if n := bytes.IndexByte(b, '\n'); n >= 0 {
		b = b[:n]
	}
	if n := bytes.IndexByte(b, '\r'); n >= 0 {
		return n
	}
	return len(b)
}

// json follows the key through the texts of b, which begins at base in the event.
func (s *Stream) json(e *event, b []byte, base int) {
	plain := bytes.TrimLeft(b, " \t\r\n")
	if len(plain) == 0 {
		return
	}
	if c := plain[0]; c != '{' && c != '[' && c != '"' { // not JSON: all of it is one text
		s.follow(e, piece{0, base, base + len(b)})
		return
	}
	if len(s.threads) == 0 && !s.r.suspectsTexts(b) {
		return
	}
	s.scan.read(b)
	for _, v := range s.scan.values {
		s.scan.threads(v, func(thread uint64) { s.follow(e, piece{thread, base + v.from, base + v.to}) })
	}
}

// follow compares a piece with the key.
func (s *Stream) follow(e *event, p piece) {
	l := s.threads[p.thread]
	known := l != nil
	if !known {
		if !s.r.partly(e.raw[p.from:p.to]) {
			return
		}
		l = &thread{}
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
		delete(s.threads, p.thread)
	case l.got > 0:
		if !known {
			s.keep(p.thread, l)
		}
		if p.from < p.to {
			e.text = append(e.text, p)
		}
	}
}

func (s *Stream) keep(key uint64, l *thread) {
	if len(s.threads) >= maxThreads {
		s.full = true
		return
	}
	if s.threads == nil {
		s.threads = map[uint64]*thread{}
	}
	s.threads[key] = l
}

// match compares the characters of a piece with the key, and removes the key.
func (s *Stream) match(e *event, p piece, l *thread) {
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
			s.cutBack(e, p.thread, l.got-here)
			l.cut = true
		}
		if l.got == len(r.key) {
			l.got, l.cut = 0, false
		}
	}
}

// cutBack removes the last n characters of a thread, from e and then from the held events. It
// inserts the mark at the first cut.
func (s *Stream) cutBack(e *event, thread uint64, n int) {
	first := &e.cuts
	before := func(h *event) {
		for i := len(h.text) - 1; i >= 0 && n > 0; i-- {
			if q := h.text[i]; q.thread == thread {
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

// back returns the position of the last n characters of a text, and how many there are.
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

// bytes returns the bytes of the event without the cuts.
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
