package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/settings"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

// TestWhyEpisodesFail checks that the closing lines and the report give the most frequent reason for failures,
// with the server's text made harmless, and that failed acts are counted.
func TestWhyEpisodesFail(t *testing.T) {
	t.Parallel()
	sequential(t)
	url, _ := refusing(t, http.StatusBadRequest, `{"detail":"unknown field sizee\n\u001b[2J`+strings.Repeat("!", 500)+`"}`)
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.yaml")
	text := "kind: rollout\nepisodes: 3\nagents: {x: sim/small}\nlineup: {agent: x}\nparams: {env: count, servers: [\"" + url + "\"]}\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := `failed most often (3): environment: open: bad_request: ` + url + `: unknown field sizee \u001b[2J!!`
	got := parley(t, State{}, "run", plan).want(t, exit.Failed).stdout
	if !strings.Contains(got, ", 3 failed;") || !strings.Contains(got, want) || strings.Contains(got, strings.Repeat("!", 300)) {
		t.Errorf("%s", got)
	}
	got = parley(t, State{}, "run", plan, "--out", filepath.Join(dir, "other.parley"), "--json").want(t, exit.Failed).stdout
	var sum app.Summary
	if err := json.Unmarshal([]byte(got), &sum); err != nil || sum.Calls.Failed != 0 || sum.Acts.Failed != 3 || sum.Fault == nil || sum.Fault.Episodes != 3 {
		t.Errorf("%v: %s", err, got)
	}
	got = parley(t, State{}, "report", filepath.Join(dir, "plan.parley")).want(t, exit.OK).stdout
	if !strings.Contains(got, "Failed episodes: 3. The most frequent cause (3): environment: open: bad_request: "+url+": unknown field sizee") {
		t.Errorf("%s", got)
	}
}

// TestWaitingIsSaid checks that the progress line begins with what the run waits for, on one line and harmless
// to a terminal, and that a drain says how much is still played.
func TestWaitingIsSaid(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	v := &runView{out: terminal.NewStream(&out, func(string) (string, bool) { return "", false }, func(any) int { return 0 })}
	why := ""
	v.begin(&app.Opened{App: &app.App{}, Plan: &planfile.Plan{Settings: settings.New(settings.Plan)}, Head: &journal.Head{}, Waiting: func() string { return why }})
	v.stats = func() dispatch.Snapshot { return dispatch.Snapshot{} }
	v.money = func() budget.Sums {
		return budget.Sums{Spent: llm.Dollar, AtRisk: llm.Dollar / 2, Aside: llm.Dollar / 4, Limit: 5 * llm.Dollar}
	}
	now := time.Now()
	v.calls = func(now time.Time) []dispatch.Wait {
		return []dispatch.Wait{{Says: dispatch.Outage{Provider: "lab", URL: "http://x/v1", Why: "503 \x1b[2JLoading", Since: now.Add(-40 * time.Second), Limit: 10 * time.Minute}.Text(now)}}
	}
	if first := v.progressLine(now)[0]; first != `lab is unreachable for 40s: 503 \u001b[2JLoading at http://x/v1; waits up to 10m0s` {
		t.Error(first)
	}
	v.calls = func(time.Time) []dispatch.Wait {
		return []dispatch.Wait{{Money: &budget.Shortage{Calls: 1021, Model: "lab/large", Amount: llm.Dollars(0.006828), Why: "max_tokens: 900"}}}
	}
	if got, want := strings.Join(v.progressLine(now), ", "), "0 of 0 episodes, $1.00 spent, $0.50 at risk, $0.25 set aside, $3.25 left of $5.00, 1,021 wait for room in the budget (max_tokens: 900 sets aside $0.0068 for each), 0 in flight"; !strings.HasPrefix(got, want) {
		t.Errorf("%q does not begin with %q", got, want)
	}
	v.calls = nil
	if first := v.progressLine(now)[0]; first != "0 of 0 episodes" {
		t.Error(first)
	}
	why = "http://x:\nrefused \x1b[2J"
	if first := v.progressLine(now)[0]; first != `waiting for http://x: refused \u001b[2J` {
		t.Error(first)
	}
	v.onEvent(engine.Event{Closing: 7})
	if !strings.Contains(out.String(), "7 episodes are played to the end") {
		t.Error(out.String())
	}
}

