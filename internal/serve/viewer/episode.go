package viewer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/read/report"
	"parley/internal/read/score"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// linesPerPage is how many lines of a transcript a page has.
const linesPerPage = 50

// episodePage is the data of the page of an episode.
type episodePage struct {
	Episode        *report.Episode
	Listed         *runfile.Listed
	Lineup, Cell   string
	Scores         []world.Score
	Params         string
	Earlier, Later string // the windows before and after
	Before, After  string // the episodes before and after
	LastLine       int
	Story          string // where the whole episode is read; empty: it was
	First          string // the page that has the story, if everything was read for another one
	Labels         labelForm
	Lines          []Line
	Layout         layout
	Relatives      []link // comparisons with other episodes
	Afterwards     []asked
	Texts          texts
}

// asked is a text of a scorer.
type asked struct {
	score.Text
	Shown Words
}

// find returns the episode of a request.
func find(r *Run, req *http.Request) (*runfile.Listed, error) {
	return findEpisode(req.Context(), r, req.PathValue("episode"))
}

// findEpisode returns the episode with a number.
func findEpisode(ctx context.Context, r *Run, number string) (*runfile.Listed, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("viewer: episode %q: %w", number, errNotFound)
	}
	list, err := r.Store.List(ctx, runfile.Listing{From: n, Limit: 1})
	if err != nil {
		return nil, err
	}
	if r.Store.Lost().Has(n) {
		return nil, fmt.Errorf("viewer: episode %d of %s: %w: it cannot be read whole", n, r.Name, runfile.ErrDamaged)
	}
	if len(list) == 0 || list[0].Episode != n {
		return nil, fmt.Errorf("viewer: %s has no episode %d: %w", r.Name, n, errNotFound)
	}
	return &list[0], nil
}

func (v *Viewer) episode(req *http.Request) (*screen, error) {
	r, p, err := v.open(req, "Episodes")
	if err != nil {
		return nil, err
	}
	l, err := find(r, req)
	if err != nil {
		return nil, err
	}
	shown, err := v.textsOf(req, "said")
	if err != nil {
		return nil, err
	}
	e, err := v.readEpisode(req, r, l)
	if err != nil {
		return nil, err
	}
	at := runPath(r.Name, "episodes", strconv.Itoa(l.Episode))
	d := episodePage{Episode: e, Listed: l, Texts: shown, Lineup: results.LineupText(l.Spec.Lineup), Params: indent(l.Spec.Params), LastLine: e.From + len(e.Lines)}
	if err := d.addScores(req.Context(), r); err != nil {
		return nil, err
	}
	d.addWindows(at)
	if l.Episode > 0 {
		d.Before = shown.keep(runPath(r.Name, "episodes", strconv.Itoa(l.Episode-1)))
	}
	o, err := r.Store.Outline(req.Context())
	if err != nil {
		return nil, err
	}
	if l.Episode+1 < o.Episodes {
		d.After = shown.keep(runPath(r.Name, "episodes", strconv.Itoa(l.Episode+1)))
	}
	if d.Cell = l.Spec.Cell; strings.ReplaceAll(d.Cell, ", ", " ") == d.Lineup {
		d.Cell = "" // it says the same
	}
	set, err := r.Labels(req.Context())
	if err != nil {
		return nil, err
	}
	d.Labels = newLabelForm(set, l.Episode, at, req.URL.Query(), shown)
	where := transcriptLinks{Call: at + "/", Keep: shown.keep, Format: shown.format}
	if !v.static {
		where.Label = at + "?from=" + url.QueryEscape(cmp.Or(req.URL.Query().Get("from"), "0")) + "&label="
	}
	d.addLines(where)
	if d.Relatives, err = v.relatives(req.Context(), r, l); err != nil {
		return nil, err
	}
	p.Title = fmt.Sprintf("Episode %d of %s", l.Episode, r.Name)
	p.Above = append(p.Above, link{Text: "Episodes", To: runPath(r.Name, "episodes")}, link{Text: strconv.Itoa(l.Episode), To: shown.keep(at)})
	p.Style = stylesOf(e.Style, e.Replays)
	p.template, p.Data = "episode", d
	return p, nil
}

