package exhibit_test

import (
	"testing"

	"parley/world"
	"parley/world/exhibit"
)

// TestPage: an exhibit that shows nothing is left out, and what is said is in the last frame.
func TestPage(t *testing.T) {
	t.Parallel()
	known := &world.Sample{}
	known.Add(world.Unit{}, 1)
	var story exhibit.Replay
	story.Say(exhibit.FrameLine{Text: "a"})
	story.Begin("Turn %d", 2)
	story.Say(exhibit.FrameLine{Text: "b"})
	if len(story.Frames) != 2 || story.Frames[0].Title != "The start" || story.Frames[1].Title != "Turn 2" || story.Frames[1].Lines[0].Text != "b" {
		t.Errorf("%+v", story)
	}
	var curves exhibit.Curves
	for _, x := range []float64{3, 1, 2, 1} {
		curves.At("a", x, world.Share()).Add(world.Unit{}, x)
	}
	if points := curves.Curves[0].Points; len(curves.Curves) != 1 || len(points) != 3 || points[0].X != 1 || points[2].X != 3 || points[0].Sample.Episodes() != 2 {
		t.Errorf("%+v", curves)
	}
	p := exhibit.Page{Prefix: "k-"}
	for _, nothing := range []exhibit.Show{
		nil, exhibit.Estimates{}, exhibit.HeatMap{Rows: []string{"a"}, Columns: []string{"b"}, Cells: [][]*world.Sample{{nil}}}, exhibit.Curves{}, exhibit.Scatter{},
		exhibit.Bars{Labels: []string{"a"}}, exhibit.Grid{Columns: []string{"a"}}, exhibit.Text{}, exhibit.Figure{Alt: "a"}, exhibit.Replay{Base: "a"},
	} {
		p.Add("x", "X", "", nothing)
	}
	if len(p.All) > 0 {
		t.Errorf("%+v", p.All)
	}
	some := []exhibit.Show{
		exhibit.Estimates{Rows: []exhibit.Estimated{{}}}, exhibit.HeatMap{Cells: [][]*world.Sample{{nil, known}}}, curves, exhibit.Scatter{Points: []exhibit.ScatterPoint{{}}},
		exhibit.Bars{Labels: []string{"a"}, Series: []exhibit.BarSeries{{}}}, exhibit.Grid{Rows: [][]any{{1}}}, exhibit.Text{Body: "a"}, exhibit.Figure{SVG: "<svg/>"}, story,
	}
	for _, show := range some {
		p.Add("x", "X", "c", show)
	}
	if len(p.All) != len(some) || p.All[0].Name != "k-x" || p.All[0].Caption != "c" {
		t.Errorf("%+v", p.All)
	}
}
