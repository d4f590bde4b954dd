package viewer

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"parley/internal/kit/text"
	"parley/internal/read/report"
	"parley/internal/read/score"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
)

// runStatistics is the statistics of a run at some moment. Computing them reads all its calls, so it is done in the
// background, and again when the run has grown, but for at most a tenth of the time.
type runStatistics struct {
	Document *report.Document // nil: not computed yet
	Sections []report.Section // of the document, for the page of the run
	Short    bool             // the document has more
	Result   result           // of the document
	Entries  int              // of the run, when Document was made
	Err      error
	Busy     bool
	Large    bool // it is computed only if asked for: see Ask

	asked bool
	at    time.Time     // when it was computed
	took  time.Duration // to compute it
}

// statisticsCache computes the statistics of runs, which keep them.
type statisticsCache struct {
	Tool string // the program's name and version
	// Background runs a function in the background.
	Background func(func(context.Context))
	// Wait means that Latest computes what is not there yet.
	Wait bool

	mu sync.Mutex // guards the statistics of runs
}

// Latest returns the latest statistics of a run, and computes newer ones in the background if it has more entries.
func (b *statisticsCache) Latest(ctx context.Context, r *Run, entries int) runStatistics {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &r.statistics
	s.Large = entries > maxEntries && !b.Wait
	if s.Large && !s.asked {
		return *s
	}
	due := s.at.Add(max(time.Second, 10*s.took))
	if s.Busy || s.Entries == entries || !time.Now().After(due) {
		return *s
	}
	s.Busy = true
	if b.Wait {
		b.mu.Unlock()
		b.compute(ctx, r, entries)
		b.mu.Lock()
		return *s
	}
	b.Background(func(ctx context.Context) { b.compute(ctx, r, entries) })
	return *s
}

// maxEntries is of how many entries statistics are computed without asking. Those of a million episodes need gigabytes.
const maxEntries = 400_000

// Ask says that the statistics of a run are wanted, however large it is.
func (b *statisticsCache) Ask(r *Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.statistics.asked = true
}

// compute computes the statistics of a run, and tells its pages.
func (b *statisticsCache) compute(ctx context.Context, r *Run, entries int) {
	began := time.Now()
	document, folded, err := buildReport(ctx, r, report.Options{Tool: b.Tool})
	var sections []report.Section
	var short bool
	var outcome result
	if err == nil {
		outcome = resultOf(document, folded)
		outcome.Trouble, outcome.Costs = trouble(folded), costs(folded)
		for _, name := range outcome.names() {
			if outcome.Course = courseOf(folded, r.Kind, name); outcome.Course != nil || outcome.Drawn != nil {
				break // without a picture of the main measure, the first that has a course is one
			}
		}
		sections, short, err = shortSections(document)
	}
	b.mu.Lock()
	r.statistics = runStatistics{Document: document, Sections: sections, Short: short, Result: outcome, Entries: entries, Err: err, at: time.Now(), took: time.Since(began), asked: r.statistics.asked, Large: r.statistics.Large}
	b.mu.Unlock()
	r.Tell()
	if entries > maxEntries {
		debug.FreeOSMemory()
	}
}

