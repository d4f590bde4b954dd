package redact

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"strings"
)

// scanner finds the texts of a JSON value, and the threads that they belong to.
//
// A client joins the texts of one member: all of them, or those with one index. So a text belongs to
// a thread of its member's name, and to one more for every index in the objects around it.
type scanner struct {
	values  []value
	objects []object
	seed    maphash.Seed // of the hashes of names, so that a provider cannot find collisions
	seeded  bool
}

// value is a text.
type value struct {
	from, to int
	name     uint64 // hash of its member's name
	object   int    // index of the object around it
}

type object struct {
	parent int
	name   uint64 // hash of the current member's name
	index  [numIndexes]uint64
}

const numIndexes = 4

// indexes returns the names of the members that number the parts of an answer.
func indexes() [numIndexes]string {
	return [...]string{"index", "output_index", "content_index", "summary_index"}
}

const (
	maxObjects = 1 << 16 // in an event; the rest counts as one
	maxAround  = 8       // objects around a text whose indexes count

	mix = 0x9e3779b97f4a7c15 // an odd number, to mix hashes with
)

// read finds the texts of b.
func (s *scanner) read(b []byte) {
	if !s.seeded {
		s.seed, s.seeded = maphash.MakeSeed(), true
	}
	s.values, s.objects = s.values[:0], append(s.objects[:0], object{parent: -1})
	at := 0 // the current object
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{':
			if len(s.objects) < maxObjects {
				s.objects = append(s.objects, object{parent: at, name: s.objects[at].name})
				at = len(s.objects) - 1
			}
		case '}':
			at = max(0, s.objects[at].parent)
		case '"':
			from := i + 1
			to := closing(b, from)
			if to < 0 {
				return
			}
			i = to
			if after := afterName(b[to+1:]); after != nil {
				s.member(&s.objects[at], b[from:to], after)
				continue
			}
			s.values = append(s.values, value{from, to, s.objects[at].name, at})
		}
	}
}

// member handles the name of a member of o. Its value is at the beginning of b.
func (s *scanner) member(o *object, name, b []byte) {
	if !isPlain(name) {
		name = plainName(name)
	}
	switch string(name) { // clients treat these as one member
	case "reasoning_content", "thinking":
		name = []byte("reasoning")
	case "text":
		name = []byte("content")
	}
	o.name = maphash.Bytes(s.seed, name)
	if !bytes.HasSuffix(name, []byte("index")) {
		return
	}
	for i, index := range indexes() {
		if string(name) == index {
			if n := number(b); len(n) > 0 {
				o.index[i] = maphash.Bytes(s.seed, n)
			}
		}
	}
}

// threads calls each with the threads of a text.
func (s *scanner) threads(v value, each func(thread uint64)) {
	each(v.name)
	o := v.object
	for range maxAround {
		if o < 0 {
			return
		}
		for i, n := range s.objects[o].index {
			if n != 0 {
				each((v.name*mix^n)*mix + uint64(i))
			}
		}
		o = s.objects[o].parent
	}
}

// isPlain reports whether plainName would return the name unchanged.
func isPlain(name []byte) bool {
	for _, c := range name {
		if c == '\\' || c >= 0x80 || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// plainName returns the name of a member as lenient decoders compare it.
func plainName(raw []byte) []byte {
	name := string(raw)
	var decoded string
	if json.Unmarshal([]byte(`"`+name+`"`), &decoded) == nil {
		name = decoded
	}
	return []byte(strings.ToLower(strings.ToUpper(name)))
}

// afterName returns the bytes after the colon that follows a member's name, or nil if there is no
// colon.
func afterName(b []byte) []byte {
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 || b[0] != ':' {
		return nil
	}
	return b[1:]
}

// closing returns the end of the string at i, or -1.
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
	b = bytes.TrimLeft(b, " \t\r\n")
	n := 0
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	return b[:n]
}

// suspectsTexts reports whether a text of b may end with a part of the key, or have a long part of
// it.
func (r *Redactor) suspectsTexts(b []byte) bool {
	for i := 0; i < len(b); {
		open := bytes.IndexByte(b[i:], '"')
		if open < 0 {
			return false
		}
		from := i + open + 1
		to := closing(b, from)
		if to < 0 {
			return false
		}
		i = to + 1
		if r.partly(b[from:to]) && afterName(b[i:]) == nil {
			return true
		}
	}
	return false
}

// partly reports whether a text ends with a part of the key, or has a long part of it.
func (r *Redactor) partly(text []byte) bool {
	got := 0
	for i := 0; i < len(text); {
		c, size := text[i], 1
		if c == '\\' || c == '%' {
			c, size = unescape(text[i:])
		}
		i += size
		for got > 0 && c != r.key[got] {
			got = r.back[got]
		}
		if c == r.key[got] {
			got++
		}
		if got >= min(cutFrom, len(r.key)) {
			return true
		}
	}
	return got > 0
}
