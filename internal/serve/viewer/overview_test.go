package viewer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/run/control"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/internal/serve/gateway"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestMoney checks when the budget is spent, and whether it suffices.
func TestMoney(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		spent, budget   llm.Money
		burn, projected llm.Money
		exhausted       time.Duration
		share           float64
		short           bool
	}{
		{"no budget", llm.Dollar, 0, llm.Dollar, 9 * llm.Dollar, 0, 0, false},
		{"enough", llm.Dollar, 4 * llm.Dollar, llm.Dollar / 2, 4 * llm.Dollar, 6 * time.Minute, 0.25, false},
		{"too little", 3 * llm.Dollar, 4 * llm.Dollar, 2 * llm.Dollar, 5 * llm.Dollar, 30 * time.Second, 0.75, true},
		{"nothing is spent", 0, 4 * llm.Dollar, 0, 0, 0, 0, false},
		{"it is spent", 5 * llm.Dollar, 4 * llm.Dollar, llm.Dollar, 5 * llm.Dollar, 0, 1.25, true},
		{"in a thousand years", 0, llm.Money(math.MaxInt64), 1, 1, 0, 0, false},
		{"less than nothing", math.MinInt64, math.MaxInt64, math.MinInt64, math.MinInt64, 0, -1, false},
	} {
		d := newDashboard(&control.LiveState{Sums: budget.Sums{Spent: c.spent, Limit: c.budget}, Burn: c.burn, Projected: c.projected})
		if d.Exhausted != c.exhausted || math.Abs(d.Share-c.share) > 1e-9 || d.Short != c.short {
			t.Errorf("%s: in %v, %v, %v", c.name, d.Exhausted, d.Share, d.Short)
		}
	}
}

// TestRows checks that tables stay short, the busiest servers first, and that charts are drawn of what there was.
func TestRows(t *testing.T) {
	t.Parallel()
	s := &control.LiveState{History: control.History{Every: time.Second, Points: []control.Point{{1, 2, 0, 0, 0}, {3, 4, 0, 0, 0.5}, {2, 1, 0, 0, 1}}}}
	for i := range 3 * maxTableRows {
		s.Servers = append(s.Servers, control.Server{InFlight: i})
		s.Models = append(s.Models, control.Model{Errors: map[llm.Kind]control.LiveError{llm.KindServer: {Attempts: 1}}})
		s.Batches = append(s.Batches, control.Batch{})
	}
	d := newDashboard(s)
	if top := d.TopServers(); len(top) != maxTableRows || top[0].InFlight != 3*maxTableRows-1 || s.Servers[0].InFlight != 0 {
		t.Errorf("%+v", top)
	}
	if len(d.TopModels()) != maxTableRows || len(d.TopErrors()) != maxTableRows || len(d.TopBatches()) != maxTableRows || d.Unlisted(3*maxTableRows) != "40 more are not listed." || d.Unlisted(maxTableRows) != "" {
		t.Error("a table is not cut")
	}
	var names []string
	for _, one := range d.Trends {
		if names = append(names, one.Name+" "+one.Now); !strings.Contains(string(one.Drawing), `class="line`) || strings.Contains(string(one.Drawing), "dot") {
			t.Errorf("%s", one.Drawing)
		}
	}
	if got := strings.Join(names, ", "); got != "calls in flight 2, calls a second 1, dollars spent $1" { // nothing failed, no tokens
		t.Error(got)
	}
	if newDashboard(&control.LiveState{}).Trends != nil {
		t.Error("there are charts of nothing")
	}
}

