// Package report makes reports of runs and compares runs: tables for a terminal, JSON and CSV, and one self-contained HTML page
// with charts.
//
// It knows no kind of world: a kind provides its own part as exhibit.Exhibit, which is plain data. What models said stays text,
// however hostile. What is too long for a page is cut, and the page says so.
//
// Build makes a Document of runs: scores.go, calls.go, episodes.go, exhibits.go, factorial.go and agreement.go have its sections.
// Compare makes a CompareResult, and compare_words.go puts that into a Document. A Document (document.go, table.go) knows nothing of
// runs; html.go writes it as a page, and package cli prints it in the terminal.
package report

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/read/score"
	"parley/internal/run/label"
	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
)

// Source is a run to report on.
type Source struct {
	Run     *results.Run
	Journal journal.Journal
	Kind    world.Kind // zero if unknown
	Labels  *label.Set // what is attached to Run; Build does not need it
	Judged  score.Judged
	// Parts are the runs that were merged into Run. It is nil for a single run.
	Parts []Part
	Notes []string // about the merge

	problems *problems
}

// problems has an error for each part of a kind that failed, without duplicates.
type problems []string

func (p *problems) note(err error) {
	if err != nil && !slices.Contains(*p, err.Error()) {
		*p = append(*p, err.Error())
	}
}

// Part is one of several runs that are merged.
type Part struct {
	Name string
	Run  *results.Run
	// Episodes is the number of its episodes that no earlier part has.
	Episodes int
}

// Options limit and shape a report.
type Options struct {
	Tool        string // the program that makes the report
	Episodes    int    // maximum rows of the table of episodes
	Transcripts int    // maximum number of transcripts
	// By lists the factors to group scores by: see results.Factors. Default: none.
	By []string
}

// Build makes a report of one run, or of several runs side by side.
func Build(ctx context.Context, sources []Source, o Options) (*Document, error) {
	d := &Document{Title: reportTitle(sources), Made: o.Tool}
	names := Names(sources)
	runs := make([]*results.Run, len(sources))
	for i, s := range sources {
		runs[i] = s.Run
	}
	factors, err := results.FactorsOf(runs, names, o.By)
	if err != nil {
		return nil, err
	}
	for i, s := range sources {
		s.problems = &problems{}
		colours := NewPalette(s.Run, s.Kind)
		s.problems.note(colours.Failed)
		if style := colours.Style(); !strings.Contains(string(d.Style), string(style)) {
			d.Style += style
		}
		sections, err := build(ctx, s, o, factors.Only(i), names[i], len(sources) > 1, colours)
		if err != nil {
			return nil, err
		}
		if s.Run.Biased() {
			Caution(sections, results.BiasedNote)
		}
		if len(sources) > 1 {
			for j := range sections {
				sections[j].Label(names[i])
			}
		}
		d.Join(sections)
		d.Problems = append(d.Problems, *s.problems...)
	}
	return d, nil
}

func reportTitle(sources []Source) string {
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

// Names returns a name for each run: the base name of its file, or the whole path if two files have the same base name.
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

// parts returns the runs of a source.
func (s Source) parts() []Part {
	if s.Parts == nil {
		return []Part{{Run: s.Run}}
	}
	return s.Parts
}

// build returns the sections of one run.
func build(ctx context.Context, s Source, o Options, factors *results.Factors, name string, several bool, colours *Palette) ([]Section, error) {
	recorded, isRecord := s.Run.Recorded()
	var made exhibitsWaiter
	if !isRecord && s.Kind.Name != "" {
		s.Run.FindUnits()                                   // first: both read the run
		made = startExhibits(ctx, s.Kind, s.Run, s.Journal) // takes as long as the scores
	}
	sections := []Section{headline(s, several), scores(s.Run, colours)}
	if b := ratings(s, colours); b.Table != nil {
		sections[1].Blocks = append(sections[1].Blocks, b)
	}
	if b := passBlock(s.Run, colours); b.Table != nil {
		sections[1].Blocks = append(sections[1].Blocks, b)
	}
	sections[1].Blocks = append(sections[1].Blocks, agreementBlocks(s.Run, s.Judged)...)
	if len(o.By) > 0 {
		sections = append(sections, byFactors(s.Run, factors, colours))
	}
	switch b := s.Run.Head.Begun; {
	case isRecord:
		section, err := sessions(ctx, s, recorded, o.Episodes)
		if err != nil {
			return nil, err
		}
		sections = append(sections, section)
	case made == nil && len(b.Code) > 0: // code of a plan has no exhibits
	case made == nil:
		sections = append(sections, Section{ID: KindSection, Title: "The kind", Text: fmt.Sprintf("This program does not know version %d of the kind %s. The exhibits of the kind are left out.", b.KindVersion, b.Kind)})
	default:
		kind, err := exhibitsSection(s, made, colours)
		if err != nil {
			return nil, err
		}
		if len(kind.Blocks) > 0 {
			sections = append(sections, kind)
		}
	}
	sections = append(sections, calls(s.Run), times(s.Run))
	talk, err := transcripts(ctx, s, o.Transcripts, name, colours)
	if err != nil {
		return nil, err
	}
	if failed := *s.problems; len(failed) > 0 {
		sections = append(sections, Section{ID: "problems", Title: "Left out", Text: "Parts of the kind failed. What they show is left out.", Blocks: []Block{{List: failed}}})
	}
	sections = append(sections, episodes(s.Run, o.Episodes, talk, name), talk, reproduce(s))
	return sections, nil
}
