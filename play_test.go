package parley_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"parley"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/scenario"
	"parley/worlds/secrets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// duel is a run of two agents that a model of the test's plays, in memory.
func duel(model llm.Func, episodes int) parley.Run {
	plan := parley.For(secrets.Kind(), func(p *secrets.Params) { p.Messages = 2 })
	plan.Episodes = episodes
	plan.Agents = []world.Agent{{Name: "one", Model: "mine/a"}, {Name: "two", Model: "mine/b"}}
	plan.Lineup = map[string]string{"first": "one", "second": "two"}
	return parley.Run{
		Plan:      plan,
		Providers: map[string]parley.Provider{"mine": {Model: model}},
	}
}

// words answers each question differently.
func words(_ context.Context, req *llm.Request) (*llm.Response, error) {
	last := req.Messages[len(req.Messages)-1]
	return &llm.Response{Text: fmt.Sprintf("%s has heard %d words of %s.", req.Model, len(last.Text()), last.Role)}, nil
}

// play plays a run that must not fail.
func play(t *testing.T, r parley.Run) *parley.Result {
	t.Helper()
	result, err := parley.Play(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// runFile is where a test keeps a run.
func runFile(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "run.parley")
}

// TestPlayGoesOn aborts a run again and again in the middle, and wants the end of an undisturbed one.
func TestPlayGoesOn(t *testing.T) {
	t.Parallel()
	want := play(t, duel(words, 20))
	if want.State != journal.Complete || want.Ended != 20 || want.Calls != 80 || want.Asked != 80 || len(want.Unpriced) != 2 {
		t.Fatalf("undisturbed: %+v", want)
	}
	file := runFile(t)
	killed := errors.New("killed")
	calls := 0 // in all
	for range 3 {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := duel(words, 20)
		r.File, r.Set = file, []string{"limits.concurrency=2"}
		before := calls
		r.Progress = func(p parley.Progress) {
			if calls = p.Calls; calls >= before+15 {
				cancel(killed)
			}
		}
		result, err := parley.Play(ctx, r)
		if !errors.Is(err, killed) || result == nil || result.State == journal.Complete || !strings.Contains(result.Reason.Detail, "killed") {
			t.Fatalf("aborted: %+v, %v", result, err)
		}
	}
	got := play(t, parley.Run{File: file, Providers: duel(words, 20).Providers}) // of its own plan
	if got.Digest != want.Digest || got.State != journal.Complete || got.Calls != 80 || got.Asked != 80-calls {
		t.Errorf("resumed: %+v, want the digest of %+v after %d calls", got, want, calls)
	}
	again := play(t, parley.Run{File: file, Providers: duel(words, 20).Providers})
	if again.Digest != want.Digest || again.Asked != 0 {
		t.Errorf("complete, and played again: %+v", again)
	}
}

// TestPlayGrows wants a larger plan to be played, and one that changes what was played to be refused.
func TestPlayGrows(t *testing.T) {
	t.Parallel()
	small, large := duel(words, 3), duel(words, 5)
	small.File = runFile(t)
	large.File = small.File
	play(t, small)
	if got := play(t, large); got.Episodes != 5 || got.Asked != 8 {
		t.Errorf("grown: %+v", got)
	}
	other := duel(words, 5)
	other.File, other.Plan.Seed = small.File, 2
	for advice, r := range map[string]parley.Run{
		"name another File":     other,
		"leave that out of Set": {Kinds: other.Kinds, Providers: other.Providers, File: other.File, Set: []string{"seed=2"}},
	} {
		_, err := parley.Play(t.Context(), r)
		if err == nil || !strings.Contains(err.Error(), "seed") || !strings.Contains(err.Error(), "what was played cannot change: "+advice) {
			t.Errorf("changed: %v", err)
		}
		if commandLine.MatchString(fmt.Sprint(err)) {
			t.Errorf("it speaks of the command line: %v", err)
		}
	}
}

// TestPlayOneAtATime lets a second Play of a file begin while the first waits for an answer.
func TestPlayOneAtATime(t *testing.T) {
	t.Parallel()
	file := runFile(t)
	var second atomic.Pointer[error]
	first := duel(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
		r := duel(words, 1)
		r.File = file
		_, err := parley.Play(ctx, r)
		second.Store(&err)
		return words(ctx, req)
	}, 1)
	first.File = file
	if got := play(t, first); got.State != journal.Complete {
		t.Errorf("%+v", got)
	}
	if err := second.Load(); err == nil || !errors.Is(*err, parley.ErrPlaying) {
		t.Errorf("the second: %v", err)
	}
}

