package journal

import (
	"context"

	"parley/world"
)

// Parts is a run that can be read in parts, to save memory. InParts makes one of any journal.
type Parts interface {
	// Plan returns how the run began, or nil, and its stages from number after on. How the run
	// began may be left out if after is not 0.
	Plan(ctx context.Context, after int) (*Begun, []Staged, error)
	// Planned lists up to limit episodes, by number, beginning with from.
	Planned(ctx context.Context, from, limit int) ([]Planned, error)
	// Ends lists the ends of episodes in the order in which they were committed, from entry number
	// since on.
	Ends(ctx context.Context, since int) ([]End, error)
	// Read is Journal's.
	Read(ctx context.Context, in Span, each func(Entry) error) error
}

// Planned is an episode that the plan asked for.
type Planned struct {
	Episode, Stage int
	Spec           world.Spec
	Ended          *Ended // nil: it has not ended
}

// End is the end of an episode.
type End struct {
	Entry   int // its number in the journal, from 1
	Episode int
}

// InParts returns j itself if it is a Parts, as a run file is. Otherwise Ends reads every entry.
func InParts(j Journal) Parts {
	if p, ok := j.(Parts); ok {
		return p
	}
	return &whole{Journal: j}
}

// whole is a journal that is read as a whole.
type whole struct {
	Journal
	head *Head // at the last call of Ends
}

func (w *whole) read(ctx context.Context) (err error) {
	if w.head == nil {
		w.head, err = w.Head(ctx)
	}
	return err
}

func (w *whole) Plan(ctx context.Context, after int) (*Begun, []Staged, error) {
	if err := w.read(ctx); err != nil {
		return nil, nil, err
	}
	return w.head.Begun, w.head.Stages[min(after, len(w.head.Stages)):], nil
}

func (w *whole) Planned(ctx context.Context, from, limit int) (out []Planned, err error) {
	if err := w.read(ctx); err != nil {
		return nil, err
	}
	for _, stage := range w.head.Stages {
		for i := max(0, from-stage.First); i < stage.Specs.Len() && len(out) < limit; i++ {
			p := Planned{Episode: stage.First + i, Stage: stage.Stage, Spec: stage.Specs.At(i)}
			if p.Ended, err = w.head.Ended.Outcome(ctx, w.Journal, p.Episode); err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

func (w *whole) Ends(ctx context.Context, since int) (out []End, err error) {
	n := max(1, since)
	err = w.Read(ctx, Span{Since: n}, func(e Entry) error {
		if e, ok := e.(*Ended); ok {
			out = append(out, End{Entry: n, Episode: e.Episode})
		}
		n++
		return nil
	})
	w.head = nil // so that later stages and outcomes are seen
	return out, err
}
