package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/kit/statmath"
	"parley/internal/read/chart"
	"parley/internal/read/report"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// runEntry is a run of the list.
type runEntry struct {
	Name    string
	Changed time.Time
	Known   bool // the file was read; otherwise the rest is empty
	Kind    string
	Tags    []string // of agents, as prompt=terse
	results.Status
	Problem string // why it cannot be read
	Outline runfile.Outline
	Scores  mainScore
	// Fork is where it was forked from; nil: it is no fork. Origin is the name of that run in the list, or empty, and
	// Depth is how many runs it descends from.
	Fork   *journal.Origin
	Origin string
	Depth  int

	run string // its id
}

// catalog lists the runs of a library: their state, progress, cost and main score, and which are forks of others.
//
// It remembers what it read of a file until the file changes. What takes long is done in the background, one file after
// the other, so that a folder with very many runs is listed at once, with what is known so far.
type catalog struct {
	Library *library
	KindOf  func(*journal.Begun) world.Kind
	// Background runs a function in the background.
	Background func(func(context.Context))
	// Wait means that List reads everything before it returns.
	Wait bool

	mu     sync.Mutex
	files  map[string]*catalogFile // by path
	queue  []string                // paths to read in the background
	queued map[string]bool
	busy   bool
}

// catalogFile is what is known of a file.
type catalogFile struct {
	state  runFileState // when it was read
	entry  runEntry
	scored runFileState  // when its scores were computed
	at     time.Time     // the same
	took   time.Duration // to compute them
}

// minFilesRead is how many files List reads at least, and listTime how long it reads more before it leaves them to the background.
const (
	minFilesRead = 20
	listTime     = 150 * time.Millisecond
)

// List lists all runs: the latest first, and forks after the run that they are from. more reports whether files are
// being read for the first time.
func (c *catalog) List(ctx context.Context) (all []*runEntry, more bool) {
	names, paths := c.Library.Names()
	reading := c.reader()
	for _, name := range names {
		at := paths[name]
		f, state := reading(ctx, at)
		if c.Wait && f.due(state) {
			f = c.score(ctx, at, state)
		}
		if f.state != state || f.due(state) {
			c.later(at)
			more = more || !f.entry.Known || f.scored == runFileState{} // the list follows a run that grows anyway
		}
		e := f.entry
		e.Name, e.Changed = name, state.Changed()
		if e.Outline.Open { // the file does not change when its process is killed
			e.Status = results.StatusOf(e.Outline, runfile.Played(at))
		}
		all = append(all, &e)
	}
	c.forget(paths)
	return sortByLineage(all), more
}

// reader returns a function that returns what is known of a file, and its state. It reads the file first if it was changed, as long
// as there is time for that.
func (c *catalog) reader() func(context.Context, string) (catalogFile, runFileState) {
	until, read := time.Now().Add(listTime), 0
	return func(ctx context.Context, at string) (catalogFile, runFileState) {
		state, f := runFileStateOf(at), c.known(at)
		if f.state != state && (c.Wait || read < minFilesRead || time.Now().Before(until)) {
			f = c.read(ctx, at, state)
			read++
		}
		return f, state
	}
}

// Origin returns the name of the run that a fork is from, as List does. It is empty if there is no such run, or if its file
// was not read yet.
func (c *catalog) Origin(ctx context.Context, fork *journal.Origin) string {
	names, paths := c.Library.Names()
	reading := c.reader()
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(namedAs(b, fork), namedAs(a, fork)) })
	for _, name := range names {
		if f, _ := reading(ctx, paths[name]); fork.Run != "" && f.entry.run == fork.Run {
			return name
		}
	}
	return ""
}

// namedAs is 1 if the file of a run is named as the one that was forked, and 0 if not.
func namedAs(run string, fork *journal.Origin) int {
	if path.Base(run) == filepath.Base(fork.File) {
		return 1
	}
	return 0
}

// forget forgets files that are gone.
func (c *catalog) forget(paths map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.files) <= len(paths) {
		return
	}
	there := map[string]bool{}
	for _, path := range paths {
		there[path] = true
	}
	maps.DeleteFunc(c.files, func(path string, _ *catalogFile) bool { return !there[path] })
}

// due reports whether the scores must be computed: for the first time, or because the run has grown, but not for more
// than a tenth of the time.
func (f *catalogFile) due(state runFileState) bool {
	return f.entry.Known && f.entry.Problem == "" && f.scored != state && !time.Now().Before(f.at.Add(10*f.took))
}

// known returns what is known of a file.
func (c *catalog) known(path string) catalogFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.files[path]; f != nil {
		return *f
	}
	return catalogFile{}
}

