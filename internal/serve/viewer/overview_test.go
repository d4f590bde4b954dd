package viewer

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/run/control"
	"parley/journal"
	"parley/llm"
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
		d := newDashboard(&control.LiveState{Spent: c.spent, Budget: c.budget, Burn: c.burn, Projected: c.projected})
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
		return control.SteerAnswer{State: control.Paused}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	hide := control.ShowLive(path, func(now time.Time) control.LiveState {
		return control.LiveState{At: now, Steered: "paused by ctl at 10:31" + attack, Servers: []control.Server{{Provider: "lab", Requests: control.Rate{Limit: 7000, Unknown: true}, Output: control.Rate{Now: 1234}}}}
	})
	for !strings.Contains(func() string { _, body, _ := s.get(page); return body }(), "paused by ctl at 10:31") {
		if t.Context().Err() != nil {
			t.Fatal("the page never shows that the run is paused")
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