// TestBatchesOut checks that a batch is called out only once its provider has accepted it.
func TestBatchesOut(t *testing.T) {
	t.Parallel()
	now := time.Now()
	sending := batch.Standing{Provider: "lab", Began: now.Add(-time.Minute), Lines: 100, Trouble: "500"}
	out := batch.Standing{Provider: "lab", ID: "b1", Began: now.Add(-time.Second), Lines: 10, Answered: 4}
	for want, open := range map[string][]batch.Standing{
		"wave 3":                               nil,
		"wave 3, 1 batch being sent, lab: 500": {sending},
		"wave 3, 1 batch out: 4 of 10 answered, for 1s":                                 {out},
		"wave 3, 2 batches out: 8 of 20 answered, for 1s":                               {out, out},
		"wave 3, 2 batches being sent, 1 batch out: 4 of 10 answered, for 1s, lab: 500": {sending, out, sending},
	} {
		if got := strings.Join(batchTexts(batch.Progress{Wave: 3, Open: open}, now), ", "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestClosingNamesTheCause checks that if calls fail, the end of a run, show and report say how, by model, and
// what to do about it.
func TestClosingNamesTheCause(t *testing.T) {
	t.Parallel()
	sequential(t)
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1)%3 == 0 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"message":"This model's maximum context length is 2048 tokens.","code":"context_length_exceeded"}}`))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"{\"rea"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`))
	}))
	defer s.Close()
	dir := t.TempDir()
	parley(t, State{}, "init", "scenario", "--out", filepath.Join(dir, "plan.yaml")).want(t, exit.OK)
	plan := filepath.Join(dir, "plan.yaml")
	run := []string{"run", plan, "--set", `providers.lab={dialect: openai, base_url: "` + s.URL + `/v1"}`, "--set", "agents.policy.model=lab/tiny", "--set", "agents.clerk.model=lab/tiny", "--set", "episodes=1", "--concurrency", "1"}
	got := parley(t, State{}, run...).want(t, exit.Failed).stdout
	for _, want := range []string{
		"failed most often (1): the narrator wrote nothing: ", " calls failed: ", " cut off (lab/tiny), ", " too long (lab/tiny)\n",
		"most often: the answer was cut off at the limit of output tokens", "what to do: raise max_tokens",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the closing lines do not say %q:\n%s", want, got)
		}
	}
	file := filepath.Join(dir, "plan.parley")
	if got := parley(t, State{}, "show", file).want(t, exit.OK).stdout; !strings.Contains(got, "what to do: raise max_tokens") {
		t.Error(got)
	}
	got = parley(t, State{}, "run", file, "--json").want(t, exit.Failed).stdout
	var sum app.Summary
	if err := json.Unmarshal([]byte(got), &sum); err != nil || len(sum.Failures) != 2 {
		t.Fatalf("%v: %s", err, got)
	}
	if long := sum.Failures[1]; long.Kind != llm.KindTooLong || long.Model != "lab/tiny" || !strings.HasPrefix(long.Remedy, "the model's context is 2048 tokens") ||
		sum.Failures[0].Calls+long.Calls != sum.Calls.Total {
		t.Errorf("%+v of %d", sum.Failures, sum.Calls.Total)
	}
	if got := parley(t, State{}, "report", file).want(t, exit.OK).stdout; !strings.Contains(got, "raise max_tokens") {
		t.Error(got)
	}
}

// counting is a status that counts the ended episodes by cell.
type counting struct{ cells []string }

func (c *counting) Add(p world.Played) { c.cells = append(c.cells, p.Spec.Cell) }
func (c *counting) Line() []string     { return []string{strings.Join(c.cells, "+"), "more"} }

