package lease

import (
	"fmt"
	"iter"
	"sync"
	"time"

	"parley/llm"
)

// MoneyConfig configures a MoneyKeeper.
type MoneyConfig struct {
	// Epoch must be higher than that of every earlier keeper that a member has heard of.
	Epoch uint64
	// Limit is the budget of the run: more than 0.
	Limit llm.Money
	// Spent is what is recorded as spent, and what is at risk for other reasons.
	Spent llm.Money
	// Exposed is what earlier keepers made durable, by worker: the most that its calls which are not recorded can cost.
	Exposed map[string]llm.Money
	// Durable makes durable, before it returns, that the calls of a worker which are not recorded may cost so much.
	// It replaces what it was called with before for this worker. With its error the worker may not send.
	Durable func(worker string, amount llm.Money) error
}

// MoneyKeeper divides a budget among workers. It may be used from several goroutines.
type MoneyKeeper struct {
	epoch   uint64
	durable func(worker string, amount llm.Money) error
	turn    chan struct{} // holds a value while something may be made durable: nothing is then given or taken

	mu      sync.Mutex
	limit   llm.Money
	spent   llm.Money
	workers map[string]*moneyWorker
}

// worker is what the keeper knows of a worker.
type moneyWorker struct {
	session
	MoneyReport           // the last
	known       bool      // it has asked this keeper, and ignores others from then on
	lost        bool      // nothing more will come
	left        bool      // it has ended, and has nothing
	durable     uint64    // the last report whose exposure is durable
	given       llm.Money // since the epoch began
	exposed     llm.Money // durable
	charged     llm.Money // recorded as spent since the epoch began
	before      llm.Money // what the worker knew to be recorded then
	risk        llm.Money // what it may have spent and nobody recorded, if it is lost
	denied      time.Time // since then it could not be given what it needs, although nothing was in flight
	refused     time.Time // when it was told that there is no more; what it gives back is not known yet
	noRoom      time.Time // since then it may not send what it says, although nothing else was in flight
}

// NewMoneyKeeper returns a keeper.
func NewMoneyKeeper(c MoneyConfig) *MoneyKeeper {
	k := &MoneyKeeper{epoch: c.Epoch, durable: c.Durable, turn: make(chan struct{}, 1), limit: c.Limit, spent: c.Spent, workers: map[string]*moneyWorker{}}
	for name, amount := range c.Exposed {
		k.workers[name] = &moneyWorker{session: session{name: name}, exposed: amount}
	}
	return k
}

// begin waits until nobody else gives or takes. The caller must call the function that it returns.
func (k *MoneyKeeper) begin() (end func()) {
	k.turn <- struct{}{}
	k.mu.Lock()
	return func() {
		k.mu.Unlock()
		<-k.turn
	}
}

// secure makes durable what the calls of a worker can cost. Others may read and change sums meanwhile.
func (k *MoneyKeeper) secure(w *moneyWorker, amount llm.Money) error {
	if amount == w.exposed {
		return nil
	}
	k.mu.Unlock()
	err := k.durable(w.name, amount)
	k.mu.Lock()
	if err != nil {
		return fmt.Errorf("%v for worker %s: %w", amount, w.name, err)
	}
	w.exposed = amount
	return nil
}

// atStake returns the most that a worker can still add to what is recorded as spent.
func (w *moneyWorker) atStake() llm.Money {
	switch {
	case w.left:
		return 0
	case w.lost:
		return w.risk
	case !w.known:
		return w.exposed // it sends no more before it has heard of this keeper
	default:
		return max(0, w.Stake.AtStake.Minus(w.unheard())).Plus(w.onTheWay())
	}
}

// unheard returns what is recorded as spent of which the worker did not know when it reported.
func (w *moneyWorker) unheard() llm.Money {
	return max(0, w.charged.Minus(w.Stake.Recorded.Minus(w.before)))
}

// unrecorded returns the most that calls of a worker which are not recorded can cost now.
func (w *moneyWorker) unrecorded() llm.Money { return min(w.exposed, w.atStake()) }

// onTheWay returns what a worker was given and did not know of when it reported.
func (w *moneyWorker) onTheWay() llm.Money { return max(0, w.given.Minus(w.Given)) }

// live yields the workers that are neither lost nor have left.
func (k *MoneyKeeper) live() iter.Seq[*moneyWorker] {
	return func(yield func(*moneyWorker) bool) {
		for _, w := range k.workers {
			if !w.lost && !w.left && !yield(w) {
				return
			}
		}
	}
}

