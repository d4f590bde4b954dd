package batch

import (
	"cmp"
	"slices"
	"time"
)

// Counts count batches and their lines.
type Counts struct {
	Created    int `json:"created"`    // batches, by this process
	Lost       int `json:"lost"`       // batches that do not exist any more: maybe paid for nothing
	Missing    int `json:"missing"`    // lines without a result: maybe paid for nothing
	Duplicate  int `json:"duplicate"`  // results beyond the first of a line
	Unknown    int `json:"unknown"`    // results of unknown lines
	Unreadable int `json:"unreadable"` // results that could not be read
}

// Progress is the state of all batches.
type Progress struct {
	Wave   int `json:"wave"`   // number of the current wave, from 1
	Queued int `json:"queued"` // calls that wait to be sent
	Counts
	Open []Standing `json:"open,omitempty"` // by provider, then age
}

// Standing is the state of one batch. The last three numbers are the provider's: Anthropic's stay
// zero until the end.
type Standing struct {
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	ID       string    `json:"id,omitempty"` // empty until it is created
	Began    time.Time `json:"began"`
	Expires  time.Time `json:"expires,omitzero"`
	Phase    Phase     `json:"phase,omitempty"`
	Lines    int       `json:"lines"`
	Waiting  int       `json:"waiting"` // lines that calls wait for
	Bytes    int64     `json:"bytes,omitempty"`
	Total    int       `json:"total"`
	Answered int       `json:"answered"`
	Failed   int       `json:"failed"`
	Trouble  string    `json:"trouble,omitempty"` // the last error when asking the provider
}

// Progress returns the state of all batches.
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
