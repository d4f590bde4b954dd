package viewer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/kit/auth"
	"parley/internal/run/control"
	"parley/internal/run/engine"
	"parley/internal/run/label"
	"parley/internal/run/runfile"
	"parley/internal/run/seat"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

const seatSchema = `{"type":"object","properties":{"reason":{"type":"string","minLength":3},"share":{"type":"number"},"orders":{"type":"array","items":{"type":"string"}},
	"vote":{"enum":["draw","continue"]},"messages":{"type":"array","items":{"type":"object","properties":{"to":{"enum":["ITALY","</select><script>"]},"text":{"type":"string"}},"required":["to","text"]}}},
	"required":["reason","orders","vote","messages"],"additionalProperties":false}`

// game is a run with people in its seats that waits for them.
type game struct {
	t     *testing.T
	file  string
	store *runfile.Store
	open  *seat.Open
	held  atomic.Pointer[chan struct{}] // answers wait until it is closed
	end   func()                        // takes no more answers
}

// newGame records a run with people in the seats FRANCE and a/b, and a model in ITALY, and takes answers.
func newGame(t *testing.T, file string) *game {
	t.Helper()
	store, err := runfile.Open(t.Context(), file, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	g := &game{t: t, file: file, store: store, open: seat.New(file)}
	spec := world.Spec{Kind: "duel", Lineup: map[string]string{"FRANCE": "me", "a/b": "you", "ITALY": "it"}}
	g.put(&journal.Begun{Version: journal.Version, Run: file, Kind: "duel", KindVersion: 1, Agents: []world.Agent{{Name: "me", Model: world.Human}, {Name: "you", Model: world.Human}, {Name: "it", Model: "sim/x"}}},
		&journal.Opened{}, &journal.Staged{Specs: world.Repeat(spec, 2)})
	for i, s := range []string{"FRANCE", "a/b", "ITALY"} {
		at := journal.Turn{Turn: i}
		g.put(&journal.Turned{Turn: at, Calls: 1}, &journal.Replied{
			Turn: at, Seat: s, Agent: spec.Lineup[s], Label: "before",
			Request:  &llm.Request{Model: world.Human, Messages: []llm.Message{llm.User("for " + s + " only" + attack)}},
			Response: &llm.Response{Text: "secret of " + s + attack},
		})
	}
	end, err := control.Serve(context.WithoutCancel(t.Context()), file, map[string]control.Handler{seat.Verb: func(ctx context.Context, args json.RawMessage) (any, error) {
		if held := g.held.Load(); held != nil {
			<-*held
		}
		return g.open.Handle(ctx, args)
	}})
	if err != nil {
		t.Fatal(err)
	}
	g.end = sync.OnceFunc(end)
	t.Cleanup(func() { g.end(); g.open.Drain(); _ = store.Close() })
	return g
}

func (g *game) put(entries ...journal.Entry) {
	g.t.Helper()
	if err := g.store.Append(g.t.Context(), entries...); err != nil {
		g.t.Fatal(err)
	}
}

// ask asks a seat in episode 0, and returns when the question is open.
func (g *game) ask(name string, turn int, schema string, offer *world.Offer) <-chan *llm.Response {
	g.t.Helper()
	return g.askIn(0, name, turn, schema, offer)
}

func (g *game) askIn(episode int, name string, turn int, schema string, offer *world.Offer) <-chan *llm.Response {
	g.t.Helper()
	q := engine.Question{Turn: journal.Turn{Episode: episode, Turn: turn}, Seat: name, Agent: "me", Label: "orders", Offer: offer, Request: &llm.Request{Messages: []llm.Message{llm.User("for " + name + " only" + attack), llm.User("now " + name)}}}
	if schema != "" {
		q.Request.Schema = &llm.Schema{JSON: json.RawMessage(schema)}
	}
	before, _ := seat.Read(g.t.Context(), g.file)
	got := make(chan *llm.Response, 1)
	go func() {
		resp, _ := g.open.Ask(context.WithoutCancel(g.t.Context()), q)
		got <- resp
	}()
	for {
		if now, _ := seat.Read(g.t.Context(), g.file); len(now) > len(before) {
			return got
		}
	}
}

// guest is a browser that signed in with a link.
type guest struct {
	*site
	browser *http.Client
}

// links returns the links of seats, as the owner sees them.
func (s *site) links(run string) map[string]string {
	s.t.Helper()
	_, body, _ := s.get("/run/" + url.PathEscape(run) + "/seats")
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`<a href="(/run/[^"]*/seats/([^"#]*)#key=[^"]*)" data-seat>`).FindAllStringSubmatch(body, -1) {
		out[m[2]] = html.UnescapeString(m[1])
	}
	return out
}

