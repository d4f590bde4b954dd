package batch

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"strconv"
	"strings"

	"parley/llm"
)

// partSize is the number of characters of each part of a line's id: 96 bits.
const partSize = 16

// NewKey returns a name for a batch. It is random, since two runs of one account may ask the same.
func NewKey() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.HexEncoding.EncodeToString(b[:]))
}

// CustomID returns a line's id on the wire: at most 64 of [a-zA-Z0-9_-], as every API allows. It
// begins with the batch's key, so that results show which batch they belong to.
func CustomID(key string, id ID) string { return key + "-" + string(id) }

// SplitCustomID returns the line's id, if custom is one of the batch with this key.
func SplitCustomID(key, custom string) (id ID, ok bool) {
	s, ok := strings.CutPrefix(custom, key+"-")
	return ID(s), ok
}

// CallPart returns a fingerprint of a call: everything that can change its answer, and its sample
// number. The ids of its lines begin with it.
func CallPart(req *llm.Request) string {
	sum := req.Digest()
	return base64.RawURLEncoding.EncodeToString(sum[:partSize*3/4])
}

// batchStem returns what the ids of a call's lines begin with when it sends attempt: the call's part
// and, if a layer changed the request (a repair, another model), that of the changed request.
func batchStem(call string, attempt *llm.Request) string {
	if p := CallPart(attempt); p != call {
		return call + p
	}
	return call
}

// ID names a line by what it asks. Ids are read back from files: one that does not have this form
// is its own stem.
type ID string

// NewID returns the id of line n with a stem: equal calls, and the same call made again.
func NewID(stem string, n int) ID {
	if n == 0 {
		return ID(stem)
	}
	return ID(stem + "-" + strconv.Itoa(n))
}

// Stem returns the id without its ordinal.
func (id ID) Stem() string {
	switch {
	case len(id) >= 2*partSize:
		return string(id[:2*partSize])
	case len(id) >= partSize:
		return string(id[:partSize])
	}
	return string(id)
}

// Ordinal returns the number of the line among those with its stem.
func (id ID) Ordinal() int {
	n, _ := strconv.Atoi(strings.TrimPrefix(string(id)[len(id.Stem()):], "-"))
	return n
}

// Call returns the call's part of the id.
func (id ID) Call() string { return string(id[:min(partSize, len(id))]) }