// TestPlayModels plays with models that do not do what a Model promises.
func TestPlayModels(t *testing.T) {
	t.Parallel()
	shared := &llm.Response{Text: "Always the same.", Metadata: llm.Metadata{Cost: llm.Dollars(1e6), Attempts: -5, Latency: -1}}
	hostile := "\x1b]0;owned\x07\x1b[2J\u202e<script>alert(1)</script>\xff\x00" + strings.Repeat("\n", 1000)
	for name, c := range map[string]struct {
		model llm.Func
		fault string // of every episode; "": they end
	}{
		"panics":               {func(context.Context, *llm.Request) (*llm.Response, error) { panic("out of cheese") }, "out of cheese"},
		"panics with an error": {func(context.Context, *llm.Request) (*llm.Response, error) { panic(io.ErrUnexpectedEOF) }, "unexpected EOF"},
		"returns nothing":      {func(context.Context, *llm.Request) (*llm.Response, error) { return nil, nil }, "neither a response nor an error"},
		"returns an error of no kind": {func(context.Context, *llm.Request) (*llm.Response, error) {
			return nil, &llm.Error{Message: "no kind", Final: true}
		}, "no kind"},
		"returns a response that is everybody's": {func(context.Context, *llm.Request) (*llm.Response, error) { return shared, nil }, ""},
		"counts tokens below zero": {func(context.Context, *llm.Request) (*llm.Response, error) {
			return &llm.Response{Text: "Less than nothing.", Usage: llm.Usage{Input: math.MinInt, Output: -1}}, nil
		}, "impossible"},
		"counts tokens beyond all": {func(context.Context, *llm.Request) (*llm.Response, error) {
			return &llm.Response{Text: "Everything.", Usage: llm.Usage{Input: math.MaxInt, Output: math.MaxInt}}, nil
		}, "impossible"},
		"ends its goroutine": {func(context.Context, *llm.Request) (*llm.Response, error) { runtime.Goexit(); return nil, nil }, "Goexit"},
		"returns a number that JSON lacks": {func(context.Context, *llm.Request) (*llm.Response, error) {
			return &llm.Response{Text: "x", Logprobs: []llm.Logprob{{}, {Logprob: math.NaN()}}}, nil
		}, "Logprobs[1]"},
		"returns an alternative that JSON lacks": {func(context.Context, *llm.Request) (*llm.Response, error) {
			return &llm.Response{Text: "x", Logprobs: []llm.Logprob{{Top: []llm.Logprob{{Logprob: math.Inf(-1)}}}}}, nil
		}, "Logprobs[0]"},
		"returns text that is not JSON": {func(context.Context, *llm.Request) (*llm.Response, error) {
			return &llm.Response{Text: "x", JSON: json.RawMessage("{")}, nil
		}, "JSON is not valid"},
		"takes no such request": {func(context.Context, *llm.Request) (*llm.Response, error) {
			return nil, &llm.Error{Kind: llm.KindBadRequest, Message: "no images"}
		}, "no images"},
		"says that it was canceled": {func(context.Context, *llm.Request) (*llm.Response, error) {
			return nil, &llm.Error{Kind: llm.KindCanceled, Message: "not by us", Final: true}
		}, "not by us"},
		"says that something is not there": {func(context.Context, *llm.Request) (*llm.Response, error) {
			return nil, &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusNotFound, Message: "no such page"}
		}, "no such page"},
		"writes hostile text": {func(context.Context, *llm.Request) (*llm.Response, error) { return &llm.Response{Text: hostile}, nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := duel(c.model, 8)
			r.File = runFile(t)
			got := play(t, r)
			if got.State != journal.Complete || got.Ended != 8 || !strings.Contains(got.Fault, c.fault) || (c.fault == "") != (got.Failed == 0) || got.Cost > llm.Dollar {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestPlayBlocks aborts a run whose models answer nobody before their context is done.
func TestPlayBlocks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := duel(func(ctx context.Context, _ *llm.Request) (*llm.Response, error) {
		cancel()
		<-ctx.Done()
		return nil, fmt.Errorf("given up: %w", ctx.Err())
	}, 3)
	got, err := parley.Play(ctx, r)
	if !errors.Is(err, context.Canceled) || got == nil || got.Ended != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPlayBudget wants a run to stop before it costs more than it may, and to go on with more.
func TestPlayBudget(t *testing.T) {
	t.Parallel()
	r := parley.Run{PlanFile: "examples/secrets.yaml", Set: []string{"budget=0.008"}, File: runFile(t)}
	got := play(t, r)
	if got.State != journal.Stopped || got.Reason.Kind != journal.ByBudget || got.Cost > llm.Dollars(0.008) || got.Cost == 0 {
		t.Errorf("%+v", got)
	}
	r.Set = []string{"budget=1"}
	if got := play(t, r); got.State != journal.Complete || got.Cost <= llm.Dollars(0.008) {
		t.Errorf("with more: %+v", got)
	}
	unpriced := duel(words, 1)
	unpriced.Plan.Budget = llm.Dollar
	if _, err := parley.Play(t.Context(), unpriced); err == nil || !strings.Contains(err.Error(), "no price is known for mine/a") {
		t.Errorf("without a price: %v", err)
	}
}

// TestPlayNoUsage wants a model that reports no tokens to be charged the most that each call can cost, which MaxTokens
// lowers, as the reason says.
func TestPlayNoUsage(t *testing.T) {
	t.Parallel()
	prices := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(prices, []byte(`{"as_of": "2026-11-15", "models": {"mine/*": {"input": 1, "output": 5}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := duel(words, 10)
	r.Plan.Budget, r.Set, r.AllowFiles = llm.Dollar, []string{"prices=" + prices}, []string{filepath.Dir(prices)}
	got := play(t, r)
	if got.State != journal.Stopped || got.Calls > 2 || !strings.Contains(got.Reason.Detail, "no max_tokens (an answer may have 128,000 tokens) sets aside ") || !strings.Contains(got.Reason.Detail, "max_tokens, in a new run file, to at most ") {
		t.Errorf("without a limit: %+v", got)
	}
	for i := range r.Plan.Agents {
		r.Plan.Agents[i].MaxTokens = 100
	}
	if got := play(t, r); got.State != journal.Complete {
		t.Errorf("with a limit: %+v", got)
	}
	r.Plan.Budget = llm.Dollars(0.001)
	if got := play(t, r); got.State != journal.Stopped || strings.Contains(got.Reason.Detail, "max_tokens") {
		t.Errorf("with a limit and little money: %+v", got)
	}
}

// commandLine is what an error of the library does not speak of: flags, verbs and inner packages.
var commandLine = regexp.MustCompile(`--[a-z]+|parley (resume|run|fork)|(^|: |\n)(app|config|dialect|engine|sqlite): `)

// TestPlayRefuses wants everything that is wrong with a run to be said before anything is played.
func TestPlayRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign.parley")
	if err := os.WriteFile(foreign, []byte(strings.Repeat("no run file\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*parley.Run)
		want   string
	}{
		"two of a kind": {func(r *parley.Run) {
			r.Plan, r.PlanFile, r.Kinds = parley.Plan{}, "examples/secrets.yaml", []world.Kind{secrets.Kind(), secrets.Kind()}
		}, "two kinds"},
		"nothing":          {func(r *parley.Run) { *r = parley.Run{} }, "nothing to play"},
		"two plans":        {func(r *parley.Run) { r.PlanFile = "examples/secrets.yaml" }, "both set"},
		"two places":       {func(r *parley.Run) { r.File, r.Journal = filepath.Join(dir, "x"), &journal.Memory{} }, "both set"},
		"no such plan":     {func(r *parley.Run) { r.Plan, r.PlanFile = parley.Plan{}, filepath.Join(dir, "none.yaml") }, "no such file"},
		"no such run":      {func(r *parley.Run) { r.Plan, r.File = parley.Plan{}, filepath.Join(dir, "none.parley") }, "none.parley"},
		"an empty journal": {func(r *parley.Run) { r.Plan, r.Journal = parley.Plan{}, &journal.Memory{} }, "holds no run yet"},
		"a foreign file":   {func(r *parley.Run) { r.File = foreign }, "parley: " + foreign + " is not a run file"},
		"no folder":        {func(r *parley.Run) { r.File = filepath.Join(dir, "none", "x.parley") }, "does not exist"},
		"no name":          {func(r *parley.Run) { r.Plan.Agents[1].Name = "" }, "parley: plan: Agents[1] has no Name"},
		"two of a name":    {func(r *parley.Run) { r.Plan.Agents[1].Name = "one" }, "two agents"},
		"no model":         {func(r *parley.Run) { r.Plan.Agents[0].Model = "" }, "agents.one"},
		"unknown provider": {func(r *parley.Run) { r.Providers = nil }, "mine"},
		"a nil model":      {func(r *parley.Run) { r.Providers["mine"] = parley.Provider{Dialect: "go"} }, "Go program"},
		"a model and more": {func(r *parley.Run) {
			r.Providers["mine"] = parley.Provider{Model: llm.Func(words), BaseURL: "http://x"}
		}, "leave them out"},
		"an empty provider":  {func(r *parley.Run) { r.Providers["mine"] = parley.Provider{} }, `parley: provider "mine": BaseURL: is missing`},
		"a wrong dialect":    {func(r *parley.Run) { r.Providers["mine"] = parley.Provider{Dialect: "opnai"} }, `parley: provider "mine": Dialect: `},
		"a provider's name":  {func(r *parley.Run) { r.Providers[`a".b=c`] = parley.Provider{} }, "must be a word"},
		"a provider's limit": {func(r *parley.Run) { r.Providers["mine"] = parley.Provider{Model: llm.Func(words), RPM: math.NaN()} }, "RPM: "},
		"less than no limit": {func(r *parley.Run) {
			r.Providers["mine"] = parley.Provider{Model: llm.Func(words), Concurrency: math.MinInt}
		}, `parley: provider "mine": Concurrency: `},
		"too few episodes":   {func(r *parley.Run) { r.Plan.Episodes = math.MinInt }, "episodes"},
		"too many episodes":  {func(r *parley.Run) { r.Plan.Episodes = math.MaxInt }, "episodes"},
		"less than no money": {func(r *parley.Run) { r.Plan.Budget = math.MinInt64 }, "budget"},
		"params of another kind": {func(r *parley.Run) { r.Plan = parley.For(secrets.Kind(), func(*scenario.Params) {}) },
			"parley: plan: For: the kind secrets has params of type *secrets.Params, not *scenario.Params"},
		"no kind":          {func(r *parley.Run) { r.Plan = parley.Plan{Episodes: 1} }, "parley: plan: it has no kind: begin it with For"},
		"a wrong param":    {func(r *parley.Run) { r.Plan = parley.For(secrets.Kind(), func(p *secrets.Params) { p.Messages = -1 }) }, "messages"},
		"a wrong key":      {func(r *parley.Run) { r.Set = []string{"limits.live_=1"} }, `parley: Set "limits.live_=1": limits.live_: unknown key`},
		"a wrong override": {func(r *parley.Run) { r.Set = []string{"episodes"} }, "KEY=VALUE"},
		"a wrong trust":    {func(r *parley.Run) { r.Trust = []string{"KEY"} }, "VARIABLE=HOST"},
		"a seat of nobody": {func(r *parley.Run) { delete(r.Plan.Lineup, "second") }, "second"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := duel(words, 1)
			c.change(&r)
			got, err := parley.Play(t.Context(), r)
			if err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%+v, %v; want an error with %q", got, err, c.want)
			}
			if said := commandLine.FindString(err.Error()); said != "" || !strings.HasPrefix(err.Error(), "parley: ") {
				t.Errorf("%v: it speaks of %q", err, said)
			}
		})
	}
}

// TestPlayKeys wants a key to go nowhere that nobody allowed.
func TestPlayKeys(t *testing.T) {
	t.Setenv("LAB_KEY", "secret-value")
	for name, lab := range map[string]parley.Provider{
		"another host":           {BaseURL: "https://lab.example/v1", KeyEnv: "LAB_KEY"},
		"another host, in clear": {BaseURL: "http://lab.example/v1", KeyEnv: "LAB_KEY"},
		"of another wire format": {Dialect: "anthropic", BaseURL: "https://lab.example/v1", KeyEnv: "LAB_KEY"},
	} {
		r := duel(words, 1)
		r.Providers["lab"], r.Plan.Agents[0].Model = lab, "lab/any"
		r.File = runFile(t)
		got, err := parley.Play(t.Context(), r)
		if err == nil || got != nil || !strings.Contains(err.Error(), `lab.example" to Trust`) || commandLine.MatchString(err.Error()) || strings.Contains(err.Error(), "secret-value") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		asker, err := parley.NewAsker(parley.AskerConfig{Providers: r.Providers})
		if err != nil {
			t.Fatal(err)
		}
		_, err = asker.Ask(t.Context(), &llm.Request{Model: "lab/any", Messages: []llm.Message{llm.User("?")}})
		if llm.KindOf(err) != llm.KindAuth || !strings.Contains(err.Error(), "LAB_KEY") {
			t.Errorf("%s: asked: %v", name, err)
		}
		if err := asker.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPlayProgress wants counts that go up to those of the result, from where the run stood before, and are those of the run file.
func TestPlayProgress(t *testing.T) {
	t.Parallel()
	small, large := duel(words, 2), duel(words, 6)
	small.File = runFile(t)
	large.File = small.File
	play(t, small)
	var last parley.Progress
	ended := 0
	large.Progress = func(p parley.Progress) {
		if p.Calls < last.Calls || p.Ended < last.Ended || p.Ended > p.Episodes {
			t.Errorf("%+v after %+v", p, last)
		}
		if p.Episode != nil {
			ended++
		}
		last = p
	}
	got := play(t, large)
	if last.Calls != got.Calls || last.Cost != got.Cost || last.Ended != got.Ended || last.Episodes != got.Episodes || ended != 4 {
		t.Errorf("%+v, want the counts of %+v", last, got)
	}
	store, err := runfile.OpenRead(large.File)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := journal.Count(t.Context(), store)
	if err := errors.Join(err, store.Close()); err != nil || recorded.Calls == 0 || got.Calls != recorded.Calls || got.Acts != recorded.Acts || got.Cost != recorded.Cost {
		t.Errorf("%+v, want the counts of %+v: %v", got, recorded, err)
	}
}

// TestPlayLog: what happens in a run is logged, once each, in order, with the values of the result.
func TestPlayLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := duel(words, 2)
	r.Log = slog.New(slog.NewJSONHandler(&out, nil))
	got := play(t, r)
	var said []string
	var last map[string]any
	for line := range strings.Lines(out.String()) {
		last = nil
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatal(err)
		}
		said = append(said, fmt.Sprint(last["msg"]))
	}
	began, ended := 0, 0
	for _, what := range said {
		began += strings.Count(what, "episode began")
		ended += strings.Count(what, "episode ended")
	}
	if said[0] != "run began" || said[1] != "stage began" || began != 2 || ended != 2 || len(said) != 7 {
		t.Errorf("%q", said)
	}
	if last["msg"] != "run ended" || last["digest"] != got.Digest || last["state"] != "complete" || last["cost_usd"] != nil {
		t.Errorf("%v; want %+v", last, got)
	}
}

// TestWrap: what wraps a provider sees every attempt, can add headers, answer by itself, and fail; its faults are failures of one call.
func TestWrap(t *testing.T) {
	t.Parallel()
	var seen atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Team") == "blue" && r.Header.Get("X-From-Plan") == "mine" {
			seen.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"no"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}))
	defer server.Close()
	run := func(wrap func(provider string, next llm.Model) llm.Model) *parley.Result {
		r := duel(nil, 2)
		r.Providers = map[string]parley.Provider{"mine": {BaseURL: server.URL}}
		r.Set = []string{`providers.mine.headers={"X-From-Plan":"mine"}`}
		r.Wrap = wrap
		return play(t, r)
	}
	header := run(func(provider string, next llm.Model) llm.Model {
		return llm.Func(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
			if provider != "mine" {
				t.Errorf("it wraps %s", provider)
			}
			req.Headers = map[string]string{"x-team": "blue"}
			return next.Ask(ctx, req)
		})
	})
	if header.State != journal.Complete || header.Failed > 0 || int(seen.Load()) != header.Asked || header.Asked == 0 {
		t.Errorf("%d of %d requests have the header: %+v", seen.Load(), header.Asked, header)
	}
	seen.Store(0)
	own := run(func(string, llm.Model) llm.Model { return llm.Func(words) })
	if own.Failed > 0 || own.Asked == 0 || seen.Load() > 0 {
		t.Errorf("its own answers: %d requests reached the server: %+v", seen.Load(), own)
	}
	for name, wrap := range map[string]func(string, llm.Model) llm.Model{
		"nothing": func(string, llm.Model) llm.Model { return nil },
		"panics": func(string, llm.Model) llm.Model {
			return llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) { panic("mine") })
		},
		"a header that breaks the request": func(_ string, next llm.Model) llm.Model {
			return llm.Func(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
				req.Headers = map[string]string{"X-Team": "blue\r\nX-From-Plan: forged"}
				return next.Ask(ctx, req)
			})
		},
	} {
		r := duel(nil, 2)
		r.Providers = map[string]parley.Provider{"mine": {BaseURL: server.URL}}
		r.Wrap = wrap
		got, err := parley.Play(t.Context(), r)
		if err == nil && got.State == journal.Complete && got.Failed == 0 || seen.Load() > 0 {
			t.Errorf("%s: %+v, %v; %d requests were sent", name, got, err, seen.Load())
		}
	}
}

// TestFor: a plan made by For has the params that its function changed, and only these, also if they are zero.
func TestFor(t *testing.T) {
	t.Parallel()
	r := duel(words, 1)
	r.Plan = parley.For(secrets.Kind(), func(p *secrets.Params) { p.Messages, p.Memory = 3, "short" })
	r.Plan.Agents, r.Plan.Lineup = []world.Agent{{Name: "one", Model: "mine/a"}}, map[string]string{"first": "one", "second": "one"}
	memory := &journal.Memory{}
	r.Journal = memory
	play(t, r)
	head, err := parley.Read(memory).Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Params map[string]any
	}
	if err := json.Unmarshal(head.Begun.Plan, &plan); err != nil || plan.Params["messages"] != 3.0 {
		t.Errorf("%s, %v", head.Begun.Plan, err)
	}
}