// free returns what is neither spent nor allotted.
func (k *MoneyKeeper) free() llm.Money {
	free := k.limit.Minus(k.spent)
	for _, w := range k.workers {
		free = free.Minus(w.atStake())
	}
	return max(0, free)
}

// SetLimit changes the limit. If it becomes less than what is spent and allotted, what is spare is recalled
// as workers ask.
func (k *MoneyKeeper) SetLimit(limit llm.Money) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.limit = limit
}

// Spent sets what is recorded as spent, and what is at risk for other reasons. by is what is new of it, by the worker that
// spent it. Call it before workers are told that their calls are recorded.
func (k *MoneyKeeper) Spent(total llm.Money, by map[string]llm.Money) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spent = total
	for name, cost := range by {
		switch w := k.workers[name]; {
		case w == nil:
		case w.lost:
			w.risk = max(0, w.risk.Minus(cost)) // it died before it could hear of it, so its risk includes it
		default:
			w.charged = w.charged.Plus(cost)
		}
	}
}

// Lost notes that nothing more will come from a worker's session. What it may have sent stays at risk. Call it also for
// workers of Config.Exposed that do not ask: until then they may have calls in flight.
func (k *MoneyKeeper) Lost(worker string) error {
	defer k.begin()()
	w := k.workers[worker]
	if w == nil || w.lost || w.left {
		return nil
	}
	w.risk = w.unrecorded() // it has sent no more than is durable
	w.lost = true
	return k.secure(w, w.risk)
}

// SecureRisk makes durable what is at risk of lost workers, which becomes less as their calls are recorded.
func (k *MoneyKeeper) SecureRisk() error {
	defer k.begin()()
	for _, w := range k.workers {
		if w.lost {
			if err := k.secure(w, w.risk); err != nil {
				return err
			}
		}
	}
	return nil
}

// IsLost reports whether a worker's session counts as lost.
func (k *MoneyKeeper) IsLost(worker string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.workers[worker]
	return w != nil && w.lost
}

// Settled notes that everything that a lost worker spent is recorded: nothing of it is at risk.
func (k *MoneyKeeper) Settled(worker string) error {
	defer k.begin()()
	w := k.workers[worker]
	if w == nil || !w.lost {
		return nil
	}
	w.risk = 0
	return k.secure(w, 0)
}

// Leave notes that a worker has ended, with everything that it spent recorded. Of one that counts as lost, nobody knows that.
func (k *MoneyKeeper) Leave(worker string) error {
	defer k.begin()()
	w := k.workers[worker]
	if w == nil || w.left || w.lost {
		return nil
	}
	if err := k.secure(w, 0); err != nil {
		return err
	}
	w.left = true
	return nil
}

// Answer answers a report, and tells other workers to give back what they do not need if it is needed. There is
// no answer to a report that is older than another that was answered.
func (k *MoneyKeeper) Answer(r MoneyReport) ([]MoneyGrant, error) {
	defer k.begin()()
	w := k.workers[r.Worker]
	switch {
	case w == nil && len(k.workers) >= maxSessions:
		return nil, nil
	case w == nil:
		w = &moneyWorker{session: session{name: r.Worker}, known: true} // it has sent nothing: an earlier keeper would have made that durable
		k.workers[r.Worker] = w
	}
	first := w.seq == 0
	switch {
	case w.left || !w.receive(r.Header, k.epoch):
		return nil, nil
	case w.lost:
		g := k.grant(w)
		g.Lost, g.Recall = true, false
		return []MoneyGrant{g}, nil
	}
	if r.Epoch == k.epoch {
		w.known = true
	} else {
		r.Given = 0
	}
	if first {
		w.before = r.Stake.Recorded.Minus(w.charged)
	}
	w.MoneyReport, w.refused = r, time.Time{}
	noRoom, err := k.agree(w)
	if err != nil {
		return nil, err
	}
	if !w.known {
		return []MoneyGrant{k.grant(w)}, nil // once it has heard of this keeper, its stake is sure
	}
	more, recall := k.want(w)
	w.given = w.given.Plus(more)
	grants := []MoneyGrant{k.grant(w)}
	if noRoom {
		grants[0].NoRoom = w.seq
	}
	if recall {
		grants = append(grants, k.recall(w)...)
	}
	if now := time.Now(); !w.denied.IsZero() && now.Sub(w.denied) >= Interval {
		w.refused, grants[0].Exhausted = now, true
	}
	return grants, nil
}