// countingKind is a kind with that status.
type countingKind struct{ worldtest.Simple[struct{}] }

func (countingKind) Status(*struct{}) world.Status { return &counting{} }

// TestStatusOfAKind checks that the status of a kind includes episodes that ended before and those that end now,
// with the specs of their stages.
func TestStatusOfAKind(t *testing.T) {
	t.Parallel()
	kind := world.Define(countingKind{})
	plan := &planfile.Plan{Settings: settings.New(settings.Plan), Kind: kind, Params: kind.Defaults()}
	head := &journal.Head{
		Stages: []journal.Staged{{Specs: world.List(world.Spec{Cell: "a"}, world.Spec{Cell: "b"})}},
	}
	v := &runView{}
	v.begin(&app.Opened{App: &app.App{}, Plan: plan, Head: head, Past: func(f func(world.Played)) error {
		f(world.Played{Episode: 1, Spec: head.Stages[0].Specs.At(1)})
		return nil
	}})
	v.onEvent(engine.Event{Staged: &head.Stages[0]})
	v.onEvent(engine.Event{Ended: &journal.Ended{Episode: 0}})
	v.onEvent(engine.Event{Staged: &journal.Staged{First: 2, Specs: world.List(world.Spec{Cell: "c"})}})
	v.onEvent(engine.Event{Ended: &journal.Ended{Episode: 2}})
	v.onEvent(engine.Event{Ended: &journal.Ended{Episode: 7}}) // of no stage
	if got := strings.Join(v.statusLines(), " "); got != "b+a+c more" {
		t.Error(got)
	}
	silentKind := &runView{}
	silentKind.begin(&app.Opened{App: &app.App{}, Plan: &planfile.Plan{Settings: settings.New(settings.Plan)}, Head: &journal.Head{}})
	silentKind.onEvent(engine.Event{Ended: &journal.Ended{}})
	if got := silentKind.statusLines(); got != nil {
		t.Errorf("%v", got)
	}
}

// evolution is a plan that runs in a moment.
const evolution = `kind: evolve
agents: {a: sim/solver}
params:
  population_size: 6
  max_generations: 2
  target_fitness: 0
  elite_size: 1
  problems: {train: 10, validation: 4, test: 6}
  baselines: {seeds: 1}
`

// TestEvolutionSummary checks that a run of prompts ends with its result and a command that writes the best
// prompt to a file, and that resuming the complete run prints the same.
func TestEvolutionSummary(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := filepath.Join(t.TempDir(), "mine.parley")
	plan := write(t, "plan.yaml", evolution)
	got := parley(t, State{}, "run", plan, "--out", file).want(t, exit.OK).stdout
	folder := strings.TrimSuffix(file, ".parley")
	for _, want := range []string{"stopped by max generations after generation 2, the best prompt solves ", " than the best baseline (", fmt.Sprintf("parley export %s --format folder --out %s\n", file, folder)} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	again := parley(t, State{}, "run", file).want(t, exit.OK).stdout
	if _, end, _ := strings.Cut(got, "stopped by max"); !strings.HasSuffix(again, end) {
		t.Errorf("%s\nand then\n%s", got, again)
	}
	parley(t, State{}, "export", file, "--format", "folder", "--out", folder).want(t, exit.OK)
	there := strings.Fields(folderOf(t, folder))
	if len(there) != 1 || !strings.HasPrefix(there[0], "episode-") {
		t.Fatalf("want the folder of the verdict: %v", there)
	}
	if best := read(t, filepath.Join(folder, there[0], "best.txt")); strings.TrimSpace(best) == "" {
		t.Errorf("%q", best)
	}
	if _, err := os.Stat(filepath.Join(folder, there[0], "best.json")); err != nil {
		t.Error(err)
	}
}

