package viewer

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/text"
	"parley/internal/read/report"
	"parley/internal/run/label"
	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
)

// transcriptLine is a line of a transcript with everything that is known about it.
type transcriptLine struct {
	report.TranscriptLine
	Shown   Words  // its text
	Private string // who can read it, if not everybody
	Spent   string // time, cost and tries of the call
	CallAt  string // the page of the call; empty: it has none
	LabelAt string // the form to label it; empty: it cannot be labelled
	Anchor  string // of the line on the page
	Labels  []label.Label
	Prompt  *results.Prompt  // what is new in the request; nil: another line has it
	Fresh   []requestMessage // of Prompt
	Images  []string         // the addresses of images in Fresh
	More    int              // new messages that only the page of the call has
}

// transcriptLinks says where the lines of an episode link to, and how they show their texts.
type transcriptLinks struct {
	Call   string              // the pages of calls, without the name of one
	Label  string              // the form to label a call, without its name; empty: there is none
	Keep   func(string) string // adds to an address what all pages of the episode share
	Format *formatter          // nil: texts are as they were written
}

// maxAsked is how many bytes of a message a line shows: the page of the call has all.
const maxAsked = 4000

// maxFresh is how many new messages a line shows.
const maxFresh = 3

// newLine returns a line. first means that it is the first line of its call, and last the last one.
func newLine(l report.TranscriptLine, e *report.Episode, at transcriptLinks, labels []label.Label, first, last bool) transcriptLine {
	out := transcriptLine{TranscriptLine: l, Private: readersText(&l.Line), Shown: Words{Text: l.Text}}
	switch {
	case l.Said == results.LineFailed && l.Reply != nil:
		if f := results.FailureOf(l.Reply); f != nil && f.Example != "" {
			out.Shown.Text += ": " + text.Excerpt(f.Example, maxAsked)
		}
	case l.Said != results.LineFailed && !l.Data:
		out.Shown = newWords(at.Format, l.Text)
	}
	out.Shown.Cut = l.Cut
	if l.Reply == nil || l.Call == "" {
		return out
	}
	out.CallAt = at.Keep(at.Call + l.Call)
	if last {
		out.Anchor, out.Spent = "call-"+l.Call, costText(l.Reply)
		if at.Label != "" {
			out.LabelAt = at.Keep(at.Label + l.Call + "#label")
		}
		for _, x := range labels {
			if x.Call == l.Call {
				out.Labels = append(out.Labels, x)
			}
		}
	}
	if p, ok := e.Prompts[l.Call]; ok && first && l.Said != results.LineAsked && len(p.Fresh) > 0 {
		out.Prompt = &p
		out.ask(l.Reply.Request, p, at.Call+l.Call, at.Format)
	}
	return out
}

// ask adds the new messages of a request.
func (l *transcriptLine) ask(req *llm.Request, p results.Prompt, at string, f *formatter) {
	for i := range p.Fresh {
		if i == maxFresh {
			l.More = len(p.Fresh) - i
			break
		}
		text := p.Fresh[i].Words()
		cut := len(text) > maxAsked
		if cut {
			text = strings.ToValidUTF8(text[:maxAsked], "")
		}
		m := requestMessage{Role: string(p.Fresh[i].Role), Words: newWords(f, text)}
		m.Cut = cut // it is beside the text: a text could hide it
		l.Fresh = append(l.Fresh, m)
	}
	l.Images = imageLinks(req.Messages, min(p.Same, len(req.Messages)), at)
}

// imageType returns the type of an image that pages may show: one with its own content, of a type that runs no script.
func imageType(i *llm.Image) (kind string, ok bool) {
	switch i.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return i.MediaType, len(i.Data) > 0
	default:
		return "", false
	}
}

// Asked says what a prompt has, in a few words.
func (l transcriptLine) Asked() string {
	words := text.Excerpt(strings.Join(strings.Fields(l.Fresh[len(l.Fresh)-1].Text), " "), 120)
	if n := len(l.Fresh) + l.More; n != 1 {
		return fmt.Sprintf("%d new messages: %s", n, words)
	}
	return words
}

// readersText says who can read a line, if not everybody.
func readersText(l *results.Line) string {
	switch {
	case l.Said == results.LineThought:
		return "private: nobody else reads it"
	case l.To != "":
		return "private: to " + l.To
	default:
		return ""
	}
}

// costText returns what a call took.
func costText(r *journal.Replied) string {
	meta := r.Metadata()
	var parts []string
	if meta.Latency > 0 {
		parts = append(parts, report.Duration(meta.Latency))
	}
	if cost := r.Cost(); cost > 0 {
		parts = append(parts, report.Dollars(cost))
	}
	if meta.Attempts > 1 {
		parts = append(parts, fmt.Sprintf("%d tries", meta.Attempts))
	}
	if meta.Cached {
		parts = append(parts, "from the cache")
	}
	return strings.Join(parts, " · ")
}

// sinceBegin formats how long after the beginning of an episode something happened; empty if a time is unknown.
func sinceBegin(began, at time.Time) string {
	if began.IsZero() || at.IsZero() {
		return ""
	}
	return "+" + report.Duration(max(0, at.Sub(began)))
}

// Words is a text that somebody said.
type Words struct {
	Text string
	HTML template.HTML // the text, formatted; empty: it is shown as it is
	Why  string        // why it is not formatted, if that was asked for
	Cut  bool          // it was longer
}

