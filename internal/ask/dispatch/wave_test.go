package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/cache"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/journal"
	"parley/llm"
)

// TestWave asks over every batch API: the answers are the live ones, at half the price, from one
// batch.
func TestWave(t *testing.T) {
	t.Parallel()
	for _, name := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, j := newLab(t, simhttp.Config{}), &ledger{left: -1}
			d, reqs := l.dispatcher(t, name, with(j)), questions(60)
			got := wave(t, t.Context(), d, reqs)
			if st := l.Stats(); st.Batches.Created != 1 || st.Batches.Requests != 60 || live(st) != 0 {
				t.Errorf("%+v", st)
			}
			answers(t, l, name, reqs, got)
			p, _ := table(t).Find("lab/any")
			var sum llm.Money
			for _, r := range got {
				if r.Response.Tier != "batch" || r.Response.Metadata.Cost != p.Cost(r.Response.Usage, true) || 2*r.Response.Metadata.Cost < p.Cost(r.Response.Usage, false) {
					t.Fatalf("%+v", r.Response)
				}
				sum += r.Response.Metadata.Cost
			}
			if spent, reserved := d.Budget().Spent(); spent != sum || reserved != 0 {
				t.Errorf("spent %v of %v, %v set aside", spent, sum, reserved)
			}
			want := "intended uploaded created closed"
			if name == "anthropic" {
				want = "intended created closed"
			}
			if j.steps() != want || len(j.open()) != 0 {
				t.Errorf("events: %s", j.steps())
			}
			if p := d.Batches(); p.Wave != 1 || p.Created != 1 || p.Queued != 0 || len(p.Open) != 0 {
				t.Errorf("%+v", p)
			}
		})
	}
}

// over returns a dispatcher of one provider whose batch API is a fakeAPI, and whose live
// answers are "live".
func over(t *testing.T, api *fakeAPI, change ...func(*dispatch.Config)) *dispatch.Dispatcher {
	t.Helper()
	p := provider.Provider{Name: "lab", Dialect: "openai", Batch: &provider.Batch{}}
	live := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
		return &llm.Response{Text: "live", Finish: llm.FinishStop}, nil
	})
	c := dispatch.Config{Lanes: []dispatch.Lane{{Provider: p, Model: live, BatchAPI: api}}, Prices: table(t), Settings: quickly()}
	for _, f := range change {
		f(&c)
	}
	d, err := dispatch.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newFakeAPI() *fakeAPI {
	return &fakeAPI{seen: func() {}, keep: true, batches: map[string][]batch.Result{}}
}

