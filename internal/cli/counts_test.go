package cli

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"parley/internal/ask/sim/simhttp"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/text"
	"parley/internal/read/report"
	"parley/internal/run/control"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/internal/run/runfile/runfiletest"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds"
)

// TestCounts checks that every surface says the same of the calls, acts, answers of bots and programs of a run, of how many of them failed,
// of its tokens, its cost, its episodes and its transcripts: whatever the run is, and while it is played. Each run is random; a failure names
// its seed. The library has its own test (TestPlayProgress), and Python reads these: summary of run, show --json, and exported tables.
func TestCounts(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(fmt.Sprintf("recorded %d", i), func(t *testing.T) {
			t.Parallel()
			countsOf(t, runfiletest.File(t, randomCalls(seeded(t))...)).agree(t)
		})
	}
	t.Run("played", playedCounts)
	t.Run("live", liveCounts)
	t.Run("gateway", gatewayCounts)
}

// seeded returns chance with a new seed.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// counts is what the entries of a run add up to.
type counts struct {
	file     string
	begun    *journal.Begun
	episodes journal.EpisodeCounts
	whole    []int // episodes of which logs and trajectories are written
	all      journal.Spending
	spent    map[int]*journal.Spending
	seats    map[string]*journal.Spending // by trajectory: EPISODE-SEAT
	models   map[string]*journal.Spending // of calls
	last     map[int]int                  // replies of the last attempt
	refused  int                          // answers that refuse: they count as failures where these are explained
}

func countsOf(t *testing.T, file string) *counts {
	t.Helper()
	store, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	head, err := store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &counts{
		file: file, begun: head.Begun, episodes: head.Episodes(), spent: map[int]*journal.Spending{}, seats: map[string]*journal.Spending{},
		models: map[string]*journal.Spending{}, last: map[int]int{},
	}
	for n := range c.episodes.Total {
		c.spent[n] = &journal.Spending{}
		if _, ended := head.Ended.Of(n); ended || head.Begun.Kind == "gateway" {
			c.whole = append(c.whole, n)
		}
	}
	err = store.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		r, ok := e.(*journal.Replied)
		if !ok {
			return nil
		}
		c.all.Add(r)
		c.spent[r.Episode].Add(r)
		addTo(c.seats, fmt.Sprintf("%d-%s", r.Episode, r.Seat), r)
		if r.Kind() == journal.Ask {
			addTo(c.models, r.Request.Model, r)
		}
		if r.Error == nil && r.Response.Finish == llm.FinishRefused {
			c.refused++
		}
		attempt := head.Progress(r.Episode).Attempt
		if end, ended := head.Ended.Of(r.Episode); ended {
			attempt = end.Attempt
		}
		if r.Attempt == attempt {
			c.last[r.Episode]++
		}
		return nil
	})
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	if c.all.Replies() == 0 {
		t.Fatal("the run has no replies")
	}
	return c
}

func addTo[K comparable](sums map[K]*journal.Spending, k K, r *journal.Replied) {
	if sums[k] == nil {
		sums[k] = &journal.Spending{}
	}
	sums[k].Add(r)
}

// agree checks all surfaces that read a run file.
func (c *counts) agree(t *testing.T) {
	t.Helper()
	c.inShow(t)
	c.inTranscripts(t)
	c.inReport(t)
	c.inTables(t)
	c.inInspect(t)
	c.inATIF(t)
	c.inPages(t)
	c.inIndex(t)
}

// same checks numbers by name. Money may be off by what floats lose.
func same(t *testing.T, where string, got func(name string) float64, want map[string]float64) {
	t.Helper()
	for name, x := range want {
		if y := got(name); math.Abs(y-x) > 1e-9*math.Abs(x) {
			t.Errorf("%s: %s is %v, want %v", where, name, y, x)
		}
	}
}