// TestRunStates checks the badge, the bar and the buttons of runs in several states.
func TestRunStates(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := serve(t, folder)
	begin := func(name string, entries ...journal.Entry) (path string, add func(...journal.Entry)) {
		path = filepath.Join(folder, name)
		store, err := runfile.Open(t.Context(), path, runfile.Create)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		add = func(entries ...journal.Entry) {
			t.Helper()
			if err := store.Append(context.Background(), entries...); err != nil {
				t.Fatal(err)
			}
		}
		add(append([]journal.Entry{&journal.Begun{Version: journal.Version, Run: name}, &journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{}, 2)}}, entries...)...)
		return path, add
	}
	failed := func(i int) journal.Entry {
		return &journal.Ended{Episode: i, Outcome: world.Outcome{Failed: "no answer"}}
	}
	shows := func(where string, parts ...string) {
		t.Helper()
		_, body, _ := s.get(where)
		for _, part := range parts {
			if !strings.Contains(body, part) {
				t.Errorf("%s has no %s:\n%s", where, part, body)
			}
		}
	}
	begin("bad.parley", failed(0), failed(1), &journal.Closed{State: journal.Complete})
	begin("part.parley", failed(0), &journal.Ended{Episode: 1}, &journal.Closed{State: journal.Complete})
	begin("error.parley", failed(0), &journal.Closed{State: journal.Failed, Reason: journal.Reason{Kind: journal.ByError, Detail: "it diverged" + attack}})
	shows("/", `class="state bad">all failed<`, `class="state warning">some failed<`, `class="state bad">failed<`)
	shows("/?state=all+failed", "1 of 3 runs")
	shows("/run/bad.parley", `class="state bad">all failed<`, `class="ended" width="0.00"`, `class="failed" x="0.00" width="100.00"`, "all 2 episodes failed")
	shows("/run/part.parley", `class="state warning">some failed<`, `class="ended" width="50.00"`, `class="failed" x="50.00" width="50.00"`)
	shows("/run/error.parley", `class="state bad">failed<`, "it diverged")
	begin("stopped.parley", &journal.Turned{Turn: journal.Turn{Episode: 0}, Calls: 1}, &journal.Closed{State: journal.Stopped, Reason: journal.Reason{Kind: journal.ByBudget, Detail: "$1.00 is spent" + attack}})
	shows("/?state=stopped", `class="state warning">stopped</span> <small class="why">budget: $1.00 is spent`, `data-name="cost">–<`)
	shows("/run/stopped.parley", "0 ended, 1 unfinished, 1 waiting", "<strong>–</strong>")
	shows("/run/stopped.parley/episodes", `class="state unfinished">unfinished<`, `>1 unfinished</a>`)
	shows("/run/stopped.parley/episodes?q=unfinished", `class="state unfinished">unfinished<`)
	shows("/run/stopped.parley/episodes/0", `class="state unfinished">unfinished<`)

	path, tell := begin("held.parley")
	shows("/run/held.parley", `class="state busy">playing<`)
	end, err := control.Serve(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	hide := control.ShowLive(path, func(now time.Time) control.LiveState { return control.LiveState{At: now} })
	defer hide()
	for !strings.Contains(func() string { _, body, _ := s.get("/run/held.parley"); return body }(), "calls in flight") {
		if t.Context().Err() != nil {
			t.Fatal("the page never shows what its process is doing")
		}
	}
	const off = ` disabled aria-describedby=`
	shows("/run/held.parley", `value="pause">Pause<`, `value="resume"`+off+`"why-resume">Resume</button><small id="why-resume">the run is not paused<`, `value="stop">Stop<`, `value="set">Change<`)
	shows("/run/held.parley/steer?verb=pause", `<button type="submit">Yes, pause<`)
	shows("/run/held.parley/steer?verb=resume", `<button type="submit"`+off+`"refused">Yes, resume<`, "the run is not paused")
	shows("/run/held.parley/steer?verb=set", `<button type="submit"`+off+`"refused">Yes, set<`, "nothing is filled in")
	shows("/run/bad.parley/steer?verb=pause", `<button type="submit"`+off+`"refused">Yes, pause<`, "no process plays this run")
	tell(&journal.Steered{Verb: journal.SteerPause, By: attack})
	shows("/run/held.parley", `class="state warning">paused<`, `value="pause"`+off, `value="resume">Resume<`)
	shows("/", `class="state warning">paused<`)
	tell(&journal.Steered{Verb: journal.SteerDrain, By: "ctl"}, &journal.Steered{Verb: journal.SteerResume, By: "ctl"})
	shows("/run/held.parley", `class="state warning">draining<`, `value="drain"`+off, `value="pause">Pause<`)
	tell(&journal.Steered{Verb: journal.SteerStop, By: "ctl"})
	shows("/run/held.parley", `class="state warning">stopping<`, `value="pause"`+off, `value="stop"`+off, `value="set"`+off)
}

// TestNeedsOfRecords: nothing plays the record of a gateway again, so no page says that parley run does.
func TestNeedsOfRecords(t *testing.T) {
	t.Parallel()
	v := &Viewer{static: true}
	for state, want := range map[results.State]string{results.StateStopped: "parley gateway --out run.parley continues it.", results.StateSome: ""} {
		got := ""
		all, err := v.needs(t.Context(), &Run{Path: "run.parley", Kind: gateway.Kind()}, &overviewPage{Status: results.Status{State: state}})
		for _, n := range all {
			got += n.Text
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", state, got, err, want)
		}
	}
}

