package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/ask/cache"
	"parley/internal/run/cluster/chain"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/lease"
	"parley/internal/run/cluster/tally"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/llm"
)

// Divide gives the workers what they share: a budget, whose limit may change; what calls cost, by model, as journal.Begun.Prices; and a
// cache of answers. calls counts theirs. Nil: there is none of it.
func (c *Coordinator) Divide(budget func() llm.Money, calls *tally.Tally, prices map[string]json.RawMessage, answers *cache.Store) {
	c.budget, c.tally, c.prices, c.cache = budget, calls, prices, answers
}

// keep makes the keepers of what workers share: the limits of accounts, and the budget. epoch is higher than that of any keeper
// that the workers of the log know.
func (p *play) keep(head *journal.Head, epoch uint64) {
	p.shares = lease.NewLimitsKeeper(epoch, p.Alone || head.Collected.Log == 0)
	p.spent = head.Spent.Plus(head.Risked).Plus(head.Owed)
	for _, amount := range head.Allotted {
		p.spent = p.spent.Minus(amount) // it counts as allotted
	}
	p.tally.Spent(p.spent)
	if p.budget == nil {
		return
	}
	for name := range head.Allotted {
		p.workers[name] = time.Now() // it is lost if it says nothing
	}
	p.money = lease.NewMoneyKeeper(lease.MoneyConfig{
		Epoch: epoch, Limit: p.budget(), Spent: p.spent, Exposed: maps.Clone(head.Allotted),
		Durable: func(worker string, amount llm.Money) error {
			return p.record(&journal.Exposed{Worker: worker, Worst: amount})
		},
	})
}

// serve receives what workers report, and answers what they ask about limits and money, until the subscriptions end.
func (l *log) serve() (subscriptions, error) {
	stats := hub.StatsSubject(l.name.Run)
	subjects := map[string]func(*nats.Msg){
		stats: func(m *nats.Msg) { l.receiveReport(m.Data) }, hub.LeaseSubject(l.name.Run, hub.Limits): l.answerLimits, hub.LeaseSubject(l.name.Run, hub.Money): l.answerMoney,
		hub.StatusSubject(l.name.Run): func(m *nats.Msg) { l.answer(m, true, "", l.status()) },
	}
	if l.answers != nil {
		subjects[hub.CacheSubject(l.name.Run)] = l.answers.receive
	}
	subs, err := subscribe(l.Conn, subjects)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats = subs[stats]
	return subs, err
}

// subscriptions are those of a process, by subject.
type subscriptions map[string]*nats.Subscription

// subscribe calls each function with the messages of its subject, until the subscriptions end: also after an error.
func subscribe(conn *nats.Conn, to map[string]func(*nats.Msg)) (subscriptions, error) {
	all := subscriptions{}
	for name, receive := range to {
		sub, err := conn.Subscribe(name, func(m *nats.Msg) {
			// A worker of another run can have messages of its own sent here, as the answer to a request. They keep their subject.
			if m.Subject == name {
				receive(m)
			}
		})
		if err != nil {
			return all, err
		}
		all[name] = sub
	}
	return all, nil
}

func (all subscriptions) end() {
	for _, sub := range all {
		_ = sub.Unsubscribe()
	}
}

func (l *log) answerLimits(m *nats.Msg) {
	var r lease.LimitsReport
	if !l.name.Asks(m) || json.Unmarshal(m.Data, &r) != nil || r.Worker == "" {
		return // not one of ours
	}
	if l.money != nil && l.money.IsLost(r.Worker) {
		return // it must begin another session
	}
	for _, g := range l.shares.Answer(r) {
		l.answer(m, g.Worker == r.Worker, hub.GrantSubject(l.name.Run, hub.Limits, g.Worker), g)
	}
}

func (l *log) answerMoney(m *nats.Msg) {
	var r lease.MoneyReport
	if l.money == nil || !l.name.Asks(m) || json.Unmarshal(m.Data, &r) != nil || r.Worker == "" {
		return // not one of ours
	}
	grants, err := l.money.Answer(r)
	if err != nil {
		l.fail(err)
		return
	}
	for _, g := range grants {
		l.answer(m, g.Worker == r.Worker, hub.GrantSubject(l.name.Run, hub.Money, g.Worker), g)
	}
}

// answer sends a grant: to who asked, or to another worker. If it is lost, the worker asks again.
func (l *log) answer(m *nats.Msg, asked bool, to string, grant any) {
	data, err := json.Marshal(grant)
	switch {
	case err != nil:
		l.fail(fmt.Errorf("an answer to a worker: %w", err))
	case asked:
		_ = m.Respond(data)
	default:
		_ = l.Conn.Publish(to, data)
	}
}

