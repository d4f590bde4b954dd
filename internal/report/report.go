// Package report makes something to read of runs: tables for a terminal, JSON and CSV,
// and one HTML page with charts that needs nothing else.
//
// It knows no kind of world: what a kind wants to show comes as world.Exhibit, which is
// plain data, and its intervals are computed here. Whatever models said stays text,
// however hostile; the page runs no script but its own, and fetches nothing. What is too
// much for a page is cut, and the page says so.
//
// The flow: Build makes a Document of views; a file for each of its sections. The rest
// shows documents: html.go, csv.go, and package cli in the terminal.
//
// It is not for computing statistics (package stats) or for drawing (package chart).
package report

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"parley/internal/report/page"
	"parley/internal/view"
	"parley/journal"
	"parley/world"
)

// Source is a run to report on.
type Source struct {
	Run     *view.Run
	Journal journal.Journal
	Kind    world.Kind // zero: not one that is known
	// Parts are the runs that Run was merged of. Nil: it is one run.
	Parts []Part
	Notes []string // on how they were merged
}

// Part is a run that is read as one with others.
type Part struct {
	Name string
	Run  *view.Run
	// Episodes is how many of its episodes count, since no earlier part has them.
	Episodes int
}

// Options say how much of a run goes into a report.
type Options struct {
	Tool        string // what makes the report
	Episodes    int    // rows of the table of episodes
	Transcripts int    // episodes whose transcripts are there
	// By are the factors to group scores by: see view.Factors. Default: none.
	By []string
}

// Build makes a report of one run, or of several side by side.
func Build(ctx context.Context, sources []Source, o Options) (*page.Document, error) {
	d := &page.Document{Title: title(sources), Made: o.Tool}
	names := Names(sources)
	runs := make([]*view.Run, len(sources))
	for i, s := range sources {
		runs[i] = s.Run
	}
	factors, err := view.FactorsOf(runs, names, o.By)
	if err != nil {
		return nil, err
	}
	for i, s := range sources {
		colours := newPalette(s.Run, s.Kind)
		if style := colours.style(); !strings.Contains(string(d.Style), string(style)) {
			d.Style += style
		}
		sections, err := build(ctx, s, o, factors.Only(i), names[i], len(sources) > 1, colours)
		if err != nil {
			return nil, err
		}
		if len(sources) > 1 {
			for j := range sections {
				sections[j].Label(names[i])
			}
		}
		d.Join(sections)
	}
	return d, nil
}

func title(sources []Source) string {
	var names []string
	for _, s := range sources {
		for _, p := range s.parts() {
			names = append(names, filepath.Base(p.Run.File))
		}
	}
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d other runs", names[0], len(names)-1)
	}
	return strings.Join(names, ", ")
}

// Names tells runs apart: by file, or by its whole path where files have one name.
func Names(sources []Source) []string {
	seen := map[string]int{}
	for _, s := range sources {
		seen[filepath.Base(s.Run.File)]++
	}
	var out []string
	for _, s := range sources {
		name := filepath.Base(s.Run.File)
		if seen[name] > 1 {
			name = s.Run.File
		}
		out = append(out, name)
	}
	return out
}

// parts are the runs of a source: itself, where it is one run.
func (s Source) parts() []Part {
	if s.Parts == nil {
		return []Part{{Run: s.Run}}
	}
	return s.Parts
}

// build makes the sections of one run.
func build(ctx context.Context, s Source, o Options, factors *view.Factors, name string, several bool, colours *palette) ([]page.Section, error) {
	sections := []page.Section{headline(s, several), scores(s.Run, colours)}
	if b := ratings(s, colours); b.Table != nil {
		sections[1].Blocks = append(sections[1].Blocks, b)
	}
	if len(o.By) > 0 {
		sections = append(sections, byFactors(s.Run, factors, colours))
	}
	recorded, isRecord := s.Run.Recorded()
	switch b := s.Run.Head.Begun; {
	case isRecord:
		sections = append(sections, sessions(s.Run, recorded, o.Episodes))
	case s.Kind.Name == "":
		sections = append(sections, page.Section{ID: KindSection, Title: "The kind", Text: fmt.Sprintf("This program does not know version %d of the kind %s: what the kind itself has to show is left out.", b.KindVersion, b.Kind)})
	default:
		if kind := exhibits(s, colours); len(kind.Blocks) > 0 {
			sections = append(sections, kind)
		}
	}
	sections = append(sections, calls(s.Run), times(s.Run))
	talk, err := transcripts(ctx, s, o.Transcripts, name, colours)
	if err != nil {
		return nil, err
	}
	sections = append(sections, episodes(s.Run, o.Episodes, talk, name), talk, reproduce(s))
	return sections, nil
}