func readJSON(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

func (c *counts) inShow(t *testing.T) {
	t.Helper()
	var shown struct {
		Episodes journal.EpisodeCounts
		journal.Spending
		List []struct {
			Episode int
			journal.Spending
		}
	}
	readJSON(t, parley(t, State{}, "show", c.file, "--json", "--limit", "0").want(t, exit.OK).stdout, &shown)
	want := c.all
	want.Usage = llm.Usage{} // it does not show tokens
	if shown.Episodes != c.episodes || shown.Spending != want || len(shown.List) != c.episodes.Total {
		t.Errorf("show: %+v, want %+v and %+v", shown, c.episodes, want)
	}
	for _, e := range shown.List {
		want := *c.spent[e.Episode]
		if want.Usage = (llm.Usage{}); e.Spending != want {
			t.Errorf("show: episode %d: %+v, want %+v", e.Episode, e.Spending, want)
		}
	}
	said := oneLine(parley(t, State{}, "show", c.file, "--limit", "0").want(t, exit.OK).stdout)
	says := []string{fmt.Sprintf("episodes %s: %s ended, %s failed,", terminal.Number(c.episodes.Total), terminal.Number(c.episodes.Ended), terminal.Number(c.episodes.Failed)), "calls " + terminal.Number(c.all.Calls) + ", "}
	if c.all.Cost > 0 {
		says[1] += c.all.Cost.String() + " spent"
	}
	if c.all.Acts > 0 {
		says = append(says, "acts "+terminal.Number(c.all.Acts))
	}
	if n := c.all.Failures() + c.refused; n > 0 {
		says = append(says, "failed "+terminal.Number(n)+" ")
	}
	contains(t, "show", said, says...)
}

func (c *counts) inTranscripts(t *testing.T) {
	t.Helper()
	for n, want := range c.spent {
		var shown struct {
			journal.Spending
			Turns []struct{ Replies []json.RawMessage }
		}
		readJSON(t, parley(t, State{}, "show", c.file, "--episode", fmt.Sprint(n), "--json").want(t, exit.OK).stdout, &shown)
		replies := 0
		for _, turn := range shown.Turns {
			replies += len(turn.Replies)
		}
		counted := *want
		if counted.Usage = (llm.Usage{}); shown.Spending != counted || replies != c.last[n] {
			t.Errorf("show --episode %d: %+v with %d replies, want %+v with %d", n, shown.Spending, replies, counted, c.last[n])
		}
	}
}

func (c *counts) inReport(t *testing.T) {
	t.Helper()
	var d tables
	d.read(t, parley(t, State{}, "report", c.file, "--json").want(t, exit.OK).stdout)
	rows := map[string][]map[string]json.RawMessage{}
	for _, table := range d.Tables {
		rows[table.Name] = table.Rows
	}
	number := func(row map[string]json.RawMessage) func(string) float64 {
		return func(name string) (x float64) {
			_ = json.Unmarshal(row[name], &x) // a dash is 0
			return x
		}
	}
	if len(rows["runs"]) != 1 {
		t.Fatalf("report: %d runs", len(rows["runs"]))
	}
	same(t, "report", number(rows["runs"][0]), map[string]float64{
		"episodes": float64(c.episodes.Ended), "failed": float64(c.episodes.Failed), "unfinished": float64(c.episodes.Playing + c.episodes.Waiting),
		"calls": float64(c.all.Calls), "failed calls": float64(c.all.FailedCalls), "acts": float64(c.all.Acts), "failed acts": float64(c.all.FailedActs),
		"tokens in": float64(c.all.Usage.Input), "tokens out": float64(c.all.Usage.Output), "cost": c.all.Cost.Dollars(),
	})
	sums := map[string]float64{}
	for _, row := range rows["calls"] {
		for _, name := range []string{"calls", "tokens in", "of them cached", "tokens out", "of them thought", "cost"} {
			sums[name] += number(row)(name)
		}
	}
	same(t, "report: calls", func(name string) float64 { return sums[name] }, map[string]float64{
		"calls": float64(c.all.Replies()), "tokens in": float64(c.all.Usage.Input), "of them cached": float64(c.all.Usage.Cached),
		"tokens out": float64(c.all.Usage.Output), "of them thought": float64(c.all.Usage.Reasoning), "cost": c.all.Cost.Dollars(),
	})
	for _, row := range rows["answers"] {
		of := c.models[word(row["model"])]
		same(t, "report: answers", number(row), map[string]float64{"asked": float64(of.Calls), "failed": float64(of.FailedCalls)})
	}
	for _, row := range rows["episodes"] {
		of := c.spent[int(number(row)("episode"))]
		same(t, "report: episodes", number(row), map[string]float64{"calls": float64(of.Calls), "tokens": float64(of.Usage.Total()), "cost": of.Cost.Dollars()})
	}
	page := filepath.Join(t.TempDir(), "report.html")
	parley(t, State{}, "report", c.file, "--html", page).want(t, exit.OK)
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	says := []string{"calls " + text.GroupDigits(c.all.Calls) + " " + failedWords(c.all.FailedCalls)}
	if c.all.Acts > 0 {
		says = append(says, "acts "+text.GroupDigits(c.all.Acts)+" "+failedWords(c.all.FailedActs))
	}
	if c.all.Cost > 0 {
		says = append(says, "cost "+report.Dollars(c.all.Cost))
	}
	contains(t, "the page of the report", pageWords(string(b)), says...)
}

func failedWords(n int) string {
	if n == 0 {
		return "none failed"
	}
	return text.GroupDigits(n) + " failed"
}

func contains(t *testing.T, where, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s: no %q in %.2000s", where, w, text)
		}
	}
}