// charge counts what is recorded. It comes before workers are told.
func (p *play) charge(b *batch) {
	for _, e := range b.entries {
		if r, ok := e.(*journal.Replied); ok {
			p.spent = p.spent.Plus(r.Cost())
			p.tally.Replied(r)
		}
	}
	p.tally.Spent(p.spent)
	if p.money != nil {
		p.money.Spent(p.spent, b.costs)
	}
}

// sawWorker notes that a worker is there. The lock is held.
func (p *play) sawWorker(session string) {
	if !p.workers[session].IsZero() || len(p.workers) < lease.MaxWorkers {
		p.workers[session] = time.Now()
	}
}

// checkWorkers gives up workers that say nothing any more, and applies a new limit of the budget.
func (p *play) checkWorkers() error {
	var lost []string
	p.mu.Lock()
	maps.DeleteFunc(p.reports, func(_ string, r reported) bool { return !p.isThere(r) })
	for session, at := range p.workers {
		if time.Since(at) > hub.Silent {
			delete(p.workers, session)
			lost = append(lost, session)
		}
	}
	p.mu.Unlock()
	for _, session := range lost {
		p.tally.Lost(session)
	}
	if p.money == nil {
		return nil
	}
	p.money.SetLimit(p.budget())
	for _, session := range lost {
		if err := p.money.Lost(session); err != nil {
			return err
		}
	}
	return errors.Join(p.settleLost(lost), p.money.SecureRisk())
}

// workerLeft notes that a worker has ended. owes means that calls may be billed that it did not record: what they can cost stays at risk.
func (p *play) workerLeft(session string, owes bool) {
	p.shares.Leave(session)
	p.tally.Left(session)
	if p.money == nil {
		return
	}
	end := p.money.Leave
	if owes {
		end = p.money.Lost
	}
	if err := end(session); err != nil {
		p.fail(err)
	}
}

// beats tells workers of the run, receives what they report, and looks whether the log is there.
func (l *log) beats(ctx context.Context) error {
	subs, err := l.serve()
	defer subs.end()
	if err != nil {
		return err
	}
	for {
		if err := l.checkWorkers(); err != nil {
			return err
		}
		if err := l.beat(false); err != nil {
			return err
		}
		if !sleep(ctx, hub.BeatInterval) {
			return nil
		}
		if err := l.checkStreams(ctx); err != nil {
			return err
		}
		l.wake() // whoever waits for a worker that is gone
	}
}

