// Package redact removes API keys from what a server sends back: texts, headers, bodies, and streams
// that split a key over several events.
//
// It promises to find a key as plain text, with characters escaped as in JSON or a URL, and in
// base64 or hexadecimal. A server with another encoding can still send it. Input without a key is
// returned without a copy. A nil *Redactor finds nothing. Everything except a Stream may be used
// from several goroutines at once.
//
// It is not for short secrets: a key shorter than minKey could be part of a normal answer, so it is
// removed only from errors and headers, if it has at least minFault characters.
package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"parley/llm"
)

// minKey is the minimum length of a key that is removed from answers.
const minKey = 8

// minFault is the minimum length of a key that is removed from errors and headers.
const minFault = 4

// Mark replaces a key.
const Mark = "[key]"

// Redactor removes keys: its own, and those of also.
type Redactor struct {
	key   string
	lower string   // the key in lower case
	plain []byte   // the same
	forms [][]byte // the key in base64 and hexadecimal
	back  []int    // failure function of Knuth, Morris and Pratt: see Stream
	also  *Redactor
}

// New returns the Redactor of keys, or nil if all are too short.
func New(keys ...string) *Redactor {
	var r *Redactor
	for _, key := range keys {
		if len(key) >= minFault {
			one := of(key)
			one.also = r
			r = one
		}
	}
	return r
}

// And returns a Redactor that removes the keys of r and those of other.
func (r *Redactor) And(other *Redactor) *Redactor {
	if r == nil || other == nil {
		return cmp.Or(r, other)
	}
	both := *r
	both.also = r.also.And(other)
	return &both
}

func of(key string) *Redactor {
	r := &Redactor{key: key, lower: strings.ToLower(key), plain: []byte(key), back: borders(key)}
	low := hex.EncodeToString([]byte(key))
	r.forms = append(r.forms, []byte(low), []byte(strings.ToUpper(low)))
	for lead := range 3 {
		r.forms = append(r.forms, inBase64(base64.RawStdEncoding, key, lead))
		if other := inBase64(base64.RawURLEncoding, key, lead); !bytes.Equal(other, r.forms[len(r.forms)-1]) {
			r.forms = append(r.forms, other)
		}
	}
	return r
}

// inBase64 returns the base64 characters that depend only on the key, if lead bytes come before it,
// or any multiple of three more.
func inBase64(e *base64.Encoding, key string, lead int) []byte {
	b := e.AppendEncode(nil, append(make([]byte, lead), key...))
	first := (lead*8 + 5) / 6
	return b[first : (lead+len(key))*8/6]
}

// borders returns the failure function of the key: for every prefix, the length of the longest
// shorter prefix that is its end.
func borders(key string) []int {
	back := make([]int, len(key)+1)
	for i, n := 1, 0; i < len(key); i++ {
		for n > 0 && key[i] != key[n] {
			n = back[n]
		}
		if key[i] == key[n] {
			n++
		}
		back[i+1] = n
	}
	return back
}

// answers reports whether the key is removed from answers.
func (r *Redactor) answers() bool { return r != nil && len(r.key) >= minKey }

// Bytes returns b, a part of an answer, without the keys.
func (r *Redactor) Bytes(b []byte) []byte {
	for ; r != nil; r = r.also {
		if r.answers() {
			b = r.only(b)
		}
	}
	return b
}

// Fault returns b, the body of an error, without the keys.
func (r *Redactor) Fault(b []byte) []byte {
	for ; r != nil; r = r.also {
		b = r.only(b)
	}
	return b
}

// only returns b without the key of r.
func (r *Redactor) only(b []byte) []byte {
	if len(b) < len(r.key) {
		return b
	}
	b = r.escaped(b)
	for _, form := range r.forms {
		// A short prefix is found several times faster than a long text.
		if bytes.Contains(b, form[:min(len(form), 32)]) && bytes.Contains(b, form) {
			b = bytes.ReplaceAll(b, form, []byte(Mark))
		}
	}
	return b
}

