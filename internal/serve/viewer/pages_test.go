package viewer

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	db "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/internal/run/label"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// post sends a form with the key.
func (s *site) post(path string, form url.Values, header ...string) (status int, body string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+key)
	status, body, _ = s.do(http.DefaultClient, req, header...)
	return status, body
}

// TestLabels adds labels by forms, finds episodes by them, and removes them.
func TestLabels(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.parley")
	record(t, file)
	s := serve(t, file)
	const episode = "/run/a.parley/episodes/"
	for _, c := range []struct {
		name, path string
		form       url.Values
		header     []string
		want       int
	}{
		{"an episode", episode + "3/labels", url.Values{"verdict": {"pass"}, "by": {"eva"}}, []string{"Origin", s.url, "Sec-Fetch-Site", "same-origin"}, 200},
		{"a message", episode + "0/labels", url.Values{"call": {"0:0"}, "tag": {"od<d"}, "note": {attack}}, nil, 200},
		{"another", episode + "5/labels", url.Values{"verdict": {"fail"}}, nil, 200},
		{"nothing", episode + "3/labels", url.Values{"tag": {" "}}, nil, 400},
		{"a wrong call", episode + "3/labels", url.Values{"tag": {"x"}, "call": {"<b>"}}, nil, 400},
		{"no such call", episode + "3/labels", url.Values{"tag": {"x"}, "call": {"9:9"}}, nil, 400},
		{"removes no label", episode + "3/labels", url.Values{"remove": {"xx"}}, nil, 200},
		{"a wrong verdict", episode + "3/labels", url.Values{"verdict": {"x"}}, nil, 400},
		{"a long note", episode + "3/labels", url.Values{"note": {strings.Repeat("x", maxForm)}}, nil, 400},
		{"no such episode", episode + "999/labels", url.Values{"tag": {"x"}}, nil, 404},
		{"a page of another origin", episode + "3/labels", url.Values{"tag": {"x"}}, []string{"Origin", "https://evil.example"}, 403},
		{"a form without an origin", episode + "3/labels", url.Values{"tag": {"x"}}, []string{"Origin", "null", "Sec-Fetch-Site", "cross-site"}, 403},
		{"no key", episode + "3/labels", url.Values{"tag": {"x"}}, []string{"Authorization", ""}, 401},
	} {
		if status, body := s.post(c.path, c.form, c.header...); status != c.want {
			t.Errorf("%s: %d, want %d: %.300s", c.name, status, c.want, body)
		}
	}
	store, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	set, err := label.Read(t.Context(), file, file)
	lines, _ := os.ReadFile(file + label.Suffix)
	if err != nil || len(set.All) != 3 || bytes.Count(lines, []byte("\n")) != 3 {
		t.Fatalf("%+v %v: %s", set, err, lines)
	}
	for form, want := range map[string]string{"tag=": "a label needs a tag, a verdict or a note", "tag=x&call=9:9": "episode 3 has no message &#34;9:9&#34;"} {
		values, err := url.ParseQuery(form)
		if err != nil {
			t.Fatal(err)
		}
		if _, body := s.post(episode+"3/labels", values); !strings.Contains(body, want) || strings.Contains(body, "address") {
			t.Errorf("%s: no %q in %s", form, want, body)
		}
	}
	listed := regexp.MustCompile(`<th scope="row" class="number"><a href="[^"]*">(\d+)</a>`)
	list := func(query string) string {
		_, body, _ := s.get("/run/a.parley/episodes?" + query)
		var out []string
		for _, m := range listed.FindAllStringSubmatch(body, -1) {
			out = append(out, m[1])
		}
		return strings.Join(out, " ")
	}
	for query, want := range map[string]string{
		"q=label:any": "0 3 5", "q=verdict:pass": "3", "q=verdict:unsure": "", "q=tag:%22od%3Cd%22": "0", "q=tag:none": "",
		"sort=label:verdict": "5 3", "sort=label:verdict&desc=1": "3 5", "sort=label:any": "0 3 5",
	} {
		if got := list(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if _, body, _ := s.get(episode + "0"); !strings.Contains(body, "od&lt;d") || !strings.Contains(body, "label=0:0#label") {
		t.Errorf("the page of the episode: %s", body)
	}
	if status, body := s.post(episode+"3/labels", url.Values{"remove": {set.Of(3)[0].ID}}); status != 200 || list("q=label:any") != "0 5" {
		t.Errorf("%d %s", status, body)
	}
}

// two writes two runs of which the second is a fork of the first: they say the same until turn 2. Turn 1 forks strands.
func two(t *testing.T, folder string) {
	t.Helper()
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for i, name := range []string{"a.parley", "b.parley"} {
		store, err := runfile.Open(t.Context(), filepath.Join(folder, name), runfile.Create)
		if err != nil {
			t.Fatal(err)
		}
		begun := &journal.Begun{Version: journal.Version, Run: name, Kind: "duel", KindVersion: 1}
		if i == 1 {
			begun.Fork = &journal.Origin{Run: "a.parley", File: filepath.Join(folder, "a.parley"), Episode: 0, Turn: 2}
		}
		entries := []journal.Entry{begun, &journal.Opened{}, &journal.Staged{Specs: world.List(world.Spec{Kind: "duel", Deal: 7}, world.Spec{Kind: "duel", Deal: 7, Cell: "other"})}}
		for episode := range 2 {
			for k, turn := range []journal.Turn{{Turn: 0}, {Strand: "1.0/"}, {Strand: "1.1/"}, {Strand: "1.0/", Turn: 1}, {Turn: 2}} {
				turn.Episode = episode
				r := &journal.Replied{
					Turn: turn, Seat: "left", Label: "say", At: at.Add(time.Duration(k) * time.Second),
					Request: &llm.Request{Model: "x/y", Messages: []llm.Message{llm.System("rules"), {Role: llm.RoleUser, Parts: []llm.Part{
						{Text: fmt.Sprintf("question %d", k)}, {Image: &llm.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}, {Image: &llm.Image{MediaType: "image/svg+xml", Data: []byte("<svg onload='x'/>")}},
					}}}},
					Response: &llm.Response{Text: fmt.Sprintf("words %d of all", k), Metadata: llm.Metadata{Attempts: 3, Latency: 2 * time.Second, Cached: true}},
				}
				if k == 4 {
					r.Response.Text += fmt.Sprint(" and run ", i, episode)
				}
				entries = append(entries, &journal.Turned{Turn: turn, Calls: 1, Notes: []world.Note{{Kind: "message", Seat: "left", Data: []byte(fmt.Sprintf(`{"to":"right","text":"whisper %d"}`, k))}}}, r)
			}
			entries = append(entries, &journal.Ended{Episode: episode, Outcome: world.Outcome{Scores: []world.Score{{Seat: "left", Name: "points", Value: float64(i + episode)}}}})
		}
		if err := store.Append(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// differing writes a run of two agents, of which ann is better by 2 points. A call of the first episode failed.
func differing(t *testing.T, folder string) {
	t.Helper()
	store, err := runfile.Open(t.Context(), filepath.Join(folder, "agents.parley"), runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	var specs []world.Spec
	var ends []journal.Entry
	for n := range 40 {
		specs = append(specs, world.Spec{Kind: "duel", Deal: n, Lineup: map[string]string{"left": "ann", "right": "bob"}})
		ends = append(ends, &journal.Ended{Episode: n, Outcome: world.Outcome{Scores: []world.Score{{Seat: "left", Name: "points", Value: float64(n%3) + 2}, {Seat: "right", Name: "points", Value: float64(n % 2)}}}})
	}
	entries := []journal.Entry{
		&journal.Begun{Version: journal.Version, Run: "agents", Kind: "duel", KindVersion: 1, Agents: []world.Agent{{Name: "ann", Model: "sim/a"}, {Name: "bob", Model: "sim/b"}}},
		&journal.Opened{}, &journal.Staged{Specs: world.List(specs...)}, &journal.Turned{Calls: 2},
		&journal.Replied{Seat: "left", Agent: "ann", Request: &llm.Request{Model: "sim/a"}, Response: &llm.Response{Text: "yes", Metadata: llm.Metadata{Cost: 3 * llm.Dollar}}},
		&journal.Replied{Index: 1, Seat: "right", Agent: "bob", Request: &llm.Request{Model: "sim/b"}, Error: &llm.Error{Kind: llm.KindRefused, Status: 400, Message: "not <b>this</b>"}},
	}
	if err := store.Append(t.Context(), slices.Concat(entries, ends, []journal.Entry{&journal.Closed{State: journal.Complete}})...); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFindings checks that the overview says what differs, which calls failed and who cost most, and that an episode says why a call
// failed.
func TestFindings(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	differing(t, folder)
	s := serve(t, folder)
	page := func(path, done string) string {
		for {
			if _, body, _ := s.get(path); strings.Contains(body, done) {
				return body
			}
		}
	}
	body := page("/run/agents.parley", `id="scores"`)
	for _, want := range []string{
		`<p class="found">ann has the highest points: 2.`, "] above bob, p &lt; 0.001", "1 failure: 1 refused (sim/b): not &lt;b&gt;this&lt;/b&gt;", `cost: <a href="#calls">100% by ann</a>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	page("/run/agents.parley/episodes?q=errors%3E0", `>0</a>`) // it is in the index
	_, body, _ = s.get("/run/agents.parley/episodes/0")
	for _, want := range []string{`1 failed reply · <a href="#call-0%3a1">turn 0, <bdi>right</bdi></a>: refused: not &lt;b&gt;this&lt;/b&gt;</p>`, `id="call-0:1"`, `dir="auto">failed: refused: not &lt;b&gt;this&lt;/b&gt;`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
}

// TestEpisode checks that the page has strands as columns, private words marked, prompts as what is new, and images.
func TestEpisode(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	two(t, folder)
	s := serve(t, folder)
	_, body, _ := s.get("/run/b.parley/episodes/0")
	for _, want := range []string{
		`class="strands c2"`, `class="strand k1"`, `class="strand k2"`, "private: to right", "3 tries", "from the cache", "2 s", "question 4", "1 messages as in the request before",
		`src="/run/b.parley/episodes/0/2:0?image=0"`, "&#43;4 s", "/compare?a=a.parley&amp;b=b.parley&amp;ea=0&amp;eb=0",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if strings.Contains(body, "image=1") {
		t.Error("the page shows an image that can have scripts")
	}
	for image, want := range map[string]int{"0": 200, "1": 404, "2": 404, "-1": 404, "x": 404} {
		status, body, h := s.get("/run/b.parley/episodes/0/2:0?image=" + image)
		if status != want || want == 200 && (h.Get("Content-Type") != "image/png" || !strings.HasPrefix(body, "\x89PNG")) {
			t.Errorf("%s: %d %v %q", image, status, h, body)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	two(t, folder)
	differing(t, folder)
	s := serve(t, folder)
	for query, want := range map[string][]string{
		"":                                {`name="eb"`},
		"a=a.parley&ea=0&b=b.parley&eb=0": {"first difference", "<mark>0 0</mark>", "<mark>1 0</mark>", `id="first"`},
		"a=a.parley&ea=0&b=a.parley&eb=0": {"The episodes say the same."},
		"a=a.parley&ea=0&b=a.parley":      {"for both episodes"},
		"a=a.parley&b=b.parley":           {"points", "b.parley", "<h2>"},
		"a=a.parley":                      {"no two agents"},
		"a=a.parley&b=a.parley":           {"no two agents"},
		"a=a.parley&ea=0":                 {"Choose the run of the second episode too."},
		"a=agents.parley":                 {"ann is above bob", `<option value="">its own agents`},
	} {
		status, body, _ := s.get("/compare?" + query)
		for _, w := range want {
			if status != 200 || !strings.Contains(body, w) {
				t.Errorf("%s: %d: no %s in %s", query, status, w, body)
			}
		}
	}
	for query, want := range map[string]int{"a=x&b=a.parley": 404, "a=a.parley&ea=9&b=b.parley&eb=0": 404, "a=a.parley&ea=x&b=b.parley&eb=0": 404, "a=a.parley&ea=0&b=b.parley&eb=0&from=x": 400} {
		if status, _, _ := s.get("/compare?" + query); status != want {
			t.Errorf("%s: %d, want %d", query, status, want)
		}
	}
}

// TestOrigin checks that a fork is compared with the run that it is from, not with one whose file has the same name.
func TestOrigin(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	record(t, filepath.Join(folder, "one", "a.parley")) // another run
	two(t, filepath.Join(folder, "two"))
	s := serve(t, folder)
	const origin = "episode 0 of two/a.parley, from which it was forked"
	if _, body, _ := s.get("/run/two%2Fb.parley/episodes/0"); !strings.Contains(body, origin) || strings.Contains(body, "one/a.parley") {
		t.Errorf("the page has no %q: %s", origin, body)
	}
}

// TestExport follows every link of an exported site, from its first page to all others.
func TestExport(t *testing.T) {
	t.Parallel()
	folder, out := t.TempDir(), filepath.Join(t.TempDir(), "site")
	two(t, folder)
	record(t, filepath.Join(folder, "c.parley"))
	for _, call := range []string{"", "0:0"} {
		if err := label.Add(filepath.Join(folder, "a.parley"), label.Label{Run: "a.parley", Call: call, By: "PrivateName", Tag: "PrivateTag", Note: "PrivateNote", Verdict: label.Pass}); err != nil {
			t.Fatal(err)
		}
	}
	v, err := New(Config{Paths: []string{folder}, KindOf: func(*journal.Begun) world.Kind { return world.Kind{} }, Tool: "parley test"})
	if err != nil {
		t.Fatal(err)
	}
	done, err := v.Export(t.Context(), out, 5)
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(` (?:href|src|action)="([^"]*)"`)
	seen := map[string]bool{"index.html": true}
	for queue := []string{"index.html"}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		b, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if path.Ext(name) != ".html" {
			continue
		}
		if bytes.Contains(b, []byte("<form")) || bytes.Contains(b, []byte("data-events")) || bytes.Contains(b, []byte("Format texts")) || !bytes.Contains(b, []byte("Content-Security-Policy")) {
			t.Errorf("%s needs a server", name)
		}
		if bytes.Contains(b, []byte("Private")) || bytes.Contains(b, []byte("label/verdict")) {
			t.Errorf("%s publishes labels", name)
		}
		for _, m := range link.FindAllSubmatch(b, -1) {
			u, err := url.Parse(html.UnescapeString(string(m[1])))
			if err != nil || strings.HasPrefix(u.Path, "/") || u.RawQuery != "" {
				t.Fatalf("%s links to %s: %v", name, m[1], err)
			}
			if to := path.Join(path.Dir(name), u.Path); u.Path != "" && u.Scheme == "" && !seen[to] {
				seen[to], queue = true, append(queue, to)
			}
		}
	}
	for name, want := range map[string]string{
		"index.html": `<a href="compare.html">Compare two runs</a>`, "compare.html": `<a href="compare_a_3da.parley_26b_3db.parley.html"><bdi>a.parley</bdi> with <bdi>b.parley</bdi></a>`,
		"compare_a_3da.parley_26b_3db.parley.html": "points",
	} {
		if b, err := os.ReadFile(filepath.Join(out, name)); err != nil || !bytes.Contains(b, []byte(want)) {
			t.Errorf("%s: no %s: %v", name, want, err)
		}
	}
	files := 0
	err = fs.WalkDir(os.DirFS(out), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if files++; !seen[name] && name != "parley-site.txt" {
				t.Errorf("nothing links to %s", name)
			}
		}
		return err
	})
	if err != nil || files != done.Files+1 || len(seen) < 40 || !seen["run/c.parley/episodes/4.html"] || seen["run/c.parley/episodes/5.html"] {
		t.Errorf("%d files, %d pages, %+v, %v", files, len(seen), done, err)
	}
}

// TestDamaged checks that pages show what can be read of a damaged run file, and say what is lost, in plain words.
func TestDamaged(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	two(t, folder)
	c, err := db.OpenConn(filepath.Join(folder, "a.parley"), db.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sqlitex.ExecuteScript(c, `UPDATE replies SET seat = 'x' WHERE seq = (SELECT max(seq) FROM replies)`, nil), c.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "c.parley"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, folder)
	for _, c := range [][2]string{
		{"/run/a.parley/episodes/1", "This part of the run file is damaged"}, // it finds the damage
		{"/run/a.parley", "episode 1: "}, {"/run/a.parley/report", "1 of 2 episodes cannot be read whole and are left out: 1."},
		{"/run/a.parley/episodes/0", "words 4 of all"}, {"/run/a.parley/episodes", "This run file is damaged"}, {"/run/a.parley", "This run file is damaged"},
		{"/", "This is not a run file."}, {"/run/a.parley/report", "points"}, {"/compare?a=a.parley&ea=0&b=b.parley&eb=0", "first difference"},
	} {
		if status, body, _ := s.get(c[0]); status == http.StatusInternalServerError || !strings.Contains(body, c[1]) {
			t.Errorf("%s: %d: no %q in %s", c[0], status, c[1], body)
		}
	}
	if _, body, _ := s.get("/run/none.parley"); !strings.Contains(body, "There is no such page") {
		t.Error(body)
	}
}

// TestListGrows checks that the list of runs is told of a new run.
func TestListGrows(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := serve(t, folder)
	_, grown := s.events("/events")
	two(t, folder)
	grown()
}
