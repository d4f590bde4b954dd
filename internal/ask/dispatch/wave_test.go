package dispatch_test

import (
	"testing"

	"parley/internal/ask/sim/simhttp"
	"parley/llm"
)

// TestWave asks over every batch API: the answers are the live ones, at half the price, from one
// batch.
func TestWave(t *testing.T) {
	t.Parallel()
	for _, name := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, j := newLab(t, simhttp.Config{}), &journal{left: -1}
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
