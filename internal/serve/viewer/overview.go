package viewer

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parley/internal/read/report"
	"parley/internal/read/score"
	"parley/internal/run/control"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// runList is the data of the list of runs.
type runList struct {
	Filter filter
	States []string
	Rows   []*Entry
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
	d := runList{Filter: newFilter(req.URL.Query()), All: len(all), More: more, Pairs: v.static && len(pairs(all)) > 0}
	d.Rows, d.Passed, d.Next = d.Filter.Page(all)
	for _, e := range all {
		if e.State != "" && !slices.Contains(d.States, e.State) {
			d.States = append(d.States, e.State)
		}
	}
	slices.Sort(d.States)
	if d.Filter.After != "" {
		first := d.Filter
		first.After = ""
		d.First = first.Address()
	}
	return &screen{template: "runs", Title: "Runs", Live: "/events", Data: d}, nil
}

// Page returns the address of a run.
func (runList) Page(name string) string { return runPath(name) }

// Indent returns how far a fork is indented.
func (runList) Indent(e *Entry) int { return min(e.Depth, maxIndent) }

// maxIndent is how far forks are indented at most.
const maxIndent = 4

// ForkOf returns the run that a fork is from.
func (runList) ForkOf(e *Entry) string { return cmp.Or(e.Origin, filepath.Base(e.Fork.File)) }

// maxLost is how many losses a page names.
const maxLost = 10

// Lost says what is damaged in the run file. It is asked when the page has been made: the damage may be found meanwhile.
func (p *screen) Lost() (out []string) {
	if p.of == nil {
		return nil
	}
	l := p.of.Store.Lost()
	if l == nil {
		return nil
	}
	for _, d := range l.Damage {
		if len(out) == maxLost {
			return []string{strings.TrimPrefix(l.Text(), "The run file is damaged. "), "parley check lists everything that is wrong"}
		}
		if d.Episode != nil {
			out = append(out, fmt.Sprintf("episode %d: %s", *d.Episode, d.What))
		} else {
			out = append(out, d.What)
		}
	}
	return out
}

// tabs are the pages of a run.
func tabs(r *Run, here string) []link {
	all := []link{{Text: "Overview", To: runPath(r.Name)}, {Text: "Episodes", To: runPath(r.Name, "episodes")}, {Text: "Search", To: runPath(r.Name, "search")}, {Text: "Compare", To: "/compare?a=" + url.QueryEscape(r.Name)}, {Text: "Report", To: runPath(r.Name, "report")}}
	if hasPeople(r) {
		all = append(all, link{Text: "Seats", To: runPath(r.Name, "seats")})
	}
	for i := range all {
		all[i].Here = all[i].Text == here
	}
	return all
}

// open returns the run of a request, and a page to fill in.
func (v *Viewer) open(req *http.Request, here string) (*Run, *screen, error) {
	r, err := v.get(req.Context(), req.PathValue("run"))
	if err != nil {
		return nil, nil, err
	}
	p := &screen{Title: r.Name, Tabs: tabs(r, here), Live: runPath(r.Name, "events"), Above: []link{{Text: r.Name, To: runPath(r.Name)}}}
	p.of = r
	if v.static {
		p.Tabs = slices.DeleteFunc(p.Tabs, func(l link) bool { return l.Text == "Search" || l.Text == "Compare" || l.Text == "Seats" })
	}
	if _, ok := v.runs.Single(); !ok {
		p.Above = append([]link{{Text: "Runs", To: "/"}}, p.Above...)
	}
	return r, p, nil
}

// now is what is known of a run without its calls.
type now struct {
	runfile.Outline
	State    string
	Why      string // it ended, if it did not end normally
	Waiting  int
	Share    float64 // of the episodes that are done
	Agents   []world.Agent
	Sections []report.Section
	Live     *liveDashboard // what its process is doing; nil: nothing plays it
	Steer    string         // where the run can be steered; empty: it cannot
	Report   string
	Short    bool // the report has more
	// Of the statistics: whether they are being computed, and of how many entries they lack.
	Busy    bool
	Large   bool // they are computed only if asked for
	Behind  int
	Problem string
}

// overview is the page of a run.
func (v *Viewer) overview(req *http.Request) (*screen, error) {
	r, p, err := v.open(req, "Overview")
	if err != nil {
		return nil, err
	}
	o, err := r.Store.Outline(req.Context())
	if err != nil {
		return nil, err
	}
	n := now{Outline: o, State: catalogStateOf(o, r.Path), Waiting: o.Episodes - o.Ended - o.Failed - o.Playing, Agents: o.Begun.Agents, Report: runPath(r.Name, "report")}
	if o.Last.State != journal.Complete {
		n.Why = o.Last.Reason.String()
	}
	if o.Episodes > 0 {
		n.Share = float64(o.Ended+o.Failed) / float64(o.Episodes)
	}
	if playing, ok := control.ReadLive(req.Context(), r.Path); ok && n.State == control.Playing {
		n.Live = newDashboard(&playing)
		if !v.static && control.Played(req.Context(), r.Path) {
			n.Steer = runPath(r.Name, "steer")
		}
	}
	entries, err := r.Store.Entries()
	if err != nil {
		return nil, err
	}
	p.Style = report.NewPalette(&results.Run{Head: &journal.Head{Begun: o.Begun}}, r.Kind).Style() // statistics may come later
	if req.URL.Query().Has("statistics") {
		v.stats.Ask(r)
	}
	s := v.stats.Latest(req.Context(), r, entries)
	if !o.Open && (s.Document != nil || s.Large) && !s.Busy {
		p.Live = "" // nothing is added to it
	}
	n.Large = s.Large && s.Document == nil && !s.Busy
	n.Busy = s.Busy || s.Document == nil && s.Err == nil && !n.Large
	n.Behind = max(0, entries-s.Entries)
	if s.Err != nil {
		n.Problem = s.Err.Error()
	}
	if s.Document != nil {
		n.Sections, n.Short = v.linked(r, s.Sections), s.Short
		p.Style = s.Document.Style
		for _, x := range n.Sections {
			p.Style = stylesOf(p.Style, x.Blocks)
		}
	}
	p.template, p.Data = "overview", n
	return p, nil
}

// linked links the episodes that sections name to their pages: in the run, or in the one that it scores if that is here too.
func (v *Viewer) linked(r *Run, sections []report.Section) []report.Section {
	run := r.Name
	if of, err := score.Of(r.Begun); err == nil && of.Run != "" {
		run = filepath.ToSlash(score.Origin(r.Name))
		if _, ok := v.runs.File(run); !ok {
			return sections
		}
	}
	return report.Linked(sections, func(episode int) string { return runPath(run, "episodes", strconv.Itoa(episode)) })
}

// Model returns what answers for an agent.
func (n now) Model(a world.Agent) string { return cmp.Or(world.ModelName(a.Model), "bot "+a.Bot) }
