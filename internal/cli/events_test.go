package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/run/control"
	"parley/internal/run/engine"
	"parley/journal"
)

// eventLines reads the file of --events: how often each event is in it, and the last line.
func eventLines(t *testing.T, path string) (counts map[string]int, last map[string]any) {
	t.Helper()
	counts = map[string]int{}
	for line := range strings.Lines(read(t, path)) {
		last = nil
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		what, ok := last["msg"].(string)
		if !ok || last["time"] == nil || last["level"] == nil {
			t.Errorf("no event: %s", line)
		}
		counts[what]++
	}
	return counts, last
}

// TestEvents checks that the lines of --events add up to the summary of the run, and that a later process appends its own.
func TestEvents(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(plan, []byte("kind: secrets\nepisodes: 5\nagents: {a: sim/small}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "events.jsonl")
	sum, _ := summed(t, exit.OK, "run", plan, "--events", file)
	counts, last := eventLines(t, file)
	want := map[string]int{"run began": 1, "stage began": 1, "episode began": 5, "episode ended": 5, "call ended": sum.Calls.Total, "run ended": 1}
	for what, n := range want {
		if counts[what] != n {
			t.Errorf("%s: %d, want %d", what, counts[what], n)
		}
	}
	if last["msg"] != "run ended" || last["state"] != "complete" || last["digest"] != sum.Digest {
		t.Errorf("%v", last)
	}
	parley(t, State{}, "run", plan, "--set", "episodes=7", "--events", file).want(t, exit.OK)
	if counts, _ := eventLines(t, file); counts["run resumed"] != 1 || counts["episode began"] != 7 || counts["run ended"] != 2 {
		t.Errorf("%v", counts)
	}
	for _, other := range []string{plan, filepath.Join(dir, "plan.parley"), filepath.Join(dir, "new.parley")} { // a slip must not spoil them
		before, _ := os.ReadFile(other)
		parley(t, State{}, "run", plan, "--events", other).want(t, exit.Misuse).wantErr(t, "--events: "+other+" is not a file of events")
		if after, _ := os.ReadFile(other); string(after) != string(before) {
			t.Errorf("%s was changed", other)
		}
	}
	parley(t, State{}, "run", plan, "--events", filepath.Join(dir, "no", "events.jsonl"), "--out", filepath.Join(dir, "other.parley")).want(t, exit.Misuse).wantErr(t, "--events: ")
}

// TestFailedEvents checks that calls and episodes that fail are warnings.
func TestFailedEvents(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(plan, []byte("kind: secrets\nepisodes: 3\nagents: {a: sim/small}\nepisode_budget: 0.0001\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "events.jsonl")
	sum, _ := summed(t, exit.Failed, "run", plan, "--events", file)
	counts, _ := eventLines(t, file)
	if counts["episode failed"] != sum.Episodes.Failed || sum.Episodes.Failed != 3 || counts["episode ended"] != 0 {
		t.Errorf("%v %+v", counts, sum.Episodes)
	}
}

// TestUnpricedEvents: a run of models without a price has no cost in its events.
func TestUnpricedEvents(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := filepath.Join(t.TempDir(), "events.jsonl")
	summed(t, exit.OK, "run", write(t, "plan.yaml", unpricedPlan), "--set", "lineup.second=a", "--events", file)
	if _, last := eventLines(t, file); last["msg"] != "run ended" || last["cost_usd"] != nil {
		t.Errorf("%v", last)
	}
}

// eventRun plays a plan with --events until it ends.
type eventRun struct {
	*testing.T
	file, events string // of the run, and its events
}

func newEventRun(t *testing.T) *eventRun {
	t.Helper()
	dir := t.TempDir()
	return &eventRun{t, filepath.Join(dir, "run.parley"), filepath.Join(dir, "events.jsonl")}
}

// play runs a plan; it need not end well.
func (r *eventRun) play(plan string, args ...string) {
	r.Helper()
	got := parley(r.T, State{}, append([]string{"run", plan, "--out", r.file, "--events", r.events, "--quiet"}, args...)...)
	if got.code == exit.Misuse {
		r.Error(got.stderr)
	}
}

// has reports whether an event has happened.
func (r *eventRun) has(what string) bool {
	b, err := os.ReadFile(r.events)
	return err == nil && strings.Contains(string(b), `"msg":"`+what+`"`)
}

// playSteered is play. Once something has happened, it steers the run.
func (r *eventRun) playSteered(after string, verbs []journal.SteerVerb, plan string, args ...string) {
	r.Helper()
	over, steered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(steered)
		for !r.has(after) {
			select {
			case <-over:
				r.Error("there was no " + after)
				return
			case <-time.After(time.Millisecond):
			}
		}
		for _, verb := range verbs {
			if _, err := control.Steer(r.Context(), r.file, control.SteerRequest{Verb: verb, By: "a test"}); err != nil {
				r.Error(err)
			}
		}
	}()
	r.play(plan, args...)
	close(over)
	<-steered
}

// server answers calls unless refuse says no.
func (r *eventRun) server(refuse func() (status int)) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "application/json")
		if status := refuse(); status != 0 {
			w.WriteHeader(status)
			return
		}
		_, _ = io.WriteString(w, `{"model":"any","choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}))
	r.Cleanup(s.Close)
	return s.URL + "/v1"
}

// TestEveryEvent provokes every event that the page on runs documents, and wants no others, and all of the keys there and no others.
func TestEveryEvent(t *testing.T) {
	t.Parallel()
	sequential(t)
	const small = "kind: secrets\nseed: 1\nagents: {a: sim/small}\nparams: {messages: 2}\n"
	runs := map[string]func(r *eventRun){
		"resumed": func(r *eventRun) {
			plan := write(r.T, "plan.yaml", small)
			r.play(plan, "--set", "episodes=2")
			r.play(plan, "--set", "episodes=3")
		},
		"failures": func(r *eventRun) {
			url := r.server(func() int { return http.StatusBadRequest })
			r.play(write(r.T, "plan.yaml", small+"episodes: 3\n"), "--set", "agents.a=lab/any", "--set", fmt.Sprintf("providers.lab={dialect: openai, base_url: %q}", url))
		},
		"batches": func(r *eventRun) {
			url, stop := serves(r.T, nil, "sim", "--batch-latency", "1ms")
			r.play("../../examples/secrets-batch.yaml", "--set", "episodes=3", "--set", "batch.poll=1ms", "--set", "providers.lab.base_url="+url+"/v1", "--set", "providers.campus.base_url="+url+"/v1")
			stop()
		},
		"budget": func(r *eventRun) {
			r.play(write(r.T, "plan.yaml", small+"episodes: 1000\n"), "--budget", "0.01", "--concurrency", "100")
		},
		"steering": func(r *eventRun) {
			verbs := []journal.SteerVerb{journal.SteerPause, journal.SteerResume, journal.SteerDrain}
			r.playSteered("call ended", verbs, "../../examples/rollout.yaml", "--set", "episodes=20000")
		},
		"outage": func(r *eventRun) {
			url := r.server(func() int {
				if r.has("provider cannot be reached") {
					return 0
				}
				return http.StatusServiceUnavailable
			})
			r.play(write(r.T, "plan.yaml", fmt.Sprintf("kind: secrets\nepisodes: 8\nproviders: {lab: {dialect: openai, base_url: %q}}\nagents: {a: {model: lab/any}}\n", url)))
		},
		"servers": func(r *eventRun) {
			var failures atomic.Int64
			bad := r.server(func() int {
				if failures.Add(1) <= 3 {
					return http.StatusInternalServerError
				}
				return 0
			})
			good := r.server(func() int { time.Sleep(time.Millisecond); return 0 })
			r.playSteered("server is back", []journal.SteerVerb{journal.SteerStop}, write(r.T, "plan.yaml", fmt.Sprintf("kind: secrets\nepisodes: 100000\nproviders: {lab: {dialect: openai, base_urls: [%q, %q], capabilities: [{match: \"lab/*\", no_sampling: true}]}}\nagents: {a: {model: lab/any, temperature: 1}}\nlimits: {concurrency: 4}\n", bad, good)))
		},
		"hub": func(r *eventRun) { // tests of package cluster provoke these
			f, err := os.Create(r.events)
			if err != nil {
				r.Fatal(err)
			}
			add := app.LogTo(r.Context(), slog.New(slog.NewJSONHandler(f, nil)))
			for _, i := range []engine.Idle{{Why: "full"}, {}, {Worker: "worker 1 on host", Why: "another build"}} {
				add(app.Event{Event: engine.Event{Idle: &i}})
			}
			_ = f.Close()
		},
	}
	all := map[string]map[string]bool{} // the keys of each event
	t.Run("runs", func(t *testing.T) {
		for name, run := range runs {
			t.Run(name, func(t *testing.T) {
				r := newEventRun(t)
				run(r)
				for line := range strings.Lines(read(t, r.events)) {
					var event map[string]any
					if err := json.Unmarshal([]byte(line), &event); err != nil {
						t.Fatalf("%v: %s", err, line)
					}
					what := fmt.Sprint(event["msg"])
					if all[what] == nil {
						all[what] = map[string]bool{}
					}
					for key := range event {
						all[what][key] = true
					}
				}
			})
		}
	})
	quoted, values := regexp.MustCompile("`([^`]+)`"), []string{"budget", "user", "call", "error", "collected"}
	_, table, _ := strings.Cut(read(t, "../../docs/how-to/run.md"), "| `msg` | more keys |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells, keys := strings.Split(row, "|"), map[string]bool{"time": true, "level": true, "msg": true}
		for _, what := range quoted.FindAllStringSubmatch(cells[1], -1) {
			if all[what[1]] == nil {
				t.Errorf("%s did not happen", what[1])
			}
			for key := range all[what[1]] {
				keys[key] = true
				if !strings.Contains(cells[2], "`"+key+"`") && key != "time" && key != "level" && key != "msg" {
					t.Errorf("%s has an undocumented key: %s", what[1], key)
				}
			}
			delete(all, what[1])
		}
		for _, key := range quoted.FindAllStringSubmatch(cells[2], -1) {
			if !keys[key[1]] && !strings.HasPrefix(key[1], "--") && !slices.Contains(values, key[1]) {
				t.Errorf("no event has the key %s of %s", key[1], cells[1])
			}
		}
	}
	for what := range all {
		t.Errorf("%s is not documented", what)
	}
}
