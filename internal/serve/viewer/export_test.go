package viewer

import (
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// links returns the files that a page links to.
func links(t *testing.T, page, body string) (out []string) {
	t.Helper()
	for _, m := range attributeRE.FindAllStringSubmatch(body, -1) {
		u, err := url.Parse(html.UnescapeString(m[2]))
		if err != nil || strings.HasPrefix(u.Path, "/") {
			t.Fatalf("%s links to %s: %v", page, m[2], err)
		}
		if u.Path != "" && u.Scheme == "" {
			out = append(out, path.Join(path.Dir(page), u.Path))
		}
	}
	return out
}

// TestWrite checks that every link of a site leads to a file, and that pages which are left out are not linked to.
func TestWrite(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/assets/a.css" {
			w.Header().Set("Content-Type", "text/css")
		}
		fmt.Fprintf(w, `%s <link href="/assets/a.css"><a href="/run/a:b/3?x=1&amp;y=2#here">3</a> <a href="/run/A:b/3?x=1&amp;y=2">3</a> <a class="x" href="/out">no</a> <a href="#top">top</a> <img src="data:,"> <a href="/run/%%2e%%2e%%2f/x">up</a> <a href="/">home</a> href=&#34;/x&#34;`, html.EscapeString(r.URL.String()))
	})
	dir := filepath.Join(t.TempDir(), "site")
	s := staticSite{Handler: h, Allow: func(u *url.URL) bool { return u.Path != "/out" }}
	for range 2 { // the second time it overwrites its own
		done, err := s.Write(t.Context(), dir)
		if err != nil || done.Files != 5 {
			t.Fatalf("%+v %v", done, err)
		}
	}
	pages := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".html" {
			return err
		}
		pages++
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		for _, to := range links(t, name, string(b)) {
			if _, err := os.Stat(filepath.Join(dir, to)); err != nil {
				t.Errorf("%s links to %s: %v", name, to, err)
			}
		}
		if !strings.Contains(string(b), `<a class="x">no</a>`) || !strings.Contains(string(b), `href=&#34;/x&#34;`) || !strings.Contains(string(b), `.html#here"`) {
			t.Errorf("%s: %s", name, b)
		}
		return nil
	})
	if err != nil || pages != 4 {
		t.Errorf("%d pages, %v", pages, err)
	}
}

// TestAgain checks that an export deletes what an earlier one wrote, and nothing else.
func TestAgain(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, mine := filepath.Join(top, "site"), filepath.Join(top, "mine")
	write := func(links string) error {
		_, err := staticSite{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, links)
		})}.Write(t.Context(), dir)
		return err
	}
	if err := write(`<a href="/run/a/1">1</a> <a href="/run/2">2</a> <a href="/3">3</a>`); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, markerName)
	b, err := os.ReadFile(list)
	b = append(b, "../mine/thesis.txt\nlinked/thesis.txt\nlink.txt\n/etc/passwd\n.\n\nnothing.html\nrun/2.html\nown.txt cut off"...)
	err = errors.Join(err, os.WriteFile(list, b, 0o600), os.Mkdir(mine, 0o700), os.WriteFile(filepath.Join(mine, "thesis.txt"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "own.txt"), nil, 0o600), os.Mkdir(filepath.Join(dir, "kept"), 0o700), os.WriteFile(filepath.Join(dir, "kept", "thesis.txt"), nil, 0o600),
		os.Symlink("kept", filepath.Join(dir, "linked")), os.Symlink("own.txt", filepath.Join(dir, "link.txt")))
	if err != nil {
		t.Fatal(err)
	}
	if err := write(`<a href="/3">3</a>`); err != nil {
		t.Fatal(err)
	}
	var got []string
	err = fs.WalkDir(os.DirFS(top), ".", func(name string, d fs.DirEntry, err error) error {
		if name != "." {
			got = append(got, name)
		}
		return err
	})
	if want := "mine mine/thesis.txt site site/3.html site/index.html site/kept site/kept/thesis.txt site/link.txt site/linked site/own.txt site/parley-site.txt"; strings.Join(got, " ") != want || err != nil {
		t.Errorf("%s\nwant\n%s, %v", strings.Join(got, " "), want, err)
	}
	if b, err := os.ReadFile(list); err != nil || strings.Count(string(b), "\n") != 3 {
		t.Errorf("%s %v", b, err)
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (staticSite{Handler: http.NotFoundHandler()}).Write(t.Context(), dir); !errors.Is(err, ErrFolder) {
		t.Error(err)
	}
	if _, err := (staticSite{Handler: http.NotFoundHandler()}).Write(t.Context(), filepath.Join(dir, "thesis.txt")); err == nil {
		t.Error("a site was written into a file")
	}
	if _, err := (staticSite{Handler: http.NotFoundHandler()}).Write(t.Context(), filepath.Join(dir, "new")); err == nil {
		t.Error("a site without a first page was written")
	}
}

// TestAddress checks that a browser keeps an asset only under the address of its text.
func TestAddress(t *testing.T) {
	t.Parallel()
	all, other := newAssetSet(map[string]string{"a.css": "a{}"}), newAssetSet(map[string]string{"a.css": "b{}"})
	if all.Address("a.css") == other.Address("a.css") {
		t.Error("two texts have one address")
	}
	mux := http.NewServeMux()
	mux.Handle("GET /assets/{name}", all)
	for to, want := range map[string]string{all.Address("a.css"): "max-age=31536000, immutable", other.Address("a.css"): "no-cache", "/assets/a.css": "no-cache"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, to, http.NoBody))
		if got := w.Header().Get("Cache-Control"); got != want || w.Body.String() != "a{}" {
			t.Errorf("%s: %q %q", to, got, w.Body)
		}
	}
	if got := fileName(&url.URL{Path: "/assets/a.css", RawQuery: "v=1"}); got != "assets/a.css" {
		t.Errorf("the file of an asset is %s", got)
	}
}
