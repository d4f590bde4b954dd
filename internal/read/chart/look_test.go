package chart

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestSeriesDiffer checks that no two series look the same, and that neighbours differ in shape.
func TestSeriesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[Look]int{}
	for i := range 42 {
		l := Series(i)
		if j, twice := seen[l]; twice {
			t.Errorf("series %d looks like %d: %+v", i, j, l)
		}
		seen[l] = i
		if i > 0 && Series(i-1).Marker == l.Marker {
			t.Errorf("series %d has the same shape as the one before", i)
		}
	}
	outlines := map[string]bool{}
	for m := range shapes {
		outlines[shape(m, 4)] = true
	}
	if len(outlines) != shapes-1 { // a circle is not a path; its number draws the last shape
		t.Errorf("%d outlines of %d shapes", len(outlines), shapes)
	}
}

// TestWholeTicks checks that counts have whole ticks, and that years are written without a comma.
func TestWholeTicks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{[]float64{1901}, "1900 1901 1902"},
		{[]float64{1901, 1902}, "1901 1902"},
		{[]float64{0, 1}, "0 1"},
		{[]float64{0, 3}, "0 1 2 3"},
		{[]float64{1900, 1912}, "1900 1902 1904 1906 1908 1910 1912"},
		{[]float64{0, 15}, "0 3 6 9 12 15"},
	} {
		var points []Point
		for _, x := range c.values {
			points = append(points, Point{X: x, Y: quantity(1)})
		}
		drawn := string(Plot{X: "year"}.Lines([]Line{{Points: points}}))
		var got []string
		for _, x := range newWholeScale(6, c.values...).Ticks {
			got = append(got, Tick(x))
			if !strings.Contains(drawn, ">"+Tick(x)+"<") {
				t.Errorf("%v: %s is not on the axis", c.values, Tick(x))
			}
		}
		if strings.Join(got, " ") != c.want || strings.Contains(drawn, "k<") {
			t.Errorf("%v: %v, want %s", c.values, got, c.want)
		}
	}
	if s := NewScale(6, 0.5, 1); slices.Contains(s.Ticks, 0) {
		t.Errorf("%+v", s)
	}
}

// TestLabelsDoNotMeet reads drawings with crowded labels as a browser would lay them out.
func TestLabelsDoNotMeet(t *testing.T) {
	t.Parallel()
	var spots []Spot
	var names []string
	var values []float64
	var levels []Line
	for i := range 12 {
		name := fmt.Sprintf("a-model-with-a-name-%d", i)
		x := 0.5 + 0.02*math.Sin(float64(i))
		spots = append(spots, Spot{Name: name, Look: Series(i), X: quantity(x), Y: quantity(0.5 + 0.03*math.Cos(float64(i)))})
		names, values = append(names, name), append(values, float64(i))
		levels = append(levels, Line{Name: name, Level: true, Points: []Point{{X: 0, Y: quantity(1 + float64(i)/50)}}})
	}
	ten := slices.Repeat([]float64{1}, 10)
	for what, drawn := range map[string]string{
		"scatter":   string(Plot{}.Scatter(spots, true)),
		"bars":      string(Plot{}.Bars(names, []Group{{Values: values}})),
		"levels":    string(Plot{}.Lines(levels)),
		"histogram": string(Plot{XTick: func(float64) string { return "3 min 20 s" }}.Histogram([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1e7}, ten, []Mark{{5, "median"}, {5.5, "99%"}})),
	} {
		for i, layout := range layouts() {
			boxes := boxesOf(t, drawn, layout.width, i)
			if what == "scatter" && i == 2 && len(boxes) < 8 {
				t.Errorf("only %d names fit", len(boxes))
			}
			for j, b := range boxes {
				for _, o := range boxes[j+1:] {
					if b.meets(o) {
						t.Errorf("%s, %v wide: %v overlaps %v", what, layout.width, b, o)
					}
				}
			}
		}
	}
}

// boxesOf returns the rectangles of the texts that a layout shows.
func boxesOf(t *testing.T, drawing string, width float64, layout int) (out []box) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(drawing))
	for {
		token, err := d.Token()
		if err != nil {
			return out
		}
		e, ok := token.(xml.StartElement)
		if !ok || e.Name.Local != "text" {
			continue
		}
		at := map[string]string{}
		for _, a := range e.Attr {
			at[a.Name.Local] = a.Value
		}
		var words string
		if err := d.DecodeElement(&words, &e); err != nil {
			t.Fatal(err)
		}
		for i, l := range layouts() {
			if i > layout && strings.HasSuffix(at["class"], l.class) {
				words = ""
			}
		}
		if words == "" {
			continue
		}
		number := func(s string) float64 { f, _ := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64); return f }
		l := label{x: number(at["x"]) / 100, y: number(at["y"]), words: words}
		out = append(out, l.box(spot{dx: number(at["dx"]), anchor: at["text-anchor"]}, width))
	}
}
