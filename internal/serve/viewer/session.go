package viewer

import (
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"parley/internal/report/page"
	"parley/internal/serve/auth"
)

//go:embed view.css
var styleText string

//go:embed view.js
var scriptText string

//go:embed signin.js
var signInText string

//go:embed *.gohtml
var pagesText embed.FS

// asset is a file that pages fetch.
type asset struct{ kind, body, tag string }

func newAssets() map[string]asset {
	style, script := page.Assets()
	all := map[string]asset{}
	for name, body := range map[string]string{
		"view.css": style + styleText, "page.js": script, "view.js": scriptText, "signin.js": signInText,
	} {
		kind := "text/javascript; charset=utf-8"
		if strings.HasSuffix(name, ".css") {
			kind = "text/css; charset=utf-8"
		}
		sum := sha256.Sum256([]byte(body))
		all[name] = asset{kind, body, `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	return all
}

func (v *Viewer) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := v.assets[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Etag", a.tag)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = io.WriteString(w, a.body) // the browser is gone
}

// cookieName is the name of the cookie. A browser sends it to every port of a host, so it has the port.
func cookieName(r *http.Request) string {
	port := "0"
	if i := strings.LastIndexByte(r.Host, ':'); i >= 0 {
		port = r.Host[i+1:]
	}
	return "parley-" + strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, port)
}

// public reports whether a request needs no key in a header: it has the cookie, or it is for
// what a browser needs to sign in.
func (v *Viewer) public(r *http.Request) bool {
	if strings.HasPrefix(r.URL.Path, "/assets/") || r.URL.Path == "/session" {
		return true
	}
	c, err := r.Cookie(cookieName(r))
	return err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(v.token)) == 1
}

// maxKey is how long a key may be.
const maxKey = 1 << 16

// signIn exchanges the key, which is the body, for a cookie that is valid until the server ends. The cookie is not the
// key: browsers send cookies to every port of a host.
func (v *Viewer) signIn(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxKey))
	if err != nil || !v.guard.Keys.Has(string(b)) {
		http.Error(w, "this is not the key of this server", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: v.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil}) //nolint:gosec // the server speaks HTTP on the loopback interface
	w.WriteHeader(http.StatusNoContent)
}

// refuse answers a refused request. A browser without a key gets a page that looks for the key in
// the address.
func (v *Viewer) refuse(w http.ResponseWriter, r *http.Request, why auth.Refusal) {
	if why.Status == http.StatusUnauthorized && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		v.write(w, &screen{status: why.Status, template: "signin", Title: "Sign in"})
		return
	}
	body, err := json.Marshal(map[string]any{"error": map[string]string{"code": why.Code, "message": why.Message}})
	if err != nil {
		body = nil // cannot happen: it is text
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	secure(h)
	w.WriteHeader(why.Status)
	_, _ = w.Write(body) // the client is gone
}
