package training

import (
	"context"

	"parley/internal/run/runfile"
	"parley/journal"
)

// memory is a run in memory as a Source.
type memory struct{ journal.Memory }

func (m *memory) Plan(ctx context.Context, after int) (*journal.Begun, []journal.Staged, error) {
	head, err := m.Head(ctx)
	return head.Begun, head.Stages[min(after, len(head.Stages)):], err
}

func (m *memory) List(ctx context.Context, want runfile.Listing) (out []runfile.Listed, err error) {
	head, err := m.Head(ctx)
	for _, stage := range head.Stages {
		for i := max(0, want.From-stage.First); i < stage.Specs.Len() && len(out) < want.Limit && err == nil; i++ {
			l := runfile.Listed{Episode: stage.First + i, Stage: stage.Stage, Spec: stage.Specs.At(i)}
			l.Ended, err = head.Ended.Outcome(ctx, m, l.Episode)
			out = append(out, l)
		}
	}
	return out, err
}

func (m *memory) Ends(ctx context.Context, since int) (out []runfile.End, err error) {
	n := max(1, since)
	err = m.Read(ctx, journal.Span{Since: n}, func(e journal.Entry) error {
		if e, ok := e.(*journal.Ended); ok {
			out = append(out, runfile.End{Entry: n, Episode: e.Episode})
		}
		n++
		return nil
	})
	return out, err
}
