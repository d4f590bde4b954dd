package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/llm"
)

// resume asks what has no reply yet, like a run that is resumed: an answer is a reply, a canceled
// call is not. It returns how many replies there are in all.
func resume(t *testing.T, ctx context.Context, l *lab, name string, j *ledger, replies []llm.Result, reported func(n int)) int {
	t.Helper()
	d := l.dispatcher(t, name, with(j))
	n := process(ctx, d, j, replies, reported)
	l.ended(t)
	if spent, reserved := d.Budget().Spent(); reserved != 0 && len(j.open()) == 0 {
		t.Errorf("%v spent, %v still set aside", spent, reserved)
	}
	return n
}

func process(ctx context.Context, d *dispatch.Dispatcher, j *ledger, replies []llm.Result, reported func(n int)) int {
	all := questions(len(replies))
	var open []*llm.Request
	var at []int
	for i := range all {
		if replies[i].Response == nil {
			open, at = append(open, all[i]), append(at, i)
		}
	}
	n := len(all) - len(open)
	d.Wave(ctx, open, func(i int, r llm.Result) {
		if r.Err == nil {
			replies[at[i]] = r
			j.replied(open[i])
			n++
			reported(n)
		}
	})
	return n
}

// TestWaveCrashes kills a process at every event and at some replies: the next finds its batch
// again. No batch is created twice, no line is answered twice.
func TestWaveCrashes(t *testing.T) {
	t.Parallel()
	const n = 40
	for _, name := range dialects() {
		for _, ctxToo := range []bool{false, true} {
			for k := range 5 {
				t.Run(fmt.Sprint(name, " event ", k, ctxToo), func(t *testing.T) {
					t.Parallel()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					l, j, replies := newLab(t, simhttp.Config{}), &ledger{left: k}, make([]llm.Result, n)
					if ctxToo {
						j.crash = cancel
					}
					resume(t, ctx, l, name, j, replies, func(int) {})
					before := j.steps()
					j.left = -1
					if got := resume(t, t.Context(), l, name, j, replies, func(int) {}); got != n {
						t.Errorf("%d of %d replies after events: %s, then %s", got, n, before, j.steps())
					}
					once(t, l, j, n)
				})
			}
		}
		for _, k := range []int{1, n / 2, n - 1} {
			t.Run(fmt.Sprint(name, " reply ", k), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l, j, replies := newLab(t, simhttp.Config{}), &ledger{left: -1}, make([]llm.Result, n)
				resume(t, ctx, l, name, j, replies, func(n int) {
					if n == k {
						cancel()
					}
				})
				if got := resume(t, t.Context(), l, name, j, replies, func(int) {}); got != n {
					t.Errorf("%d of %d replies: %s", got, n, j.steps())
				}
				once(t, l, j, n)
			})
		}
	}
}

// once checks that there is one batch, with each line answered once.
func once(t *testing.T, l *lab, j *ledger, lines int64) {
	t.Helper()
	st := l.Stats()
	if st.Batches.Created != 1 || st.Batches.Requests != lines {
		t.Errorf("%d batches, %d lines: %s", st.Batches.Created, st.Batches.Requests, j.steps())
	}
	if live := live(st); live != 0 {
		t.Errorf("%d were asked live", live)
	}
}

