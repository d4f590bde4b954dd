package batch

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"strconv"
	"strings"

	"parley/llm"
)

// partSize is the characters of each part of a line's id: 96 bits.
const partSize = 16

// NewKey names a batch. It is random, since two runs may ask the same of one account.
func NewKey() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.HexEncoding.EncodeToString(b[:]))
}

// CustomID is a line's id on the wire: at most 64 of [a-zA-Z0-9_-], as every API allows. It
// begins with the batch's key, so that results show whose they are.
func CustomID(key string, id ID) string { return key + "-" + string(id) }

// SplitCustomID returns the line's id, if custom is one of the batch with this key.
func SplitCustomID(key, custom string) (id ID, ok bool) {
	s, ok := strings.CutPrefix(custom, key+"-")
	return ID(s), ok
}

// CallPart is a fingerprint of a call: all that can change its answer, and its sample
// number. The ids of its lines begin with it.
func CallPart(req *llm.Request) string {
	sum := req.Digest()
	return base64.RawURLEncoding.EncodeToString(sum[:partSize*3/4])
}

// Stem is what the ids of a call's lines begin with when it asks attempt: the call's part
// and, where a layer changed the request on its way (a repair, another model), that of what
// is really asked.
func Stem(call string, attempt *llm.Request) string {
	if p := CallPart(attempt); p != call {
		return call + p
	}
	return call
}

// ID names a line by what it asks. Ids are read back from files: one that is not of the
// form stands for itself.
type ID string

// NewID tells lines with one stem apart: equal calls, and the same one asked again.
func NewID(stem string, n int) ID {
	if n == 0 {
		return ID(stem)
	}
	return ID(stem + "-" + strconv.Itoa(n))
}

// Stem is the id without its ordinal.
func (id ID) Stem() string {
	switch {
	case len(id) >= 2*partSize:
		return string(id[:2*partSize])
	case len(id) >= partSize:
		return string(id[:partSize])
	}
	return string(id)
}

// Ordinal is the number of the line among those with one stem.
func (id ID) Ordinal() int {
	n, _ := strconv.Atoi(strings.TrimPrefix(string(id)[len(id.Stem()):], "-"))
	return n
}

// Call is the call's part of the id.
func (id ID) Call() string { return string(id[:min(partSize, len(id))]) }