// buildReport makes a report of a run, and returns what it is made of too.
func buildReport(ctx context.Context, r *Run, o report.Options) (*report.Document, *results.Run, error) {
	folded, err := results.Fold(ctx, r.Store, r.Name)
	if errors.Is(err, runfile.ErrDamaged) && r.Store.Lost() == nil {
		if err = r.Store.Salvage(ctx); err == nil {
			folded, err = results.Fold(ctx, r.Store, r.Name)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	folded.Know(r.Kind)
	labels, err := r.Labels(ctx)
	if err != nil {
		return nil, nil, err
	}
	report.AttachLabels(folded, labels)
	left := attachAdded(ctx, folded, r)
	judged, err := score.Judges(ctx, r.Path, folded.Head.Begun.Run, slices.Sorted(maps.Keys(folded.Labels)))
	if err != nil {
		left = append(left, "Scores by single judges are left out: "+err.Error())
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	d, err := report.Build(ctx, []report.Source{{Run: folded, Journal: r.Store, Kind: r.Kind, Judged: judged}}, o)
	if err != nil {
		return nil, nil, err
	}
	addNotes(d, left...)
	return d, folded, nil
}

// addNotes adds what is left out to the beginning of a document.
func addNotes(d *report.Document, left ...string) {
	var notes []report.Block
	for _, text := range left {
		notes = append(notes, report.Block{Text: text})
	}
	d.Sections[0].Blocks = append(notes, d.Sections[0].Blocks...)
}

// attachAdded adds the scores that scorers gave to the run. If they cannot be read, it says so.
func attachAdded(ctx context.Context, v *results.Run, r *Run) (left []string) {
	set, err := score.Read(ctx, r.Path, v.Head.Begun.Run)
	if err != nil {
		return []string{"Added scores are left out: " + err.Error()}
	}
	set.Attach(v)
	return nil
}

// compareRuns compares two runs, or the agents of one, as parley compare does. Its error may be report.ErrNothingToCompare.
func compareRuns(ctx context.Context, tool string, which []*Run) (*report.Document, error) {
	var runs []*results.Run
	var sources []report.Source
	var left []string
	for _, r := range which {
		head, err := r.Store.Head(ctx)
		if err != nil {
			return nil, err
		}
		v := results.Outcomes(head, r.Kind)
		v.File = r.Path
		labels, err := r.Labels(ctx)
		if err != nil {
			return nil, err
		}
		report.AttachLabels(v, labels)
		left = append(left, attachAdded(ctx, v, r)...)
		runs, sources = append(runs, v), append(sources, report.Source{Run: v})
	}
	result, err := report.Compare(runs, report.Names(sources), report.CompareConfig{})
	if err != nil {
		return nil, err
	}
	d := result.Document(tool)
	for _, r := range runs {
		if text := report.TagsLeftOut(r); text != "" {
			left = append(left, text)
		}
	}
	addNotes(d, left...)
	return d, nil
}

// maxElements is how many elements the statistics have on a page, and maxRows how many rows a table has. Browsers get
// slow with many, and the report has everything.
const (
	maxElements = 2000
	maxRows     = 50
	minRows     = 3 // fewer are not worth a table
)

// shortSections returns the sections of a report without what other pages show, and shortened: without the numbers of drawings,
// and with the first rows of long tables. Blocks that are folded come last. short reports whether anything is missing.
func shortSections(d *report.Document) (out []report.Section, short bool, err error) {
	t, err := report.Templates()
	if err != nil {
		return nil, false, err
	}
	for _, s := range d.Sections {
		if s.ID == "episodes" || s.ID == "transcripts" {
			continue
		}
		s.Blocks = slices.DeleteFunc(slices.Clone(s.Blocks), func(b report.Block) bool { return b.OffPage || b.Facts != nil && s.ID == "overview" })
		if s.ID == "overview" {
			s.Title = "" // the page has its facts
		}
		out = append(out, s)
	}
	left := maxElements
	for _, now := range []func(report.Section, report.Block) bool{ // what the kind shows has room first
		func(s report.Section, b report.Block) bool { return s.ID == report.KindSection && !b.Folded },
		func(s report.Section, b report.Block) bool { return s.ID != report.KindSection && !b.Folded },
		func(_ report.Section, b report.Block) bool { return b.Folded },
	} {
		for i := range out {
			for j := range out[i].Blocks {
				b := &out[i].Blocks[j]
				if !now(out[i], *b) {
					continue
				}
				size, cut, err := shorten(t, b, left)
				if err != nil {
					return nil, false, err
				}
				left -= size
				short = short || cut
			}
		}
	}
	for i := range out {
		out[i].Blocks = slices.DeleteFunc(out[i].Blocks, func(b report.Block) bool { return b.OffPage })
	}
	return out, short, nil
}

// shorten shortens a block to left elements. If that cannot be done, the block is not on the page.
func shorten(t *template.Template, b *report.Block, left int) (size int, cut bool, err error) {
	if (b.Drawing != "" || b.Heat != nil) && b.Table != nil {
		b.Table, cut = nil, true
	}
	whole := *b
	if b.Table != nil && len(b.Table.Rows) > maxRows {
		cut = true
		cutRows(b, maxRows)
	}
	if size, err = report.BlockSize(t, *b); err != nil || size <= left {
		return size, cut, err
	}
	if b.Table != nil {
		if rows := len(b.Table.Rows) * left / size; rows >= minRows {
			*b = whole
			cutRows(b, rows)
			size, err = report.BlockSize(t, *b)
			return size, true, err
		}
	}
	b.OffPage = true
	return 0, true, nil
}

// cutRows cuts the table of a block to its first rows, and says so.
func cutRows(b *report.Block, rows int) {
	t := *b.Table
	b.Caption = fmt.Sprintf("The first %d of %s rows: the report has all. %s", rows, text.GroupDigits(len(t.Rows)), b.Caption)
	t.Rows = t.Rows[:rows]
	b.Table = &t
}

// reportEpisodes and reportTranscripts limit a report, as parley report does.
const (
	reportEpisodes    = 1000
	reportTranscripts = 20
)

// report serves the report of a run as parley report writes it.
func (v *Viewer) report(w http.ResponseWriter, req *http.Request) {
	r, err := v.get(req.Context(), req.PathValue("run"))
	if err != nil {
		v.render(errorPage(err))(w)
		return
	}
	d, _, err := buildReport(req.Context(), r, report.Options{Tool: v.cfg.Tool, Episodes: reportEpisodes, Transcripts: reportTranscripts})
	if err != nil {
		v.render(errorPage(err))(w)
		return
	}
	d.Back = runPath(r.Name)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8") // its content security policy is in the page
	h.Set("Cache-Control", "no-store")
	secureHeaders(h)
	_ = d.WriteHTML(w) // the browser is gone
}