// TestWaveLostAnswers breaks the connection after the provider has carried out a request, at every
// exchange that changes something: nothing is done twice.
func TestWaveLostAnswers(t *testing.T) {
	t.Parallel()
	for _, name := range dialects() {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, killed), func(t *testing.T) {
				t.Parallel()
				const n = 30
				l, j, replies := newLab(t, simhttp.Config{}), &ledger{left: -1}, make([]llm.Result, n)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				// A first wave leaves idle connections: the transport itself would resend a request
				// that is lost on one of those, unless it is prevented.
				d := l.dispatcher(t, name, with(j))
				warm := questions(2)
				for i := range warm {
					warm[i].Sample += 1000
				}
				wave(t, ctx, d, warm)
				lost := 0
				l.meet = func(w http.ResponseWriter, r *http.Request, serve http.Handler) {
					create := r.Method == http.MethodPost && creates(r.URL.Path)
					if !create || lost > 0 {
						serve.ServeHTTP(w, r)
						return
					}
					lost++
					serve.ServeHTTP(httptest.NewRecorder(), r)
					if killed {
						cancel()
					}
					panic(http.ErrAbortHandler) // the connection is cut without an answer
				}
				play := func(ctx context.Context, d *dispatch.Dispatcher) int {
					return process(ctx, d, j, replies, func(int) {})
				}
				play(ctx, d)
				if got := play(t.Context(), l.dispatcher(t, name, with(j))); got != n || lost != 1 {
					t.Errorf("%d of %d replies, %d lost: %s", got, n, lost, j.steps())
				}
				if st := l.Stats().Batches; st.Created != 2 || st.Requests != n+2 {
					t.Errorf("%+v: %s", st, j.steps())
				}
			})
		}
	}
}

// TestWaveCrashesAmongFaults kills process after process, at any event, while lines and batches
// fail: in the end all is answered, and every answered line was used.
func TestWaveCrashesAmongFaults(t *testing.T) {
	t.Parallel()
	for _, name := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 60
			l := newLab(t, faults(sim.Faults{sim.FaultLineExpired: 0.2, sim.FaultLineErrored: 0.2, sim.FaultLineDuplicate: 0.2, sim.FaultBatchFails: 0.2}))
			j, replies := &ledger{left: 0}, make([]llm.Result, n)
			for k := 0; ; k++ {
				ctx, cancel := context.WithCancel(t.Context())
				j.left, j.crash = k%9+1, cancel
				got := resume(t, ctx, l, name, j, replies, func(int) {})
				cancel()
				if got == n {
					break
				}
				if k > 60 {
					t.Fatalf("%d of %d replies: %s", got, n, j.steps())
				}
			}
			// Some calls are asked live in the end, and the last process may have ended before it
			// closed every batch.
			if st := l.Stats(); st.Batches.Requests > n {
				t.Errorf("%d lines answered for %d calls", st.Batches.Requests, n)
			}
			answers(t, l, name, questions(n), replies)
		})
	}
}

// TestWaveRisk: what an earlier process left counts against the budget until it is settled, and its
// calls need no room.
func TestWaveRisk(t *testing.T) {
	t.Parallel()
	for _, name := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 30
			l, j, reqs := newLab(t, simhttp.Config{}), &ledger{left: 2}, questions(n)
			if name != "anthropic" {
				j.left = 3
			}
			limit := func(m llm.Money) func(*dispatch.Config) {
				return func(c *dispatch.Config) { c.Budget = budget.New(m, 0) }
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l.dispatcher(t, name, with(j), limit(llm.Dollar)).Wave(ctx, reqs, func(int, llm.Result) { cancel() })
			open := j.open()
			if len(open) != 1 || open[0].AtRisk() == 0 || open[0].AtRisk() > open[0].Worst {
				t.Fatalf("%+v", open)
			}
			j.left = -1
			// Just enough for the open batch, and nothing else.
			d := l.dispatcher(t, name, with(j), limit(open[0].Worst))
			if _, reserved := d.Budget().Spent(); reserved != open[0].Worst {
				t.Errorf("%v at risk of %v", reserved, open[0].Worst)
			}
			other := &llm.Request{Model: "lab/any", MaxTokens: 40, Messages: []llm.Message{llm.User("another")}}
			if _, err := d.Ask(t.Context(), other); llm.KindOf(err) != llm.KindBudget {
				t.Errorf("beside it: %v", err)
			}
			for i, r := range wave(t, t.Context(), d, reqs) {
				if r.Err != nil {
					t.Fatalf("call %d: %v", i, r.Err)
				}
			}
			if spent, reserved := d.Budget().Spent(); reserved != 0 || spent == 0 || spent > open[0].Worst {
				t.Errorf("spent %v, set aside %v", spent, reserved)
			}
			once(t, l, j, n)
		})
	}
}
