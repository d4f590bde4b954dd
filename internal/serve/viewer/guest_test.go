package viewer

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/kit/auth"
	"parley/internal/run/control"
	"parley/internal/run/label"
)

// cookie returns the cookie of a guest of a seat.
func (g *guest) cookie(page string) string {
	g.t.Helper()
	at, err := url.Parse(g.url + page)
	if err != nil || len(g.browser.Jar.Cookies(at)) != 1 {
		g.t.Fatal("no cookie:", err)
	}
	return g.browser.Jar.Cookies(at)[0].String()
}

// TestSlowGuests: people who send their forms slowly, or whose answers wait for the process that plays the run, keep
// nobody waiting.
func TestSlowGuests(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "a.parley")
	g := newGame(t, file)
	got := g.ask("FRANCE", 10, "", nil)
	s := serve(t, folder)
	const page = "/run/a.parley/seats/FRANCE"
	me := s.follow(s.links("a.parley")["FRANCE"])
	look := func(what string) {
		t.Helper()
		short := &http.Client{Timeout: 2 * time.Minute, Jar: me.browser.Jar}
		for _, path := range []string{"/run/a.parley/episodes", page} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
			if path != page {
				req.Header.Set("Authorization", "Bearer "+key)
			}
			resp, err := short.Do(req)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if _ = resp.Body.Close(); resp.StatusCode != 200 {
				t.Errorf("%s: %d", what, resp.StatusCode)
			}
		}
	}
	for range maxPages {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n", page, strings.TrimPrefix(s.url, "http://"), me.cookie(page))
		if line, err := bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, " 100 ") { // the server waits for the form
			t.Fatal(line, err)
		}
	}
	look("with slow forms")

	_, body, _ := me.visit("GET", page, nil)
	held := make(chan struct{})
	g.held.Store(&held)
	var wg sync.WaitGroup
	var accepted atomic.Int32
	for range maxSeatPages {
		wg.Go(func() {
			if status, _, _ := me.visit("POST", page, url.Values{"question": {id(body)}, "text": {"plain"}}); status == 303 {
				accepted.Add(1)
			}
		})
	}
	for sent := 0; sent < maxSeatPages-1; { // the process has one of them
		files, err := filepath.Glob(file + control.Suffix + "/*.request")
		if err != nil || t.Context().Err() != nil {
			t.Fatal(err)
		}
		sent = len(files)
	}
	look("with a slow process")
	close(held)
	wg.Wait()
	if r := <-got; r.Text != "plain" || accepted.Load() != 1 {
		t.Errorf("%v, %d accepted", r, accepted.Load())
	}
}

// viewerList returns the names of what is in a folder.
func viewerList(t *testing.T, folder string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		names = append(names, f.Name())
	}
	return names
}

// TestStranger: a client without a key makes the viewer open and write nothing.
func TestStranger(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	newGame(t, filepath.Join(folder, "a.parley"))
	before := viewerList(t, folder)
	s := serve(t, folder)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), ":")
	stranger := &guest{s, http.DefaultClient}
	const page = "/run/a.parley/seats/FRANCE"
	if status, _ := stranger.signIn(page, "x"); status != 401 {
		t.Error(status)
	}
	for _, method := range []string{"GET", "POST"} {
		if status, _, _ := stranger.visit(method, page, nil, "Cookie", "parley-"+port+"-seat=x"); status != 401 {
			t.Error(method, status)
		}
	}
	if now := viewerList(t, folder); !slices.Equal(now, before) {
		t.Errorf("there were %v, and there are %v", before, now)
	}
}

