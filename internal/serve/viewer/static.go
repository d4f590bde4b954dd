// Part static writes the pages of a server as files that link to each other, so that they can be read without the
// server: from a folder, or from any web server.
//
// It follows links from the first page on. A link to a page that is left out becomes plain text. It promises to
// write only below its folder, to overwrite only what it wrote itself, and to delete what it wrote before and does not
// write again.
//
// What it is not for: pages of other servers. It relies on the markup of our templates, in which every attribute has
// double quotes, and in which the text of models has none.

package viewer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
)

// Site is the pages to write.
type Site struct {
	Handler http.Handler
	// Allow says which addresses to write. Default: all.
	Allow func(*url.URL) bool
}

// Result counts what was written.
type Result struct {
	Files int
	Bytes int64
}

// ErrFolder means that a folder has other files.
var ErrFolder = errors.New("static: the folder has files that are not of an exported site")

// Write writes the site into a folder, which is created. It fails if the folder has other files.
func (s Site) Write(ctx context.Context, dir string) (Result, error) {
	w := writer{Site: s, files: map[string]string{}, taken: map[string]bool{strings.ToLower(marker): true}}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a site is for others to read too
		return w.done, fmt.Errorf("static: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return w.done, fmt.Errorf("static: %w", err)
	}
	w.root = root
	if err = w.claim(); err == nil {
		w.file(&url.URL{Path: "/"})
		for len(w.queue) > 0 && err == nil {
			at := w.queue[0]
			w.queue = w.queue[1:]
			if err = context.Cause(ctx); err == nil {
				err = w.page(ctx, at)
			}
		}
	}
	if w.list != nil {
		err = errors.Join(err, w.list.Close())
	}
	if err == nil {
		err = w.tidy()
	}
	if err = errors.Join(err, root.Close()); err != nil && !errors.Is(err, ErrFolder) {
		err = fmt.Errorf("static: %w", err)
	}
	return w.done, err
}

// writer is a Write in progress.
type writer struct {
	Site
	root  *os.Root
	files map[string]string // by address
	taken map[string]bool   // files, in lower case: some systems do not tell them apart
	queue []*url.URL
	done  Result
	list  *os.File // the marker; each file is named there before it is written
	old   []string // the files of earlier exports
}

// file returns the file of an address, and queues the address if it is new.
func (w *writer) file(u *url.URL) string {
	key := u.EscapedPath() + "?" + u.RawQuery
	if name, ok := w.files[key]; ok {
		return name
	}
	name := fileName(u)
	stem, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name)
	for n := 2; w.taken[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s-%d%s", stem, n, ext)
	}
	w.files[key], w.taken[strings.ToLower(name)] = name, true
	w.queue = append(w.queue, u)
	return name
}

// fileName returns a name for an address that every system allows.
func fileName(u *url.URL) string {
	var parts []string
	for part := range strings.SplitSeq(strings.Trim(u.Path, "/"), "/") {
		if part != "" {
			parts = append(parts, plain(part))
		}
	}
	name := strings.Join(parts, "/")
	if u.RawQuery != "" && !strings.HasPrefix(u.Path, "/assets/") {
		name += "_" + plain(u.Query().Encode())
	}
	switch {
	case u.Path == "/" && u.RawQuery == "":
		return "index.html"
	case strings.HasPrefix(u.Path, "/assets/"):
		return name
	case u.Query().Has("image"):
		return name + ".img" // browsers know images by their content
	default:
		return name + ".html"
	}
}

// maxName is how long a part of a name may be.
const maxName = 120

// plain replaces everything in a part of an address that a file name may not have everywhere.
func plain(part string) string {
	var b strings.Builder
	for i := range len(part) {
		c := part[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' && i > 0 && i+1 < len(part) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	if b.Len() > maxName {
		sum := sha256.Sum256([]byte(part))
		return b.String()[:maxName] + hex.EncodeToString(sum[:8])
	}
	return b.String()
}

// page asks for an address and writes the answer.
func (w *writer) page(ctx context.Context, u *url.URL) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	var a answer
	w.Handler.ServeHTTP(&a, req)
	for n := 0; a.status/100 == 3 && n < 3; n++ { // the page of the only run is also the first page
		if req.URL, err = url.Parse(a.header.Get("Location")); err != nil {
			return err
		}
		a = answer{}
		w.Handler.ServeHTTP(&a, req)
	}
	if a.status != 0 && a.status != http.StatusOK && u.Path == "/" {
		return fmt.Errorf("the first page fails: %d", a.status)
	}
	name := w.file(u)
	body := a.body.Bytes()
	if strings.HasPrefix(a.Header().Get("Content-Type"), "text/html") {
		body = w.rewrite(body, name)
	}
	if err := w.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w.list, name); err != nil {
		return err
	}
	w.done.Files++
	w.done.Bytes += int64(len(body))
	return w.root.WriteFile(name, body, 0o644)
}

// attributeRE finds the links of our own markup.
var attributeRE = regexp.MustCompile(` (href|src)="([^"]*)"`)

// rewrite makes the links of a page relative, and removes those to pages that are left out.
func (w *writer) rewrite(body []byte, from string) []byte {
	return attributeRE.ReplaceAllFunc(body, func(found []byte) []byte {
		m := attributeRE.FindSubmatch(found)
		to, err := url.Parse(html.UnescapeString(string(m[2])))
		if err != nil || !strings.HasPrefix(to.Path, "/") || to.Host != "" {
			return found // an anchor, or data
		}
		fragment := ""
		if to.Fragment != "" {
			fragment = "#" + to.EscapedFragment()
		}
		if to.Fragment = ""; w.Allow != nil && !w.Allow(to) {
			return nil
		}
		target := strings.Repeat("../", strings.Count(from, "/")) + w.file(to)
		return fmt.Appendf(nil, ` %s="%s"`, m[1], html.EscapeString((&url.URL{Path: target}).String()+fragment))
	})
}

// answer is an http.ResponseWriter in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}