// TestWaveRepairs: every answer is wrong at first. The repairs are a batch too, and after a crash
// both are found again.
func TestWaveRepairs(t *testing.T) {
	t.Parallel()
	api, j := newFakeAPI(), &ledger{left: -1}
	api.answer = func(req *llm.Request) string {
		if len(req.Messages) == 1 {
			return "I would rather not say."
		}
		return `{"city":"Rome"}`
	}
	reqs := questions(20)
	for _, r := range reqs {
		r.Schema = &llm.Schema{Name: "place", JSON: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	j.left, j.crash = 3, cancel // the second batch exists, and its name is not known
	over(t, api, with(j)).Wave(ctx, reqs, func(int, llm.Result) {})
	if api.created != 2 {
		t.Fatalf("%d batches: %s", api.created, j.steps())
	}
	j.left = -1
	for i := range j.events { // the fake finds nothing again by itself
		if m := j.events[i]; m.Step == journal.BatchIntended && i == 2 {
			j.events = append(j.events, &journal.Batched{Step: journal.BatchCreated, Key: m.Key, Batch: m.Key})
			break
		}
	}
	d := over(t, api, with(j))
	for i, r := range wave(t, t.Context(), d, reqs) {
		if r.Err != nil || string(r.Response.JSON) != `{"city":"Rome"}` || r.Response.Metadata.Attempts != 2 {
			t.Fatalf("call %d: %v %+v", i, r.Err, r.Response)
		}
	}
	if api.created != 2 || len(j.open()) != 0 {
		t.Errorf("%d batches: %s", api.created, j.steps())
	}
}

// TestWaveComposes: the other layers work in waves: the cache, equal calls at temperature zero, a
// single call, a model without a batch API.
func TestWaveComposes(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	api := newFakeAPI()
	d := over(t, api, func(c *dispatch.Config) {
		c.Cache = store
		other := c.Lanes[0]
		other.Provider.Name, other.Provider.Batch, other.BatchAPI = "home", nil, nil
		c.Lanes = append(c.Lanes, other)
	})
	zero := 0.0
	equal := func() []*llm.Request {
		reqs := questions(12)
		for _, r := range reqs[:10] {
			r.Temperature, r.Sample, r.Messages = &zero, 0, reqs[0].Messages
		}
		reqs[11].Model = "home/any"
		return reqs
	}
	count := func(rs []llm.Result) (coalesced, cached, live int) {
		for _, r := range rs {
			switch {
			case r.Err != nil:
				t.Error(r.Err)
			case r.Response.Metadata.Cached:
				cached++
			case r.Response.Metadata.Coalesced:
				coalesced++
			case r.Response.Text == "live":
				live++
			}
		}
		return coalesced, cached, live
	}
	if coalesced, cached, live := count(wave(t, t.Context(), d, equal())); coalesced+cached != 9 || live != 1 || api.created != 1 {
		t.Errorf("%d joined, %d cached, %d live, of %d batches", coalesced, cached, live, api.created)
	}
	if _, cached, _ := count(wave(t, t.Context(), d, equal())); cached != 12 || api.created != 1 {
		t.Errorf("%d cached, of %d batches", cached, api.created)
	}
	alone := questions(1)
	alone[0].Sample = 99
	if _, _, live := count(wave(t, t.Context(), d, alone)); live != 1 || api.created != 1 {
		t.Errorf("one alone: %d live", live)
	}
	if wave(t, t.Context(), d, nil); d.Batches().Wave != 4 {
		t.Errorf("%+v", d.Batches())
	}
	if st := d.Stats(); st.Batched != 2 || st.Attempts != 4 {
		t.Errorf("%d of %d attempts over batches", st.Batched, st.Attempts)
	}
}

// TestWaveStaysInTheBatch: a budget has room for a single call at the batch price and not at the
// live price. The call is sent alone in a batch.
func TestWaveStaysInTheBatch(t *testing.T) {
	t.Parallel()
	p, _ := table(t).Find("lab/any")
	api, reqs := newFakeAPI(), questions(1)
	worst := p.Worst(600, 40, true)
	d := over(t, api, func(c *dispatch.Config) { c.Budget = budget.New(worst, 0) })
	if r := wave(t, t.Context(), d, reqs)[0]; r.Err != nil || r.Response.Text != "yes" || api.created != 1 {
		t.Errorf("%v, of %d batches", r.Err, api.created)
	}
}

// TestWaveFaults makes every fault of batches happen, some always: each call gets its own answer
// nevertheless.
func TestWaveFaults(t *testing.T) {
	t.Parallel()
	cases := []struct {
		fault  sim.Fault
		chance float64
		route  string
		seen   func(p batch.Progress, st simhttp.Stats) bool
	}{
		{sim.FaultLineExpired, 0.5, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return p.Created > 1 }},
		{sim.FaultLineExpired, 1, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return p.Created == 3 }},
		{sim.FaultLineExpired, 0.5, batch.Auto, func(p batch.Progress, st simhttp.Stats) bool { return p.Created == 1 }},
		{sim.FaultLineErrored, 0.5, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return p.Created > 1 }},
		{sim.FaultLineMissing, 0.5, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return p.Created > 1 && p.Missing > 10 }},
		{sim.FaultLineDuplicate, 0.5, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return p.Created == 1 && p.Duplicate > 10 }},
		{sim.FaultBatch429, 0.5, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return st.Batches.Created == 1 }},
		{sim.FaultBatchFails, 0.5, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return true }},
		{sim.FaultBatchFails, 1, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return st.Batches.Requests == 0 }},
		{sim.FaultBatchVanishes, 1, batch.Batch, func(p batch.Progress, st simhttp.Stats) bool { return p.Lost == 3 && p.Created == 3 }},
		{sim.FaultBatchVanishes, 1, batch.Auto, func(p batch.Progress, st simhttp.Stats) bool { return p.Lost == 1 && p.Created == 1 }},
	}
	for _, name := range dialects() {
		for _, c := range cases {
			if name != "openai" && c.fault == sim.FaultBatchFails { // which only a file can
				continue
			}
			if name == "anthropic" && c.fault == sim.FaultBatch429 { // it asks for whole seconds: see package batch
				continue
			}
			t.Run(name+" "+string(c.fault)+" "+c.route, func(t *testing.T) {
				t.Parallel()
				cfg := faults(sim.Faults{c.fault: c.chance})
				cfg.Batch.RetryAfter = time.Millisecond
				l, j, reqs := newLab(t, cfg), &ledger{left: -1}, questions(120)
				d := l.dispatcher(t, name, with(j), func(cfg *dispatch.Config) { cfg.Settings.Batch.Route = c.route })
				got := wave(t, t.Context(), d, reqs)
				p, st := d.Batches(), l.Stats()
				answers(t, l, name, reqs, got)
				if !c.seen(p, st) {
					t.Errorf("%+v\n%+v", p, st)
				}
				if len(j.open()) != 0 || len(p.Open) != 0 || p.Queued != 0 {
					t.Errorf("left open: %s, %+v", j.steps(), p)
				}
			})
		}
	}
}

