package trainer

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

// admit says whether a request may come in. Without keys everybody may but a web page: a
// browser would carry a stranger's requests to a server that listens to this machine only.
func (k keys) admit(h http.Header) (status int, why string) {
	if len(k) == 0 {
		if h.Get("Origin") != "" {
			return http.StatusForbidden, "a trainer's server without a key does not serve web pages: set one with --key-env"
		}
		return 0, ""
	}
	key := h.Get("X-Api-Key")
	if key == "" {
		key, _ = strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	}
	sum, found := sha256.Sum256([]byte(key)), 0
	for i := range k {
		found |= subtle.ConstantTimeCompare(sum[:], k[i][:])
	}
	if found == 1 {
		return 0, ""
	}
	return http.StatusUnauthorized, "the key is missing or wrong: send it as Authorization: Bearer KEY"
}
