package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"parley/internal/report/exhibit"
	doc "parley/internal/report/page"
	"parley/internal/view"
	"parley/internal/view/transcript"
	"parley/world"
)

// shownStory is an episode as its kind tells it.
type shownStory struct {
	File     string         `json:"file"`
	Episode  int            `json:"episode"`
	Frames   []world.Frame  `json:"frames"`   // of all replays
	Exhibits []shownExhibit `json:"exhibits"` // in the order of the story
}

// shownExhibit is a part of a story, in words and numbers.
type shownExhibit struct {
	Name    string     `json:"name"`
	Title   string     `json:"title"`
	Caption string     `json:"caption,omitempty"`
	Text    string     `json:"text,omitempty"`
	Table   *doc.Table `json:"table,omitempty"`
	frames  []world.Frame
}

// story tells an episode part by part, without the pictures.
func (c *showCmd) story(ctx context.Context, s *State, v *shower) error {
	kind, played, read, err := v.played(ctx, *c.Episode)
	if err != nil {
		return err
	}
	if _, ok := world.As[world.Storyteller](kind); !ok {
		return usage("--story: %s does not tell its episodes: leave it away for the transcript", played.Spec.Kind)
	}
	told := &shownStory{File: v.file, Episode: played.Episode, Frames: []world.Frame{}, Exhibits: []shownExhibit{}}
	story, err := read.Story(kind, played)
	if err != nil {
		return err
	}
	for _, e := range story {
		b, ok := exhibit.Block(e, &exhibit.Palette{})
		if !ok {
			continue
		}
		shown := shownExhibit{Name: e.Name, Title: e.Title, Caption: b.Caption, Text: b.Text, Table: b.Table}
		if r, ok := e.Show.(world.Replay); ok {
			for _, f := range r.Frames {
				f.SVG = ""
				shown.frames = append(shown.frames, f)
			}
		}
		told.Frames = append(told.Frames, shown.frames...)
		told.Exhibits = append(told.Exhibits, shown)
	}
	return c.show(s, told, told.print)
}

// played is an episode as its kind wants it to show it.
func (v *shower) played(ctx context.Context, episode int) (kind world.Kind, p world.Played, read *transcript.Transcript, err error) {
	run, err := view.Fold(ctx, v.store, v.file)
	if err != nil {
		return kind, p, nil, err
	}
	run.Know(v.kind)
	t, err := v.transcript(ctx, episode)
	if err != nil {
		return kind, p, nil, err
	}
	if read, err = transcript.Read(ctx, v.store, run.Head, run.Kind(), t.Episode); err != nil {
		return kind, p, nil, err
	}
	p = world.Played{Episode: t.Episode, Spec: world.Spec{Kind: run.Head.Begun.Kind, Params: t.Params, Lineup: t.Lineup, Deal: t.Deal, Cell: t.Cell}}
	if t.Outcome != nil {
		p.Outcome = world.Outcome{Failed: t.Outcome.Failed, Data: t.Outcome.Data}
	}
	return v.kind, p, read, nil
}

// board writes the picture of a phase.
func (c *showCmd) board(ctx context.Context, s *State, v *shower) error {
	kind, played, read, err := v.played(ctx, *c.Episode)
	if err != nil {
		return err
	}
	var names []string
	files, err := read.Files(kind, played)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if stem, ok := strings.CutSuffix(name, ".svg"); ok {
			names = append(names, stem)
		}
	}
	if len(names) == 0 {
		return usage("--board: %s has no pictures of episode %d", played.Spec.Kind, played.Episode)
	}
	pick := names[len(names)-1]
	if c.Board != "last" {
		i := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, "-"+c.Board) })
		if i < 0 {
			return usage("--board %s: there is no such phase; there are %s", c.Board, strings.Join(names, ", "))
		}
		pick = names[i]
	}
	_, err = io.WriteString(s.Stdout, files[pick+".svg"])
	return err
}

func (t *shownStory) print(p *page) {
	p.put(inkHead, fmt.Sprintf("episode %d", t.Episode))
	p.put(inkPlain, " of "+t.File)
	p.line()
	for _, e := range t.Exhibits {
		if e.frames == nil {
			p.exhibit(e)
		}
		for _, f := range e.frames {
			p.line()
			p.put(inkHead, oneLine(f.Title))
			p.line()
			for _, l := range f.Lines {
				p.told(l)
			}
		}
	}
}

// exhibit writes a part of a story that is no replay.
func (p *page) exhibit(e shownExhibit) {
	p.line()
	p.put(inkHead, oneLine(e.Title))
	p.line()
	if e.Caption != "" {
		p.put(inkFaint, oneLine(e.Caption))
		p.line()
	}
	if e.Text != "" {
		p.quote("  ", e.Text)
	}
	if e.Table != nil && len(e.Table.Rows) > 0 {
		p.report(e.Table)
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
