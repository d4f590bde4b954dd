package dispatch_test

import (
	"context"
	"encoding/json"
	"testing"

	"parley/internal/ask/batch"
	"parley/internal/ask/cache"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/provider"
	"parley/llm"
)

// over returns a dispatcher of one provider whose batch API is a fakeAPI, and whose live
// answers are "live".
func over(t *testing.T, api *fakeAPI, change ...func(*dispatch.Config)) *dispatch.Dispatcher {
	t.Helper()
	p := provider.Provider{Name: "lab", Dialect: "openai", Batch: &provider.Batch{}}
	live := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
		return &llm.Response{Text: "live", Finish: llm.FinishStop}, nil
	})
	c := dispatch.Config{Lanes: []dispatch.Lane{{Provider: p, Model: live, BatchAPI: api}}, Batch: quickly(), Prices: table(t), Retry: dispatch.Retry{Base: 1}}
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
	api, j := newFakeAPI(), &journal{left: -1}
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
		if m := &j.events[i]; m.Step == batch.Intended && i == 2 {
			j.events = append(j.events, batch.Event{Step: batch.Created, Key: m.Key, Batch: m.Key})
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
	store, err := cache.Open("", cache.Options{})
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