// oneLine returns a text with one space between words.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

var (
	noWordsRE = regexp.MustCompile(`(?s)<(style|script).*?</(style|script)>|<[^>]*>`)
	linesRE   = regexp.MustCompile(`lines 1 to \d+ of (\d+)`)
)

// pageWords returns what a page says.
func pageWords(page string) string {
	return oneLine(html.UnescapeString(noWordsRE.ReplaceAllString(page, " ")))
}

// episodeCounts is what a row of the table of episodes counts.
type episodeCounts struct {
	Episode      int64   `parquet:"episode,optional"`
	Calls        int64   `parquet:"calls,optional"`
	Acts         int64   `parquet:"acts,optional"`
	FailedCalls  int64   `parquet:"failed_calls,optional"`
	FailedActs   int64   `parquet:"failed_acts,optional"`
	InputTokens  int64   `parquet:"input_tokens,optional"`
	CachedTokens int64   `parquet:"cached_tokens,optional"`
	OutputTokens int64   `parquet:"output_tokens,optional"`
	Reasoning    int64   `parquet:"reasoning_tokens,optional"`
	Dollars      float64 `parquet:"dollars,optional"`
}

func episodeCountsOf(number func(name string) float64) episodeCounts {
	n := func(name string) int64 { return int64(number(name)) }
	return episodeCounts{
		n("episode"), n("calls"), n("acts"), n("failed_calls"), n("failed_acts"), n("input_tokens"), n("cached_tokens"), n("output_tokens"),
		n("reasoning_tokens"), number("dollars"),
	}
}