// keep keeps what change makes of what is known of a file.
func (c *catalog) keep(path string, change func(*catalogFile)) catalogFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		c.files = map[string]*catalogFile{}
	}
	if c.files[path] == nil {
		c.files[path] = &catalogFile{}
	}
	change(c.files[path])
	return *c.files[path]
}

// read reads the outline of a run.
func (c *catalog) read(ctx context.Context, path string, state runFileState) catalogFile {
	e := readOutline(ctx, path)
	if ctx.Err() != nil { // the page that asked is gone: nothing is known of the file
		return catalogFile{entry: e}
	}
	return c.keep(path, func(f *catalogFile) {
		e.Scores = f.entry.Scores
		f.state, f.entry = state, e
	})
}

// score computes the main score of a run.
func (c *catalog) score(ctx context.Context, path string, state runFileState) catalogFile {
	began := time.Now()
	s := c.scores(ctx, path)
	if ctx.Err() != nil {
		return catalogFile{}
	}
	return c.keep(path, func(f *catalogFile) { f.entry.Scores, f.scored, f.at, f.took = s, state, time.Now(), time.Since(began) })
}

// later reads a file in the background.
func (c *catalog) later(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queued == nil {
		c.queued = map[string]bool{}
	}
	if !c.queued[path] {
		c.queued[path], c.queue = true, append(c.queue, path)
	}
	if !c.busy {
		c.busy = true
		c.Background(c.work)
	}
}

// work reads the files of the queue.
func (c *catalog) work(ctx context.Context) {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 || ctx.Err() != nil {
			c.busy = false
			c.mu.Unlock()
			return
		}
		path := c.queue[0]
		c.queue = c.queue[1:]
		delete(c.queued, path)
		c.mu.Unlock()
		state := runFileStateOf(path)
		f := c.known(path)
		if f.state != state {
			f = c.read(ctx, path, state)
		}
		if f.due(state) {
			c.score(ctx, path, state)
		}
	}
}

// readOutline reads the state of a run.
func readOutline(ctx context.Context, path string) (e runEntry) {
	e.Known = true
	store, err := runfile.OpenRead(path)
	if err != nil {
		e.Problem = readProblem(err)
		return e
	}
	defer func() { _ = store.Close() }() // it was only read
	o, err := store.Outline(ctx)
	if err != nil {
		e.Problem = readProblem(err)
		return e
	}
	e.Status = results.StatusOf(o, runfile.Played(path))
	if b := o.Begun; b != nil {
		e.Kind, e.run, e.Fork = b.Kind, b.Run, b.Fork
		for _, a := range b.Agents {
			for _, name := range slices.Sorted(maps.Keys(a.Tags)) {
				if tag := name + "=" + a.Tags[name]; !slices.Contains(e.Tags, tag) && len(e.Tags) < maxTags {
					e.Tags = append(e.Tags, tag)
				}
			}
		}
	}
	o.Begun, o.Steered = nil, nil // a plan can be long
	e.Outline = o
	return e
}

// readProblem says in plain words why a run file cannot be read.
func readProblem(err error) string {
	switch {
	case errors.Is(err, runfile.ErrDamaged):
		why := err.Error()
		if cause := errors.Unwrap(err); cause != nil { // without the advice
			why = strings.TrimPrefix(cause.Error(), runfile.ErrDamaged.Error()+": ")
		}
		return "This file is damaged: " + why + "."
	case errors.Is(err, fs.ErrPermission):
		return "You may not read this file."
	case errors.Is(err, runfile.ErrVersion):
		return "Another version of parley wrote this file."
	case errors.Is(err, runfile.ErrForeign):
		return "This is not a run file."
	default:
		return "This file cannot be read: " + err.Error() + "."
	}
}

// maxTags is how many tags of a run are kept.
const maxTags = 50

// origin returns the run that e was forked from: the file that was forked, or else a copy. It is nil if there is none.
func (e *runEntry) origin(byRun map[string][]*runEntry) *runEntry {
	if e.Fork == nil || e.Fork.Run == "" || len(byRun[e.Fork.Run]) == 0 {
		return nil
	}
	all := byRun[e.Fork.Run]
	i := slices.IndexFunc(all, func(o *runEntry) bool { return namedAs(o.Name, e.Fork) > 0 })
	return all[max(0, i)]
}

