package viewer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/internal/kit/text"
	"parley/internal/read/report"
	"parley/internal/read/score"
	"parley/internal/run/label"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// linesPerPage is how many lines of a transcript a page has.
const linesPerPage = 50

// episodePage is the data of the page of an episode.
type episodePage struct {
	Episode        *report.Episode
	Listed         *runfile.Listed
	State          results.State // of the run
	Lineup, Cell   string
	Errors         int // replies that are failures
	Scores         []world.Score
	Params         string
	Earlier, Later string // the windows before and after
	Before, After  string // the episodes before and after
	LastLine       int
	Story          string // where the whole episode is read; empty: it was
	First          string // the page that has the story, if everything was read for another one
	Labels         labelForm
	Lines          []transcriptLine
	Layout         layout
	Relatives      []link // comparisons with other episodes
	Afterwards     []scorerText
	Texts          textView
}

// scorerText is a text of a scorer.
type scorerText struct {
	score.Text
	Shown Words
}

// requestedEpisode returns the episode of a request.
func requestedEpisode(r *Run, req *http.Request) (*runfile.Listed, error) {
	return findEpisode(req.Context(), r, req.PathValue("episode"))
}

// findEpisode returns the episode with a number.
func findEpisode(ctx context.Context, r *Run, number string) (*runfile.Listed, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("episode %q: %w", number, errNoPage)
	}
	list, err := r.Store.List(ctx, runfile.Listing{From: n, Limit: 1})
	if err != nil {
		return nil, err
	}
	if r.Store.Lost().Has(n) {
		return nil, fmt.Errorf("episode %d of %s: %w: it cannot be read whole", n, r.Name, runfile.ErrDamaged)
	}
	if len(list) == 0 || list[0].Episode != n {
		return nil, fmt.Errorf("%s has no episode %d: %w", r.Name, n, errNoPage)
	}
	return &list[0], nil
}

func (v *Viewer) episode(req *http.Request) (*screen, error) {
	r, p, err := v.open(req, "Episodes")
	if err != nil {
		return nil, err
	}
	l, err := requestedEpisode(r, req)
	if err != nil {
		return nil, err
	}
	shown, err := v.textViewOf(req, "said")
	if err != nil {
		return nil, err
	}
	e, err := v.readEpisode(req, r, l)
	if err != nil {
		return nil, err
	}
	at := runPath(r.Name, "episodes", strconv.Itoa(l.Episode))
	d := episodePage{Episode: e, Listed: l, Texts: shown, Lineup: results.LineupText(l.Spec.Lineup), Params: indentJSON(l.Spec.Params), LastLine: e.From + len(e.Lines)}
	if err := d.addScores(req.Context(), r); err != nil {
		return nil, err
	}
	d.addWindows(at, req.URL.Query().Get("from"), v.static)
	if l.Episode > 0 {
		d.Before = shown.keep(runPath(r.Name, "episodes", strconv.Itoa(l.Episode-1)))
	}
	o, err := r.Store.Outline(req.Context())
	if err != nil {
		return nil, err
	}
	d.State = results.StatusOf(o, runfile.Played(r.Path)).State
	if l.Episode+1 < o.Episodes.Total {
		d.After = shown.keep(runPath(r.Name, "episodes", strconv.Itoa(l.Episode+1)))
	}
	row := []results.Row{{Episode: results.Episode{Number: l.Episode}}}
	if err := r.Index.Fill(row); err != nil {
		return nil, err
	}
	d.Errors = row[0].Errors
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
		d.Afterwards = append(d.Afterwards, scorerText{t, newWords(d.Texts.format, t.Text)})
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
	return report.ReadEpisode(req.Context(), store, r.Begun, r.Kind, l, report.Window{At: from, Lines: linesPerPage, Quick: l.Ended != nil && !v.static && !req.URL.Query().Has("story"), Story: !v.static})
}

// addWindows adds the addresses of other parts of the episode, whose page is at an address and shows the part from. A static page has the
// story only with the first part.
func (d *episodePage) addWindows(at, from string, static bool) {
	e := d.Episode
	switch {
	case e.Partial:
		d.Story = at + "?story=1"
		if from != "" {
			d.Story += "&from=" + url.QueryEscape(from)
		}
	case e.Prev != nil && static:
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
		v.render(errorPage(err))(w)
	}
}

