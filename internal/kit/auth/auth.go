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
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/text"
)

// Keys are the hashes of a server's keys. If empty, the server needs no key.
type Keys [][sha256.Size]byte

// HashKeys hashes keys.
func HashKeys(list []string) (k Keys) {
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
	usualHeaders = 2
	numHeaders   = 4
)

// IsKeyHeader reports whether clients send keys in a header of this canonical name.
func IsKeyHeader(name string) bool {
	for _, header := range headers() {
		if header.name == name {
			return true
		}
	}
	return false
}

// SentKey returns the key of a request, from any vendor's header.
func SentKey(h http.Header) string {
	if all := SentKeys(h); len(all) > 0 {
		return all[0]
	}
	return ""
}

// UsualKey returns the key of a request in Authorization or X-Api-Key.
func UsualKey(h http.Header) string {
	if keys := keysIn(h, usualHeaders); len(keys) > 0 {
		return keys[0]
	}
	return ""
}

// SentKeys returns the different keys of a request.
func SentKeys(h http.Header) []string { return keysIn(h, numHeaders) }

// keysIn returns the different keys in the first headers.
func keysIn(h http.Header, first int) (keys []string) {
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
	// ClientTimeout bounds the time of a client to send a request. Default: 1 minute.
	ClientTimeout time.Duration
}

// refusal returns why a request is refused, or nil.
func (g *Guard) refusal(r *http.Request) *Refusal {
	if why := g.host(r); why != "" {
		return &Refusal{http.StatusForbidden, "host_refused", why}
	}
	if why := g.origin(r); why != "" {
		return &Refusal{http.StatusForbidden, "origin_refused", why}
	}
	if len(g.Keys) > 0 && !g.Keys.Has(SentKey(r.Header)) && (g.Public == nil || !g.Public(r)) {
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
func short(s string) string { return strings.ToValidUTF8(text.Excerpt(s, 100), "") }

// host returns why the Host of a request is refused, or "". A page that rebinds its own name to this machine
// sends that name, which is not on the list.
func (g *Guard) host(r *http.Request) string {
	switch {
	case r.URL.Host != "" || r.URL.Scheme != "" || r.Method == http.MethodConnect:
		return "the request is for a proxy, which this server is not: send the path alone, and the server's name in Host"
	case r.Host == "":
		return "the request has no Host header"
	case g.knowsHost(r):
		return ""
	}
	return "Host " + short(r.Host) + " is not a name of this server: use its address, or allow the name with --allow-host"
}

// knowsHost reports whether the Host of a request is a name of the server.
func (g *Guard) knowsHost(r *http.Request) bool {
	name, port, ok := splitHost(r.Host)
	if !ok {
		return false
	}
	for _, allowed := range g.Access.Hosts {
		if strings.EqualFold(allowed, r.Host) || strings.EqualFold(allowed, name) {
			return true
		}
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !samePort(port, local.Port, r.TLS != nil) {
		return false
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	// Addresses are compared exactly: one in octal, as one number or with a zone is not accepted, and neither
	// is the same address in another family.
	addr, err := netip.ParseAddr(name)
	if err != nil || addr.Zone() != "" {
		return false
	}
	if addr == netip.IPv6Loopback() || addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
		return true
	}
	here, ok := netip.AddrFromSlice(local.IP)
	return ok && addr == here.Unmap()
}

// samePort reports whether a port in Host is the port of the server. No port means that of the scheme.
func samePort(port string, local int, tls bool) bool {
	if port == "" {
		return local == 443 && tls || local == 80 && !tls
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && int(n) == local && port[0] != '+'
}

// splitHost splits NAME, NAME:PORT, [ADDRESS] and [ADDRESS]:PORT.
func splitHost(s string) (name, port string, ok bool) {
	if rest, in := strings.CutPrefix(s, "["); in {
		name, port, ok = strings.Cut(rest, "]")
		if !ok || !strings.Contains(name, ":") {
			return "", "", false
		}
		if port == "" {
			return name, "", true
		}
		port, ok = strings.CutPrefix(port, ":")
		return name, port, ok && port != ""
	}
	name, port, colon := strings.Cut(s, ":")
	if name == "" || colon && port == "" || strings.Contains(port, ":") {
		return "", "", false
	}
	return name, port, true
}

// Check checks the names and origins.
func (a Access) Check() error {
	for _, h := range a.Hosts {
		name, port, ok := splitHost(h)
		if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
			ok = false
		}
		if !ok || strings.ContainsAny(name, "/*?#@\\% \t\r\n,") {
			return fmt.Errorf("--allow-host %q: want NAME or NAME:PORT, without wildcards", short(h))
		}
	}
	for _, o := range a.Origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsAny(o, "*\\ ") || u.Scheme+"://"+u.Host != o {
			return fmt.Errorf("--allow-origin %q: want SCHEME://NAME or SCHEME://NAME:PORT, as a browser sends it", short(o))
		}
	}
	return nil
}

// Server returns an http.Server that answers what the guard admits. It makes all servers of Parley.
func (g *Guard) Server(next http.Handler) *http.Server {
	timeout := g.clientTimeout()
	return &http.Server{
		Handler:           g.Wrap(next),
		ReadHeaderTimeout: min(timeout, 30*time.Second),
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // it would log the mistakes of clients

		DisableGeneralOptionsHandler: true, // it would answer OPTIONS * before the guard
	}
}

// Wrap returns a handler that passes admitted requests to next.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	timeout := g.clientTimeout()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = boundBody(w, r.Body, timeout)
		}
		if why := g.refusal(r); why != nil {
			if r.ProtoMajor == 1 && r.ContentLength != 0 {
				w.Header().Set("Connection", "close") // otherwise the server would wait for the body
			}
			g.Refuse(w, r, *why)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *Guard) clientTimeout() time.Duration {
	if g.ClientTimeout <= 0 {
		return time.Minute
	}
	return g.ClientTimeout
}

// requestBody is the body of a request, with a deadline. Reading it to its end removes the deadline, which would
// otherwise end the answer. If a handler leaves some of it unread, the deadline stays, since the server then
// reads a little more.
type requestBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func boundBody(w http.ResponseWriter, in io.ReadCloser, timeout time.Duration) io.ReadCloser {
	b := &requestBody{in, http.NewResponseController(w)}
	_ = b.control.SetReadDeadline(time.Now().Add(timeout)) // only tests have a writer without deadlines
	return b
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