// sortByLineage sorts runs: the latest first, and forks after the run that they are from.
func sortByLineage(all []*runEntry) (out []*runEntry) {
	byRun, forks := map[string][]*runEntry{}, map[*runEntry][]*runEntry{} // a run can have been copied
	slices.SortStableFunc(all, func(a, b *runEntry) int { return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.Name, b.Name)) })
	for _, e := range all {
		byRun[e.run] = append(byRun[e.run], e)
	}
	var first []*runEntry
	for _, e := range all {
		from := e.origin(byRun)
		if from == nil || from == e {
			first = append(first, e)
			continue
		}
		e.Origin = from.Name
		forks[from] = append(forks[from], e)
	}
	seen := map[*runEntry]bool{}
	var add func(e *runEntry, depth int)
	add = func(e *runEntry, depth int) {
		if seen[e] {
			return
		}
		seen[e], e.Depth = true, depth
		out = append(out, e)
		for _, f := range forks[e] {
			add(f, depth+1)
		}
	}
	for _, e := range first {
		add(e, 0)
	}
	for _, e := range all { // files that say that they are forks of each other
		add(e, 0)
	}
	return out
}

// runsPerPage is how many runs a page lists.
const runsPerPage = 100

// runFilter says which runs to list. Words are in the name, kind, state, tags or origin of a run; also as kind:secrets and
// tag:prompt=terse. By itself the list has the latest first, and forks below the run that they are from. A page ends with the name of a run.
type runFilter struct{ listFilter }

// order compares two runs by what they are sorted by.
func (f runFilter) order(a, b *runEntry) int {
	if f.Desc {
		a, b = b, a
	}
	switch f.Sort {
	case "run":
		return strings.Compare(a.Name, b.Name)
	case "kind":
		return strings.Compare(a.Kind, b.Kind)
	case "state":
		return strings.Compare(string(a.State), string(b.State))
	case "episodes":
		return cmp.Compare(a.Outline.Episodes.Done(), b.Outline.Episodes.Done())
	case "result":
		return cmp.Compare(a.Scores.highest(), b.Scores.highest())
	case "cost":
		return cmp.Compare(a.Outline.Spent, b.Outline.Spent)
	case "changed":
		return a.Changed.Compare(b.Changed)
	default:
		return 0 // the order of List
	}
}

// Columns returns the heads of the list: each sorts by its column.
func (f runFilter) Columns() (out []listColumn) {
	for _, name := range []string{"run", "kind", "state"} {
		out = append(out, f.column("/", name, name, false))
	}
	for _, name := range []string{"episodes", "result", "cost", "changed"} {
		c := f.column("/", name, name, true)
		c.Number = name == "cost"
		out = append(out, c)
	}
	return out
}

// Page returns a page of the runs that pass the filter, how many pass it, and the address of the next page. The run that the page
// comes after need not pass any more.
func (f runFilter) Page(all []*runEntry) (page []*runEntry, passed int, next string, err error) {
	words := strings.Fields(strings.ToLower(f.Words))
	all = slices.Clone(all)
	slices.SortStableFunc(all, f.order)
	rest, err := runsAfter(all, f.After)
	if err != nil {
		return nil, 0, "", err
	}
	passing := func(list []*runEntry) []*runEntry {
		return slices.DeleteFunc(list, func(e *runEntry) bool { return !f.passes(e, words) })
	}
	before := passing(all[:len(all)-len(rest)])
	page = passing(rest)
	passed = len(before) + len(page)
	if len(page) > runsPerPage {
		page = page[:runsPerPage]
		next = f.From("/", page[runsPerPage-1].Name)
	}
	return page, passed, next, nil
}

