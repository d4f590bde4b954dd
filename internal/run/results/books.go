package results

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// books builds the accounts of a run.
type books struct {
	run      *Run
	accounts map[Key]*Account
	times    map[string]*ModelTimes
	failures failureCounts
	batches  map[string]*Batch
	clock    clock
}

func newBooks(r *Run) *books {
	return &books{
		run: r, accounts: map[Key]*Account{}, times: map[string]*ModelTimes{},
		failures: failureCounts{}, batches: map[string]*Batch{},
	}
}

// add adds an entry.
func (b *books) add(e journal.Entry) error {
	switch e := e.(type) {
	case *journal.Opened:
		b.run.Processes++
		b.clock.open(e.At)
	case *journal.Closed:
		b.clock.see(e.At)
	case *journal.Ended:
		at := b.clock.see(e.At)
		if t := b.took(e.Episode, e.Attempt); t != nil {
			t.Ended = at.Seconds()
		}
	case *journal.Batched:
		b.batch(e)
	case *journal.Replied:
		b.reply(e)
	}
	return nil
}

func (b *books) reply(e *journal.Replied) {
	k := keyOf(e)
	if b.accounts[k] == nil {
		b.accounts[k] = &Account{}
	}
	b.accounts[k].add(e)
	usage, meta := spentOn(e)
	if b.has(e.Episode) {
		s := &b.run.Spent[e.Episode]
		s.Calls += count(k.Kind == "ask")
		s.Acts += count(k.Kind == "act")
		s.Tokens = llm.AddTokens(s.Tokens, usage.Total())
		s.Cost = s.Cost.Plus(e.Cost())
	}
	b.failures.Add(e)
	if e.Copied {
		return // it was answered in another run, at another time
	}
	at := b.clock.see(e.At)
	b.run.Timeline.add(at, count(k.Kind == "ask"), count(k.Kind == "ask" && e.Error != nil), usage, e.Cost())
	b.lasted(e, at, usage, meta)
	if e.Request != nil && e.Error == nil && !meta.Cached && !meta.Coalesced {
		if b.times[k.Model] == nil {
			b.times[k.Model] = &ModelTimes{Model: k.Model}
		}
		b.times[k.Model].add(meta)
	}
}

// maxApart is how many episodes may begin before an earlier one.
const maxApart = 1 << 20

// has makes room for an episode. Episodes begin roughly in order: an episode far beyond those that
// began does not belong to the run.
func (b *books) has(episode int) bool {
	r := b.run
	if limit := min(r.Episodes.Total, r.Head.Ended.Len()+len(r.Head.Playing)+maxApart); episode < 0 || episode >= limit {
		return false
	}
	for len(r.Spent) <= episode {
		r.Spent, r.took = append(r.Spent, Spending{}), append(r.took, world.Took{})
	}
	return true
}

// took returns the times of an attempt at an episode, or nil if a later attempt is known.
func (b *books) took(episode, attempt int) *world.Took {
	if !b.has(episode) {
		return nil
	}
	t := &b.run.took[episode]
	if attempt > t.Attempt {
		*t = world.Took{Attempt: attempt} // earlier attempts were given up
	}
	if attempt < t.Attempt {
		return nil
	}
	return t
}

// lasted adds the times of a call that was answered at the given time.
func (b *books) lasted(e *journal.Replied, at time.Duration, usage llm.Usage, meta llm.Metadata) {
	t := b.took(e.Episode, e.Attempt)
	if t == nil {
		return
	}
	if t.Began == 0 {
		t.Began = max(0, at-meta.Latency-meta.Waited).Seconds()
	}
	t.Ended = at.Seconds()
	t.Input = llm.AddTokens(t.Input, usage.Input)
	t.Output = llm.AddTokens(t.Output, usage.Output)
	t.Cost += e.Cost().Dollars()
	if e.Act != nil {
		t.Acted += meta.Latency.Seconds()
		t.Waited += meta.Waited.Seconds()
		return
	}
	t.Asked += meta.Latency.Seconds()
	t.Queued += meta.Waited.Seconds()
}

func keyOf(e *journal.Replied) Key {
	k := Key{Kind: "bot", Agent: e.Agent, Seat: e.Seat, Label: e.Label}
	switch {
	case e.Act != nil:
		k.Kind = "act"
	case e.Request != nil:
		k.Kind, k.Model = "ask", world.ModelName(e.Request.Model)
	}
	return k
}

func (b *books) batch(e *journal.Batched) {
	k := b.batches[e.Key]
	if k == nil {
		k = &Batch{Key: e.Key}
		b.batches[e.Key] = k
	}
	switch e.Step {
	case journal.BatchIntended:
		k.Provider, k.Model, k.Lines, k.Worst, k.Sent = e.Provider, e.Model, len(e.Lines), e.Worst, e.At
	case journal.BatchClosed:
		k.Closed, k.Took = cmp.Or(e.Why, "closed"), e.At.Sub(k.Sent)
	default: // other steps do not show
	}
}

// close sorts the accounts and adds them to the run.
func (b *books) close() {
	r := b.run
	r.Played = b.clock.played()
	r.Accounts = sorted(b.accounts)
	for _, m := range slices.Sorted(maps.Keys(b.times)) {
		r.Times = append(r.Times, *b.times[m])
	}
	r.Failures = b.failures.Sorted()
	for _, k := range b.batches {
		r.Batches = append(r.Batches, *k)
	}
	slices.SortFunc(r.Batches, func(a, b Batch) int { return cmp.Or(a.Sent.Compare(b.Sent), cmp.Compare(a.Key, b.Key)) })
}

// clock measures the time played, without the time between processes.
type clock struct {
	before     time.Duration // of earlier processes
	from, last time.Time     // of this process
}

// open starts the time of a process.
func (c *clock) open(at time.Time) {
	c.before = c.played()
	c.from, c.last = at, at
}

// see returns the time played at the given time. A clock that was set back does not reduce it.
func (c *clock) see(at time.Time) time.Duration {
	if at.IsZero() {
		return c.played()
	}
	if c.from.IsZero() {
		c.from, c.last = at, at
	}
	if at.After(c.last) {
		c.last = at
	}
	return c.before + max(0, at.Sub(c.from))
}

func (c *clock) played() time.Duration { return c.before + c.last.Sub(c.from) }
