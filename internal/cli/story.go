package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/report"
	"parley/internal/read/score"
	"parley/internal/run/results"
	"parley/world"
)

// Story is an episode as its kind presents it.
type Story struct {
	File     string        `json:"file"`
	Episode  int           `json:"episode"`
	Frames   []world.Frame `json:"frames"`   // of all replays
	Exhibits []exhibit     `json:"exhibits"` // in the order of the story
	Texts    []score.Text  `json:"texts,omitempty"`
}

// exhibit is a part of a story, in words and numbers.
type exhibit struct {
	Name    string        `json:"name"`
	Title   string        `json:"title"`
	Caption string        `json:"caption,omitempty"`
	Text    string        `json:"text,omitempty"`
	Table   *report.Table `json:"table,omitempty"`
	frames  []world.Frame
}

// Story returns an episode's story part by part, without the pictures.
func (v *showReader) Story(ctx context.Context, episode int) (*Story, error) {
	kind, played, read, err := v.played(ctx, episode)
	if err != nil {
		return nil, err
	}
	story := &Story{File: v.File, Episode: played.Episode, Frames: []world.Frame{}, Exhibits: []exhibit{}}
	if err := read.Mark(kind); err != nil {
		v.Tell(err.Error())
	}
	exhibits, err := read.Story(kind, played)
	if err != nil {
		v.Tell(err.Error())
	}
	for _, e := range exhibits {
		b, ok := report.ExhibitBlock(e, &report.Palette{})
		if !ok {
			continue
		}
		shown := exhibit{Name: e.Name, Title: e.Title, Caption: b.Caption, Text: b.Text, Table: b.Table}
		if r, ok := e.Show.(world.Replay); ok {
			for _, f := range r.Frames {
				f.SVG = ""
				shown.frames = append(shown.frames, f)
			}
		}
		story.Frames = append(story.Frames, shown.frames...)
		story.Exhibits = append(story.Exhibits, shown)
	}
	story.Texts, err = v.texts(ctx, episode)
	return story, err
}

// texts returns what was written about an episode afterwards.
func (v *showReader) texts(ctx context.Context, episode int) ([]score.Text, error) {
	if v.About.Begun == nil {
		return nil, nil
	}
	return score.Texts(ctx, v.File, v.About.Begun.Run, episode)
}

// printTexts writes what was written about the episode afterwards.
func printTexts(p *terminal.Page, texts []score.Text) {
	for _, t := range texts {
		p.Line()
		p.Put(terminal.InkHead, terminal.OneLine("asked afterwards: "+t.Scorer+", "+t.Question))
		p.Line()
		p.Put(terminal.InkFaint, terminal.OneLine(t.By()))
		p.Line()
		p.Quote("  ", t.Text)
	}
}

// played returns an episode in the form that its kind presents.
func (v *showReader) played(ctx context.Context, episode int) (kind world.Kind, p world.Played, read *results.Transcript, err error) {
	t, err := v.transcript(ctx, episode)
	if err != nil {
		return kind, p, nil, err
	}
	head, err := v.Store.Head(ctx)
	if err != nil {
		return kind, p, nil, err
	}
	if read, err = results.Read(ctx, v.Store, head, v.Kind, t.Episode); err != nil {
		return kind, p, nil, err
	}
	p = world.Played{Episode: t.Episode, Spec: world.Spec{Kind: head.Begun.Kind, Params: t.Params, Lineup: t.Lineup, Deal: t.Deal, Cell: t.Cell}}
	if t.Outcome != nil {
		p.Outcome = world.Outcome{Failed: t.Outcome.Failed, Data: t.Outcome.Data, Scores: t.Outcome.scores}
	}
	return v.Kind, p, read, nil
}

// Board returns the picture of a phase as SVG.
func (v *showReader) Board(ctx context.Context, episode int, phase string) (svg string, err error) {
	kind, played, read, err := v.played(ctx, episode)
	if err != nil {
		return "", err
	}
	var names []string
	files, err := read.Files(kind, played)
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if stem, ok := strings.CutSuffix(name, ".svg"); ok {
			names = append(names, stem)
		}
	}
	if len(names) == 0 {
		return "", exit.Usagef("--board: %s has no pictures of episode %d", played.Spec.Kind, played.Episode)
	}
	pick := names[len(names)-1]
	if phase != "last" {
		i := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, "-"+phase) })
		if i < 0 {
			return "", exit.Usagef("--board %s: no such phase; there are %s", phase, strings.Join(names, ", "))
		}
		pick = names[i]
	}
	return files[pick+".svg"], nil
}

// Print prints the story.
func (t *Story) Print(p *terminal.Page) {
	p.Put(terminal.InkHead, fmt.Sprintf("episode %d", t.Episode))
	p.Put(terminal.InkPlain, " of "+t.File)
	p.Line()
	for _, e := range t.Exhibits {
		if e.frames == nil {
			printExhibit(p, e)
		}
		for _, f := range e.frames {
			p.Line()
			p.Put(terminal.InkHead, terminal.OneLine(f.Title))
			p.Line()
			for _, l := range f.Lines {
				printFrameLine(p, l)
			}
		}
	}
	printTexts(p, t.Texts)
}

// printExhibit writes a part of a story that is not a replay.
func printExhibit(p *terminal.Page, e exhibit) {
	p.Line()
	p.Put(terminal.InkHead, terminal.OneLine(e.Title))
	p.Line()
	if e.Caption != "" {
		p.Put(terminal.InkFaint, terminal.OneLine(e.Caption))
		p.Line()
	}
	if e.Text != "" {
		p.Quote("  ", e.Text)
	}
	if e.Table != nil && len(e.Table.Rows) > 0 {
		printTable(p, e.Table)
	}
}

// printFrameLine writes a speaker's words in a frame: the first line after the name, the others below it.
func printFrameLine(p *terminal.Page, l world.FrameLine) {
	who := l.Who
	if l.To != "" {
		who += " to " + l.To
	}
	first, rest, more := strings.Cut(strings.TrimSpace(l.Text), "\n")
	p.Put(terminal.InkName, "  "+terminal.OneLine(who))
	if l.Mark != "" {
		p.Put(terminal.InkBad, "  * "+terminal.OneLine(l.Mark))
		p.Line()
		p.Quote("    ", strings.TrimSpace(l.Text))
		return
	}
	if who != "" {
		p.Put(terminal.InkPlain, ": ")
	}
	p.Line(terminal.OneLine(first))
	if more {
		p.Quote("    ", rest)
	}
}
