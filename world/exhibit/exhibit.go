// Package exhibit has what a kind shows of its episodes: tables, charts, texts and pictures. A kind says what to show; reports, pages and
// exports decide how. A kind that has them is a part.Reporter or a part.Storyteller.
package exhibit

import (
	"cmp"
	"fmt"
	"slices"

	"parley/world"
)

// Exhibitor makes a kind's part of a report. Its exhibits depend only on the episodes that it is given. Each report
// has its own, used by one goroutine.
type Exhibitor interface {
	// Add takes an episode that ended, in episode order, including those that failed. It ignores malformed data:
	// a run file may be from anywhere.
	Add(p world.Played)
	// Exhibits is called once, after the last Add.
	Exhibits() []Exhibit
}

// Exhibit is one table, chart or text.
type Exhibit struct {
	Name    string // of its table in files: lower case, words joined by -
	Title   string
	Caption string // how to read it, in a sentence or two
	Show    Show
}

// Show is the content of an exhibit. It is one of
//
//   - Estimates: numbers with intervals, one per row
//   - HeatMap: a number for every row and column
//   - Curves: lines over an axis
//   - Scatter: named points
//   - Bars: counts by label
//   - Grid: any other table
//   - Text: paragraphs
//   - Figure: an SVG picture
//   - Replay: an episode to step through
type Show interface{ show() }

// Estimates are numbers with intervals, one per row.
type Estimates struct {
	By    []string // the names of the labels: agent, mode
	What  string   // the quantity: share of conversations, points
	Share bool     // values are from 0 to 1, and the axis shows all of it
	Rows  []Estimated
}

// Estimated is a row of Estimates.
type Estimated struct {
	Labels []string // as many as By
	Sample *world.Sample
}

// HeatMap has a number for every row and column, such as who did what to whom. The bounds of its samples set the
// range of its colours.
type HeatMap struct {
	Row, Column   string // the names of rows and columns: agent, opponent
	What          string
	Share         bool
	Rows, Columns []string
	Cells         [][]*world.Sample // by row and column; nil: unknown
}

// Curves are lines with bands.
type Curves struct {
	X, Y   string // the names of the axes
	Share  bool
	Curves []Curve
}

// Curve is one line.
type Curve struct {
	Name   string
	Points []CurvePoint // from left to right
	// Level means that it is a value to compare with, such as a threshold.
	Level bool
}

// CurvePoint is a point of a curve.
type CurvePoint struct {
	X      float64
	Sample *world.Sample
	// Given means that it was known in advance, such as a start: it has no interval.
	Given bool
}

// Scatter is named points with intervals in both directions.
type Scatter struct {
	X, Y   string
	Share  bool // of both
	Points []ScatterPoint
}

// ScatterPoint is one point.
type ScatterPoint struct {
	Name string
	X, Y *world.Sample
}

// Bars are counts by label, or a histogram if the labels are ranges. With several series, the bars of a label are
// side by side.
type Bars struct {
	X, Y   string
	Labels []string
	Series []BarSeries
}

// BarSeries has a bar for every label.
type BarSeries struct {
	Name   string
	Values []float64 // one per label
}

// Grid is a table. A cell is a string, an int, a float64, Episodes, a Moment, or a *world.Sample, shown as its mean with the interval.
type Grid struct {
	Columns []string
	Rows    [][]any
}

// Episodes are numbers of episodes, such as examples. Pages link to them. For a scorer, they are those of the run that is
// scored.
type Episodes []int

// Moment is a frame of the replay of an episode, by its title, such as a phase. Pages show the title and link to it.
type Moment struct {
	Episode int
	Frame   string
}

// Text is paragraphs, separated by empty lines. Pre keeps lines and spaces, for diffs and maps made of letters. Finding means that it
// says what came out, in a sentence or two: pages show it in their headline too.
type Text struct {
	Body    string
	Pre     bool
	Finding bool
}

// Figure is a picture that the kind draws. Everything in it that could fetch or run something is removed, so it may
// contain text of models.
type Figure struct {
	SVG string `json:"svg,omitempty"`
	Alt string `json:"alt,omitempty"` // the same in words
}

// Replay is an episode to step through, frame by frame.
type Replay struct {
	// Base is a fixed SVG picture, such as an empty board. Frame.SVG is drawn over it, in the same coordinates. Both
	// may be empty.
	Base   string
	Frames []Frame
	// Turn is that of the frames that Begin begins. Set it to the turn of each entry of a transcript.
	Turn string
}

// Frame is a moment of a Replay.
type Frame struct {
	Title string `json:"title"`
	// Turn is the turn in which it begins: beside a transcript, a page shows the frame of the turn that is read. Empty: that of the
	// phase with its title, or none.
	Turn  string      `json:"turn,omitempty"`
	SVG   string      `json:"-"`
	Lines []FrameLine `json:"lines,omitempty"` // statements and actions, in order
}

// FrameLine is a statement in a frame.
type FrameLine struct {
	Who  string `json:"who,omitempty"` // a seat; empty: the world
	To   string `json:"to,omitempty"`  // the addressee; empty: everybody, or nobody
	Text string `json:"text"`
	// Mark is a short remark on the statement, as "gives its secret away". It is shown beside it, and stands out.
	Mark string `json:"mark,omitempty"`
}