// TestCheckOfParts checks that a plan that creates episodes during the run is estimated as a whole, part by
// part.
func TestCheckOfParts(t *testing.T) {
	t.Parallel()
	sequential(t)
	got := parley(t, State{}, "check", write(t, "plan.yaml", evolution)).want(t, exit.OK).stdout
	for _, want := range []string{"\nPART ", "\ngeneration 0 ", "\ngenerations 1 to 2 ", "0 to 100", "\nvalidation ", "\nfinal test ", "\nall ", "the kind makes the plan during play"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
}

// TestEvolutionsCompared compares two evolutions by how their winners solve the same test problems.
func TestEvolutionsCompared(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan, dir := write(t, "plan.yaml", evolution), t.TempDir()
	a, b := filepath.Join(dir, "a.parley"), filepath.Join(dir, "b.parley")
	parley(t, State{}, "run", plan, "--out", a, "--quiet").want(t, exit.OK)
	parley(t, State{}, "run", plan, "--out", b, "--quiet", "--set", "params.preset=random_search").want(t, exit.OK)
	got := parley(t, State{}, "compare", a, b, "--score", "accuracy_test").want(t, exit.OK).stdout
	if !strings.Contains(got, "accuracy_test of a: ") || !strings.Contains(got, "paired, 6 deals") {
		t.Error(got)
	}
}

// TestState checks rates, what the run burns and will cost, servers beside their limits, models and batches.
func TestState(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	seconds := 0.0
	v := &runView{
		out:      terminal.NewStream(&bytes.Buffer{}, func(string) (string, bool) { return "", false }, func(any) int { return 0 }),
		episodes: 100, playing: map[int]*episodeProgress{}, failed: map[llm.Kind]int{}, resumed: map[int]bool{7: true},
		calls: func(time.Time) []dispatch.Wait {
			return []dispatch.Wait{{Money: &budget.Shortage{Calls: 1021, Model: "lab/large", Amount: llm.Dollars(0.006828), Why: "max_tokens: 900"}}}
		},
		batches: func() batch.Progress {
			return batch.Progress{Open: []batch.Standing{{Provider: "lab", ID: "b1", Model: "small", Began: began, Lines: 10, Answered: 3, Failed: 1}}}
		},
	}
	v.stats = func() dispatch.Snapshot { // 4 calls, 300 tokens, 1 failure and 1 cent a second
		m := dispatch.ModelStats{
			Attempts: int64(4 * seconds), Calls: int64(4 * seconds), Cost: llm.Dollars(seconds / 100), Usage: llm.Usage{Input: int(200 * seconds), Output: int(100 * seconds)},
			Errors: map[llm.Kind]int64{llm.KindServer: int64(seconds)}, LastError: map[llm.Kind]string{llm.KindServer: "500"},
		}
		for i := range 100 {
			m.Latency.Add(time.Duration(i+1) * time.Millisecond)
		}
		return dispatch.Snapshot{InFlight: 3, ModelStats: m, Models: map[string]dispatch.ModelStats{"lab/small": m}}
	}
	v.money = func() budget.Sums {
		return budget.Sums{Spent: llm.Dollar.Plus(llm.Dollars(seconds / 100)), Limit: 5 * llm.Dollar}
	}
	v.limits = func() []dispatch.Limit {
		b := limiter.Bounds{InFlight: 2, Concurrency: 8, Requests: 600, Charged: limiter.Units{Requests: 4 * seconds, Output: 100 * seconds}}
		all := []dispatch.Limit{{Provider: "lab", Server: "http://one", Bounds: b}}
		if seconds > 86 { // a server that was opened 2 seconds ago
			all = append(all, dispatch.Limit{Provider: "lab", Server: "http://two", Bounds: b})
		}
		if seconds > 88 { // one that was just opened
			all = append(all, dispatch.Limit{Provider: "lab", Server: "http://three", Bounds: b})
		}
		return all
	}
	for n, cost := range map[int]llm.Money{0: llm.Dollar, 1: 3 * llm.Dollar, 7: 50 * llm.Dollar} { // 7 began in an earlier process
		v.onEvent(engine.Event{Replied: &journal.Replied{Turn: journal.Turn{Episode: n}, Response: &llm.Response{Metadata: llm.Metadata{Cost: cost}}}})
		v.onEvent(engine.Event{Ended: &journal.Ended{Episode: n, Outcome: world.Outcome{}}})
	}
	v.asked = map[string]*journal.Spending{}
	v.onEvent(engine.Event{Replied: &journal.Replied{
		Turn: journal.Turn{Episode: 8}, Request: &llm.Request{Model: "lab/small"}, Response: &llm.Response{Usage: llm.Usage{Input: 20}, Metadata: llm.Metadata{Cost: llm.Dollar / 2}},
	}})
	s := v.liveState(began)
	if s.CallsPerSecond != 0 || s.Burn != 0 || s.Servers[0].Requests.Now != 0 || !s.Servers[0].Requests.Unknown {
		t.Errorf("the first state has rates: %+v", s)
	}
	for range 89 {
		seconds++
		s = v.liveState(began.Add(time.Duration(seconds) * time.Second))
	}
	if s.CallsPerSecond != 4 || s.TokensPerSecond != 300 || s.ErrorsPerSecond != 1 || s.Burn != llm.Dollars(0.6) || len(v.past) > 62 {
		t.Errorf("%v calls, %v tokens, %v failures a second; %v a minute; %d samples", s.CallsPerSecond, s.TokensPerSecond, s.ErrorsPerSecond, s.Burn, len(v.past))
	}
	if want := s.Spent.Plus(2*97*llm.Dollar - llm.Dollar/2); s.Projected != want {
		t.Errorf("all episodes will cost %v, want %v", s.Projected, want)
	}
	one, two, three := s.Servers[0], s.Servers[1], s.Servers[2]
	if one.Requests.Now != 240 || one.Requests.Limit != 600 || one.Output.Now != 6000 || one.InFlight != 2 || one.Concurrency != 8 || two.Requests.Now != 240 || two.Requests.Unknown || !three.Requests.Unknown {
		t.Errorf("%+v", s.Servers)
	}
	if m := s.Models[0]; m.Name != "lab/small" || m.Calls != 1 || m.Failed != 0 || m.Input != 20 || m.Cost != llm.Dollar/2 || m.P95 < 90*time.Millisecond || m.P95 > 100*time.Millisecond || m.Errors[llm.KindServer].Example != "500" {
		t.Errorf("%+v", m)
	}
	if want := "1021 calls wait for room in the budget: max_tokens: 900 sets aside $0.006828 for a call of lab/large"; len(s.Waits) != 1 || s.Waits[0] != want {
		t.Errorf("%q, want %q", s.Waits, want)
	}
	if b := s.Batches[0]; b.Requests != 10 || b.Answered != 4 || b.Provider != "lab" {
		t.Errorf("%+v", b)
	}
}

// TestGreetAfterAKill checks that calls that may never have been sent are not called calls in flight.
func TestGreetAfterAKill(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := &runView{out: terminal.NewStream(&out, func(string) (string, bool) { return "", false }, func(any) int { return 0 })}
	v.printStart(&app.Opened{File: "a.parley", Head: &journal.Head{Begun: &journal.Begun{}, Calls: 3, Cut: true, Lost: 7}})
	if want := "parley: resuming a.parley: 0 episodes ended before\nparley: it was cut off: 7 calls without a recorded reply, whether sent or not, will be asked\n"; out.String() != want {
		t.Error(out.String())
	}
}

// TestInsideEpisodes: while few episodes play, the progress says where each is, in its world's own words. With Verbose,
// each that ends has a line.
func TestInsideEpisodes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := &runView{out: terminal.NewStream(&out, func(string) (string, bool) { return "", false }, func(any) int { return 0 }), verbose: true, playing: map[int]*episodeProgress{}, failed: map[llm.Kind]int{}}
	note := func(episode int, data string) {
		v.onEvent(engine.Event{Noted: &journal.Turned{Turn: journal.Turn{Episode: episode}, Notes: []world.Note{{Kind: "board", Data: json.RawMessage(data)}}}})
	}
	reply := func(episode, turn int, label string) {
		v.onEvent(engine.Event{Replied: &journal.Replied{Turn: journal.Turn{Episode: episode, Turn: turn}, Label: label, Response: &llm.Response{Metadata: llm.Metadata{Cost: llm.Dollar}}}})
	}
	reply(0, 4, "message")
	note(1, `{"phase":"S1902M","turn":{"x":1}}`)
	reply(1, 2, "orders\x1b[2J")
	for _, bad := range []string{`[]`, `{`, `{"phase":{}}`, `{"phase":"` + strings.Repeat("x", 100) + `"}`, `null`} {
		note(1, bad)
	}
	if got := v.insideTexts(); len(got) != 2 || got[0] != "episode 0: turn 5, message" || !strings.HasPrefix(got[1], "episode 1: phase S1902M, orders") || strings.Contains(got[1], "\x1b") {
		t.Errorf("%q", got)
	}
	for n := range 5 {
		reply(10+n, 0, "message")
	}
	if got := v.insideTexts(); got != nil {
		t.Errorf("many play: %q", got)
	}
	v.onEvent(engine.Event{Ended: &journal.Ended{Episode: 0, Outcome: world.Outcome{Scores: []world.Score{{Seat: "first", Name: "points", Value: 3}}}}})
	v.onEvent(engine.Event{Ended: &journal.Ended{Episode: 1, Outcome: world.Outcome{Failed: "the model\nrefused\x1b"}}})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "✓ done: episode 0: first points 3; $1.00, ") || !strings.HasPrefix(lines[1], "✗ failed: episode 1: the model refused") || strings.ContainsRune(out.String(), '\x1b') {
		t.Errorf("%q", lines)
	}
	if r, e := v.monitor(), v.monitor().Episodes; e.Ended != 1 || e.Failed != 1 || e.Playing != 5 || e.Waiting != 0 {
		t.Errorf("%+v", r)
	}
}

