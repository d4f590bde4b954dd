// Package door says who may come in to a server of Parley's.
//
// What it promises: only hashes of keys are kept, and all comparisons take the same time,
// whatever is sent. Without keys everybody may come in but a web page, since a browser would
// carry a stranger's requests to a server that listens to this machine only.
//
// It is not for answering whoever may not: every server does that in its own format.
package door

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Keys are those that clients must send one of. None: everybody may come in.
type Keys [][sha256.Size]byte

// New keeps keys.
func New(list []string) (k Keys) {
	for _, s := range list {
		k = append(k, sha256.Sum256([]byte(s)))
	}
	return k
}

// Verdict is what becomes of a request.
type Verdict int

// The verdicts.
const (
	Welcome   Verdict = iota
	WebPage           // there are no keys, and a web page asks
	Strangers         // its key is missing, or not one of ours
)

// Ask says whether a request with these headers may come in.
func (k Keys) Ask(h http.Header) Verdict {
	if len(k) == 0 {
		if h.Get("Origin") != "" {
			return WebPage
		}
		return Welcome
	}
	sum, found := sha256.Sum256([]byte(Sent(h))), 0
	for i := range k {
		found |= subtle.ConstantTimeCompare(sum[:], k[i][:])
	}
	if found == 1 {
		return Welcome
	}
	return Strangers
}

// Sent is the key of a request, in either vendor's header.
func Sent(h http.Header) string {
	if k := h.Get("X-Api-Key"); k != "" {
		return k
	}
	if k, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok {
		return k
	}
	return ""
}