func (c *counts) inTables(t *testing.T) {
	t.Helper()
	table := func(table, format string) string {
		return parley(t, State{}, "export", c.file, "--table", table, "--format", format).want(t, exit.OK).stdout
	}
	formats := map[string][]episodeCounts{}
	for line := range strings.Lines(table("episodes", "jsonl")) {
		var row map[string]any
		readJSON(t, line, &row)
		formats["jsonl"] = append(formats["jsonl"], episodeCountsOf(func(name string) float64 { x, _ := row[name].(float64); return x }))
	}
	grid, err := csv.NewReader(strings.NewReader(table("episodes", "csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range grid[1:] {
		formats["csv"] = append(formats["csv"], episodeCountsOf(func(name string) float64 {
			for i, column := range grid[0] {
				if column == name {
					x, err := strconv.ParseFloat(row[i], 64)
					if err != nil {
						t.Error(err)
					}
					return x
				}
			}
			t.Errorf("no column %s", name)
			return 0
		}))
	}
	packed := table("episodes", "parquet")
	if formats["parquet"], err = pq.Read[episodeCounts](strings.NewReader(packed), int64(len(packed))); err != nil {
		t.Fatal(err)
	}
	for format, rows := range formats {
		if len(rows) != c.episodes.Total {
			t.Errorf("export: %s has %d episodes", format, len(rows))
		}
		for _, row := range rows {
			of := c.spent[int(row.Episode)]
			want := episodeCounts{
				row.Episode, int64(of.Calls), int64(of.Acts), int64(of.FailedCalls), int64(of.FailedActs), int64(of.Usage.Input), int64(of.Usage.Cached),
				int64(of.Usage.Output), int64(of.Usage.Reasoning), of.Cost.Dollars(),
			}
			if row != want {
				t.Errorf("export: %s: %+v, want %+v", format, row, want)
			}
		}
	}
	kinds, failed, dollars := map[string]float64{}, 0.0, 0.0
	for line := range strings.Lines(table("calls", "jsonl")) {
		var row struct {
			Kind, Error string
			Dollars     float64
		}
		readJSON(t, line, &row)
		kinds[row.Kind]++
		dollars += row.Dollars
		if row.Error != "" {
			failed++
		}
	}
	kinds["failed"], kinds["dollars"] = failed, dollars
	same(t, "export: calls", func(name string) float64 { return kinds[name] }, map[string]float64{
		journal.Ask: float64(c.all.Calls), journal.Act: float64(c.all.Acts), journal.Bot: float64(c.all.Bots), journal.Program: float64(c.all.Programs),
		"failed": float64(c.all.Failures()), "dollars": c.all.Cost.Dollars(),
	})
}

// inWhole returns what the episodes add up to of which logs and trajectories are written.
func (c *counts) inWhole() (all journal.Spending) {
	for _, n := range c.whole {
		all = all.Plus(*c.spent[n])
	}
	return all
}

func (c *counts) inInspect(t *testing.T) {
	t.Helper()
	packed := []byte(parley(t, State{}, "export", c.file, "--format", "inspect").want(t, exit.OK).stdout)
	log, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	member := func(name string, v any) {
		f, err := log.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(json.NewDecoder(f).Decode(v), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	var header struct {
		Stats struct {
			Usage map[string]map[string]float64 `json:"model_usage"`
		}
	}
	member("header.json", &header)
	sums := map[string]float64{}
	for _, used := range header.Stats.Usage {
		for name, x := range used {
			sums[name] += x
		}
	}
	all := c.inWhole()
	same(t, "Inspect", func(name string) float64 { return sums[name] }, map[string]float64{
		"total_tokens": float64(all.Usage.Total()), "output_tokens": float64(all.Usage.Output), "input_tokens_cache_read": float64(all.Usage.Cached),
		"reasoning_tokens": float64(all.Usage.Reasoning), "total_cost": all.Cost.Dollars(),
	})
	for _, n := range c.whole {
		var sample struct {
			Events []struct{ Data map[string]any }
		}
		member(fmt.Sprintf("samples/%d_epoch_1.json", n), &sample)
		replies := 0
		for _, e := range sample.Events {
			if _, note := e.Data["note"]; !note {
				replies++
			}
		}
		if replies != c.last[n] {
			t.Errorf("Inspect: episode %d has %d replies, want %d", n, replies, c.last[n])
		}
	}
}

func (c *counts) inATIF(t *testing.T) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "trajectories")
	parley(t, State{}, "export", c.file, "--format", "atif", "--out", dir).want(t, exit.OK)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var tr struct {
			Trajectory string             `json:"trajectory_id"`
			Final      map[string]float64 `json:"final_metrics"`
		}
		readJSON(t, string(b), &tr)
		of := c.seats[strings.TrimPrefix(tr.Trajectory, c.begun.Run+"-")]
		same(t, "ATIF: "+tr.Trajectory, func(name string) float64 { return tr.Final[name] }, map[string]float64{
			"total_prompt_tokens": float64(of.Usage.Input), "total_completion_tokens": float64(of.Usage.Output),
			"total_cached_tokens": float64(of.Usage.Cached), "total_cost_usd": of.Cost.Dollars(),
		})
	}
}

func (c *counts) inPages(t *testing.T) {
	t.Helper()
	site := filepath.Join(t.TempDir(), "site")
	parley(t, State{}, "view", filepath.Dir(c.file), "--export", site).want(t, exit.OK)
	pages := map[string]string{}
	err := filepath.WalkDir(site, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".html" {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(site, path)
		pages[filepath.ToSlash(name)] = pageWords(string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	at := "run/" + filepath.Base(c.file)
	contains(t, "the list of runs", pages["index.html"], fmt.Sprintf("%s of %s", text.GroupDigits(c.episodes.Done()), text.GroupDigits(c.episodes.Total)), report.Cost(c.all.Cost))
	contains(t, "the page of the run", pages[at+".html"], report.Cost(c.all.Cost))
	if _, live := control.ReadLive(t.Context(), c.file); !live {
		contains(t, "the page of the run", pages[at+".html"], text.GroupDigits(c.all.Replies())+" replies")
	}
	for n, of := range c.spent {
		page := pages[fmt.Sprintf("%s/episodes/%d.html", at, n)]
		if failed := of.Failures(); failed > 0 {
			contains(t, "the page of an episode", page, fmt.Sprintf("%d failed repl", failed))
		}
		if c.last[n] > 0 && !linesRE.MatchString(page) {
			t.Errorf("the page of episode %d has no lines: %s", n, page)
		}
		row := text.GroupDigits(of.Usage.Total()) + " " + report.Cost(of.Cost)
		contains(t, "the list of episodes", pages[at+"/episodes.html"], row)
	}
}

func (c *counts) inIndex(t *testing.T) {
	t.Helper()
	store, err := runfile.OpenRead(c.file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	run, err := results.Fold(t.Context(), store, c.file)
	if err != nil {
		t.Fatal(err)
	}
	for e := range run.All() {
		if e.Spending != *c.spent[e.Number] {
			t.Errorf("results: episode %d: %+v, want %+v", e.Number, e.Spending, *c.spent[e.Number])
		}
	}
	index, err := results.OpenIndex(t.Context(), store, c.begun.Run)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = index.Close() }()
	if _, err := index.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := index.Page(t.Context(), results.Query{Limit: c.episodes.Total})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if of := c.spent[row.Number]; row.Calls != of.Calls || row.Errors != of.Failures() || row.Tokens != of.Usage.Total() || row.Cost != of.Cost {
			t.Errorf("view: episode %d: %+v, want %+v", row.Number, row, *of)
		}
	}
}

// randomCalls returns a run with random calls: of models with a price and without, of programs, of bots, and acts; answered, refused, failed,
// copied, from a cache, and shared; some by an earlier attempt.
func randomCalls(r *rand.Rand) []journal.Entry {
	const episodes = 12
	out := []journal.Entry{
		&journal.Begun{Version: journal.Version, Run: "r", Kind: "other.py:Other", Plan: json.RawMessage(`{}`), Agents: []world.Agent{{Name: "a", Model: "lab/a"}, {Name: "b", Bot: "b"}}},
		&journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "other.py:Other", Lineup: map[string]string{"s": "a", "t": "b"}}, episodes)},
	}
	for episode := range episodes - 1 { // the last one waits
		attempts := 1 + r.IntN(2)
		for attempt := range attempts {
			for turn := range r.IntN(4) {
				at := journal.Turn{Episode: episode, Attempt: attempt, Turn: turn}
				n := 1 + r.IntN(3)
				out = append(out, &journal.Turned{Turn: at, Calls: n})
				for i := range n {
					out = append(out, randomCall(r, at, i))
				}
			}
		}
		if end := (&journal.Ended{Episode: episode, Attempt: attempts - 1}); r.IntN(4) > 0 {
			if r.IntN(4) == 0 {
				end.Outcome.Failed = "no luck"
			}
			out = append(out, end)
		}
	}
	return out
}