// follow opens a link as a browser does.
func (s *site) follow(link string) *guest {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	g := &guest{s, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	page, key, _ := strings.Cut(link, "#key=")
	if status, body, _ := g.visit("GET", page, nil); status != 401 || !strings.Contains(body, "signin.js") {
		s.t.Errorf("%s without a key: %d %s", page, status, body)
	}
	if status, body := g.signIn(page, key); status != 204 {
		s.t.Fatalf("%s: %d %s", page, status, body)
	}
	return g
}

func (g *guest) signIn(page, key string) (int, string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), "POST", g.url+"/session?page="+url.QueryEscape(page), strings.NewReader(key))
	if err != nil {
		g.t.Fatal(err)
	}
	status, body, _ := g.do(g.browser, req, "Origin", g.url, "Sec-Fetch-Site", "same-origin")
	return status, body
}

func (g *guest) visit(method, path string, filled url.Values, header ...string) (int, string, http.Header) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(filled.Encode()))
	if err != nil {
		g.t.Fatal(err)
	}
	if method == http.MethodPost {
		header = append([]string{"Origin", g.url, "Sec-Fetch-Site", "same-origin"}, header...)
	}
	return g.do(g.browser, req, append(header, "Accept", "text/html")...)
}

// id returns the id of the question on a page.
func id(body string) string {
	m := regexp.MustCompile(`name="question" value="([^"]*)"`).FindStringSubmatch(body)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

// TestLastParagraphs checks what of a prompt is above the form of a seat.
func TestLastParagraphs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ all, want string }{
		{"Say one word.", "Say one word."},
		{strings.Repeat("The board. ", 100) + "\n\nYour orders?", "Your orders?"},
		{strings.Repeat("The board. ", 100) + "\n\nThe talks.\n\nYour orders?\n", "The talks.\n\nYour orders?"},
		{strings.Repeat("é", 1000), "…" + strings.Repeat("é", maxAskedText/2)},
	} {
		if got := lastParagraphs(c.all, maxAskedText); got != c.want {
			t.Errorf("%.20s: %q, want %q", c.all, got, c.want)
		}
	}
}

// TestUnplayedSeat: while nobody plays the run, an open question has a button that cannot be pressed. What is new since the last answer
// comes first, and the whole prompt is folded below the form.
func TestUnplayedSeat(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "a.parley")
	g := newGame(t, file)
	q := engine.Question{Turn: journal.Turn{Turn: 9}, Seat: "FRANCE", Agent: "me", Label: "message", Request: &llm.Request{Messages: []llm.Message{llm.User(strings.Repeat("The board. ", 100) + "\n\nWrite messages.")}}, Offer: &world.Offer{SVG: "<svg><g/></svg>"}}
	go func() { _, _ = g.open.Ask(context.WithoutCancel(t.Context()), q) }()
	s := serve(t, folder)
	me := s.follow(s.links("a.parley")["FRANCE"])
	visit := func() (body string) {
		for body == "" || id(body) == "" {
			_, body, _ = me.visit("GET", "/run/a.parley/seats/FRANCE", nil)
		}
		return body
	}
	body := visit()
	form, prompt := strings.Index(body, `<form method="post"`), strings.Index(body, "The whole prompt</summary>")
	if asked := strings.Index(body, ">Write messages.</div>"); asked < 0 || form < asked || prompt < form || !strings.Contains(body, `<h3>New since your last answer</h3>`) || strings.Index(body, "The board.") > asked || strings.Contains(body, "Click a place") || !strings.Contains(body, `<button type="submit">Answer`) {
		t.Errorf("the question is not first: %s", body)
	}
	g.end()
	if body = visit(); !strings.Contains(body, `<button type="submit" disabled aria-describedby="seat-unplayed">Answer</button><small id="seat-unplayed">nobody plays the run`) {
		t.Errorf("an answer can be sent to nobody: %s", body)
	}
}

