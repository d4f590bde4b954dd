// Package auth decides which requests the HTTP servers of Parley answer. Guard.Server makes every server, so
// none can forget a check.
//
// It promises that a request is answered only if its Host is on a short exact list, which stops DNS rebinding;
// if no web page of another origin sent it; and if it has one of the server's keys, if there are any. It keeps
// only hashes of keys and compares them in constant time. A client has limited time to send its header and
// body; answers may take any time.
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

	"parley/internal/kit/text"
)

// Keys are the hashes of a server's keys. If empty, the server needs no key.
type Keys [][sha256.Size]byte

// New hashes keys.
func New(list []string) (k Keys) {
	for _, s := range list {
		k = append(k, sha256.Sum256([]byte(s)))
	}
	return k
}

// Has reports whether key is one of k.
func (k Keys) Has(key string) bool {
	sum, found := sha256.Sum256([]byte(key)), 0
	for i := range k {
		found |= subtle.ConstantTimeCompare(sum[:], k[i][:])
	}
	return found == 1
}

// headers returns the headers in which clients send a key, and the prefix of the key. The first with a key
// counts. The first usual of them belong to formats that the servers speak.
func headers() [numHeaders]struct{ name, prefix string } {
	return [...]struct{ name, prefix string }{
		{"X-Api-Key", ""}, {"Authorization", "Bearer "}, {"Api-Key", ""}, {"X-Goog-Api-Key", ""},
	}
}

const (
	usual      = 2
	numHeaders = 4
)

// IsKey reports whether clients send keys in a header of this canonical name.
func IsKey(name string) bool {
	for _, header := range headers() {
		if header.name == name {
			return true
		}
	}
	return false
}

// Sent returns the key of a request, from any vendor's header.
func Sent(h http.Header) string {
	if all := All(h); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Usual returns the key of a request in Authorization or X-Api-Key.
func Usual(h http.Header) string {
	if keys := sent(h, usual); len(keys) > 0 {
		return keys[0]
	}
	return ""
}

// All returns the different keys of a request.
func All(h http.Header) []string { return sent(h, numHeaders) }

// sent returns the different keys in the first headers.
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
	Status  int    // HTTP status
	Code    string // host_refused, origin_refused or invalid_api_key
	Message string // what is wrong and how to allow it
}

// Access lists the names of a server, and the web pages that may use it.
type Access struct {
	// Hosts are names that clients may use for the server: NAME for any port, or NAME:PORT. Loopback names and
	// the address of the connection are always allowed.
	Hosts []string
	// Origins are web pages that may send requests, as http://NAME:PORT. Default: none.
	Origins []string
}

// Guard admits requests to a server.
type Guard struct {
	Access Access
	// Keys are the keys of which clients must send one. Default: none.
	Keys Keys
	// Public reports whether a request needs no key, such as one for a server's health. Host and Origin are
	// still checked. Default: none.
	Public func(*http.Request) bool
	// Pages means that the server has web pages: they may send requests, and links may lead to them.
	Pages bool
	// Refuse answers a refused request, in the format of the server.
	Refuse func(http.ResponseWriter, *http.Request, Refusal)
	// Patience bounds the time of a client to send a request. Default: 1 minute.
	Patience time.Duration
}

// refusal returns why a request is refused, or nil.
func (g *Guard) refusal(r *http.Request) *Refusal {
	if why := g.host(r); why != "" {
		return &Refusal{http.StatusForbidden, "host_refused", why}
	}
	if why := g.origin(r); why != "" {
		return &Refusal{http.StatusForbidden, "origin_refused", why}
	}
	if len(g.Keys) > 0 && !g.Keys.Has(Sent(r.Header)) && (g.Public == nil || !g.Public(r)) {
		return &Refusal{http.StatusUnauthorized, "invalid_api_key", "the key is missing or is not one of this server's: send it as Authorization: Bearer KEY, or as X-Api-Key: KEY"}
	}
	return nil
}

// origin returns why a request from a browser is refused, or "". A browser sets Origin or Sec-Fetch-Site.
// Most servers have no pages, so every page is from elsewhere; "none" means that a person typed the address.
func (g *Guard) origin(r *http.Request) string {
	origins, site := r.Header["Origin"], r.Header["Sec-Fetch-Site"]
	if g.Pages && ownPage(r, origins, site) {
		return ""
	}
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

// ownPage reports whether a page of this server sent a request, or a browser follows a link to one:
// a link can only show a page. The Host is known to be right.
func ownPage(r *http.Request, origins, site []string) bool {
	link := r.Method == http.MethodGet && len(origins) == 0 && slices.Equal(r.Header["Sec-Fetch-Mode"], []string{"navigate"}) && slices.Equal(r.Header["Sec-Fetch-Dest"], []string{"document"})
	if link {
		return true
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	sameOrigin := len(origins) == 0 && len(site) == 1 || len(origins) == 1 && strings.EqualFold(origins[0], scheme+r.Host)
	return sameOrigin && (len(site) == 0 || slices.Equal(site, []string{"same-origin"}))
}

// Encrypted reports whether the browser that sent an admitted request uses https: with this server, or with one in front
// of it, since then it names the https origin of the page, which --allow-origin allows.
func Encrypted(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// short returns the beginning of a text from outside.
func short(theText string) string { return strings.ToValidUTF8(text.Excerpt(theText, 100), "") }