// String returns s, a part of an error or a header, without the keys.
func (r *Redactor) String(s string) string {
	for ; r != nil; r = r.also {
		if len(s) >= len(r.key) && r.suspects(s) {
			s = string(r.only([]byte(s)))
		}
	}
	return s
}

// Folded returns b without the keys, also where they, their base64 or their hexadecimal are folded into lines: base64 and xxd do that, and so do
// programs that fit what they print into the width of a terminal.
func (r *Redactor) Folded(b []byte) []byte {
	for ; r != nil; r = r.also {
		b = unfolded(r.only(b), r.plain)
		for _, form := range r.forms {
			b = unfolded(b, form)
		}
	}
	return b
}

// unfolded returns b without form, also where ends of lines are in it.
func unfolded(b, form []byte) []byte {
	return marked(b, func(i int) int {
		if next := bytes.IndexByte(b[i:], form[0]); next >= 0 {
			return i + next
		}
		return len(b)
	}, func(i int) int { return folded(b, i, form) })
}

// marked returns b with Mark instead of what is found: at candidate(i), the first place from i on, up to end of that place, which is -1 if nothing is
// there.
func marked(b []byte, candidate, end func(i int) int) []byte {
	var out []byte
	from := 0
	for i := candidate(0); i < len(b); i = candidate(i) {
		to := end(i)
		if to < 0 {
			i++
			continue
		}
		out = append(append(out, b[from:i]...), Mark...)
		i, from = to, to
	}
	if out == nil {
		return b
	}
	return append(out, b[from:]...)
}

// folded returns the end of form at i, which may have ends of lines in it, or -1.
func folded(b []byte, i int, form []byte) int {
	for n := range form {
		if n > 0 {
			i += lineEnds(b[i:])
		}
		if i >= len(b) || b[i] != form[n] {
			return -1
		}
		i++
	}
	return i
}

// lineEnds returns how many bytes the ends of lines at the beginning of b have, with the indentation that follows. They may be escaped, once or several
// times.
func lineEnds(b []byte) (n int) {
	for n < len(b) {
		i := n
		for i < len(b) && b[i] == '\\' && i-n < maxEscapes {
			i++
		}
		switch {
		case i < len(b) && (b[i] == '\n' || b[i] == '\r') && i == n:
		case i < len(b) && (b[i] == 'n' || b[i] == 'r') && i > n:
		default:
			return n
		}
		n = len(b) - len(bytes.TrimLeft(b[i+1:], " \t"))
	}
	return n
}

// suspects reports whether s may have the key.
func (r *Redactor) suspects(s string) bool {
	if strings.Contains(s, r.key) || strings.IndexByte(s, '\\') >= 0 || strings.IndexByte(s, '%') >= 0 {
		return true
	}
	for _, form := range r.forms {
		if strings.Contains(s, string(form)) {
			return true
		}
	}
	return false
}

// escaped removes the key as plain text and with escaped characters.
func (r *Redactor) escaped(b []byte) []byte {
	if !bytes.Contains(b, r.plain) && bytes.IndexByte(b, '\\') < 0 && bytes.IndexByte(b, '%') < 0 {
		return b
	}
	return marked(b, func(i int) int {
		for i < len(b) && b[i] != r.key[0] && b[i] != '\\' && b[i] != '%' {
			i++
		}
		return i
	}, func(i int) int { return r.match(b, i) })
}

// match returns the end of the key at i, or -1.
func (r *Redactor) match(b []byte, i int) int {
	for n := range len(r.key) {
		if i >= len(b) {
			return -1
		}
		if b[i] == r.key[n] && b[i] != '\\' && b[i] != '%' {
			i++
			continue
		}
		c, size := unescape(b[i:])
		if size == 0 || c != r.key[n] {
			return -1
		}
		i += size
	}
	return i
}