// runsAfter returns the runs after the one with a name. Empty: all.
func runsAfter(all []*runEntry, name string) ([]*runEntry, error) {
	if name == "" {
		return all, nil
	}
	i := slices.IndexFunc(all, func(e *runEntry) bool { return e.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("the run %q, after which this page begins, is gone: %w", name, errNoPage)
	}
	return all[i+1:], nil
}

func (f runFilter) passes(e *runEntry, words []string) bool {
	if f.State != "" && string(e.State) != f.State {
		return false
	}
	text := e.Name + " kind:" + e.Kind + " " + string(e.State) + " " + e.Origin
	for _, tag := range e.Tags {
		text += " tag:" + tag
	}
	if e.Fork != nil {
		text += " fork " + e.Fork.File
	}
	text = strings.ToLower(text)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// mainScore is the main score of a run, by agent, the highest first.
type mainScore struct {
	Name string
	Of   []agentScore
	More int    // agents that are left out
	Note string // which episodes do not count; empty: all do
	Many bool   // the run has too many episodes to compute it here
}

// agentScore is the mean of an agent with its interval. The agent is empty if the score is of the whole episode.
type agentScore struct {
	Agent string
	Mean  statmath.Quantity

	look chart.Look
}

// highest returns the highest mean of an agent, for an order.
func (s mainScore) highest() float64 {
	out := math.Inf(-1)
	for _, one := range s.Of {
		out = max(out, one.Mean.Value)
	}
	return out
}

// Drawing draws the means with their intervals.
func (s mainScore) Drawing() template.HTML {
	var values []float64
	var all []chart.Mean
	for _, one := range s.Of {
		q := one.Mean
		values = append(values, q.Value)
		for _, end := range []float64{q.Low, q.High} {
			if !math.IsInf(end, 0) {
				values = append(values, end)
			}
		}
		all = append(all, chart.Mean{Quantity: q, Look: one.look, Tip: strings.TrimSpace(one.Agent + " " + report.Interval(q))})
	}
	scale := chart.NewScale(2, append(values, 0)...)
	if lowest, highest := slices.Min(append(values, 0)), slices.Max(append(values, 0)); lowest >= 0 && highest <= 1 {
		scale = chart.Unit()
	}
	return chart.Means(all, scale)
}

// The limits of what is computed and listed.
const (
	maxEpisodes = 20_000
	maxAgents   = 3
)

// scores computes the main score of a run as its report does, without labels and scores that were added later. A file that cannot be read has none: the list says why.
func (c *catalog) scores(ctx context.Context, path string) (s mainScore) {
	store, err := runfile.OpenRead(path)
	if err != nil {
		return s
	}
	defer func() { _ = store.Close() }() // it was only read
	o, err := store.Outline(ctx)
	if err != nil || o.Begun == nil || o.Episodes.Ended == 0 {
		return s
	}
	if o.Episodes.Done() > maxEpisodes {
		return mainScore{Many: true}
	}
	head, err := store.Head(ctx)
	if err != nil {
		return s
	}
	r := results.Outcomes(head, c.KindOf(head.Begun))
	main, _ := report.MainResult(r)
	if len(main) == 0 {
		return s
	}
	s.Name, s.Note, s.More = main[0].Score, r.CountedNote(), max(0, len(main)-maxAgents)
	for _, one := range main[:len(main)-s.More] {
		place := slices.IndexFunc(head.Begun.Agents, func(a world.Agent) bool { return a.Name == one.Agent })
		s.Of = append(s.Of, agentScore{one.Agent, one.Quantity, chart.Series(max(0, place))})
	}
	return s
}

// Why says why a run is held, or why it ended early; empty: it plays, or it is complete.
func (e *runEntry) Why() string {
	if e.State == results.StatePlaying || e.State == results.StateNew || e.State.Complete() {
		return ""
	}
	return e.Reason
}

// runList is the data of the list of runs.
type runList struct {
	Filter runFilter
	States []link // states, and kinds, with how many runs have them
	Rows   []*runEntry
	Passed int // runs that pass the filter
	All    int
	More   bool // files are still being read
	First  string
	Next   string
	Pairs  bool // a site without a server has comparisons
}

// list is the page of all runs.
func (v *Viewer) list(req *http.Request) (*screen, error) {
	if name, ok := v.runs.Single(); ok {
		return &screen{to: runPath(name)}, nil
	}
	all, more := v.catalog.List(req.Context())
	d := runList{Filter: runFilter{newListFilter(req.URL.Query())}, All: len(all), More: more, Pairs: v.static && len(pairs(all)) > 0}
	var err error
	if d.Rows, d.Passed, d.Next, err = d.Filter.Page(all); err != nil {
		return nil, err
	}
	states, kinds := map[string]int{}, map[string]int{}
	for _, e := range all {
		states[string(e.State)]++
		kinds[e.Kind]++
	}
	for i, counts := range []map[string]int{states, kinds} {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			if name == "" || len(counts) < 2 {
				continue
			}
			to, here := listFilter{State: name}, d.Filter.State == name
			if i > 0 {
				to = listFilter{Words: "kind:" + name}
				here = d.Filter.Words == to.Words
			}
			d.States = append(d.States, link{Text: fmt.Sprintf("%d %s", counts[name], name), To: to.Address("/"), Here: here})
		}
	}
	if d.Filter.After != "" {
		d.First = d.Filter.From("/", "")
	}
	return &screen{template: "runs", Title: "Runs", Live: "/events", Data: d}, nil
}

// Page returns the address of a run.
func (runList) Page(name string) string { return runPath(name) }

// Indent returns how far a fork is indented.
func (runList) Indent(e *runEntry) int { return min(e.Depth, maxIndent) }

// maxIndent is how far forks are indented at most.
const maxIndent = 4

// ForkOf returns the run that a fork is from.
func (runList) ForkOf(e *runEntry) string { return cmp.Or(e.Origin, filepath.Base(e.Fork.File)) }
