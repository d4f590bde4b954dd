package viewer

import (
	"crypto/subtle"
	"embed"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"parley/internal/kit/auth"
	"parley/internal/read/report"
)

//go:embed view.css
var styleText string

//go:embed view.js
var scriptText string

//go:embed signin.js
var signInText string

//go:embed compare.gohtml dashboard.gohtml episode.gohtml pages.gohtml steer.gohtml
var pagesText embed.FS

func newAssets() staticAssets {
	style, script := report.Assets()
	return newStaticAssets(map[string]string{
		"view.css": style + styleText + seatsStyle, "page.js": script, "view.js": scriptText, "signin.js": signInText, "seat.js": seatsScript,
	})
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
	return v.owner(r) || v.seats.Admits(r)
}

// owner reports whether a request has the cookie or the key of the server.
func (v *Viewer) owner(r *http.Request) bool {
	if v.guard.Keys.Has(auth.Sent(r.Header)) {
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
	switch {
	case err == nil && v.seats.SignIn(w, r, r.URL.Query().Get("page"), string(b)):
		w.WriteHeader(http.StatusNoContent)
		return
	case err != nil || !v.guard.Keys.Has(string(b)):
		http.Error(w, "this is not the key of this server", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: v.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: auth.Encrypted(r)}) //nolint:gosec // the server speaks HTTP on the loopback interface
	w.WriteHeader(http.StatusNoContent)
}

// refuse answers a refused request. A browser without a key gets a page that looks for the key in
// the address.
func (v *Viewer) refuse(w http.ResponseWriter, r *http.Request, why auth.Refusal) {
	if why.Status == http.StatusUnauthorized && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		v.render(&screen{status: why.Status, template: "signin", Title: "Sign in", Data: isSeatPage(r.URL.EscapedPath())})(w)
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
