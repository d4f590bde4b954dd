package cli

import (
	"context"
	"fmt"
	"strings"

	"parley/internal/view"
	"parley/world"
)

// shownStory is an episode as its kind tells it.
type shownStory struct {
	File    string        `json:"file"`
	Episode int           `json:"episode"`
	Frames  []world.Frame `json:"frames"`
}

// story tells an episode frame by frame, without the pictures.
func (c *showCmd) story(ctx context.Context, s *State, v *shower) error {
	run, err := view.Fold(ctx, v.store, v.file)
	if err != nil {
		return err
	}
	kind := kindOf(run)
	if kind.Replay == nil {
		return usage("--story: %s does not tell its episodes: leave it away for the transcript", run.Head.Begun.Kind)
	}
	t, err := v.transcript(ctx, *c.Episode)
	if err != nil {
		return err
	}
	read, err := view.ReadTranscript(ctx, v.store, run, t.Episode)
	if err != nil {
		return err
	}
	played := world.Played{Episode: t.Episode, Spec: world.Spec{Params: t.Params, Lineup: t.Lineup, Deal: t.Deal, Cell: t.Cell}}
	if t.Outcome != nil {
		played.Outcome = world.Outcome{Failed: t.Outcome.Failed, Data: t.Outcome.Data}
	}
	told := &shownStory{File: v.file, Episode: t.Episode}
	for _, e := range kind.Replay(played, read.Notes) {
		if r, ok := e.Show.(world.Replay); ok {
			for _, f := range r.Frames {
				f.SVG = ""
				told.Frames = append(told.Frames, f)
			}
		}
	}
	return c.show(s, told, told.print)
}

func (t *shownStory) print(p *page) {
	p.put(inkHead, fmt.Sprintf("episode %d", t.Episode))
	p.put(inkPlain, " of "+t.File)
	p.line()
	for _, f := range t.Frames {
		p.line()
		p.put(inkHead, oneLine(f.Title))
		p.line()
		for _, l := range f.Lines {
			p.told(l)
		}
	}
}

// told writes somebody's words in a frame: the first line behind the name, others below it.
func (p *page) told(l world.FrameLine) {
	who := l.Who
	if l.To != "" {
		who += " to " + l.To
	}
	first, rest, more := strings.Cut(strings.TrimSpace(l.Text), "\n")
	p.put(inkName, "  "+oneLine(who))
	if who != "" {
		p.put(inkPlain, ": ")
	}
	p.line(oneLine(first))
	if more {
		p.quote("    ", rest)
	}
}
