package lease

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch/limiter"
)

// fixed are limits of which a random part is needed, or all.
type fixed struct {
	rand  *rand.Rand // nil: all
	parts map[string]limiter.Part
}

func (f *fixed) Demands() map[string]limiter.Demand {
	if f.rand == nil {
		return map[string]limiter.Demand{"x": {Waiting: 1}}
	}
	return map[string]limiter.Demand{"x": {Use: f.rand.Float64() * f.parts["x"].Share, Waiting: f.rand.IntN(2)}}
}

func (f *fixed) Share(parts map[string]limiter.Part) { f.parts = parts }

// share returns the share in force.
func (f *fixed) share() float64 {
	if p := f.parts["x"]; time.Now().Before(p.Until) {
		return p.Share
	}
	return 0
}

// message is one in flight: a report, a grant, or the news that nobody answers a report.
type message struct {
	at     time.Time
	report *LimitsReport
	grant  *LimitsGrant
	gone   uint64 // seq of the report
	to     *player
}

// player is a worker or a keeper, which can be stopped for a while.
type player struct {
	*LimitsMember
	keeper *LimitsKeeper
	limits *fixed
	next   time.Time // report
	resume time.Time // it is stopped until then
	mend   time.Time // it is cut off until then
}

// history is a random one of a keeper and its workers.
type history struct {
	rand    *rand.Rand
	epoch   uint64
	keepers []*player // two if one was stopped and replaced
	workers []*player
	air     []message
}

// send sends a message. It may be lost, late or doubled.
func (h *history) send(m message) {
	copies := 1
	if h.rand.IntN(10) == 0 {
		copies = 2
	}
	for range copies {
		m.at = time.Now().Add(time.Duration(h.rand.Int64N(int64(30 * time.Millisecond))))
		if h.rand.IntN(10) == 0 {
			m.at = m.at.Add(time.Duration(h.rand.Int64N(int64(2 * expiry))))
		}
		if h.rand.IntN(8) > 0 {
			h.air = append(h.air, m)
		}
	}
}

func (h *history) report(w *player) {
	w.next = time.Now().Add(Interval)
	r := w.Report()
	if w.mend.After(w.next) {
		return
	}
	if len(h.keepers) == 0 {
		h.send(message{gone: r.Seq, to: w})
	}
	for _, k := range h.keepers {
		h.send(message{report: &r, to: k})
	}
}

// start starts a keeper.
func (h *history) start() {
	h.epoch++
	h.keepers = append(h.keepers, &player{keeper: NewLimitsKeeper(h.epoch, h.epoch == 1)})
}

// event makes something happen, rarely.
func (h *history) event() {
	now := time.Now()
	pause := now.Add(time.Duration(h.rand.Int64N(int64(2 * expiry))))
	i := h.rand.IntN(len(h.workers) + 1)
	switch h.rand.IntN(400) {
	case 0, 1, 2: // a worker joins
		if len(h.workers) < 6 {
			f := &fixed{rand: h.rand}
			h.workers = append(h.workers, &player{LimitsMember: NewLimitsMember(fmt.Sprint("w", now.UnixNano()), f), limits: f})
		}
	case 3, 4: // one is stopped for a while
		if i < len(h.workers) {
			h.workers[i].resume = pause
		}
	case 5: // one is killed
		if i < len(h.workers) {
			h.workers = slices.Delete(h.workers, i, i+1)
		}
	case 6: // the keepers are killed
		h.keepers = nil
	case 7, 8, 9: // one starts
		if len(h.keepers) == 0 {
			h.start()
		}
	case 10, 11: // one is stopped for a while
		if len(h.keepers) > 0 {
			h.keepers[0].resume = pause
		}
	case 14: // one is replaced that may be stopped
		if len(h.keepers) == 1 {
			h.start()
		}
	case 12, 13: // a worker is cut off
		if i < len(h.workers) {
			h.workers[i].mend = pause
		}
	}
}

