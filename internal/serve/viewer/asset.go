package viewer

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
)

// staticAssets are the style sheets and scripts of a server, by the last step of their address.
type staticAssets map[string]asset

type asset struct{ kind, body, tag string }

// newStaticAssets returns assets with the given texts.
func newStaticAssets(texts map[string]string) staticAssets {
	all := staticAssets{}
	for name, body := range texts {
		kind := "text/javascript; charset=utf-8"
		if strings.HasSuffix(name, ".css") {
			kind = "text/css; charset=utf-8"
		}
		sum := sha256.Sum256([]byte(body))
		all[name] = asset{kind, body, `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	return all
}

// version is the query of an address that a browser may keep for ever: another text has another one.
func (a asset) version() string { return "v=" + strings.Trim(a.tag, `"`) }

// Address returns the address of an asset.
func (all staticAssets) Address(name string) string {
	return "/assets/" + name + "?" + all[name].version()
}

// ServeHTTP serves the asset of the path value "name".
func (all staticAssets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, ok := all[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Etag", a.tag)
	h.Set("Cache-Control", "no-cache")
	if r.URL.RawQuery == a.version() {
		h.Set("Cache-Control", "max-age=31536000, immutable")
	}
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = io.WriteString(w, a.body) // the browser is gone
}
