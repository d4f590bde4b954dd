package results

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"parley/internal/kit/sketch"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// AccountKey is what calls are grouped by.
type AccountKey struct {
	Kind  string // ask, bot, act or program
	Agent string
	Model string // as requested; only of an ask
	Seat  string
	Label string // the kind's name for the purpose of the call
}

// Account counts some replies, and how they were obtained. One that was copied from another run counts, but costs nothing here.
type Account struct {
	journal.Spending
	Reused   int // see journal.Replied.Reused
	Retried  int // needed more than one try
	Native   int // structured answers that could be read directly
	Tolerant int // … with the tolerant parser
	Repaired int // … after asking again
	Invalid  int // … and that could not be read
	Cut      int // ended at max_tokens
	Refused  int
}

// KeyedAccount is the account of one key.
type KeyedAccount struct {
	AccountKey
	Account
}

// Rollup adds up accounts by key, after by has removed parts of the key. They are sorted by key, asks first.
func (r *Run) Rollup(by func(AccountKey) AccountKey) []KeyedAccount {
	sums := map[AccountKey]*Account{}
	for _, a := range r.Accounts {
		k := by(a.AccountKey)
		if sums[k] == nil {
			sums[k] = &Account{}
		}
		sums[k].plus(a.Account)
	}
	return sortAccounts(sums)
}

// Total returns the account of all replies.
func (r *Run) Total() (all Account) {
	for _, a := range r.Accounts {
		all.plus(a.Account)
	}
	return all
}

func sortAccounts(sums map[AccountKey]*Account) []KeyedAccount {
	out := make([]KeyedAccount, 0, len(sums))
	for k, a := range sums {
		out = append(out, KeyedAccount{k, *a})
	}
	kinds := []string{journal.Ask, journal.Act, journal.Bot, journal.Program}
	slices.SortFunc(out, func(a, b KeyedAccount) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Seat, b.Seat), cmp.Compare(a.Label, b.Label))
	})
	return out
}

func (a *Account) plus(b Account) {
	for _, f := range []struct {
		to   *int
		from int
	}{
		{&a.Reused, b.Reused}, {&a.Retried, b.Retried}, {&a.Native, b.Native}, {&a.Tolerant, b.Tolerant},
		{&a.Repaired, b.Repaired}, {&a.Invalid, b.Invalid}, {&a.Cut, b.Cut}, {&a.Refused, b.Refused},
	} {
		*f.to += f.from
	}
	a.Spending = a.Plus(b.Spending)
}

