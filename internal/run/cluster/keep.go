package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/run/cluster/allot"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/share"
	"parley/internal/run/cluster/tally"
	"parley/journal"
	"parley/llm"
)

// UseBudget divides a budget among the workers. limit returns it, and may change.
func (c *Coordinator) UseBudget(limit func() llm.Money) { c.budget = limit }

// UseTally makes t count the calls of the workers.
func (c *Coordinator) UseTally(t *tally.Tally) { c.tally = t }

// keep makes the keepers of what workers share: the limits of accounts, and the budget. epoch is higher than that of any keeper
// that the workers of the log know.
func (p *play) keep(head *journal.Head, epoch uint64) {
	p.shares = share.NewKeeper(epoch, p.Alone || head.Collected.Log == 0)
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
	p.money = allot.NewKeeper(allot.Config{
		Epoch: epoch, Limit: p.budget(), Spent: p.spent, Allotted: maps.Clone(head.Allotted),
		Durable: func(worker string, amount llm.Money) error {
			return p.record(&journal.Exposed{Worker: worker, Worst: amount})
		},
	})
}

// serve hears what workers report, and answers what they ask about limits and money, until end is called.
func (l *log) serve() (end func(), err error) {
	var subs []*nats.Subscription
	end = func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe()
		}
	}
	for name, hear := range map[string]func(*nats.Msg){
		hub.StatsSubject(l.name.Run): func(m *nats.Msg) { l.hear(m.Data) }, hub.LimitsSubject(l.name.Run): l.answerLimits, hub.MoneySubject(l.name.Run): l.answerMoney,
		hub.StatusSubject(l.name.Run): func(m *nats.Msg) { l.answer(m, true, "", l.status()) },
	} {
		sub, err := l.Conn.Subscribe(name, func(m *nats.Msg) {
			// A worker of another run can have messages of its own sent here, as the answer to a request. They keep their subject.
			if m.Subject == name {
				hear(m)
			}
		})
		if err != nil {
			return end, fmt.Errorf("coordinator: %w", err)
		}
		subs = append(subs, sub)
		if name == hub.StatsSubject(l.name.Run) {
			l.mu.Lock()
			l.stats = sub
			l.mu.Unlock()
		}
	}
	return end, nil
}

func (l *log) answerLimits(m *nats.Msg) {
	var r share.Report
	if !l.name.Asks(m) || json.Unmarshal(m.Data, &r) != nil || r.Worker == "" {
		return // not one of ours
	}
	if l.money != nil && l.money.IsLost(r.Worker) {
		return // it must begin another session
	}
	for _, g := range l.shares.Answer(r) {
		l.answer(m, g.Worker == r.Worker, hub.ShareSubject(l.name.Run, g.Worker), g)
	}
}

func (l *log) answerMoney(m *nats.Msg) {
	var a allot.Ask
	if l.money == nil || !l.name.Asks(m) || json.Unmarshal(m.Data, &a) != nil || a.Worker == "" {
		return // not one of ours
	}
	grants, err := l.money.Answer(a)
	if err != nil {
		l.fail(err)
		return
	}
	for _, g := range grants {
		l.answer(m, g.Worker == a.Worker, hub.AllotmentSubject(l.name.Run, g.Worker), g)
	}
}

// answer sends a grant: to who asked, or to another worker. If it is lost, the worker asks again.
func (l *log) answer(m *nats.Msg, asked bool, to string, grant any) {
	data, err := json.Marshal(grant)
	switch {
	case err != nil:
		l.fail(fmt.Errorf("coordinator: an answer to a worker: %w", err))
	case asked:
		_ = m.Respond(data)
	default:
		_ = l.Conn.Publish(to, data)
	}
}

// charge counts what is recorded. It comes before workers are told.
func (p *play) charge(entries []journal.Entry) {
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok {
			p.spent = p.spent.Plus(r.Cost())
			p.tally.Replied(r)
		}
	}
	p.tally.Spent(p.spent)
	if p.money != nil {
		p.money.Spent(p.spent)
	}
}

// sawWorker notes that a worker is there. The lock is held.
func (p *play) sawWorker(session string) {
	if !p.workers[session].IsZero() || len(p.workers) < share.MaxWorkers {
		p.workers[session] = time.Now()
	}
}

// lookAround gives up workers that say nothing any more, and applies a new limit of the budget.
func (p *play) lookAround() error {
	var lost []string
	p.mu.Lock()
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
	return p.settleLost(lost)
}

// left notes that a worker has ended. owes means that calls may be billed that it did not record: what they can cost stays at risk.
func (p *play) left(session string, owes bool) {
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