// addScores adds the scores of an episode that has ended, and the texts of scorers.
func (d *episodePage) addScores(ctx context.Context, r *Run) error {
	l := d.Listed
	if l.Ended == nil {
		return nil
	}
	added, err := r.Added(ctx)
	if err != nil {
		return err
	}
	d.Scores = added.Of(l.Episode, l.Ended.Outcome)
	all, _ := score.Texts(ctx, r.Path, r.Begun.Run, l.Episode) // the statistics of the run say why they cannot be read
	for _, t := range all {
		d.Afterwards = append(d.Afterwards, asked{t, newWords(d.Texts.format, t.Text)})
	}
	return nil
}

// readEpisode reads the part of an episode that a page shows. An episode that is being played is read whole, for its story, but
// each entry only once.
func (v *Viewer) readEpisode(req *http.Request, r *Run, l *runfile.Listed) (*report.Episode, error) {
	from, err := placeOf(req.URL.Query().Get("from"))
	if err != nil {
		return nil, err
	}
	var store journal.Journal = r.Growing
	if l.Ended != nil {
		store = r.Store
		r.Growing.Forget(l.Episode)
	}
	planned := journal.Planned{Episode: l.Episode, Spec: l.Spec, Ended: l.Ended}
	quick := l.Ended != nil && !v.static && !req.URL.Query().Has("story")
	return report.ReadEpisode(req.Context(), store, r.Begun, r.Kind, planned, l.Attempt, from, linesPerPage, quick)
}

// addWindows adds the addresses of other parts of the episode, whose page is at an address.
func (d *episodePage) addWindows(at string) {
	e := d.Episode
	switch {
	case e.Partial:
		d.Story = at + "?story=1"
	case e.Prev != nil:
		d.First = at
	}
	if e.Prev != nil {
		d.Earlier = at
		if *e.Prev != (results.Place{}) { // the first page has one address
			d.Earlier += "?from=" + placeText(*e.Prev)
		}
	}
	if e.Next != nil {
		d.Later = at + "?from=" + placeText(*e.Next)
	}
	for _, address := range []*string{&d.Story, &d.First, &d.Earlier, &d.Later} {
		*address = d.Texts.keep(*address)
	}
}

// placeText returns a place in an address: the number of a line, and that of an entry if it is known.
func placeText(p results.Place) string {
	if p.Entry == 0 {
		return strconv.Itoa(p.Line)
	}
	return fmt.Sprintf("%d.%d", p.Line, p.Entry)
}

// calls serves the page of one call, or an image of its request.
func (v *Viewer) calls(w http.ResponseWriter, req *http.Request) {
	if !req.URL.Query().Has("image") {
		v.page(v.slots, v.call)(w, req)
		return
	}
	_, _, e, err := v.findCall(req)
	if err == nil {
		err = writeImage(w, e, req.URL.Query().Get("image"))
	}
	if err != nil {
		v.render(failure(err))(w)
	}
}

// findCall returns the call of a request.
func (v *Viewer) findCall(req *http.Request) (*Run, *runfile.Listed, *journal.Replied, error) {
	r, err := v.get(req.Context(), req.PathValue("run"))
	if err != nil {
		return nil, nil, nil, err
	}
	l, err := find(r, req)
	if err != nil {
		return nil, nil, nil, err
	}
	e, fill, err := findReply(req.Context(), r, l, req.PathValue("call"))
	if err == nil {
		err = fill(e)
	}
	return r, l, e, err
}