// agree makes durable what a worker says that its calls can cost, if there is room for that. There is, unless earlier keepers gave more than
// is free now. noRoom means that there never will be.
func (k *MoneyKeeper) agree(w *moneyWorker) (noRoom bool, err error) {
	says, room, alone := max(0, w.Exposed), k.limit.Minus(k.spent), true
	for _, o := range k.workers {
		if o != w {
			room = room.Minus(o.unrecorded())
			alone = alone && (o.lost || o.left || o.known && o.Stake.Owed == 0)
		}
	}
	// It may have heard of records since it said so: then less is at stake.
	if says > w.exposed && min(says, w.Stake.AtStake).Minus(w.unheard()) > room {
		now := time.Now()
		if !alone || w.noRoom.IsZero() {
			w.noRoom = now
		}
		return now.Sub(w.noRoom) >= 2*Interval, nil
	}
	w.noRoom = time.Time{}
	if !w.known {
		says = max(says, w.exposed) // the ask may be older than one that an earlier keeper agreed to
	}
	if err := k.secure(w, says); err != nil {
		return false, err
	}
	w.durable = w.seq
	return false, nil
}

func (k *MoneyKeeper) grant(w *moneyWorker) MoneyGrant {
	return MoneyGrant{
		Header: w.session.grant(k.epoch), Durable: w.durable, Given: w.given, Limit: k.limit,
		Recall: k.limit.Minus(k.spent) < k.allotted() && w.Stake.Spare > 0,
	}
}

func (k *MoneyKeeper) allotted() (sum llm.Money) {
	for _, w := range k.workers {
		sum = sum.Plus(w.atStake())
	}
	return sum
}

const (
	maxSessions = 1 << 20 // of workers, in the whole run: others get nothing

	parts       = 64 // of the limit: a worker gets one of them at once
	workerParts = 4  // for each worker, so many parts at least
)

// want returns what a worker gets, and whether others must give back what they do not need.
func (k *MoneyKeeper) want(w *moneyWorker) (more llm.Money, recall bool) {
	s, free, workers := w.Stake, k.free(), 0
	for range k.live() {
		workers++
	}
	portion := k.limit / llm.Money(max(parts, workerParts*workers))
	fair := free / llm.Money(2*workers)
	spare := s.Spare.Plus(w.onTheWay())
	if s.Short > 0 {
		spare = w.onTheWay() // the next call needs more beside what is spare
	}
	switch {
	case s.Short > free.Plus(spare):
		return 0, !k.deny(w)
	case s.Short > spare:
		w.denied = time.Time{}
		return max(s.Short-spare, min(portion, fair)), false
	case s.Idle || spare >= portion/2:
	default:
		w.denied = time.Time{}
		return min(portion-spare, fair), false
	}
	w.denied = time.Time{}
	return 0, false
}

// deny reports whether nothing is in flight anywhere and nobody has anything to give back: then what w needs
// will never be there. Because a call may be counted twice for a moment, that must hold for an Interval.
func (k *MoneyKeeper) deny(w *moneyWorker) bool {
	now := time.Now()
	for o := range k.live() {
		recent := now.Sub(o.refused) < 2*Interval
		if !o.known || !o.Stake.Idle || recent || o.onTheWay() > 0 || o != w && o.Stake.Spare > 0 {
			w.denied = time.Time{}
			return false
		}
	}
	if w.denied.IsZero() {
		w.denied = now
	}
	return true
}

// recall tells all other workers to give back what they do not need.
func (k *MoneyKeeper) recall(w *moneyWorker) (all []MoneyGrant) {
	for o := range k.live() {
		if o != w && o.known && o.Stake.Spare > 0 {
			g := k.grant(o)
			g.Recall = true
			all = append(all, g)
		}
	}
	return all
}

// Sums are what a budget is divided into.
type Sums struct {
	// Limit is the budget, and Spent what is recorded as spent.
	Limit llm.Money `json:"budget"`
	Spent llm.Money `json:"spent"`
	// Allotted is by worker that is not lost. AtRisk is what lost workers had.
	Allotted map[string]llm.Money `json:"allotted"`
	AtRisk   llm.Money            `json:"at_risk"`
}

// Sums returns what the budget is divided into.
func (k *MoneyKeeper) Sums() Sums {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := Sums{Limit: k.limit, Spent: k.spent, Allotted: map[string]llm.Money{}}
	for name, w := range k.workers {
		switch {
		case w.lost:
			s.AtRisk = s.AtRisk.Plus(w.atStake())
		case !w.left:
			s.Allotted[name] = w.atStake()
		}
	}
	return s
}

// AllAllotted returns what all workers have that are not lost.
func (s *Sums) AllAllotted() (sum llm.Money) {
	for _, amount := range s.Allotted {
		sum = sum.Plus(amount)
	}
	return sum
}