// TestSeat: a person sees the seat's history and question, is told what is wrong with an answer beside its field, and
// keeps what was filled in; the first right answer counts.
func TestSeat(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	g := newGame(t, filepath.Join(folder, "a.parley"))
	got := g.ask("FRANCE", 10, seatSchema, &world.Offer{
		Field: "orders", SVG: `<svg><g data-at="PAR" onclick="x()"/><script>x()</script></svg>`, Alt: "a map",
		Choices: []world.Choice{{Name: "Paris", At: "PAR", Options: []string{"A PAR H", "A PAR - BUR", "</option><script>"}}, {Name: "Brest", At: "BRE", Options: []string{"F BRE H"}}},
	})
	s := serve(t, folder)
	me := s.follow(s.links("a.parley")["FRANCE"])
	const page = "/run/a.parley/seats/FRANCE"
	status, body, h := me.visit("GET", page, nil)
	for _, want := range []string{"It is your turn", "now FRANCE", "secret of FRANCE", `data-at="PAR"`, `<option>A PAR - BUR</option>`, `data-for="BRE"`, `name="f4.0.0"`, "Answer"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	last := 0
	for _, part := range []string{"Question: orders", "now FRANCE", `data-at="PAR"`, "Click a place", `<form method="post"`, "Answer</button>", "What you were told before (1)"} {
		at := strings.Index(body, part)
		if at < last {
			t.Errorf("%q is not there, or too early", part)
		}
		last = at
	}
	if status != 200 || strings.Contains(body, "<script>") || strings.Contains(body, "onclick") || strings.Contains(body, "\x1b") || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %v\n%s", status, h, body)
	}
	filled := url.Values{"question": {id(body)}, "f0": {"a\r\n<b>"}, "f1": {"many"}, "f2": {"A PAR - BUR", ""}, "f4.1.0": {"ITALY"}, "f4.1.1": {"hi <b>"}}
	status, body, _ = me.visit("POST", page, filled)
	for _, want := range []string{"write a number", "choose one of draw, continue", "&lt;b&gt;</textarea>", `<option selected>A PAR - BUR</option>`, "hi &lt;b&gt;"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if status != 422 || strings.Contains(body, "data-events") {
		t.Errorf("%d: a page with what was filled in must not change: %s", status, body)
	}
	filled.Set("f1", "0.5")
	filled.Set("f3", "draw")
	filled.Set("f0", "no")
	if status, body, _ = me.visit("POST", page, filled); status != 422 || !strings.Contains(body, `id="f0-problem">expected at least 3 letters`) {
		t.Errorf("the problem is not beside its field: %d %s", status, body)
	}
	filled.Set("f0", "why not")
	for _, c := range []struct {
		key, value string
		want       int
	}{{"question", "0-0-99-0", 422}, {"question", "", 422}, {"f0", strings.Repeat("x", 200_000), 422}, {"f0", strings.Repeat("x", 1_000_000), 422}, {"f0", "a\x1b[2J", 422}, {"f0", "why not", 303}, {"f0", "again", 422}} {
		sent := url.Values{}
		maps.Copy(sent, filled)
		sent.Set(c.key, c.value)
		if status, body, _ := me.visit("POST", page, sent); status != c.want || status == 422 && !strings.Contains(body, `role="alert"`) {
			t.Errorf("%s=%.30q: %d, want %d: %.3000s", c.key, c.value, status, c.want, body)
		}
	}
	if r := <-got; string(r.JSON) != `{"reason":"why not","share":0.5,"orders":["A PAR - BUR"],"vote":"draw","messages":[{"to":"ITALY","text":"hi \u003cb\u003e"}]}` {
		t.Errorf("%s", r.JSON)
	}
	if _, body, _ = me.visit("GET", page, nil); !strings.Contains(body, "not your turn") || id(body) != "" {
		t.Error(body)
	}
	text := g.ask("FRANCE", 11, "", nil)
	_, body, _ = me.visit("GET", page, nil)
	if status, body, _ := me.visit("POST", page, url.Values{"question": {id(body)}, "text": {"plain"}}); status != 303 {
		t.Error(status, body)
	}
	if r := <-text; r.Text != "plain" {
		t.Error(r)
	}
}

// TestLateSeat: a person who takes part in a late episode only has a link, and is asked.
func TestLateSeat(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	g := newGame(t, filepath.Join(folder, "a.parley"))
	const late = 50_000
	models := world.Repeat(world.Spec{Kind: "duel", Lineup: map[string]string{"ITALY": "it"}}, late-2)
	g.put(&journal.Staged{Stage: 1, First: 2, Specs: world.Join(models, world.Repeat(world.Spec{Kind: "duel", Lineup: map[string]string{"SPAIN": "me"}}, 1))})
	got := g.askIn(late, "SPAIN", 0, "", nil)
	s := serve(t, folder)
	me := s.follow(s.links("a.parley")["SPAIN"])
	const page = "/run/a.parley/seats/SPAIN"
	_, body, _ := me.visit("GET", page, nil)
	if status, body, _ := me.visit("POST", page, url.Values{"question": {id(body)}, "text": {"late"}}); status != 303 {
		t.Error(status, body)
	}
	if r := <-got; r.Text != "late" {
		t.Error(r)
	}
}

// TestSeatKeys attacks the viewer with the link of a seat: it opens that seat and nothing else, and survives a restart
// of the viewer.
func TestSeatKeys(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "a.parley")
	g := newGame(t, file)
	newGame(t, filepath.Join(folder, "b.parley"))
	g.ask("FRANCE", 10, "", nil)
	g.ask("a/b", 11, "", nil)
	s := serve(t, folder)
	links, others := s.links("a.parley"), s.links("b.parley")
	if len(links) != 2 || len(others) != 2 || links["FRANCE"] == "" || links["a%2Fb"] == "" {
		t.Fatalf("%v %v", links, others)
	}
	me := s.follow(links["FRANCE"])
	if status, body, _ := me.visit("GET", "/run/a.parley/seats/FRANCE", nil); status != 200 || strings.Contains(body, "a/b") || strings.Contains(body, "ITALY") || strings.Contains(body, "/episodes") || strings.Contains(body, "#key") {
		t.Errorf("%d: the page shows more than the seat: %s", status, body)
	}
	at, _ := url.Parse(s.url + "/run/a.parley/seats/FRANCE")
	own := me.browser.Jar.Cookies(at)
	if len(own) != 1 || strings.Contains(links["FRANCE"], own[0].Value) {
		t.Fatal("the cookie is the key:", own)
	}
	cookie := own[0].Name + "=" + own[0].Value
	owners := strings.TrimSuffix(own[0].Name, "-seat") + "=" + own[0].Value // the cookie under the name of the owner's
	_, key, _ := strings.Cut(links["FRANCE"], "#key=")
	for _, path := range []string{
		"/", "/run/a.parley", "/run/a.parley/episodes", "/run/a.parley/episodes/0", "/run/a.parley/episodes/0/0:0", "/run/a.parley/search?q=secret", "/run/a.parley/report",
		"/run/a.parley/events", "/run/a.parley/seats", "/run/a.parley/seats/", "/run/a.parley/seats/a%2Fb", "/run/a.parley/seats/a%2Fb/events", "/run/a.parley/seats/ITALY", "/run/b.parley/seats/FRANCE",
		"/compare", "/compare?a=a.parley&b=b.parley", "/run/a.parley/steer", "/run/a.parley/episodes/0/labels", "/run/b.parley", "/run/a.parley/seats/FRANCE/more", "/run/a.parley/seats/FRANCE/events/more", "/run/a.parley/seats/france", "/run/none.parley/seats/FRANCE", "/run/a.parley/seats/FRANCE%2Fevents",
		"/run/a.parley/seats/FRANCE/%2e%2e/a%2Fb", "/run/a.parley/seats/FRANCE%2f..%2f..%2fepisodes", "//run/a.parley/seats/FRANCE", "/run/a.parley/x/../seats/a%2Fb",
	} {
		for _, header := range [][]string{{"Cookie", cookie}, {"Cookie", owners}, {"Authorization", "Bearer " + key}, {"X-Api-Key", key}, {"Cookie", cookie + "; " + owners}} {
			for _, method := range []string{"GET", "POST", "HEAD"} {
				status, body, _ := (&guest{s, &http.Client{CheckRedirect: me.browser.CheckRedirect, Timeout: 2 * time.Minute}}).visit(method, path, url.Values{"question": {"0-0-11-0"}, "text": {"mine"}}, header...)
				if status < 300 || strings.Contains(body, "secret of") {
					t.Errorf("%s %s with %s: %d %s", method, path, header, status, body)
				}
			}
		}
	}
	for _, c := range []struct{ page, key string }{
		{"/run/a.parley/seats/a%2Fb", key}, {"/run/b.parley/seats/FRANCE", key}, {"/run/a.parley", key}, {"/", key}, {"", key}, {"/run/a.parley/seats/FRANCE", ""}, {"/run/a.parley/seats/FRANCE", own[0].Value}, {"/run/none/seats/FRANCE", key},
	} {
		if status, _ := me.signIn(c.page, c.key); status != 401 {
			t.Errorf("the key for %s: %d", c.page, status)
		}
	}
	if open, _ := seat.Read(t.Context(), file); len(open) != 2 {
		t.Error("somebody else's question was answered:", open)
	}
	info, err := os.Stat(file + secretSuffix)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Error("others can read the keys:", info.Mode(), err)
	}
	if b, _ := os.ReadFile(file); strings.Contains(string(b), key) {
		t.Error("the run file has the key")
	}
	again := serve(t, folder)
	if now := again.links("a.parley")["FRANCE"]; now != links["FRANCE"] {
		t.Errorf("the link was %s and is %s", links["FRANCE"], now)
	}
}

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

// filesIn returns the names of what is in a folder.
func filesIn(t *testing.T, folder string) (names []string) {
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
	before := filesIn(t, folder)
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
	if now := filesIn(t, folder); !slices.Equal(now, before) {
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
			if err := c.make(file + secretSuffix); err != nil {
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
	if left := filesIn(t, filepath.Dir(link)); len(left) != 1 {
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