// TestWaveAllFaultsAtOnce makes all faults happen together, for a long time.
func TestWaveAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	for _, name := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := faults(sim.Faults{
				sim.FaultLineExpired: 0.1, sim.FaultLineErrored: 0.1, sim.FaultLineMissing: 0.1, sim.FaultLineDuplicate: 0.1,
				sim.FaultBatch429: 0.2, sim.FaultBatchFails: 0.2, sim.FaultBatchVanishes: 0.2,
				sim.FaultError500: 0.1, sim.FaultReset: 0.1,
			})
			if name == "anthropic" {
				delete(cfg.Sim.Faults, sim.FaultBatch429)
			}
			cfg.Batch.RetryAfter, cfg.Batch.MaxRequests = time.Millisecond, 25
			l, j := newLab(t, cfg), &ledger{left: -1}
			d := l.dispatcher(t, name, with(j), func(c *dispatch.Config) { c.Lanes[0].Provider.Batch.Requests, c.Settings.Retry.Retries = 25, 29 })
			for range 2 {
				reqs := questions(80)
				answers(t, l, name, reqs, wave(t, t.Context(), d, reqs))
			}
			if p := d.Batches(); len(j.open()) != 0 || len(p.Open) != 0 || p.Queued != 0 || p.Wave != 2 {
				t.Errorf("left open: %s, %+v", j.steps(), p)
			}
		})
	}
}

// TestWaveBudget asks more than a budget allows, with lines that are paid for and never answered.
// It takes several batches, and not a billionth is overspent.
func TestWaveBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		limit  float64
		faults sim.Faults
		all    bool // of the calls fit
	}{
		{"room for all, a part at a time", 0.04, nil, true},
		{"room for some", 0.005, nil, false},
		{"lines are missing", 0.02, sim.Faults{sim.FaultLineMissing: 0.3}, false},
		{"batches vanish", 0.02, sim.Faults{sim.FaultBatchVanishes: 0.5}, false},
		{"batches fail", 0.02, sim.Faults{sim.FaultBatchFails: 0.5}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, j, reqs := newLab(t, faults(c.faults)), &ledger{left: -1}, questions(300)
			budget := budget.New(llm.Dollars(c.limit), 0)
			d := l.dispatcher(t, "openai", with(j), func(cfg *dispatch.Config) { cfg.Budget = budget })
			ok, refused := 0, 0
			for _, r := range wave(t, t.Context(), d, reqs) {
				switch llm.KindOf(r.Err) {
				case "":
					ok++
				case llm.KindBudget:
					refused++
				default:
					t.Error(r.Err)
				}
			}
			p, _ := table(t).Find("lab/any")
			worst := p.Worst(600, 40, true) * 300
			if worst < budget.Limit() {
				t.Fatalf("the budget was no limit: %v", worst)
			}
			st := l.Stats()
			billed := p.Cost(llm.Usage{Input: int(st.Tokens.Input), Output: int(st.Tokens.Output)}, true)
			if live := st.Endpoints["POST /v1/chat/completions"]; live > 0 && c.all {
				t.Errorf("%d were asked live", live)
			}
			spent, reserved := budget.Spent()
			if spent > budget.Limit() || billed > budget.Limit() || spent < billed || reserved != 0 {
				t.Errorf("spent %v of %v, at least %v billed, %v set aside", spent, budget.Limit(), billed, reserved)
			}
			if c.faults == nil && (ok == 300) != c.all || ok+refused != 300 {
				t.Errorf("%d answered, %d refused", ok, refused)
			}
			if p := d.Batches(); p.Created < 2 && c.all {
				t.Errorf("it all went in one batch: %+v", p)
			}
		})
	}
}

// TestWaveMaxCost: a call of a wave with its own limit keeps it, over batches that lose lines and
// when it is asked live.
func TestWaveMaxCost(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]sim.Faults{
		"lines are missing": {sim.FaultLineMissing: 0.5},
		"batches fail":      {sim.FaultBatchFails: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, j, reqs := newLab(t, faults(f)), &ledger{left: -1}, questions(100)
			d := l.dispatcher(t, "openai", with(j))
			for i, req := range reqs {
				worst, err := d.Worst(req)
				if err != nil {
					t.Fatal(err)
				}
				reqs[i].MaxCost = worst * llm.Money(i%5) / 4 // none, too little for a line, enough for a line, enough for a live try
			}
			ok, refused := 0, 0
			for i, r := range wave(t, t.Context(), d, reqs) {
				var cost llm.Money
				switch {
				case r.Err == nil:
					cost = r.Response.Metadata.Cost
					ok++
				case errors.Is(r.Err, llm.ErrMaxCost):
					cost = llm.AsError(r.Err).Metadata.Cost
					refused++
				default:
					t.Error(r.Err)
				}
				if reqs[i].MaxCost > 0 && cost > reqs[i].MaxCost {
					t.Errorf("request %d cost %v of %v", i, cost, reqs[i].MaxCost)
				}
			}
			if ok == 0 || refused == 0 {
				t.Errorf("%d answered, %d refused: this shows nothing", ok, refused)
			}
		})
	}
}
