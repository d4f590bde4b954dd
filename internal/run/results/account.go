package results

import (
	"cmp"
	"slices"
	"time"

	"parley/internal/kit/sketch"
	"parley/journal"
	"parley/llm"
)

// Key is what calls are grouped by.
type Key struct {
	Kind  string `json:"kind"` // ask, bot or act
	Agent string `json:"agent"`
	Model string `json:"model"` // as requested; only of an ask
	Seat  string `json:"seat"`
	Label string `json:"label"` // the kind's name for the purpose of the call
}

// Account counts some calls and their cost. A call that was copied from another run counts, but costs nothing here.
type Account struct {
	Calls    int       `json:"calls"`
	Failed   int       `json:"failed"`
	Cached   int       `json:"cached"`  // answered from our own cache, or with an equal call in flight
	Copied   int       `json:"copied"`  // from the run this one was forked from
	Retried  int       `json:"retried"` // needed more than one try
	Tries    int       `json:"tries"`
	Native   int       `json:"native"`   // structured answers that could be read directly
	Tolerant int       `json:"tolerant"` // … with the tolerant parser
	Repaired int       `json:"repaired"` // … after asking again
	Invalid  int       `json:"invalid"`  // … and that could not be read
	Cut      int       `json:"cut"`      // ended at max_tokens
	Refused  int       `json:"refused"`
	Usage    llm.Usage `json:"usage"`
	Cost     llm.Money `json:"cost_usd"`
}

// KeyedAccount is the account of one key.
type KeyedAccount struct {
	Key
	Account
}

// Rollup adds up accounts by key, after by has removed parts of the key. They are sorted by key, asks first.
func (r *Run) Rollup(by func(Key) Key) []KeyedAccount {
	sums := map[Key]*Account{}
	for _, a := range r.Accounts {
		k := by(a.Key)
		if sums[k] == nil {
			sums[k] = &Account{}
		}
		sums[k].plus(a.Account)
	}
	return sorted(sums)
}

// Total returns the account of all calls of a kind: ask, act or bot.
func (r *Run) Total(kind string) (all Account) {
	for _, a := range r.Accounts {
		if a.Kind == kind {
			all.plus(a.Account)
		}
	}
	return all
}

func sorted(sums map[Key]*Account) []KeyedAccount {
	out := make([]KeyedAccount, 0, len(sums))
	for k, a := range sums {
		out = append(out, KeyedAccount{k, *a})
	}
	rank := map[string]int{"ask": 0, "act": 1, "bot": 2}
	slices.SortFunc(out, func(a, b KeyedAccount) int {
		return cmp.Or(cmp.Compare(rank[a.Kind], rank[b.Kind]), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Seat, b.Seat), cmp.Compare(a.Label, b.Label))
	})
	return out
}

func (a *Account) plus(b Account) {
	for _, f := range []struct {
		to   *int
		from int
	}{
		{&a.Calls, b.Calls}, {&a.Failed, b.Failed}, {&a.Cached, b.Cached}, {&a.Copied, b.Copied}, {&a.Retried, b.Retried},
		{&a.Tries, b.Tries}, {&a.Native, b.Native}, {&a.Tolerant, b.Tolerant}, {&a.Repaired, b.Repaired},
		{&a.Invalid, b.Invalid}, {&a.Cut, b.Cut}, {&a.Refused, b.Refused},
	} {
		*f.to += f.from
	}
	a.Usage = a.Usage.Plus(b.Usage)
	a.Cost = a.Cost.Plus(b.Cost)
}

// add counts one reply.
func (a *Account) add(e *journal.Replied) {
	usage, meta := spentOn(e)
	a.Calls++
	a.Tries += meta.Attempts
	a.Retried += count(meta.Attempts > 1)
	a.Cached += count(meta.Cached || meta.Coalesced)
	a.Copied += count(e.Copied)
	a.Cost = a.Cost.Plus(e.Cost())
	a.Usage = a.Usage.Plus(usage)
	a.Native += count(meta.Parsed == "native")
	a.Tolerant += count(meta.Parsed == "tolerant")
	a.Repaired += count(meta.Parsed == "repaired")
	if e.Error != nil {
		a.Failed++
		a.Invalid += count(slices.Contains([]llm.Kind{llm.KindInvalid, llm.KindMalformed, llm.KindCutOff}, e.Error.Kind))
		a.Cut += count(e.Error.Kind == llm.KindCutOff)
		a.Refused += count(e.Error.Kind == llm.KindRefused)
		return
	}
	if e.Response != nil {
		a.Cut += count(e.Response.Finish == llm.FinishLength)
		a.Refused += count(e.Response.Finish == llm.FinishRefused)
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// spentOn returns the usage of a reply and its metadata. The usage is empty if no model was asked.
func spentOn(e *journal.Replied) (usage llm.Usage, meta llm.Metadata) {
	switch {
	case e.Error != nil:
		usage, meta = e.Error.Usage, e.Error.Metadata
	case e.Response != nil:
		usage, meta = e.Response.Usage, e.Response.Metadata
	}
	if e.Copied || meta.Cached || meta.Coalesced {
		usage = llm.Usage{}
	}
	return usage, meta
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

// Spending is the calls, tokens and cost of an episode.
type Spending struct {
	Calls  int       `json:"calls"` // of models and people
	Acts   int       `json:"acts,omitempty"`
	Tokens int       `json:"tokens"`
	Cost   llm.Money `json:"cost_usd"`
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
