package lease

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"parley/internal/ask/dispatch/limiter"
)

// LimitsKeeper divides accounts among workers. It may be used from several goroutines.
type LimitsKeeper struct {
	epoch uint64

	mu      sync.Mutex
	over    bool      // another keeper has replaced this one
	sure    time.Time // nothing is granted from then on, unless Renew is called
	settled time.Time // before, no share grows: another keeper's may be in force
	workers map[string]*limitsWorker
}

// worker is what the keeper knows of a worker.
type limitsWorker struct {
	session
	at     time.Time // of its last report
	needs  map[string]Need
	grants []given // that may be in force, oldest first
}

// given is a grant that was made.
type given struct {
	number uint64
	at     time.Time
	parts  map[string]Part
}

// NewLimitsKeeper returns a keeper, which has just become the only one: see Renew. Its epoch must be higher than
// that of every earlier keeper that a member has heard of. fresh means that no worker can have a share yet. Otherwise no share grows
// until those of another keeper have expired.
func NewLimitsKeeper(epoch uint64, fresh bool) *LimitsKeeper {
	now := time.Now()
	k := &LimitsKeeper{epoch: epoch, workers: map[string]*limitsWorker{}, sure: now.Add(Lease)}
	if !fresh {
		k.settled = now.Add(Lease + expiry)
	}
	return k
}

// Renew notes that k was the only keeper at a time, for example because a write succeeded then that fails
// after another has taken over. Without it, k grants nothing after Lease. at must be taken before the write.
func (k *LimitsKeeper) Renew(at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sure = at.Add(Lease)
}

// Answer answers a report, and other workers whose share changes because of it. There is no answer to a
// report that is older than another that was answered, and none if another keeper may have replaced k.
func (k *LimitsKeeper) Answer(r LimitsReport) []LimitsGrant {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over = k.over || r.Epoch > k.epoch; k.over || !now.Before(k.sure) {
		return nil
	}
	k.expire(now)
	w := k.workers[r.Worker]
	switch {
	case w == nil && len(k.workers) >= MaxWorkers:
		return nil
	case w == nil:
		w = &limitsWorker{session: session{name: r.Worker}}
		k.workers[r.Worker] = w
	}
	if !w.receive(r.Header, k.epoch) {
		return nil
	}
	w.at, w.needs = now, r.Accounts
	if r.Epoch == k.epoch {
		w.grants = slices.DeleteFunc(w.grants, func(g given) bool { return g.number < r.Number })
	}
	targets := map[string]map[*limitsWorker]float64{}
	for account := range r.Accounts {
		targets[account] = k.targets(account)
	}
	grants := []LimitsGrant{k.grant(w, targets, now)}
	for _, other := range k.workers {
		if other != w && k.differs(other, targets, now) {
			grants = append(grants, k.grant(other, targets, now))
		}
	}
	return grants
}

// grant gives a worker its shares, as an answer to its last report.
func (k *LimitsKeeper) grant(w *limitsWorker, targets map[string]map[*limitsWorker]float64, now time.Time) LimitsGrant {
	parts := map[string]Part{}
	if n := len(w.grants); n > 0 {
		maps.Copy(parts, w.grants[n-1].parts)
	}
	for account := range w.needs {
		if t, ok := targets[account]; ok {
			parts[account] = Part{Share: k.share(account, w, t[w], now), Rates: k.rates(account)}
		}
	}
	g := LimitsGrant{Header: w.session.grant(k.epoch), Workers: len(k.workers), Accounts: parts}
	w.grants = append(w.grants, given{number: g.Number, at: now, parts: parts})
	return g
}

// differs reports whether a worker should be told of another share before its next report.
func (k *LimitsKeeper) differs(w *limitsWorker, targets map[string]map[*limitsWorker]float64, now time.Time) bool {
	if len(w.grants) == 0 || now.Sub(w.at) > Interval {
		return false // it may be gone
	}
	last := w.grants[len(w.grants)-1].parts
	for account, t := range targets {
		if is := last[account].Share; math.Abs(k.share(account, w, t[w], now)-is) > worthTelling*math.Max(is, t[w]) {
			return true
		}
	}
	return false
}

// Leave notes that a worker uses nothing any more.
func (k *LimitsKeeper) Leave(worker string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.workers, worker)
}