// findCall returns the call of a request.
func (v *Viewer) findCall(req *http.Request) (*Run, *runfile.Listed, *journal.Replied, error) {
	r, err := v.get(req.Context(), req.PathValue("run"))
	if err != nil {
		return nil, nil, nil, err
	}
	l, err := requestedEpisode(r, req)
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
	return nil, nil, fmt.Errorf("episode %d of %s has no call %q with a reply: %w", l.Episode, r.Name, name, errNoPage)
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
	shown, err := v.textViewOf(req, "")
	if err != nil {
		return nil, err
	}
	name, at := req.PathValue("call"), runPath(r.Name, "episodes", strconv.Itoa(l.Episode))
	p.Title = fmt.Sprintf("Call %s of episode %d of %s", name, l.Episode, r.Name)
	p.Above = append(p.Above, link{Text: "Episodes", To: runPath(r.Name, "episodes")}, link{Text: strconv.Itoa(l.Episode), To: shown.keep(at)}, link{Text: name, To: shown.keep(at + "/" + name)})
	p.template, p.Live = "call", "" // a reply does not change
	p.Data = newCallPage(r.Begun, name, at+"/"+name, e, shown)
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
		return p, fmt.Errorf("from=%q: %w: want the number of a line, or end", text, errBadRequest)
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
		line := newLine(l, d.Episode, at, d.Labels.Given, first, last)
		if l.Said == results.LinePhase {
			line.Anchor = fmt.Sprintf("phase-%d", d.Episode.From+i) // several phases can begin with one turn
		}
		d.Lines = append(d.Lines, line)
	}
	d.Layout = newLayout(d.Lines)
	before := ""
	for i := range d.Layout.Rows {
		row := &d.Layout.Rows[i]
		if row.Since = sinceBegin(d.Episode.Began, row.At); row.Since == before {
			row.Since = ""
		} else if row.Since != "" {
			before = row.Since
		}
	}
}