// checkStreams returns errGone if the log or the queue is gone, and errTaken if another coordinator has taken the run. The queue may be gone, once there are no more lots.
func (l *log) checkStreams(ctx context.Context) error {
	_, queueErr := l.queue.Info(ctx)
	info, err := l.stream.Info(ctx)
	if err == nil && (!l.isIn(info) || errors.Is(l.own.Check(ctx), journal.ErrFenced)) {
		if _, err = l.stream.Info(ctx); err == nil { // the log is there, and this is not its coordinator
			return errTaken
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(queueErr, jetstream.ErrStreamNotFound) && !l.stopped {
		return errGone
	}
	if err == nil {
		l.last = info.State.LastSeq
	}
	return nil
}

// beat tells workers how the run is.
func (l *log) beat(ended bool) error {
	l.mu.Lock()
	b := hub.Beating{
		Run: l.name.Run, Log: l.name.Number, Build: l.Build, Durable: l.Replicas > 1, Taken: l.taken, Draining: l.stopped, Ended: ended,
		AckWait: l.AckWait,
	}
	l.mu.Unlock()
	b.Paused = l.run.Held()
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	_ = l.Conn.Publish(hub.BeatSubject(l.name.Run), data) // the next one may arrive
	return nil
}

// receiveReport notes what a worker reports.
func (l *log) receiveReport(data []byte) {
	var w hub.Working
	if json.Unmarshal(data, &w) != nil || w.Run != l.name.Run {
		return // not one of ours
	}
	l.mu.Lock()
	if w.Leaves || w.Refused != "" {
		delete(l.workers, w.Session)
	} else {
		l.sawWorker(w.Session)
	}
	l.noteReport(w)
	idle := w.Idle()
	tell := idle != "" && !l.idle[idle]
	l.idle[idle] = true
	if r := l.records[w.Session]; r != nil {
		r.calls = 0 // it was not killed, and says what it has in flight now
	}
	l.mu.Unlock()
	calls := tally.Report{Partial: len(w.Calls) == 0}
	if w.Refused == "" && (len(w.Calls) == 0 || json.Unmarshal(w.Calls, &calls) == nil) {
		l.tally.Reported(w.Session, calls)
	}
	if w.Leaves {
		l.workerLeft(w.Session, w.Owes)
		l.wake()
	}
	if l.Strict && w.Refused != "" {
		l.fail(errors.New(w.Refused))
	}
	if tell {
		l.run.Tell(engine.Idle{Worker: fmt.Sprintf("worker %d on %s", w.Process, w.Host), Why: idle})
	}
}

// reported is what a worker said about itself, and when.
type reported struct {
	hub.Working
	at time.Time
}

// noteReport notes what a worker reports, for people. The lock is held.
func (p *play) noteReport(w hub.Working) {
	w.Calls = nil // counted
	w.Waiting = w.Waiting[:min(len(w.Waiting), maxLots)]
	if _, known := p.reports[w.Worker]; w.Leaves {
		delete(p.reports, w.Worker)
	} else if known || len(p.reports) < lease.MaxWorkers {
		p.reports[w.Worker] = reported{w, time.Now()}
	}
}

// isThere reports whether a worker has said something recently. One that refuses the run says so again only when it tries again.
func (p *play) isThere(r reported) bool {
	limit := hub.Silent
	if r.Refused != "" {
		limit += rejoinAfter
	}
	return time.Since(r.at) < limit
}

// holding is who plays a lot: up to, but not including, to.
type holding struct {
	session string
	to      int
	since   time.Time
}

// record is what the log shows of the calls of a worker's session.
type record struct {
	lots  int       // that it has claimed, and neither finished nor given back
	open  bool      // it may have sent calls that nobody recorded, whatever it finishes
	lost  time.Time // when it counted as lost; zero: it is there
	calls int       // that it left in flight since its last report, as far as others claimed its lots
}

// settled reports whether all calls of the session are recorded: a lot is done when all its calls are.
func (r *record) settled() bool { return r.lots == 0 && !r.open }

// noteClaim notes that a worker claims a lot. Whoever had the lot may have left calls. So may a session that began before this process, which
// does not know all that it claimed. The lock is held.
func (p *play) noteClaim(from, to int, c *chain.Claim, before bool) {
	if len(c.Trying) > 0 && p.claimed[from].session == c.Session {
		return // the next episodes of the same lot
	}
	if !before {
		p.run.Lost(p.leftInFlight(from, c))
	}
	if p.claimed[from].session != "" {
		p.deaths[from]++
	}
	p.noteGivenBack(from, true)
	r := p.records[c.Session]
	if r == nil && len(p.records) < lease.MaxWorkers {
		r = &record{open: before}
		p.records[c.Session] = r
	}
	if r != nil {
		r.lots++
	}
	p.claimed[from] = holding{c.Session, to, time.Now()}
}

// leftInFlight returns how many calls whoever had a lot left in flight, given who claims it now. Of the calls without a reply, many may have waited for
// money or limits, so there are no more than its worker last reported for all its lots. The lock is held.
func (p *play) leftInFlight(from int, c *chain.Claim) int {
	r := p.records[p.claimed[from].session]
	reported, known := p.tally.InFlight(p.claimed[from].session)
	if r == nil || !known {
		return c.Lost
	}
	n := min(c.Lost, max(0, reported-r.calls))
	if p.claimed[from].session != c.Session {
		r.calls += n
	}
	return n
}

// leftInLog returns how many calls were in flight when the log before was lost. Workers drop its lots. Head is what the journal has.
func (p *play) leftInLog(head *journal.Head) (n int) {
	if p.epoch == 0 {
		return p.run.CutOff() // of workers that another process knew
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for from := range p.claimed {
		lot, open := p.open[from], 0
		for i := range lot.Specs.Len() {
			open += head.Playing[from+i].Open
		}
		n += p.leftInFlight(from, &chain.Claim{Lost: open})
	}
	return n
}

// noteGivenBack notes that whoever has a lot plays it no more. open means that it may have left calls. The lock is held.
func (p *play) noteGivenBack(from int, open bool) {
	if r := p.records[p.claimed[from].session]; r != nil {
		r.lots--
		r.open = r.open || open
	}
	delete(p.claimed, from)
	if _, open := p.open[from]; open {
		p.waits[from] = time.Now()
	} else {
		delete(p.waits, from)
		delete(p.deaths, from)
	}
}

// noteFailed notes that the worker that has a lot may have left calls, if e is the end of an episode that failed: it does not wait for
// its calls.
func (p *play) noteFailed(from int, e journal.Entry) {
	if end, ok := e.(*journal.Ended); !ok || end.Outcome.Failed == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.records[p.claimed[from].session]; r != nil {
		r.open = true
	}
}

// settleLost takes back the risk of lost workers whose calls are all recorded. It waits until they can send nothing more even if they are
// back: they get no more shares, and an old one does not last so long.
func (p *play) settleLost(lost []string) error {
	var settled []string
	p.mu.Lock()
	for _, session := range lost {
		if r := p.records[session]; r != nil {
			r.lost = time.Now()
		}
	}
	for session, r := range p.records {
		if !r.lost.IsZero() && time.Since(r.lost) > 2*lease.Lease && r.settled() {
			settled = append(settled, session)
			delete(p.records, session)
		}
	}
	p.mu.Unlock()
	for _, session := range settled {
		if err := p.money.Settled(session); err != nil {
			return err
		}
	}
	return nil
}