func randomCall(r *rand.Rand, at journal.Turn, index int) *journal.Replied {
	e := &journal.Replied{Turn: at, Index: index, Seat: "s", Agent: "a", Copied: r.IntN(6) == 0}
	meta := llm.Metadata{Attempts: 1 + r.IntN(3), Cached: r.IntN(6) == 0, Coalesced: r.IntN(6) == 0}
	var usage llm.Usage
	switch r.IntN(5) {
	case 0:
		e.Act = &world.Act{Name: "step"}
	case 1:
		e.Seat, e.Agent = "t", "b"
	case 2:
		e.Request = &llm.Request{Model: world.ProgramProvider + "/p", Messages: []llm.Message{llm.User("solve it")}}
	default:
		input := r.IntN(1000)
		usage = llm.Usage{Input: input, Cached: r.IntN(input + 1), Output: r.IntN(100), Reasoning: r.IntN(9)}
		e.Request = &llm.Request{Model: []string{"lab/a", "lab/free"}[r.IntN(2)], Messages: []llm.Message{llm.User("why?")}}
		if !meta.Cached && !meta.Coalesced && e.Request.Model == "lab/a" {
			meta.Cost = llm.Money(r.Int64N(1e6)) * 1000
		}
	}
	switch r.IntN(6) {
	case 0, 1:
		e.Error = &llm.Error{Kind: llm.KindServer, Message: "it is tired", Usage: usage, Metadata: meta}
	case 2:
		e.Response = &llm.Response{Refusal: "no", Finish: llm.FinishRefused, Usage: usage, Metadata: meta}
	default:
		e.Response = &llm.Response{Text: "yes", Finish: llm.FinishStop, Usage: usage, Metadata: meta}
	}
	return e
}

