package batcher

import (
	"cmp"
	"slices"
	"time"

	"parley/internal/batch"
)

// Counts are what became of batches and their lines so far.
type Counts struct {
	Created    int `json:"created"`    // batches, by this process
	Lost       int `json:"lost"`       // batches that were there and are gone: perhaps paid for nothing
	Missing    int `json:"missing"`    // lines without a result: perhaps paid for nothing
	Duplicate  int `json:"duplicate"`  // results beyond the first of a line
	Unknown    int `json:"unknown"`    // results of lines that are not ours
	Unreadable int `json:"unreadable"` // results that could not be read
}

// Progress is how things stand with batches.
type Progress struct {
	Wave   int `json:"wave"`   // how many waves there were, this one included
	Queued int `json:"queued"` // calls that wait to be sent
	Counts
	Open []Standing `json:"open,omitempty"` // by provider, then age
}

// Standing is how things stand with one batch. The last three numbers are the provider's:
// Anthropic's stay zero until the end.
type Standing struct {
	Provider string      `json:"provider"`
	Model    string      `json:"model"`
	ID       string      `json:"id,omitempty"` // empty until it is created
	Began    time.Time   `json:"began"`
	Expires  time.Time   `json:"expires,omitzero"`
	Phase    batch.Phase `json:"phase,omitempty"`
	Lines    int         `json:"lines"`
	Waiting  int         `json:"waiting"` // lines that calls wait for
	Bytes    int64       `json:"bytes,omitempty"`
	Total    int         `json:"total"`
	Answered int         `json:"answered"`
	Failed   int         `json:"failed"`
	Trouble  string      `json:"trouble,omitempty"` // when the provider was last asked
}

// Progress returns how things stand.
func (o *Batcher) Progress() Progress {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := Progress{Wave: o.waves, Queued: o.pending, Counts: o.counts}
	for _, t := range o.batches {
		p.Open = append(p.Open, Standing{
			Provider: t.Provider, Model: t.Model, ID: t.ID, Began: t.Began, Expires: t.state.Expires, Phase: t.state.Phase,
			Lines: len(t.Lines), Waiting: t.waiting, Bytes: t.bytes,
			Total: t.state.Total, Answered: t.state.Answered, Failed: t.state.Failed, Trouble: t.error,
		})
	}
	slices.SortFunc(p.Open, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID))
	})
	return p
}
