package viewer

import (
	"context"
	_ "embed"
	"html/template"
	"slices"

	"parley/internal/read/chart"
	"parley/internal/run/control"
	"parley/internal/run/seat"
	"parley/journal"
)

// Text is the template of the page, Style its style sheet, and Script its script.
var (
	//go:embed seat.gohtml
	seatsText string
	//go:embed seat.css
	seatsStyle string
	//go:embed seat.js
	seatsScript string
)

// Page is the page of a seat.
type Page struct {
	Seat, To string // To is its address
	// State says how it goes on: it is the seat's turn, others play, nobody plays the run, or the run has ended.
	State string
	Ended bool
	// Question is the oldest open question; nil: there is none. More is how many others wait.
	Question *question
	More     int
	Past     []seat.Exchange // the latest first
	Earlier  int             // how many others there are
	Problem  string          // why an answer was not accepted
	Style    template.CSS    // of the picture
}

// question is a question with its form.
type question struct {
	seat.Question
	New     []seat.Message
	Known   []seat.Message // that the seat has seen
	Picture template.HTML
	Alt     string
	Inputs  []*input // nil: a single text
	JSON    bool     // the text is JSON
	Text    string   // that was filled in
}

// maxPast is how many earlier questions a page has.
const maxPast = 30

// readPage makes the page of a seat.
func readPage(ctx context.Context, r *Run, name, to string) (*Page, error) {
	p := &Page{Seat: name, To: to}
	o, err := r.Store.Outline(ctx)
	if err != nil {
		return nil, err
	}
	open, err := openOf(ctx, r, name)
	if err != nil {
		return nil, err
	}
	played := control.Played(ctx, r.Path)
	switch {
	case !o.Open && o.Last.State == journal.Complete:
		p.State, p.Ended = "The game is over.", true
	case !o.Open:
		p.State = "The run was stopped. This page changes when it is resumed."
	case !played:
		p.State = "The run is not being played at the moment. This page changes when it is resumed."
	case len(open) == 0:
		p.State = "It is not your turn. This page changes when you are asked."
	default:
		p.State = "It is your turn."
	}
	episode, known := latest(ctx, r, name, open)
	if !known {
		return p, nil
	}
	past, err := seat.ReadPast(ctx, r.Store, episode, name)
	if err != nil {
		return nil, err
	}
	if len(open) > 0 && o.Open {
		p.ask(open[0], past)
		p.More = len(open) - 1
	}
	p.Past = slices.Clone(past.Exchanges)
	slices.Reverse(p.Past)
	if len(p.Past) > maxPast {
		p.Earlier, p.Past = len(p.Past)-maxPast, p.Past[:maxPast]
	}
	return p, nil
}

// openOf returns the open questions of a seat.
func openOf(ctx context.Context, r *Run, name string) ([]seat.Question, error) {
	all, err := seat.Read(ctx, r.Path)
	return slices.DeleteFunc(all, func(q seat.Question) bool { return q.Seat != name }), err
}

// latest returns the episode to show: that of the oldest question, or the last one that has begun.
func latest(ctx context.Context, r *Run, name string, open []seat.Question) (episode int, ok bool) {
	if len(open) > 0 {
		return open[0].Episode, true
	}
	places, err := seat.Latest(ctx, r.Store, r.Begun, name)
	return places, err == nil && places >= 0
}

// ask fills in the question.
func (p *Page) ask(q seat.Question, past *seat.Past) {
	out := &question{Question: q, New: past.Fresh(q)}
	if n := len(q.Messages) - len(out.New); n > 0 {
		out.Known = q.Messages[:n]
	}
	if o := q.Offer; o != nil && o.Picture.SVG != "" {
		if picture, style, err := chart.Clean(o.Picture.SVG); err == nil {
			out.Picture, out.Alt, p.Style = picture, o.Picture.Alt, style
		}
	}
	p.Question = out
	if len(q.Schema) == 0 {
		return
	}
	f, ok := seat.Of(q.Schema, q.Offer)
	if !ok {
		out.JSON = true
		return
	}
	out.Inputs = inputs(f.Fields, "", func(string) []string { return nil }, nil)
}
