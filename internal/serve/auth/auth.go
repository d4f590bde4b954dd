// Package auth decides which requests the HTTP servers of Parley answer. Every server is made
// by Guard.Server, so none can forget a check.
//
// What it promises: a request is answered only if its Host is one of a short exact list, which
// stops DNS rebinding; if no web page of another origin sent it; and if it carries one of the
// server's keys, where the server has keys. Only hashes of keys are kept, and comparing them
// takes the same time whatever is sent. A client has a bounded time to send its header and its
// body. Answers may take as long as they take.
//
// It is not for the text of a refusal: every server writes that in its own format.
package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Keys are the hashes of a server's keys. None: the server asks for no key.
type Keys [][sha256.Size]byte

// New hashes keys.
func New(list []string) (k Keys) {
	for _, s := range list {
		k = append(k, sha256.Sum256([]byte(s)))
	}
	return k
}

// Has says whether key is one of k.
func (k Keys) Has(key string) bool {
	sum, found := sha256.Sum256([]byte(key)), 0
	for i := range k {
		found |= subtle.ConstantTimeCompare(sum[:], k[i][:])
	}
	return found == 1
}

// headers are those in which clients send a key, and what stands before it there. The first
// that has one counts. The first usual of them are of formats that the servers speak.
func headers() [numHeaders]struct{ name, prefix string } {
	return [...]struct{ name, prefix string }{
		{"X-Api-Key", ""}, {"Authorization", "Bearer "}, {"Api-Key", ""}, {"X-Goog-Api-Key", ""},
	}
}

const (
	usual      = 2
	numHeaders = 4
)

// IsKey says whether a header, by its canonical name, is one in which clients send a key.
func IsKey(name string) bool {
	for _, header := range headers() {
		if header.name == name {
			return true
		}
	}
	return false
}

// Sent is the key of a request, in any vendor's header.
func Sent(h http.Header) string {
	if all := All(h); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Usual is the key of a request that came in Authorization or X-Api-Key.
func Usual(h http.Header) string {
	if keys := sent(h, usual); len(keys) > 0 {
		return keys[0]
	}
	return ""
}

// All are the different keys of a request.
func All(h http.Header) []string { return sent(h, numHeaders) }

// sent are the different keys in the first headers.
func sent(h http.Header, first int) (keys []string) {
	for i, header := range headers() {
		if i >= first {
			break
		}
		for _, v := range h[header.name] {
			if k, ok := strings.CutPrefix(v, header.prefix); ok && k != "" && !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// Refusal is why a request is not answered.
type Refusal struct {
	Status  int    // of HTTP
	Code    string // host_refused, origin_refused or invalid_api_key
	Message string // what is wrong, and what allows it
}

// Access is by which names a server may be used, and from which web pages.
type Access struct {
	// Hosts are names for the server that clients may use: NAME for any port, or NAME:PORT. A
	// loopback name and the address that a connection was made to need not be listed.
	Hosts []string
	// Origins are web pages that may send requests, as http://NAME:PORT. Default: none.
	Origins []string
}

// Guard admits requests to a server.
type Guard struct {
	Access Access
	// Keys are the keys that clients must send one of. Default: none.
	Keys Keys
	// Public says which requests need no key, such as those for a server's health. They are
	// still refused to web pages and under another Host. Default: none.
	Public func(*http.Request) bool
	// Refuse answers a request that is refused, in the format of the server.
	Refuse func(http.ResponseWriter, *http.Request, Refusal)
	// Patience is how long a client may take to send a request. Default: 1 minute.
	Patience time.Duration
}

// refusal returns why a request is refused, or nil.
func (g *Guard) refusal(r *http.Request) *Refusal {
	if why := g.host(r); why != "" {
		return &Refusal{http.StatusForbidden, "host_refused", why}
	}
	if why := g.origin(r.Header); why != "" {
		return &Refusal{http.StatusForbidden, "origin_refused", why}
	}
	if len(g.Keys) > 0 && !g.Keys.Has(Sent(r.Header)) && (g.Public == nil || !g.Public(r)) {
		return &Refusal{http.StatusUnauthorized, "invalid_api_key", "the key is missing or is not one of this server's: send it as Authorization: Bearer KEY, or as X-Api-Key: KEY"}
	}
	return nil
}

// origin returns why a request is refused that a browser sent, or nothing. A browser says so in
// Origin or in Sec-Fetch-Site. These servers have no pages of their own, so a request that a
// page sends comes from elsewhere; only "none" is a person's, who typed the address.
func (g *Guard) origin(h http.Header) string {
	origins, site := h["Origin"], h["Sec-Fetch-Site"]
	if len(origins) == 0 && (len(site) == 0 || len(site) == 1 && site[0] == "none") {
		return ""
	}
	if len(origins) == 1 && slices.Contains(g.Access.Origins, origins[0]) {
		return ""
	}
	if len(origins) == 0 {
		return "a web page sent this request (Sec-Fetch-Site: " + short(strings.Join(site, ", ")) + "), and this server does not serve web pages: --allow-origin allows an origin"
	}
	return "the web page " + short(strings.Join(origins, ", ")) + " sent this request, and this server does not serve web pages: --allow-origin allows an origin"
}

// short is the beginning of a text that came from outside.
func short(text string) string {
	if len(text) > 100 {
		text = text[:100] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