// add counts one reply.
func (a *Account) add(e *journal.Replied) {
	meta := e.Metadata()
	a.Add(e)
	a.Retried += oneIf(meta.Attempts > 1)
	a.Reused += oneIf(e.Reused())
	a.Native += oneIf(meta.Parsed == "native")
	a.Tolerant += oneIf(meta.Parsed == "tolerant")
	a.Repaired += oneIf(meta.Parsed == "repaired")
	if e.Error != nil {
		a.Invalid += oneIf(slices.Contains([]llm.Kind{llm.KindInvalid, llm.KindMalformed, llm.KindCutOff}, e.Error.Kind))
		a.Cut += oneIf(e.Error.Kind == llm.KindCutOff)
		a.Refused += oneIf(e.Error.Kind == llm.KindRefused)
		return
	}
	if e.Response != nil {
		a.Cut += oneIf(e.Response.Finish == llm.FinishLength)
		a.Refused += oneIf(e.Response.Finish == llm.FinishRefused)
	}
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// ModelTimes is how long the answers of a model took, without those from a cache.
type ModelTimes struct {
	Model     string
	Latency   sketch.Sketch // of the last attempt
	FirstByte sketch.Sketch
	Waited    sketch.Sketch // in queues before
}

func (t *ModelTimes) add(meta llm.Metadata) {
	t.Latency.Add(meta.Latency)
	t.Waited.Add(meta.Waited)
	if meta.FirstByte > 0 {
		t.FirstByte.Add(meta.FirstByte)
	}
}

// Batch is a batch at a provider.
type Batch struct {
	Key      string        `json:"key"`
	Provider string        `json:"provider"`
	Model    string        `json:"model"`
	Lines    int           `json:"lines"`
	Worst    llm.Money     `json:"worst_usd"`
	Sent     time.Time     `json:"sent"`
	Took     time.Duration `json:"took_ns"`          // until it was closed
	Closed   string        `json:"closed,omitempty"` // why; empty while it is open
}

// accountBuilder builds the accounts of a run.
type accountBuilder struct {
	run      *Run
	accounts map[AccountKey]*Account
	times    map[string]*ModelTimes
	failures failureCounts
	batches  map[string]*Batch
	clock    clock
}

func newAccountBuilder(r *Run) *accountBuilder {
	return &accountBuilder{
		run: r, accounts: map[AccountKey]*Account{}, times: map[string]*ModelTimes{},
		failures: failureCounts{}, batches: map[string]*Batch{},
	}
}

// add adds an entry.
func (b *accountBuilder) add(e journal.Entry) error {
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

func (b *accountBuilder) reply(e *journal.Replied) {
	k := keyOf(e)
	if b.accounts[k] == nil {
		b.accounts[k] = &Account{}
	}
	b.accounts[k].add(e)
	if b.has(e.Episode) {
		b.run.Spent[e.Episode].Add(e)
	}
	b.failures.Add(e)
	if e.Copied {
		return // it was answered in another run, at another time
	}
	at, meta := b.clock.see(e.At), e.Metadata()
	b.run.Timeline.add(at, e)
	b.addTimes(e, at, meta)
	if e.Request != nil && e.Error == nil && !e.Reused() {
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
func (b *accountBuilder) has(episode int) bool {
	r := b.run
	if limit := min(r.Episodes.Total, r.Head.Ended.Len()+len(r.Head.Playing)+maxApart); episode < 0 || episode >= limit {
		return false
	}
	for len(r.Spent) <= episode {
		r.Spent, r.took = append(r.Spent, journal.Spending{}), append(r.took, world.Took{})
	}
	return true
}

// took returns the times of an attempt at an episode, or nil if a later attempt is known.
func (b *accountBuilder) took(episode, attempt int) *world.Took {
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

// addTimes adds the times of a call that was answered at the given time.
func (b *accountBuilder) addTimes(e *journal.Replied, at time.Duration, meta llm.Metadata) {
	t := b.took(e.Episode, e.Attempt)
	if t == nil {
		return
	}
	if t.Began == 0 {
		t.Began = max(0, at-meta.Latency-meta.Waited).Seconds()
	}
	t.Ended = at.Seconds()
	usage := e.Usage()
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

func keyOf(e *journal.Replied) AccountKey {
	k := AccountKey{Kind: e.Kind(), Agent: e.Agent, Seat: e.Seat, Label: e.Label}
	if k.Kind == journal.Ask {
		k.Model = world.ModelName(e.Request.Model)
	}
	return k
}

func (b *accountBuilder) batch(e *journal.Batched) {
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
func (b *accountBuilder) close() {
	r := b.run
	r.Played = b.clock.played()
	r.Accounts = sortAccounts(b.accounts)
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

// Timeline counts calls over the time played, in a limited number of equal parts.
type Timeline struct {
	Width time.Duration // of a part
	Parts []journal.Spending
}

// The maximum number of parts, and their first width.
const (
	timelineParts = 120
	timelineWidth = 10 * time.Millisecond
)

// add counts a reply. While its time is beyond the last part, it joins parts: the width is 10 ms times a power of two.
func (t *Timeline) add(at time.Duration, e *journal.Replied) {
	if t.Width == 0 {
		t.Width = timelineWidth
	}
	for at/t.Width >= timelineParts && t.Width < math.MaxInt64/2 {
		t.Width *= 2
		for i := range t.Parts {
			if i%2 == 1 {
				t.Parts[i/2] = t.Parts[i/2].Plus(t.Parts[i])
			} else {
				t.Parts[i/2] = t.Parts[i]
			}
		}
		t.Parts = t.Parts[:(len(t.Parts)+1)/2]
	}
	i := min(int(at/t.Width), timelineParts-1)
	for len(t.Parts) <= i {
		t.Parts = append(t.Parts, journal.Spending{})
	}
	t.Parts[i].Add(e)
}