// TestVerbose: with --verbose, decisions, steps and waves have lines of their own.
func TestVerbose(t *testing.T) {
	t.Parallel()
	scenario := t.TempDir()
	parley(t, State{}, "init", "scenario", "--out", filepath.Join(scenario, "plan.yaml")).want(t, exit.OK)
	for name, c := range map[string]struct {
		plan, lines string
		more        []string
	}{
		"scenario": {filepath.Join(scenario, "plan.yaml"), `(?m)^episode 0: \w+ decided: \S.*; \$[\d.]+, [\d.]+m?s$`, nil},
		"rollout": {write(t, "plan.yaml", "kind: rollout\nepisodes: 1\nagents: {a: sim/any}\nlineup: {agent: a}\nparams: {env: arithmetic, env_params: {problems: 2}}\n"),
			`(?m)^episode 0: step 1: \S.*; reward [\d.]+$`, nil},
		"wave": {write(t, "plan.yaml", "kind: secrets\nepisodes: 3\nagents: {small: sim/small}\nlineup: {first: small, second: small}\n"),
			`(?m)^wave 1: 3 calls sent\n(?:.*\n)*wave 1: 3 calls answered; \$[\d.]+, [\d.]+m?s$`, []string{"--pace", "wave"}},
	} {
		args := append([]string{"run", c.plan, "--set", "episodes=3", "--out", filepath.Join(t.TempDir(), "run.parley")}, c.more...)
		quiet := parley(t, State{}, args...).want(t, exit.OK)
		args[5] = filepath.Join(t.TempDir(), "run.parley")
		got := parley(t, State{}, append(args, "--verbose")...).want(t, exit.OK)
		if re := regexp.MustCompile(c.lines); !re.MatchString(got.stderr) || re.MatchString(quiet.stderr) {
			t.Errorf("%s: with --verbose\n%s\nwithout\n%s", name, got.stderr, quiet.stderr)
		}
	}
}
