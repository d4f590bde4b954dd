package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// keys are those that clients must send one of. Only their hashes are kept, so that all
// comparisons take the same time, whatever is sent.
type keys [][sha256.Size]byte

func newKeys(list []string) (k keys) {
	for _, s := range list {
		k = append(k, sha256.Sum256([]byte(s)))
	}
	return k
}

// given is the key of a request, in either vendor's header.
func given(h http.Header) string {
	if k := h.Get("X-Api-Key"); k != "" {
		return k
	}
	auth := h.Get("Authorization")
	if k, ok := strings.CutPrefix(auth, "Bearer "); ok {
		return k
	}
	return ""
}

// admit says whether a request may come in. Without keys everybody may but a web page: a
// browser would carry a stranger's requests to a gateway that listens to this machine only.
func (k keys) admit(h http.Header) (status int, code, why string) {
	if len(k) == 0 {
		if h.Get("Origin") != "" {
			return http.StatusForbidden, "origin_refused", "a gateway without keys of its own does not serve web pages: set them with --client-key-env"
		}
		return 0, "", ""
	}
	sum := sha256.Sum256([]byte(given(h)))
	found := 0
	for i := range k {
		found |= subtle.ConstantTimeCompare(sum[:], k[i][:])
	}
	if found == 1 {
		return 0, "", ""
	}
	return http.StatusUnauthorized, "invalid_api_key", "the key that was sent is not one of this gateway's"
}