// TestSteer pauses a run from its page and changes its budget: after a question, only from pages of this server, and
// only while it is played.
func TestSteer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "a.parley")
	record(t, path)
	s := serve(t, folder)
	const page = "/run/a.parley"
	pause := url.Values{"verb": {"pause"}}
	if status, body := s.post(page+"/steer", pause); status != http.StatusConflict || !strings.Contains(body, "no process plays this run") {
		t.Errorf("a run that nobody plays: %d %s", status, body)
	}
	if _, body, _ := s.get(page); strings.Contains(body, "Pause") {
		t.Error("a run that nobody plays has a button")
	}

	var got []control.SteerRequest
	end, err := control.Serve(t.Context(), path, map[string]control.Handler{control.SteerVerb: func(_ context.Context, args json.RawMessage) (any, error) {
		var r control.SteerRequest
		if err := json.Unmarshal(args, &r); err != nil {
			return nil, err
		}
		if r.Verb == journal.SteerDrain {
			return nil, errors.New("not now " + attack)
		}
		got = append(got, r)
		return control.SteerAnswer{State: results.StatePaused}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	hide := control.ShowLive(path, func(now time.Time) control.LiveState {
		return control.LiveState{At: now, Status: []string{"year 1902" + attack}, Servers: []control.Server{{Provider: "lab", Requests: control.Rate{Limit: 7000, Unknown: true}, Output: control.Rate{Now: 1234}}}}
	})
	for !strings.Contains(func() string { _, body, _ := s.get(page); return body }(), "year 1902") {
		if t.Context().Err() != nil {
			t.Fatal("the page never shows what its process is doing")
		}
	}
	_, body, _ := s.get(page)
	if !strings.Contains(body, `value="pause">Pause`) || strings.Contains(body, "<script>alert") {
		t.Error("no button, or hostile text:", body)
	}
	for _, want := range []string{`data-name="requests a minute">– <small>of 7,000</small>`, `data-name="output tokens a minute">1,234<`} {
		if !strings.Contains(body, want) {
			t.Errorf("the servers have no %s: %s", want, body)
		}
	}
	if status, body, _ := s.get(page + "/steer?verb=set&budget=20&concurrency=&set=" + url.QueryEscape(attack)); status != http.StatusOK || !strings.Contains(body, `value="budget=20"`) || strings.Contains(body, "<script>alert") || len(got) > 0 {
		t.Errorf("the question: %d %s", status, body)
	}
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}, {"Authorization", "Bearer no"}} {
		if status, body := s.post(page+"/steer", pause, header...); status != http.StatusForbidden && status != http.StatusUnauthorized {
			t.Errorf("%v: %d %s", header, status, body)
		}
	}
	if status, _, _ := s.get(page + "/steer?verb=dance"); status != http.StatusBadRequest {
		t.Error("an unknown verb:", status)
	}
	if status, body := s.post(page+"/steer", url.Values{"verb": {"drain"}}); status != http.StatusConflict || !strings.Contains(body, "not now") || strings.Contains(body, "<script>alert") {
		t.Errorf("a refusal: %d %s", status, body)
	}
	s.post(page+"/steer", pause, "Origin", s.url)
	s.post(page+"/steer", url.Values{"verb": {"set"}, "set": {"budget=20"}})
	hide()
	end()
	if len(got) != 2 || got[0].Verb != journal.SteerPause || got[0].By != "view" || !slices.Equal(got[1].Sets, []string{"budget=20"}) {
		t.Errorf("%+v", got)
	}
}

// TestCourseOf: the overview draws how the mean of each agent became what it is, without the wide intervals of the beginning, and one
// line for many agents.
func TestCourseOf(t *testing.T) {
	t.Parallel()
	fold := func(agents int) *results.Run {
		j := &journal.Memory{}
		begun, lineup := &journal.Begun{Version: journal.Version, Run: "r", Kind: "duel"}, map[string]string{}
		for i := range agents {
			name := fmt.Sprintf("agent %d", i)
			begun.Agents = append(begun.Agents, world.Agent{Name: name, Model: "sim/a"})
			lineup[fmt.Sprintf("seat %d", i)] = name
		}
		all := []journal.Entry{begun, &journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "duel", Lineup: lineup}, 200)}}
		for n := range 200 {
			end := &journal.Ended{Episode: n}
			for i := range agents {
				end.Outcome.Scores = append(end.Outcome.Scores, world.Score{Seat: fmt.Sprintf("seat %d", i), Name: "points", Value: float64((n * (i + 1)) % 7)})
			}
			all = append(all, end)
		}
		if err := j.Append(t.Context(), append(all, &journal.Closed{State: journal.Complete})...); err != nil {
			t.Fatal(err)
		}
		r, err := results.Fold(t.Context(), j, "r")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for agents, lines := range map[int]int{2: 2, maxCourses: maxCourses, maxCourses + 1: 1} {
		b := courseOf(fold(agents), world.Kind{}, "points")
		if b == nil || strings.Count(string(b.Drawing), `class="line`) != lines || agents == 2 && strings.Count(string(b.Drawing), `class="band`) != 2 || lines > 1 && len(b.Legend) != lines {
			t.Errorf("%d agents: %+v, want %d lines", agents, b, lines)
		}
	}
	if b := courseOf(fold(2), world.Kind{}, "beauty"); b != nil {
		t.Errorf("of a score that nobody has: %+v", b)
	}
}
