package viewer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

const (
	key    = "the-key"
	attack = `</pre><script>alert(1)</script><img src=x onerror=alert(2)>"'{{.}}` + "\x1b[31m\u202e"
)

// site is a running viewer.
type site struct {
	t   *testing.T
	url string
}

// serve serves paths until the test ends.
func serve(t *testing.T, paths ...string) *site {
	t.Helper()
	v, err := New(Config{Paths: paths, KindOf: func(*journal.Begun) world.Kind { return world.Kind{} }, Keys: []string{key}, Tool: "parley test"})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &site{t, "http://" + ln.Addr().String()}
}

// events returns the events of a page, line by line, and a function that waits for the next one that says that a run has grown.
func (s *site) events(path string) (lines *bufio.Scanner, grown func()) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	lines = bufio.NewScanner(resp.Body)
	return lines, func() {
		s.t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "event: grown") {
				return
			}
		}
		s.t.Fatal("the events ended:", lines.Err())
	}
}

// get asks for a page with the key and the given headers, until the index has all that it shows.
func (s *site) get(path string, header ...string) (status int, body string, h http.Header) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	for {
		if status, body, h = s.do(http.DefaultClient, req, header...); !strings.Contains(body, "still being added to the index") {
			return status, body, h
		}
	}
}

func (s *site) do(c *http.Client, req *http.Request, header ...string) (status int, body string, h http.Header) {
	s.t.Helper()
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// record writes a run file with hostile text everywhere. say appends an answer to episode 0.
func record(t *testing.T, path string) (say func(text string)) {
	t.Helper()
	store, err := runfile.Open(t.Context(), path, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	put := func(entries ...journal.Entry) {
		t.Helper()
		if err := store.Append(context.Background(), entries...); err != nil {
			t.Fatal(err)
		}
	}
	spec := world.Spec{Kind: "duel", Cell: attack, Lineup: map[string]string{"first": "me", "second": attack}}
	put(&journal.Begun{Version: journal.Version, Run: path, Kind: "duel", KindVersion: 1, Tool: attack, Agents: []world.Agent{{Name: "me", Model: attack}}},
		&journal.Opened{}, &journal.Staged{Specs: world.Repeat(spec, 250)})
	quoted, err := json.Marshal(attack)
	if err != nil {
		t.Fatal(err)
	}
	turn := 0
	say = func(text string) {
		at := journal.Turn{Turn: turn}
		turn++
		put(&journal.Turned{Turn: at, Calls: 1, Notes: []world.Note{{Kind: attack, Seat: attack, Data: quoted}}},
			&journal.Replied{
				Turn: at, Seat: attack, Agent: "me", Label: attack, At: time.Now(),
				Request:  &llm.Request{Model: "x/y", Messages: []llm.Message{llm.System(attack), llm.User("what?")}},
				Response: &llm.Response{Text: text, Thoughts: []llm.Thought{{Text: attack}}, JSON: []byte(`{"a":"` + "</script>" + `"}`), Metadata: llm.Metadata{Cost: llm.Dollar}},
			})
	}
	say("hello " + attack)
	for i := 1; i < 240; i++ {
		put(&journal.Turned{Turn: journal.Turn{Episode: i}, Calls: 1},
			&journal.Replied{Turn: journal.Turn{Episode: i}, Seat: "first", Agent: "me", Label: "say", Error: &llm.Error{Kind: llm.KindServer, Message: attack, Status: 500, Code: attack}},
			&journal.Ended{Episode: i, Outcome: world.Outcome{Failed: attack, Scores: []world.Score{{Seat: "first", Name: attack, Value: float64(i)}}}, Stack: attack})
	}
	return say
}

// everyPage are the pages of a run that record wrote.
func everyPage() []string {
	const run = "/run/a.parley"
	return []string{
		"/", run, run + "/episodes", run + "/episodes?sort=cost&desc=1", run + "/episodes?q=" + url.QueryEscape(`failed cell:"`+attack),
		run + "/episodes?sort=" + url.QueryEscape("score:"+url.QueryEscape(attack)+":first"), run + "/episodes/0", run + "/episodes/3", run + "/episodes/249",
		run + "/episodes/0/0:0", run + "/episodes/3/0:0", run + "/episodes/0?text=markdown", run + "/episodes/0/0:0?text=markdown", run + "/search", run + "/search?q=hello", run + "/search?q=" + url.QueryEscape(attack), run + "/report",
		run + "/episodes/0?label=" + url.QueryEscape(attack), run + "/episodes?q=label:any&sort=label:any", "/search", "/search?q=hello", "/search?q=" + url.QueryEscape(attack), "/compare", "/compare?a=a.parley&b=a.parley", "/compare?a=a.parley&ea=0&b=a.parley&eb=3",
	}
}

// TestHostileText checks that text of models stays text on every page, and that no page allows other scripts.
func TestHostileText(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	record(t, filepath.Join(folder, "a.parley"))
	s := serve(t, folder)
	for _, path := range everyPage() {
		for range 2 { // the second time with statistics, if they are computed by then
			status, body, h := s.get(path)
			if status != http.StatusOK {
				t.Errorf("%s: %d %s", path, status, body)
			}
			for _, bad := range []string{"ZgotmplZ", "<script>alert", "<img src=x", "\x1b", "\u202e", `onerror=alert(2)>"'`} {
				if strings.Contains(body, bad) {
					t.Errorf("%s: has %q", path, bad)
				}
			}
			policy := h.Get("Content-Security-Policy")
			if strings.HasSuffix(path, "/report") {
				policy = body // its policy is in the page
			}
			if !strings.Contains(policy, "default-src") || strings.Contains(policy, "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" {
				t.Errorf("%s: %v", path, h)
			}
		}
	}
}

// TestRefusals checks what a stranger, a web page of another origin and a wrong address get.
func TestRefusals(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	record(t, filepath.Join(folder, "a.parley"))
	s := serve(t, folder)
	for _, c := range []struct {
		name, path string
		header     []string
		want       int
	}{
		{"no key", "/", []string{"Authorization", ""}, 401},
		{"another key", "/run/a.parley", []string{"Authorization", "Bearer the-kex"}, 401},
		{"no key for events", "/run/a.parley/events", []string{"Authorization", ""}, 401},
		{"no key for a report", "/run/a.parley/report", []string{"Authorization", ""}, 401},
		{"the key in a query", "/?key=" + key, []string{"Authorization", ""}, 401},
		{"another host", "/", []string{"Host", "evil.example"}, 403},
		{"a page of another origin", "/", []string{"Origin", "https://evil.example"}, 403},
		{"an image on another page", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"a frame on another page", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"a link on another page", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"our own page", "/", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}, 200},
		{"no such run", "/run/b.parley", nil, 404},
		{"a path out of the folder", "/run/..%2F..%2Fetc%2Fpasswd", nil, 404},
		{"no such episode", "/run/a.parley/episodes/250", nil, 404},
		{"an episode that is no number", "/run/a.parley/episodes/x", nil, 404},
		{"a negative episode", "/run/a.parley/episodes/-1", nil, 404},
		{"no such call", "/run/a.parley/episodes/0/9:9", nil, 404},
		{"no such page", "/run/a.parley/else", nil, 404},
		{"no such column", "/run/a.parley/episodes?sort=x", nil, 400},
		{"a wrong name of a score", "/run/a.parley/episodes?sort=score:%25zz:first", nil, 400},
		{"a wrong position", "/run/a.parley/episodes?sort=cost&after=x", nil, 400},
		{"a wrong value", "/run/a.parley/episodes?sort=cost&after=x~1", nil, 400},
		{"a wrong line", "/run/a.parley/episodes/0?from=x", nil, 400},
		{"a line after the last", "/run/a.parley/episodes/0?from=99999", nil, 200},
		{"a wrong hit", "/run/a.parley/search?q=a&after=x", nil, 400},
	} {
		status, body, _ := s.get(c.path, c.header...)
		if status != c.want {
			t.Errorf("%s: %d, want %d: %.200s", c.name, status, c.want, body)
		}
		if strings.Contains(body, key) {
			t.Errorf("%s: the page has the key", c.name)
		}
	}
}

// TestSignIn exchanges the key for a cookie, as the page for strangers does.
func TestSignIn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	record(t, filepath.Join(folder, "a.parley"))
	s := serve(t, folder)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	visit := func(method, path, body string, header ...string) (int, string, http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return s.do(browser, req, append(header, "Accept", "text/html")...)
	}
	if status, body, _ := visit("GET", "/run/a.parley", ""); status != 401 || !strings.Contains(body, "signin.js") {
		t.Errorf("%d %s", status, body)
	}
	if status, _, h := visit("POST", "/session", "wrong"); status != 401 || h.Get("Set-Cookie") != "" {
		t.Errorf("a wrong key: %d %v", status, h)
	}
	if status, _, h := visit("POST", "/session", key, "Origin", "https://evil.example"); status != 403 || h.Get("Set-Cookie") != "" {
		t.Errorf("another origin: %d %v", status, h)
	}
	status, _, h := visit("POST", "/session", key, "Origin", s.url, "Sec-Fetch-Site", "same-origin")
	if c := h.Get("Set-Cookie"); status != 204 || strings.Contains(c, key) || !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Strict") {
		t.Errorf("%d %v", status, h)
	}
	if status, body, _ := visit("GET", "/run/a.parley", ""); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// TestPaging follows the links to all episodes.
func TestPaging(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	record(t, filepath.Join(folder, "a.parley"))
	s := serve(t, folder)
	for path, want := range map[string]int{"/run/a.parley/episodes": 3, "/run/a.parley/episodes?q=failed": 3} {
		n := 0
		for next := path; next != ""; n++ {
			status, body, _ := s.get(next)
			if status != 200 || n > 10 {
				t.Fatalf("%s: %d", next, status)
			}
			_, rest, found := strings.Cut(body, `<p class="pages">`)
			if next = ""; found {
				if before, _, ok := strings.Cut(rest, `" rel="next"`); ok {
					next = strings.ReplaceAll(before[strings.LastIndex(before, `href="`)+6:], "&amp;", "&")
				}
			}
		}
		if n != want {
			t.Errorf("%s: %d pages, want %d", path, n, want)
		}
	}
}

// TestGrows checks that an open page is told when its run has grown, and then shows what is new.
func TestGrows(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.parley")
	say := record(t, file)
	s := serve(t, file)
	_, grown := s.events("/run/a.parley/events")
	for i := range 3 {
		said := fmt.Sprintf("new words %d", i)
		say(said)
		for { // an event may be of what was there before
			grown()
			if _, body, _ := s.get("/run/a.parley/episodes/0"); strings.Contains(body, said) {
				break
			}
		}
	}
}

// TestReplaced checks that a run file that is replaced, or deleted, is not shown any more.
func TestReplaced(t *testing.T) {
	t.Parallel()
	folder, other := t.TempDir(), t.TempDir()
	record(t, filepath.Join(folder, "a.parley"))
	s := serve(t, folder)
	if _, body, _ := s.get("/run/a.parley"); !strings.Contains(body, "239 of 250") {
		t.Error(body)
	}
	store, err := runfile.Open(t.Context(), filepath.Join(other, "a.parley"), runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	err = store.Append(t.Context(), &journal.Begun{Version: journal.Version, Run: "other", Kind: "duel", KindVersion: 1}, &journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "duel"}, 7)})
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		_ = os.Remove(filepath.Join(folder, "a.parley"+suffix))
	}
	if err := os.Rename(filepath.Join(other, "a.parley"), filepath.Join(folder, "a.parley")); err != nil {
		t.Fatal(err)
	}
	if _, body, _ := s.get("/run/a.parley"); !strings.Contains(body, "0 of 7") {
		t.Error(body)
	}
	if err := os.Remove(filepath.Join(folder, "a.parley")); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := s.get("/run/a.parley"); status != http.StatusNotFound {
		t.Error(status)
	}
}

// TestList checks that a single run file is shown at once; a folder is listed.
func TestList(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	record(t, filepath.Join(folder, "a.parley"))
	record(t, filepath.Join(folder, "b.parley"))
	if _, body, _ := serve(t, filepath.Join(folder, "a.parley")).get("/"); !strings.Contains(body, "a.parley</bdi></h1>") {
		t.Error("a single run is not shown at once")
	}
	_, body, _ := serve(t, folder).get("/")
	for _, want := range []string{`href="/run/a.parley"`, `href="/run/b.parley"`, "239 of 250"} {
		if !strings.Contains(body, want) {
			t.Errorf("the list has no %s", want)
		}
	}
	if _, err := New(Config{Paths: []string{filepath.Join(folder, "none.parley")}}); err == nil {
		t.Error("a file that is missing is served")
	}
}
