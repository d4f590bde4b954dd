package app

import (
	"cmp"
	"context"
	"errors"

	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
)

// Moment is a moment of an episode that a check played, as its kind tells it.
type Moment struct {
	Title string `json:"title"`
	Lines []Line `json:"lines"`
}

// Line is one thing that happened in it.
type Line struct {
	Who  string `json:"who,omitempty"` // a seat; empty: the world
	To   string `json:"to,omitempty"`
	Text string `json:"text"`
}

// errFound ends the search for an episode.
var errFound = errors.New("found")

// story tells the first episode in j that did not fail or, if all did, the first. It is told also where a part of the kind
// fails: failed names it, and is one of results.Call.
func story(ctx context.Context, j journal.Journal, kind world.Kind) (moments []Moment, failed, err error) {
	head, err := j.Head(ctx)
	if err != nil {
		return nil, nil, err
	}
	var found *journal.Ended
	err = j.Read(ctx, journal.Whole(), func(e journal.Entry) error {
		ended, ok := e.(*journal.Ended)
		switch {
		case !ok:
			return nil
		case ended.Outcome.Failed == "":
			found = ended
			return errFound
		case found == nil:
			found = ended
		}
		return nil
	})
	if found == nil || err != nil && !errors.Is(err, errFound) {
		return nil, nil, err
	}
	read, err := results.Read(ctx, j, head, kind, found.Episode)
	if err != nil {
		return nil, nil, err
	}
	failed = read.Mark(kind)
	spec, _ := results.Outcomes(head, kind).Spec(found.Episode)
	exhibits, err := read.Story(kind, world.Played{Episode: found.Episode, Spec: spec, Outcome: found.Outcome})
	failed, moments = cmp.Or(err, failed, read.Failed), []Moment{}
	for _, e := range exhibits {
		replay, ok := e.Show.(world.Replay)
		if !ok {
			continue
		}
		for _, f := range replay.Frames {
			m := Moment{Title: f.Title, Lines: []Line{}}
			for _, l := range f.Lines {
				m.Lines = append(m.Lines, Line{l.Who, l.To, l.Text})
			}
			moments = append(moments, m)
		}
	}
	return moments, failed, nil
}
