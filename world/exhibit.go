package world

// Exhibitor makes a kind's own part of a report. What it makes depends on nothing but the
// episodes that it is given. It is made anew for every report and used by one goroutine.
type Exhibitor interface {
	// Add takes in an episode that ended. They come in episode order, those that failed too.
	// Data that is not what it should be is passed over: a run file may come from anywhere.
	Add(p Played)
	// Exhibits is called once, after the last Add.
	Exhibits() []Exhibit
}

// Exhibit is one thing to look at.
type Exhibit struct {
	Name    string // what its table is called in files: lower case, words joined by -
	Title   string
	Caption string // how to read it, in a sentence or two
	Show    Show
}

// Show is what an exhibit shows. It is one of
//
//   - Estimates: numbers with intervals, a row each
//   - HeatMap: a number for every row and column
//   - Curves: lines over something that grows
//   - Scatter: named points
//   - Bars: counts by label
//   - Grid: any other table
//   - Text: paragraphs
//   - Figure: an SVG picture
//   - Replay: an episode to step through
//
// and nothing else.
type Show interface{ show() }

// Estimates are numbers with intervals, a row each.
type Estimates struct {
	By    []string // what the labels of a row are: agent, mode
	What  string   // what is estimated: share of conversations, points
	Share bool     // from 0 to 1: the axis shows all of it
	Rows  []Estimated
}

// Estimated is a row of Estimates.
type Estimated struct {
	Labels []string // as many as By
	Sample *Sample
}

// HeatMap is a number for every row and column, such as who did what to whom. Its colours go
// over what the numbers can be, as far as the bounds of its samples say.
type HeatMap struct {
	Row, Column   string // what rows and columns are: agent, opponent
	What          string
	Share         bool
	Rows, Columns []string
	Cells         [][]*Sample // by row and column; nil: nothing is known
}

// Curves are lines over something that grows, with bands.
type Curves struct {
	X, Y   string // what the axes are
	Share  bool
	Curves []Curve
}

// Curve is one line.
type Curve struct {
	Name   string
	Points []CurvePoint // from left to right
	// Level means that it is no series but a value to compare with, such as a threshold.
	Level bool
}

// CurvePoint is a place on a curve.
type CurvePoint struct {
	X      float64
	Sample *Sample
	// Given means that it was known beforehand, such as a start: it has no interval.
	Given bool
}

// Scatter is named points, with intervals in both directions.
type Scatter struct {
	X, Y   string
	Share  bool // of both
	Points []ScatterPoint
}

// ScatterPoint is one point.
type ScatterPoint struct {
	Name string
	X, Y *Sample
}

// Bars are counts by label, or a histogram where labels are ranges. With several series,
// the bars of a label stand beside each other.
type Bars struct {
	X, Y   string
	Labels []string
	Series []BarSeries
}

// BarSeries is a bar for every label.
type BarSeries struct {
	Name   string
	Values []float64 // as many as there are labels
}

// Grid is a table: rows of cells. A cell is a string, an int, a float64 or a *Sample, which is
// shown as its mean with the interval.
type Grid struct {
	Columns []string
	Rows    [][]any
}

// Text is paragraphs, separated by empty lines. Pre keeps lines and spaces as they are,
// for diffs and maps made of letters.
type Text struct {
	Body string
	Pre  bool
}

// Figure is a picture of the kind's own making. What in it could fetch or do anything is
// taken out, so words of models may be in its texts.
type Figure struct {
	SVG string
	Alt string // the same in words
}

// Replay is an episode to step through, frame by frame.
type Replay struct {
	// Base is an SVG picture that stays, such as an empty board, and Frame.SVG what is put
	// over it, in the same coordinates. Both may be empty.
	Base   string
	Frames []Frame
}

// Frame is a moment of a Replay.
type Frame struct {
	Title string
	SVG   string
	Lines []FrameLine // what was said and done, in order
}

// FrameLine is somebody's words in a frame.
type FrameLine struct {
	Who  string // a seat; empty: the world
	To   string // whom it was said to; empty: everybody
	Text string
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