// unescape decodes the first character of b, which may be escaped as in a URL or as in JSON, once or
// several times. size is 0 if b is empty.
func unescape(b []byte) (c byte, size int) {
	switch {
	case len(b) == 0:
		return 0, 0
	case b[0] == '%' && len(b) > 2:
		if c, ok := hexByte(b[1:3]); ok {
			return c, 3
		}
		return '%', 1
	case b[0] != '\\':
		return b[0], 1
	}
	i := 0
	for i < min(len(b), maxEscapes) && b[i] == '\\' {
		i++
	}
	if i+4 < len(b) && b[i] == 'u' && b[i+1] == '0' && b[i+2] == '0' {
		if c, ok := hexByte(b[i+3 : i+5]); ok {
			return c, i + 5
		}
	}
	if i < len(b) && (b[i] == '"' || b[i] == '/') {
		return b[i], i + 1
	}
	return '\\', max(1, i)
}

// maxEscapes bounds the backslashes before an escaped character.
const maxEscapes = 16

func hexByte(b []byte) (c byte, ok bool) {
	var out [1]byte
	_, err := hex.Decode(out[:], b)
	return out[0], err == nil
}

// Header returns h without the keys. It returns h itself if there are none.
func (r *Redactor) Header(h http.Header) http.Header {
	if r == nil {
		return h
	}
	h = r.also.Header(h)
	var out http.Header
	for name, values := range h {
		if len(name) >= len(r.key) && strings.Contains(strings.ToLower(name), r.lower) {
			if out == nil {
				out = h.Clone()
			}
			delete(out, name)
			continue
		}
		for i, v := range values {
			clean := r.String(v)
			if clean == v {
				continue
			}
			if out == nil {
				out = h.Clone()
			}
			out[name][i] = clean
		}
	}
	if out == nil {
		return h
	}
	return out
}

// Response removes the keys from an answer.
func (r *Redactor) Response(a *llm.Response) {
	for ; r != nil && a != nil; r = r.also {
		if r.answers() {
			one := *r
			one.also = nil
			one.response(a)
		}
	}
}

func (r *Redactor) response(a *llm.Response) {
	said := a.Text
	for _, s := range []*string{&a.Text, &a.Refusal, &a.Model, &a.ID, &a.RequestID, &a.Tier, &a.WeightVersion} {
		*s = r.String(*s)
	}
	for i := range a.Thoughts {
		t := &a.Thoughts[i]
		t.Text, t.ID, t.Signature, t.Opaque = r.String(t.Text), r.String(t.ID), r.String(t.Signature), r.String(t.Opaque)
	}
	for i := range a.ToolCalls {
		c := &a.ToolCalls[i]
		c.ID, c.Name, c.Arguments = r.String(c.ID), r.String(c.Name), r.String(c.Arguments)
	}
	if a.JSON != nil {
		a.JSON = r.Bytes(a.JSON)
	}
	r.thoughts(a)
	if said != a.Text || r.spelled(a.Logprobs) { // the tokens spell the key too
		a.Logprobs, a.TokenIDs = nil, nil
	}
}

// thoughts removes a key that is split over several thoughts. Clients get thoughts as one text, so
// they become one thought.
func (r *Redactor) thoughts(a *llm.Response) {
	if len(a.Thoughts) < 2 {
		return
	}
	var all strings.Builder
	for i := range a.Thoughts {
		all.WriteString(a.Thoughts[i].Text)
	}
	if clean := r.String(all.String()); clean != all.String() {
		a.Thoughts = []llm.Thought{{Text: clean}}
	}
}

// spelled reports whether the joined tokens have the key.
func (r *Redactor) spelled(tokens []llm.Logprob) bool {
	if len(tokens) == 0 {
		return false
	}
	var all strings.Builder
	for i := range tokens {
		all.WriteString(tokens[i].Token)
	}
	return r.String(all.String()) != all.String()
}

// Error removes the keys from the texts of e.
func (r *Redactor) Error(e *llm.Error) {
	if r == nil || e == nil {
		return
	}
	e.Message, e.Code, e.RequestID = r.String(e.Message), r.String(e.Code), r.String(e.RequestID)
	if e.Err != nil {
		if s := e.Err.Error(); r.String(s) != s {
			e.Err = errors.New(r.String(s))
		}
	}
}