// unreliable serves the simulated provider, and fails some requests at random: for now, so that they are tried again, or for good.
func unreliable(t *testing.T, r *rand.Rand) string {
	t.Helper()
	provider, err := simhttp.New(simhttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		luck := r.IntN(12)
		mu.Unlock()
		switch luck {
		case 0:
			http.Error(w, `{"error":{"message":"again"}}`, http.StatusInternalServerError)
		case 1:
			http.Error(w, `{"error":{"message":"never"}}`, http.StatusUnprocessableEntity)
		default:
			provider.ServeHTTP(w, req)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// playedCounts plays a run, a fork of it whose first turns are copied, and a run with many scores.
func playedCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plan, file, forked := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "run.parley"), filepath.Join(dir, "fork.parley")
	writeFile(t, filepath.Join(dir, "prices.json"), `{"models": {"lab/tiny": {"input": 1000, "output": 2000}}}`)
	writeFile(t, plan, "kind: secrets\nseed: 1\ncache: answers\nprices: prices.json\nproviders:\n  lab: {dialect: openai, base_url: \""+unreliable(t, seeded(t))+"/v1\"}\n"+
		"agents: {x: {model: lab/tiny}, y: {model: lab/small}}\nplan: {matrix: {agents: [x, y], repeat: 4}}\nparams: {messages: 2}\n")
	var sum app.Summary
	for _, args := range [][]string{
		{"run", plan, "--out", file}, {"fork", file, "--episode", "1", "--turn", "1", "--repeat", "3", "--out", forked},
		{"run", write(t, "plan.yaml", duelPlan), "--out", filepath.Join(t.TempDir(), "duel.parley")},
	} {
		sum = app.Summary{}
		got := parley(t, State{}, append(args, "--json", "--quiet")...)
		readJSON(t, got.stdout, &sum)
		c := countsOf(t, sum.File)
		got.want(t, c.code())
		c.inSummary(t, &sum)
		if len(c.spent) < 20 {
			c.agree(t)
		}
	}
	var d tables
	d.read(t, parley(t, State{}, "report", sum.File, "--json").want(t, exit.OK).stdout)
	d.same(t, "report", "scores", sum.Agents)
	c := countsOf(t, file)
	got := parley(t, State{}, "run", file).want(t, c.code())
	said := oneLine(got.stdout + got.stderr)
	contains(t, "run", said, fmt.Sprintf("%d of %d episodes", c.episodes.Ended, c.episodes.Total), terminal.Several(c.all.Calls, "call", "calls"), c.all.Cost.String())
}

// code is the exit code of a command that plays the run to its end: with bad luck, an episode fails.
func (c *counts) code() int {
	if c.episodes.Failed > 0 {
		return exit.Failed
	}
	return exit.OK
}

// inSummary checks the summary of a run that one process played, or that was forked, and what waits for a run says.
func (c *counts) inSummary(t *testing.T, sum *app.Summary) {
	t.Helper()
	copied := 0
	if c.begun.Fork != nil {
		copied = sum.Calls.Earlier
		if copied == 0 {
			t.Error("the fork copies nothing")
		}
	}
	want := map[string]float64{
		"episodes": float64(c.episodes.Total), "complete": float64(c.episodes.Ended), "failed": float64(c.episodes.Failed), "calls": float64(c.all.Calls),
		"asked": float64(c.all.Calls - copied), "acts": float64(c.all.Acts), "bots": float64(c.all.Bots), "programs": float64(c.all.Programs),
		"input": float64(c.all.Usage.Input), "cached": float64(c.all.Usage.Cached), "output": float64(c.all.Usage.Output), "cost": c.all.Cost.Dollars(),
		"failed acts": float64(c.all.FailedActs),
	}
	if copied == 0 {
		want["failed calls"] = float64(c.all.FailedCalls)
	}
	same(t, "run", func(name string) float64 {
		return map[string]float64{
			"episodes": float64(sum.Episodes.Total), "complete": float64(sum.Episodes.Complete), "failed": float64(sum.Episodes.Failed), "calls": float64(sum.Calls.Total),
			"asked": float64(sum.Calls.Asked), "acts": float64(sum.Acts.Total), "bots": float64(sum.Bots), "programs": float64(sum.Programs),
			"input": float64(sum.Tokens.Input), "cached": float64(sum.Tokens.Cached), "output": float64(sum.Tokens.Output), "cost": sum.Cost.Dollars(),
			"failed acts": float64(sum.Acts.Failed), "failed calls": float64(sum.Calls.Failed),
		}[name]
	}, want)
	var waited waitResult
	readJSON(t, parley(t, State{}, "ctl", c.file, "wait", "--json").want(t, c.code()).stdout, &waited)
	if waited.Episodes != c.episodes.Total || waited.Ended != c.episodes.Done() || waited.Failed != c.episodes.Failed || waited.Cost != c.all.Cost {
		t.Errorf("ctl wait: %+v, want %+v and %v", waited, c.episodes, c.all.Cost)
	}
}

// liveCounts looks at a run that is played. The provider answers a few calls and then none, so that nothing changes meanwhile.
func liveCounts(t *testing.T) {
	t.Parallel()
	provider, err := simhttp.New(simhttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const answered, width = 8, 2 // calls of 18; at once
	var asked atomic.Int64
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > answered {
			<-release
		}
		provider.ServeHTTP(w, r)
	}))
	defer server.Close()
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	dir := t.TempDir()
	plan, file := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "run.parley")
	writeFile(t, filepath.Join(dir, "prices.json"), `{"models": {"lab/tiny": {"input": 1000, "output": 2000}}}`)
	writeFile(t, plan, "kind: secrets\nseed: 1\nepisodes: 9\nproviders:\n  lab: {dialect: openai, base_url: \""+server.URL+"/v1\"}\nagents: {x: {model: lab/tiny}}\nprices: prices.json\n"+
		"params: {messages: 1}\nlimits: {concurrency: 2, live: 2}\n")
	played := make(chan outcome, 1)
	go func() { played <- parley(t, State{}, "run", plan, "--out", file, "--quiet") }()
	var live control.LiveState
	for ok := false; !ok || live.InFlight < width || len(live.Models) == 0 || live.Models[0].Calls < answered; {
		select {
		case over := <-played:
			t.Fatalf("the run is over: %+v", over)
		case <-time.After(50 * time.Millisecond): // the file is written once a second
			live, ok = control.ReadLive(t.Context(), file)
		}
	}
	c := countsOf(t, file)
	m := live.Models[0]
	got := journal.Spending{Calls: int(m.Calls), FailedCalls: int(m.Failed), Usage: llm.Usage{Input: m.Input, Output: m.Output}, Cost: m.Cost}
	want := c.all
	want.Usage = llm.Usage{Input: want.Usage.Input, Output: want.Usage.Output}
	if m.Name != "lab/tiny" || got != want || live.Spent != want.Cost || c.episodes.Ended == 0 || c.episodes.Done() == c.episodes.Total {
		t.Errorf("live: %+v, want %+v; %+v", live, want, c.episodes)
	}
	c.agree(t)
	store, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	run, err := results.Fold(t.Context(), store, file)
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	run.Know(worlds.Standard()[slices.IndexFunc(worlds.Standard(), func(k world.Kind) bool { return k.Name == "secrets" })])
	var shown tables
	shown.read(t, parley(t, State{}, "report", file, "--json").want(t, exit.OK).stdout)
	shown.same(t, "report of a run that is played", "scores", app.ByAgent(run))
	pagesAgree(t, file, "secrets", run)
	free()
	(<-played).want(t, exit.OK)
	if _, ok := control.ReadLive(t.Context(), file); ok {
		t.Error("the live file of a run that is over can be read")
	}
}