// findReply returns the reply to a call of an episode. fill reads the rest of it.
func findReply(ctx context.Context, r *Run, l *runfile.Listed, name string) (e *journal.Replied, fill func(...*journal.Replied) error, err error) {
	entries, fill, err := r.Store.Sparing(ctx, l.Episode)
	if err != nil {
		return nil, nil, err
	}
	turn, index, _ := strings.Cut(name, ":")
	for _, t := range results.Turns(entries, l.Attempt) {
		for _, e := range t.Replies {
			if t.Name() == turn && strconv.Itoa(e.Index) == index {
				return e, fill, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("viewer: episode %d of %s has no call %q with a reply: %w", l.Episode, r.Name, name, errNotFound)
}

// callPage is the data of the page of a call.
type callPage struct {
	CallPage
	Texts texts
}

// call is the page of one call: what was asked, what came back, and what it cost.
func (v *Viewer) call(req *http.Request) (*screen, error) {
	_, p, err := v.open(req, "Episodes")
	if err != nil {
		return nil, err
	}
	r, l, e, err := v.findCall(req)
	if err != nil {
		return nil, err
	}
	shown, err := v.textsOf(req, "")
	if err != nil {
		return nil, err
	}
	name, at := req.PathValue("call"), runPath(r.Name, "episodes", strconv.Itoa(l.Episode))
	p.Title = fmt.Sprintf("Call %s of episode %d of %s", name, l.Episode, r.Name)
	p.Above = append(p.Above, link{Text: "Episodes", To: runPath(r.Name, "episodes")}, link{Text: strconv.Itoa(l.Episode), To: shown.keep(at)}, link{Text: name, To: shown.keep(at + "/" + name)})
	p.template, p.Live = "call", "" // a reply does not change
	p.Data = callPage{newCallPage(r.Begun, name, at+"/"+name, e, shown.format), shown}
	return p, nil
}

// placeOf reads the parameter from: see placeText. It may also be end.
func placeOf(text string) (p results.Place, err error) {
	switch text {
	case "":
		return p, nil
	case "end":
		return results.Place{Line: -1}, nil
	}
	line, entry, ok := strings.Cut(text, ".")
	if p.Line, err = strconv.Atoi(line); err == nil && ok {
		p.Entry, err = strconv.ParseInt(entry, 10, 64)
	}
	if err != nil || p.Line < 0 || p.Line > maxLine || p.Entry == math.MinInt64 {
		return p, fmt.Errorf("viewer: from=%q: %w: want the number of a line, or end", text, errBadRequest)
	}
	return p, nil
}

// maxLine is the highest number of a line that an address may have.
const maxLine = 1 << 40

// addLines lays out the lines of the window.
func (d *episodePage) addLines(at transcriptLinks) {
	lines := d.Episode.Lines
	for i, l := range lines {
		first := i == 0 || lines[i-1].Call != l.Call
		last := i+1 == len(lines) || lines[i+1].Call != l.Call
		d.Lines = append(d.Lines, newLine(l, d.Episode, at, d.Labels.Given, first, last))
	}
	d.Layout = newLayout(d.Lines)
}

// Since formats when something happened.
func (d episodePage) Since(at time.Time) string { return promptSince(d.Episode.Began, at) }

// maxFacts is how many scores are shown as facts. More are shown as a table.
const maxFacts = 12

// Many reports whether the scores are shown as a table.
func (d episodePage) Many() bool { return len(d.Scores) > maxFacts }

// ScoreNames returns the names of the scores, each once.
func (d episodePage) ScoreNames() (out []string) {
	for _, s := range d.Scores {
		if !slices.Contains(out, s.Name) {
			out = append(out, s.Name)
		}
	}
	return out
}

// ScoreSeats returns the seats of the scores, each once.
func (d episodePage) ScoreSeats() (out []string) {
	for _, s := range d.Scores {
		if !slices.Contains(out, s.Seat) {
			out = append(out, s.Seat)
		}
	}
	return out
}

// ScoreOf returns a score of a seat as text.
func (d episodePage) ScoreOf(seat, name string) string {
	for _, s := range d.Scores {
		if s.Seat == seat && s.Name == name {
			return d.ScoreText(s)
		}
	}
	return "–"
}

// ScoreText formats a score.
func (episodePage) ScoreText(s world.Score) string { return report.Real(s.Value).Text }