// expire forgets grants and workers that cannot be in force any more.
func (k *LimitsKeeper) expire(now time.Time) {
	for name, w := range k.workers {
		w.grants = slices.DeleteFunc(w.grants, func(g given) bool { return now.Sub(g.at) >= expiry })
		if len(w.grants) == 0 && now.Sub(w.at) >= expiry {
			delete(k.workers, name)
		}
	}
}

// highest returns the largest share of an account that a worker may have in force.
func (w *limitsWorker) highest(account string) float64 {
	n := w.needs[account]
	highest := max(0, n.Held, n.Busy)
	for _, g := range w.grants {
		highest = math.Max(highest, g.parts[account].Share)
	}
	return math.Min(highest, 1)
}

// share returns the share of an account that a worker gets: its target, or less if others still have
// too much.
func (k *LimitsKeeper) share(account string, w *limitsWorker, target float64, now time.Time) float64 {
	free := 1.0
	for _, other := range k.workers {
		if other != w {
			free -= other.highest(account)
		}
	}
	share := math.Min(target, free)
	if now.Before(k.settled) {
		share = math.Min(share, w.needs[account].Held)
	}
	return math.Max(0, share)
}

const (
	spare        = 1.25 // times what a worker used: what it gets if no call waited
	hungryUse    = 0.9  // of its share: a worker that uses more could use more than it has
	worthTelling = 0.1  // of a share: a change that a worker is told of at once
	idleShare    = 0.02 // of an account: for all workers that need none, so that they can begin at once
)

// demand is what a worker could use of an account.
type demand struct {
	*limitsWorker
	want   float64
	hungry bool
	share  float64 // that it gets
}

// targets divides an account. Nobody gets more than it could use, and nobody who could use more gets
// less than another.
func (k *LimitsKeeper) targets(account string) map[*limitsWorker]float64 {
	var all []demand
	least := 0.0
	for _, w := range k.workers {
		if n, ok := w.needs[account]; ok {
			hungry := n.Waiting > 0 || n.Held > 0 && n.Use >= hungryUse*n.Held
			want := math.Max(n.Use*spare, idleShare/float64(len(k.workers)))
			if hungry {
				want = 1
			}
			all = append(all, demand{limitsWorker: w, want: want, hungry: hungry})
			least = math.Max(least, n.Least)
		}
	}
	slices.SortFunc(all, func(a, b demand) int {
		return cmp.Or(cmp.Compare(a.want, b.want), cmp.Compare(b.highest(account), a.highest(account)), cmp.Compare(a.name, b.name))
	})
	left := 1.0
	for i := range all {
		all[i].share = math.Min(all[i].want, left/float64(len(all)-i))
		left -= all[i].share
	}
	if least > 0 {
		whole(all, least)
	}
	out := make(map[*limitsWorker]float64, len(all))
	for _, d := range all {
		out[d.limitsWorker] = d.share
	}
	return out
}

// whole makes shares multiples of the least one that allows a call, so that none is left over.
func whole(all []demand, least float64) {
	units := math.Floor(1/least + 1e-6)
	for i := range all {
		n := math.Floor(all[i].share/least + 1e-6)
		all[i].share = n * least
		units -= n
	}
	for i := range all {
		if units >= 1 && all[i].hungry {
			all[i].share += least
			units--
		}
	}
}

// rates returns the limits of an account that any worker knows.
func (k *LimitsKeeper) rates(account string) (r limiter.Units) {
	for _, w := range k.workers {
		r = r.Max(w.needs[account].Rates)
	}
	return r
}

// Account is how an account is divided.
type Account struct {
	// Rates are the account's limits a minute, as far as any worker knows them.
	Rates limiter.Units `json:"rates,omitzero"`
	// Shares are the last ones that were granted, by worker.
	Shares map[string]float64 `json:"shares"`
	// Waiting is how many calls waited, by the last reports.
	Waiting int `json:"waiting"`
}

// Accounts returns how each account is divided, by name.
func (k *LimitsKeeper) Accounts() map[string]Account {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[string]Account{}
	for _, w := range k.workers {
		for name, need := range w.needs {
			a, ok := all[name]
			if !ok {
				a = Account{Rates: k.rates(name), Shares: map[string]float64{}}
			}
			a.Waiting += need.Waiting
			if n := len(w.grants); n > 0 {
				a.Shares[w.name] = w.grants[n-1].parts[name].Share
			}
			all[name] = a
		}
	}
	return all
}