// gatewayCounts sends random calls of random sessions through a gateway: answered, cached, failed before and in the middle of their answer, of
// models that there are not, and questions that no model answers.
func gatewayCounts(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":2}`, len(body))
		switch text := string(body); {
		case strings.Contains(text, "refuse"):
			http.Error(w, `{"error":{"message":"no","code":"bad"}}`, http.StatusBadRequest)
		case strings.Contains(text, "break"):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"id\":\"1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"so\"}}],%s}\n\n", usage)
		case strings.HasSuffix(r.URL.Path, "/models"):
			fmt.Fprint(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"a","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],%s}`, usage)
		}
	}))
	defer provider.Close()
	file := filepath.Join(t.TempDir(), "gateway.parley")
	url, stop := serves(t, nil, "gateway", "--out", file, "--upstream", "openai="+provider.URL+"/v1", "--cache", t.TempDir(), "--retries", "0",
		"--prices", write(t, "prices.json", `{"models": {"openai/m": {"input": 1000, "output": 2000}}}`))
	names := []string{"a", "b", "c"}
	for i := range 12 + r.IntN(12) {
		at := url + "/v1/sessions/" + names[i%len(names)]
		if r.IntN(8) == 0 {
			fetch(t, http.MethodGet, at+"/models", "")
			continue
		}
		model, said := "m", []string{"yes?", "yes?", "and?", "refuse", "break"}[r.IntN(5)]
		if r.IntN(6) == 0 {
			model = "none/of-these"
		}
		body := fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":%q}]}`, model, said == "break", said)
		fetch(t, http.MethodPost, at+"/chat/completions", body)
	}
	type status struct {
		Episode, Requests, Errors int
		Usage                     llm.Usage
		Cost                      llm.Money `json:"cost_usd"`
	}
	sessions := make([]status, len(names))
	for i, name := range names {
		readJSON(t, fetch(t, http.MethodGet, url+"/v1/sessions/"+name, ""), &sessions[i])
	}
	metrics := metricSums(fetch(t, http.MethodGet, url+"/metrics", ""))
	said := stop().want(t, exit.OK)
	c := countsOf(t, file)
	for _, got := range sessions {
		of := c.spent[got.Episode]
		if want := (status{got.Episode, of.Replies(), of.Failures(), of.Usage, of.Cost}); got != want {
			t.Errorf("session %d: %+v, want %+v", got.Episode, got, want)
		}
	}
	same(t, "/metrics", func(name string) float64 { return metrics["parley_gateway_"+name] }, map[string]float64{
		"calls_total": float64(c.all.Calls) - metrics["parley_gateway_cached_total"], "calls_failed_total": float64(c.all.FailedCalls), "cost_dollars_total": c.all.Cost.Dollars(),
	})
	said.wantErr(t, terminal.Several(c.all.Calls, "call", "calls"), fmt.Sprintf("recorded in %s, %d failed; 3 sessions; %v spent", file, c.all.Failures(), c.all.Cost))
	c.agree(t)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// metricSums adds up metrics over their labels.
func metricSums(page string) map[string]float64 {
	sums := map[string]float64{}
	for line := range strings.Lines(page) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if i := strings.LastIndex(line, " "); i >= 0 {
			value = strings.TrimSpace(line[i:])
		}
		name, _, _ = strings.Cut(name, "{")
		if x, err := strconv.ParseFloat(value, 64); err == nil {
			sums[name] += x
		}
	}
	return sums
}