// TestSecrets: a file with a secret that somebody else may have written or read is not used, and the owner learns it.
func TestSecrets(t *testing.T) {
	t.Parallel()
	const text = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for name, c := range map[string]struct {
		make func(path string) error
		used bool
	}{
		"ours":         {func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }, true},
		"for everyone": {func(path string) error { return os.WriteFile(path, []byte(text), 0o644) }, runtime.GOOS == "windows"},
		"too short":    {func(path string) error { return os.WriteFile(path, []byte(text[:9]), 0o600) }, false},
		"a folder":     {func(path string) error { return os.Mkdir(path, 0o700) }, false},
		"a link": {func(path string) error {
			return errors.Join(os.WriteFile(path+"2", []byte(text), 0o600), os.Symlink(path+"2", path))
		}, false},
		"somebody else's": {func(path string) error {
			return errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chown(path, 12345, 12345))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			file := filepath.Join(folder, "a.parley")
			newGame(t, file)
			if err := c.make(file + seatsSuffix); err != nil {
				t.Skip(err)
			}
			s, again := serve(t, folder), serve(t, folder)
			_, body, _ := s.get("/run/a.parley/seats")
			if said := strings.Contains(body, "end with this viewer"); said == c.used {
				t.Errorf("the page says %v: %s", said, body)
			}
			link := s.links("a.parley")["FRANCE"]
			if same := link == again.links("a.parley")["FRANCE"]; link == "" || same != c.used {
				t.Errorf("%s: the same for another viewer: %v", link, same)
			}
			s.follow(link)
		})
	}
}

// TestLinkedRun: a run file that is named by a symbolic link has the same files beside it as by its own name.
func TestLinkedRun(t *testing.T) {
	t.Parallel()
	file, link := filepath.Join(t.TempDir(), "a.parley"), filepath.Join(t.TempDir(), "b.parley")
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	g := newGame(t, file)
	got := g.ask("FRANCE", 10, "", nil)
	s := serve(t, link)
	const page = "/run/b.parley/seats/FRANCE"
	me := s.follow(s.links("b.parley")["FRANCE"])
	_, body, _ := me.visit("GET", page, nil)
	if status, body, _ := me.visit("POST", page, url.Values{"question": {id(body)}, "text": {"plain"}}); status != 303 {
		t.Fatal(status, body)
	}
	if r := <-got; r.Text != "plain" {
		t.Error(r)
	}
	if err := label.Add(link, label.Label{Run: "r", Tag: "odd"}); err != nil {
		t.Fatal(err)
	}
	if set, err := label.Read(t.Context(), file, "r"); err != nil || len(set.Of(0)) != 1 {
		t.Errorf("%v, %v", set, err)
	}
	end := control.ShowLive(link, func(now time.Time) control.LiveState { return control.LiveState{At: now} })
	defer end()
	for {
		if _, ok := control.ReadLive(t.Context(), file); ok || t.Context().Err() != nil {
			break
		}
	}
	if left := viewerList(t, filepath.Dir(link)); len(left) != 1 {
		t.Error("beside the link:", left)
	}
	if _, key, _ := strings.Cut(s.links("b.parley")["FRANCE"], "#"); !strings.Contains(serve(t, file).links("a.parley")["FRANCE"], key) {
		t.Error("the names have different keys")
	}
}

// TestSignInPage: the page for people without a key says what they need: the link of a seat, or the key of the server.
func TestSignInPage(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	stranger := &guest{s, http.DefaultClient}
	for path, seat := range map[string]bool{"/": false, "/run/a.parley/seats": false, "/run/a.parley/seats/FRANCE": true, "/run/a.parley/seats/a%2Fb": true} {
		status, body, _ := stranger.visit("GET", path, nil)
		if status != 401 || strings.Contains(body, "key of the seat") != seat || strings.Contains(body, "parley view") == seat || strings.Count(body, `id="needed"`) != 1 || strings.Count(body, `id="problem"`) != 1 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// TestSecureCookie: a browser that uses https with a server in front of this one gets a cookie for https only.
func TestSecureCookie(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	v, err := New(Config{Paths: []string{folder}, Keys: []string{key}, Access: auth.Access{Hosts: []string{"x.example"}, Origins: []string{"https://x.example"}}})
	if err != nil {
		t.Fatal(err)
	}
	for origin, secure := range map[string]bool{"https://x.example": true, "http://x.example": false, "": false} {
		req := httptest.NewRequestWithContext(t.Context(), "POST", "/session", strings.NewReader(key))
		req.Host = "x.example"
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		v.guard.Wrap(v.routes()).ServeHTTP(w, req)
		if all := w.Result().Cookies(); len(all) != 1 || all[0].Secure != secure || !all[0].HttpOnly {
			t.Errorf("from %q: %d %v %s", origin, w.Code, all, w.Body)
		}
	}
}