func (Estimates) show() {}
func (HeatMap) show()   {}
func (Curves) show()    {}
func (Scatter) show()   {}
func (Bars) show()      {}
func (Grid) show()      {}
func (Text) show()      {}
func (Figure) show()    {}
func (Replay) show()    {}

// Crossed has samples by two labels, such as a rate and an agent.
type Crossed map[[2]string]*world.Sample

// At returns the sample of two labels. If there is none, it is made with these bounds.
func (c Crossed) At(a, b string, within world.Bounds) *world.Sample {
	k := [2]string{a, b}
	if c[k] == nil {
		c[k] = &world.Sample{Bounds: within}
	}
	return c[k]
}

// Estimates adds rows to e: the samples that have values, in the order of the labels.
func (c Crossed) Estimates(e Estimates, first, second []string) Estimates {
	for _, a := range first {
		for _, b := range second {
			if s := c[[2]string{a, b}]; s != nil && s.Episodes() > 0 {
				e.Rows = append(e.Rows, Estimated{Labels: []string{a, b}, Sample: s})
			}
		}
	}
	return e
}

// HeatMap sets the cells of m, by its rows and columns.
func (c Crossed) HeatMap(m HeatMap) HeatMap {
	for _, a := range m.Rows {
		cells := make([]*world.Sample, len(m.Columns))
		for i, b := range m.Columns {
			cells[i] = c[[2]string{a, b}]
		}
		m.Cells = append(m.Cells, cells)
	}
	return m
}

// Counts are numbers by two labels, such as a reason and an agent.
type Counts map[[2]string]int

// Labels returns the first labels, in order, each once.
func (c Counts) Labels() []string {
	var all []string
	for k := range c {
		all = append(all, k[0])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Bars adds a series to b for each of the second labels, with its counts at the labels of b.
func (c Counts) Bars(b Bars, second []string) Bars {
	for _, name := range second {
		s := BarSeries{Name: name}
		for _, label := range b.Labels {
			s.Values = append(s.Values, float64(c[[2]string{label, name}]))
		}
		b.Series = append(b.Series, s)
	}
	return b
}

// Grid returns a table with a row for each of the first labels and a column for each of the second. name is that of the first column.
func (c Counts) Grid(name string, first, second []string) Grid {
	g := Grid{Columns: append([]string{name}, second...)}
	for _, a := range first {
		row := []any{a}
		for _, b := range second {
			row = append(row, c[[2]string{a, b}])
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// Page collects exhibits. It leaves out those that show nothing.
type Page struct {
	// Prefix begins the names of all exhibits.
	Prefix string
	All    []Exhibit
}

// Add adds an exhibit, if it shows anything.
func (p *Page) Add(name, title, caption string, show Show) {
	if !empty(show) {
		p.All = append(p.All, Exhibit{Name: p.Prefix + name, Title: title, Caption: caption, Show: show})
	}
}

// empty reports whether there is nothing to show.
func empty(show Show) bool {
	switch s := show.(type) {
	case Estimates:
		return len(s.Rows) == 0
	case HeatMap:
		return !slices.ContainsFunc(s.Cells, func(row []*world.Sample) bool {
			return slices.ContainsFunc(row, func(c *world.Sample) bool { return c != nil })
		})
	case Curves:
		return len(s.Curves) == 0
	case Scatter:
		return len(s.Points) == 0
	case Bars:
		return len(s.Labels) == 0 || len(s.Series) == 0
	case Grid:
		return len(s.Rows) == 0
	case Text:
		return s.Body == ""
	case Figure:
		return s.SVG == ""
	case Replay:
		return len(s.Frames) == 0
	default:
		return true
	}
}

// Begin begins a frame.
func (r *Replay) Begin(format string, args ...any) {
	r.Frames = append(r.Frames, Frame{Title: fmt.Sprintf(format, args...), Turn: r.Turn})
}

// Say adds a line to the last frame.
func (r *Replay) Say(l FrameLine) {
	if len(r.Frames) == 0 {
		r.Begin("The start")
	}
	last := &r.Frames[len(r.Frames)-1]
	last.Lines = append(last.Lines, l)
}

// At returns the sample of a curve at x. If there is no such curve or point, it is made with these bounds.
func (c *Curves) At(name string, x float64, within world.Bounds) *world.Sample {
	i := slices.IndexFunc(c.Curves, func(one Curve) bool { return one.Name == name })
	if i < 0 {
		i = len(c.Curves)
		c.Curves = append(c.Curves, Curve{Name: name})
	}
	points := &c.Curves[i].Points
	at, found := slices.BinarySearchFunc(*points, x, func(p CurvePoint, x float64) int { return cmp.Compare(p.X, x) })
	if !found {
		*points = slices.Insert(*points, at, CurvePoint{X: x, Sample: &world.Sample{Bounds: within}})
	}
	return (*points)[at].Sample
}

// AddOnce adds a label to a list that does not have it.
func AddOnce[T comparable](labels *[]T, label T) {
	if !slices.Contains(*labels, label) {
		*labels = append(*labels, label)
	}
}

// Indicator returns 1 for true and 0 for false: the value of a share.
func Indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