// Phases returns the lines that begin a phase, to jump to; none if there is only one.
func (d episodePage) Phases() (out []transcriptLine) {
	for _, l := range d.Lines {
		if l.Said == results.LinePhase {
			l.Text = text.Excerpt(l.Text, 60)
			out = append(out, l)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// maxFailed is how many failed calls the head of a page names.
const maxFailed = 3

// Failed returns the first lines of the page that are failed calls.
func (d episodePage) Failed() (out []transcriptLine) {
	for _, l := range d.Lines {
		if l.Said == results.LineFailed && len(out) < maxFailed {
			out = append(out, l)
		}
	}
	return out
}

// Many reports whether the scores are shown as a table: those of several seats.
func (d episodePage) Many() bool {
	return len(d.ScoreSeats()) > 2 || len(d.ScoreSeats()) > 1 && len(d.ScoreNames()) > 1
}

// MainScores returns the first score in a line: of each seat, the highest first.
func (d episodePage) MainScores() string {
	name := d.Scores[0].Name
	seats := slices.DeleteFunc(slices.Clone(d.Scores), func(s world.Score) bool { return s.Name != name })
	slices.SortStableFunc(seats, func(a, b world.Score) int { return cmp.Compare(b.Value, a.Value) })
	var parts []string
	for _, s := range seats {
		if s.Seat != "" || len(seats) == 1 {
			parts = append(parts, strings.TrimSpace(s.Seat+" "+d.ScoreText(s)))
		}
	}
	return name + ": " + strings.Join(parts, " · ")
}

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

// callPage is the data of the page of a call: one call in full, with what was asked, what came back, and what it cost.
type callPage struct {
	Name    string
	Replied *journal.Replied
	Agent   string // see results.Answerer
	Asked   []requestMessage
	LeftOut int // messages before those of Asked
	Answer  Words
	Thought []Words
	JSON    string
	Usage   llm.Usage
	Raw     string   // everything, as JSON
	Images  []string // the addresses of images in the request
	Texts   textView
}

// requestMessage is a message of a request. New means that it was not in the request before.
type requestMessage struct {
	Role string
	Words
	New bool
}

// newCallPage returns the page of a call, which is at an address.
func newCallPage(begun *journal.Begun, name, at string, e *journal.Replied, shown textView) callPage {
	d := callPage{Name: name, Replied: e, Agent: results.Answerer(begun, e), Texts: shown}
	f := shown.format
	switch {
	case e.Act != nil:
		d.Asked = []requestMessage{{Role: e.Act.Name, Words: Words{Text: indentJSON(e.Act.Body)}, New: true}}
	case e.Request != nil:
		last := -1
		for i, m := range e.Request.Messages {
			if m.Role == llm.RoleAssistant {
				last = i
			}
		}
		d.LeftOut = leaveOut(e.Request.Messages)
		d.Images = imageLinks(e.Request.Messages, d.LeftOut, at)
		if d.LeftOut > 0 {
			request, shown := *e.Request, *e
			request.Messages = request.Messages[d.LeftOut:]
			shown.Request = &request
			e, last = &shown, last-d.LeftOut
		}
		for i := range e.Request.Messages {
			m := &e.Request.Messages[i]
			d.Asked = append(d.Asked, requestMessage{Role: string(m.Role), Words: Words{Text: m.Words()}, New: i > last})
		}
	}
	if e.Response != nil {
		d.Answer, d.Usage = newWords(f, e.Response.Words()), e.Response.Usage
		for _, t := range e.Response.Thoughts {
			d.Thought = append(d.Thought, newWords(f, t.Text))
		}
		if string(e.Response.JSON) != e.Response.Text {
			d.JSON = indentJSON(e.Response.JSON)
		}
	}
	for i := range slices.Backward(d.Asked) { // the answer and what is new come first: a page formats so much
		d.Asked[i].Words = newWords(f, d.Asked[i].Text)
	}
	if e.Error != nil {
		d.Usage = e.Error.Usage
	}
	if b, err := json.MarshalIndent(map[string]any{"request": e.Request, "act": e.Act, "response": e.Response, "error": e.Error}, "", "  "); err == nil {
		d.Raw = string(b)
	}
	return d
}

// maxCallText is how many bytes of the messages of a request its page shows.
const maxCallText = 16e6

// leaveOut returns how many messages the page of a call leaves out: the first of those that have more than maxCallText together.
func leaveOut(messages []llm.Message) int {
	left := int64(maxCallText)
	for i := range slices.Backward(messages) {
		if left -= results.MessagesSize(messages[i : i+1]); left < 0 {
			return i + 1
		}
	}
	return 0
}

// indentJSON returns JSON for people, or the text as it is.
func indentJSON(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// imageLinks returns the addresses of the images that a page may show, below that of their call: those of the messages from a first one on.
func imageLinks(messages []llm.Message, first int, at string) (links []string) {
	before := len(imagesOf(messages[:first]))
	for i, im := range imagesOf(messages[first:]) {
		if _, ok := imageType(im); ok {
			links = append(links, fmt.Sprintf("%s?image=%d", at, before+i))
		}
	}
	return links
}

// imagesOf returns the images of messages.
func imagesOf(messages []llm.Message) (all []*llm.Image) {
	for _, m := range messages {
		for _, part := range m.Parts {
			if part.Image != nil {
				all = append(all, part.Image)
			}
		}
	}
	return all
}

// writeImage serves an image of a request, by its number among all of them.
func writeImage(w http.ResponseWriter, e *journal.Replied, number string) error {
	var all []*llm.Image
	if e.Request != nil {
		all = imagesOf(e.Request.Messages)
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(all) {
		return errNoImage
	}
	kind, ok := imageType(all[n])
	if !ok {
		return errNoImage
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(all[n].Data) // the browser is gone
	return nil
}

var errNoImage = fmt.Errorf("said: there is no such image: %w", fs.ErrNotExist)

// maxForm is how long the body of a form may be.
const maxForm = 1 << 16

// label adds a label to an episode or to a message of it, or removes one, as a form says. The guard of the server has
// checked that a page of this server sent the form.
func (v *Viewer) label(req *http.Request) (*screen, error) {
	r, _, err := v.open(req, "")
	if err != nil {
		return nil, err
	}
	l, err := requestedEpisode(r, req)
	if err != nil {
		return nil, err
	}
	req.Body = http.MaxBytesReader(nil, req.Body, maxForm)
	if err := req.ParseForm(); err != nil {
		return nil, fmt.Errorf("%w: it cannot be read: %w", errForm, err)
	}
	form := req.PostForm
	if form.Has("remove") {
		err = unlabel(req.Context(), r, l.Episode, form.Get("remove"))
	} else {
		err = addLabel(req.Context(), r, l, form)
	}
	if err != nil {
		return nil, err
	}
	if _, err := r.Labels(req.Context()); err != nil {
		return nil, err
	}
	to := runPath(r.Name, "episodes", strconv.Itoa(l.Episode))
	return &screen{to: withParams(to, map[string]string{"from": form.Get("from"), "text": form.Get("text")}) + "#labels"}, nil
}

// addLabel adds the label of a form to an episode.
func addLabel(ctx context.Context, r *Run, l *runfile.Listed, form url.Values) error {
	call := form.Get("call")
	if call != "" {
		if _, _, err := findReply(ctx, r, l, call); errors.Is(err, errNoPage) {
			return fmt.Errorf("%w: episode %d has no message %q", errForm, l.Episode, call)
		} else if err != nil {
			return err
		}
	}
	err := label.Add(r.Store.Path(), label.Label{
		Run: r.Begun.Run, Episode: l.Episode, Call: call, By: form.Get("by"),
		Tag: form.Get("tag"), Verdict: label.Verdict(form.Get("verdict")), Note: form.Get("note"),
	})
	if errors.Is(err, label.ErrInvalid) {
		err = fmt.Errorf("%w: %w", errForm, err)
	}
	return err
}

// unlabel removes a label of an episode. If there is none, somebody else may have removed it, and nothing is written.
func unlabel(ctx context.Context, r *Run, episode int, id string) error {
	set, err := r.Labels(ctx)
	if err != nil {
		return err
	}
	for _, given := range set.Of(episode) {
		if given.ID == id {
			return label.Remove(r.Store.Path(), given)
		}
	}
	return nil
}

// labelForm is what the form for labels needs.
type labelForm struct {
	To     string // where it is sent
	From   string // the window that the page shows
	Text   string // how it shows texts: see textsOf
	Call   string // the message that the form is about; empty: the episode
	Cancel string // the page without the message
	Tags   []string
	Given  []label.Label // of the episode
	Older  string        // the page with the labels before Shown; empty: there are none
	before int           // how many of Given are on this page or before it
}

// maxLabels is how many labels a page lists.
const maxLabels = 50

// Shown returns the labels that the page lists: the latest, or those before.
func (f labelForm) Shown() []label.Label { return f.Given[max(0, f.before-maxLabels):f.before] }

// Verdicts are the verdicts to choose from.
func (labelForm) Verdicts() []label.Verdict { return label.Verdicts() }

// newLabelForm returns the form of an episode whose page is at an address.
func newLabelForm(set *label.Set, episode int, at string, q url.Values, shown textView) labelForm {
	f := labelForm{To: at + "/labels", From: q.Get("from"), Text: q.Get("text"), Call: q.Get("label"), Cancel: at, Given: set.Of(episode)}
	f.Tags, _ = set.Tags()
	f.before = len(f.Given)
	if n, err := strconv.Atoi(q.Get("labels")); err == nil && n > 0 {
		f.before = min(n, f.before)
	}
	if rest := f.before - maxLabels; rest > 0 {
		f.Older = fmt.Sprintf("%s?labels=%d#labels", at, rest)
	}
	if strings.Trim(f.Call, "0123456789./:") != "" {
		f.Call = "" // it is no call
	}
	if _, err := placeOf(f.From); err != nil {
		f.From = ""
	}
	if f.From != "" {
		f.Cancel += "?from=" + url.QueryEscape(f.From)
	}
	f.Cancel, f.Older = shown.keep(f.Cancel), shown.keep(f.Older)
	return f
}