// deliver delivers what is due.
func (h *history) deliver() {
	now := time.Now()
	due := func(m message) bool { return !m.at.After(now) && !m.to.resume.After(now) }
	var all []message
	for _, m := range h.air {
		if due(m) {
			all = append(all, m)
		}
	}
	h.air = slices.DeleteFunc(h.air, due)
	for _, m := range all {
		switch {
		case m.grant != nil:
			if m.to.Apply(*m.grant) {
				h.report(m.to)
			}
		case m.gone > 0:
			m.to.Unanswered(m.gone)
		case slices.Contains(h.keepers, m.to): // it was not killed
			for _, g := range m.to.keeper.Answer(*m.report) {
				if w := h.find(g.Worker); w != nil && !w.mend.After(now) {
					h.send(message{grant: &g, to: w})
				}
			}
		}
	}
}

func (h *history) find(name string) *player {
	for _, w := range h.workers {
		if w.worker == name {
			return w
		}
	}
	return nil
}

// play returns the largest sum of shares in force.
func (h *history) play() (highest float64) {
	for range 4000 {
		time.Sleep(10 * time.Millisecond)
		now := time.Now()
		h.event()
		if n := len(h.keepers); n > 0 && !h.keepers[n-1].resume.After(now) {
			h.keepers[n-1].keeper.Renew(now)
		}
		for _, w := range h.workers {
			if !w.next.After(now) && !w.resume.After(now) {
				h.report(w)
			}
		}
		h.deliver()
		sum := 0.0
		for _, w := range h.workers {
			sum += w.limits.share()
		}
		highest = max(highest, sum)
	}
	return highest
}

// TestSharesNeverExceedTheWhole: whatever is lost, late, doubled, stopped or started again, the shares in
// force never add up to more than 1. It plays random histories.
func TestSharesNeverExceedTheWhole(t *testing.T) {
	t.Parallel()
	histories := uint64(150)
	switch {
	case os.Getenv("PARLEY_SWEEP") != "":
		histories = 2000
	case testing.Short():
		histories = 40
	}
	all := 0.0
	for seed := range histories {
		synctest.Test(t, func(t *testing.T) {
			h := &history{rand: rand.New(rand.NewPCG(seed, 1))}
			h.start()
			highest := h.play()
			if all = max(all, highest); highest > 1+1e-9 {
				t.Errorf("history %d: the shares add up to %v", seed, highest)
			}
		})
	}
	if all < 0.99 {
		t.Errorf("the shares never added up to more than %v: the histories test nothing", all)
	}
}

// TestGone: a worker continues with an equal part if the keeper is gone, and has nothing after Lease if
// messages are not carried at all.
func TestGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits, keeper := &fixed{}, NewLimitsKeeper(1, true)
		member := NewLimitsMember("w", limits)
		keeper.Answer(LimitsReport{Header: Header{Worker: "other", Seq: 1}, Accounts: map[string]Need{"x": {}}})
		keeper.Answer(LimitsReport{Header: Header{Worker: "other", Seq: 2, Epoch: 1, Number: 2}, Accounts: map[string]Need{"x": {}}})
		member.Apply(keeper.Answer(member.Report())[0])
		if s := limits.share(); s < 0.9 {
			t.Fatalf("a share of %v beside a worker that needs nothing", s)
		}
		for range 10 { // the keeper is gone
			time.Sleep(Interval)
			member.Unanswered(member.Report().Seq)
		}
		if s := limits.share(); s != 0.5 {
			t.Errorf("a share of %v without a keeper, want an equal part", s)
		}
		member.Report() // the hub is gone
		time.Sleep(Lease - time.Millisecond)
		was := limits.share()
		time.Sleep(time.Millisecond)
		if is := limits.share(); was != 0.5 || is != 0 {
			t.Errorf("a share of %v before the lease ends and %v after it", was, is)
		}
		member.Unanswered(member.Report().Seq)
		if s := limits.share(); s != 0 {
			t.Errorf("a share of %v that had expired", s)
		}
	})
}
