package viewer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Export writes the pages into a folder, as a site without a server: every run with its overview, its report and the
// list of all its episodes, and the first episodes of each run with their calls. Labels are left out:
// they have names and notes of people. A Viewer that exports cannot serve.
func (v *Viewer) Export(ctx context.Context, dir string, episodes int) (ExportResult, error) {
	ctx, stop := context.WithCancel(ctx)
	v.ctx, v.static, v.stats.Wait, v.catalog.Wait, v.runs.Unlabelled = ctx, true, true, true, true
	defer func() {
		stop()
		v.wg.Wait()
		v.runs.Close()
	}()
	return staticSite{Handler: v.routes(), Allow: func(u *url.URL) bool { return exported(u, episodes) }}.Write(ctx, dir)
}

// exported reports whether a site has a page: one that shows something, without choices that need a server.
func exported(u *url.URL, episodes int) bool {
	parts := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	q := u.Query()
	only := func(name string) bool { return len(q) == 0 || len(q) == 1 && q.Has(name) }
	switch {
	case parts[0] == "assets" || parts[0] == "":
		return true
	case parts[0] == "compare":
		return len(q) == 0 || q.Has("ea") || len(q) == 2 && q.Has("a") && q.Has("b")
	case len(parts) < 2 || parts[0] != "run":
		return false
	case len(parts) == 2 || parts[2] == "report":
		return len(q) == 0
	case parts[2] != "episodes":
		return false
	case len(parts) == 3:
		return only("after")
	default:
		n, err := strconv.Atoi(parts[3])
		return err == nil && n < episodes && (only("from") || only("image"))
	}
}

// staticSite is the pages of a server that are written as files. The files link to each other, so that they can be read
// without the server: from a folder, or from any web server.
//
// It relies on the markup of our templates, in which every attribute has double quotes, and in which the text of
// models has none.
type staticSite struct {
	Handler http.Handler
	// Allow says which addresses to write. Default: all.
	Allow func(*url.URL) bool
}

// ExportResult counts what Export wrote.
type ExportResult struct {
	Files int
	Bytes int64
}

// ErrFolder means that a folder has other files.
var ErrFolder = errors.New("the folder has files that are not of an exported site")

// Write writes the site into a folder, which is created. It fails if the folder has other files. It follows links from
// the first page on. A link to a page that is left out becomes plain text.
//
// It writes only below its folder, overwrites only what it wrote itself, and deletes what it wrote before and does not
// write again.
func (s staticSite) Write(ctx context.Context, dir string) (ExportResult, error) {
	w := siteWriter{staticSite: s, files: map[string]string{}, taken: map[string]bool{strings.ToLower(markerName): true}}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a site is for others to read too
		return w.done, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return w.done, err
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
	return w.done, errors.Join(err, root.Close())
}

// siteWriter is a Write in progress.
type siteWriter struct {
	staticSite
	root  *os.Root
	files map[string]string // by address
	taken map[string]bool   // files, in lower case: some systems do not tell them apart
	queue []*url.URL
	done  ExportResult
	list  *os.File // the marker; each file is named there before it is written
	old   []string // the files of earlier exports
}

// file returns the file of an address, and queues the address if it is new.
func (w *siteWriter) file(u *url.URL) string {
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
			parts = append(parts, safeName(part))
		}
	}
	name := strings.Join(parts, "/")
	if u.RawQuery != "" && !strings.HasPrefix(u.Path, "/assets/") {
		name += "_" + safeName(u.Query().Encode())
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

// safeName replaces everything in a part of an address that a file name may not have everywhere.
func safeName(part string) string {
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
func (w *siteWriter) page(ctx context.Context, u *url.URL) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	var a memoryResponse
	w.Handler.ServeHTTP(&a, req)
	for n := 0; a.status/100 == 3 && n < 3; n++ { // the page of the only run is also the first page
		if req.URL, err = url.Parse(a.header.Get("Location")); err != nil {
			return err
		}
		a = memoryResponse{}
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
func (w *siteWriter) rewrite(body []byte, from string) []byte {
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

// memoryResponse is an http.ResponseWriter in memory.
type memoryResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *memoryResponse) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

func (a *memoryResponse) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *memoryResponse) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// markerName is the file by which a folder that we wrote is known. Its lines after the first name the other files.
const markerName = "parley-site.txt"

// maxList is how much is read of the marker.
const maxList = 64 << 20

const markerText = "This folder was written by parley view --export, which may overwrite it and delete the files below. Open index.html."

// claim checks that the folder is empty or ours, reads what earlier exports wrote, and marks it.
func (w *siteWriter) claim() error {
	entries, err := fs.ReadDir(w.root.FS(), ".")
	if err != nil {
		return err
	}
	info, err := w.root.Lstat(markerName)
	if len(entries) > 0 && (err != nil || !info.Mode().IsRegular()) {
		return fmt.Errorf("%w: %s; name an empty folder", ErrFolder, w.root.Name())
	}
	if w.list, err = w.root.OpenFile(markerName, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644); err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(w.list, maxList))
	if err != nil {
		return err
	}
	if lines := strings.Split(string(b), "\n"); len(lines) > 1 { // what follows the last newline is cut off
		w.old = lines[1 : len(lines)-1]
		return nil
	}
	_, err = fmt.Fprintln(w.list, markerText)
	return err
}

// tidy deletes the files of earlier exports that this one did not write, and names only those that it wrote.
func (w *siteWriter) tidy() error {
	for _, name := range w.old {
		if w.taken[strings.ToLower(name)] || !w.ours(name) {
			continue
		}
		if err := w.root.Remove(name); err != nil {
			return err
		}
		for dir := path.Dir(name); dir != "." && w.root.Remove(dir) == nil; dir = path.Dir(dir) { // it fails if the folder is not empty
		}
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, markerText)
	for _, name := range w.files {
		fmt.Fprintln(&b, name)
	}
	if err := w.root.WriteFile(markerName+".new", b.Bytes(), 0o644); err != nil {
		return err
	}
	return w.root.Rename(markerName+".new", markerName)
}

// ours reports whether a name is that of a regular file in the folder, and no part of it is a link: a stranger may have
// written the list.
func (w *siteWriter) ours(name string) bool {
	if !fs.ValidPath(name) {
		return false
	}
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if info, err := w.root.Lstat(at); err != nil || !info.IsDir() {
			return false
		}
	}
	info, err := w.root.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}