// newWords returns a text, formatted if f is not nil. Data for programs stays as it is.
func newWords(f *formatter, text string) Words {
	w := Words{Text: text}
	if !results.IsData(text) {
		w.HTML, w.Why = f.Format(text)
	}
	return w
}

// markdownValue is the value of the parameter text of a page that shows texts as Markdown.
const markdownValue = "markdown"

// textView is how a page shows what was said: as it was written, or formatted.
type textView struct {
	format *formatter // nil: as it was written
	Switch string     // the same page with the other; empty: it has none
}

// Formatted reports whether texts are formatted.
func (t textView) Formatted() bool { return t.format != nil }

// textViewOf reads the parameter text.
func (v *Viewer) textViewOf(req *http.Request, anchor string) (t textView, err error) {
	q := req.URL.Query()
	switch text := q.Get("text"); text {
	case "":
		q.Set("text", markdownValue)
	case markdownValue:
		t.format = newFormatter()
		q.Del("text")
	default:
		return t, fmt.Errorf("text=%q: %w: want %s, or nothing for texts as they were written", text, errBadRequest, markdownValue)
	}
	if !v.static {
		t.Switch = (&url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: q.Encode(), Fragment: anchor}).String()
	}
	return t, nil
}

// keep returns the address of a page that shows texts as this one does.
func (t textView) keep(address string) string {
	u, err := url.Parse(address)
	if err != nil || !t.Formatted() || address == "" {
		return address
	}
	q := u.Query()
	q.Set("text", markdownValue)
	u.RawQuery = q.Encode()
	return u.String()
}

// maxColumns is how many columns a layout has at most. If more strands are played at once, the last column has
// several of them.
const maxColumns = 7

// layoutCell is the lines of one turn.
type layoutCell struct {
	Strand string // empty: of the whole episode
	Column int    // from 1; 0: as wide as the row
	Lines  []transcriptLine
}

// layoutRow is turns that were played at about the same time, in different strands.
type layoutRow struct {
	At    time.Time // of the first reply; zero: unknown
	Since string    // At, from the beginning of the episode on; empty: as in the row before
	Cells []layoutCell
}

// layout is the lines of a transcript: strands are columns, and rows are in the order of time.
type layout struct {
	Columns int // 0: nothing was played at once
	Rows    []layoutRow
}

// newLayout lays out lines, which are in the order of time.
func newLayout(lines []transcriptLine) (l layout) {
	cells := splitTurns(lines)
	last := map[string]int{} // the last cell of a strand
	for i, c := range cells {
		last[c.Strand] = i
	}
	var holders [maxColumns]string // the strand of each column
	until := [maxColumns]int{}     // the last cell of that strand
	for i := range until {
		until[i] = -1
	}
	for i, c := range cells {
		if c.Strand != "" {
			at := slices.Index(holders[:], c.Strand)
			if at < 0 {
				at = freeColumn(holders, until, i, c.Strand)
			}
			if at < 0 {
				at = maxColumns - 1
			}
			holders[at], until[at] = c.Strand, max(until[at], last[c.Strand]) //nolint:gosec // at is a column
			c.Column = at + 1
			l.Columns = max(l.Columns, c.Column)
		}
		l.add(c)
	}
	return l
}

// freeColumn returns a column whose strand has ended and was not played beside the given one, or -1.
func freeColumn(holders [maxColumns]string, until [maxColumns]int, now int, strand string) int {
	usable := func(at int) bool {
		return until[at] < now && (holders[at] == "" || forkOf(holders[at]) != forkOf(strand))
	}
	number := strings.TrimSuffix(strand[len(forkOf(strand)):], "/")
	if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < maxColumns && usable(n) {
		return n // so that strands keep their order
	}
	for at := range holders {
		if usable(at) {
			return at
		}
	}
	return -1
}

// forkOf returns the name of the fork that a strand is of: "4." for "4.2/".
func forkOf(strand string) string { return strand[:strings.LastIndexByte(strand, '.')+1] }

// splitTurns returns a cell for each turn.
func splitTurns(lines []transcriptLine) (cells []layoutCell) {
	turn := ""
	for i, line := range lines {
		if i == 0 || line.Turn != turn {
			turn = line.Turn
			cells = append(cells, layoutCell{Strand: turn[:strings.LastIndexByte(turn, '/')+1]})
		}
		c := &cells[len(cells)-1]
		c.Lines = append(c.Lines, line)
	}
	return cells
}

// add puts a cell into the last row, if its column is free there, or into a new one.
func (l *layout) add(c layoutCell) {
	if n := len(l.Rows); n > 0 && c.Column > 0 {
		row := &l.Rows[n-1]
		if !slices.ContainsFunc(row.Cells, func(x layoutCell) bool { return x.Column == 0 || x.Column == c.Column }) {
			row.Cells = append(row.Cells, c)
			slices.SortFunc(row.Cells, func(a, b layoutCell) int { return a.Column - b.Column }) // a grid fills its rows in this order
			return
		}
	}
	row := layoutRow{Cells: []layoutCell{c}}
	for _, line := range c.Lines {
		if line.Reply != nil && !line.Reply.At.IsZero() {
			row.At = line.Reply.At
			break
		}
	}
	l.Rows = append(l.Rows, row)
}
