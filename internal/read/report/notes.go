package report

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/internal/read/chart"
	"parley/internal/run/results"
	"parley/stats"
)

// The limits of what is drawn of notes.
const (
	maxNoteCharts = 6
	maxNoteSeries = 7
	maxNoteTables = 3
	minNotePoints = 2
)

// noteNumbers is a number of notes over the turns of an episode, by seat or by key.
type noteNumbers struct {
	order  []string
	points map[string][]chart.Point
}

// noteBlocks draws what the notes of an episode have, for a kind that tells no story of its own: numbers as charts over the turns, and
// names by key, such as votes and roles, as tables. It knows notes only by their names and their JSON.
func noteBlocks(lines []results.Line, colours *Palette) (out []Block) {
	charts, tables := map[string]*noteNumbers{}, map[string]*Table{}
	var chartOrder, tableOrder []string
	turn, last := -1, ""
	strands := slices.ContainsFunc(lines, func(l results.Line) bool { return strings.Contains(l.Turn, "/") })
	number := func(name, of string, value float64) {
		c := charts[name]
		if c == nil {
			c = &noteNumbers{points: map[string][]chart.Point{}}
			charts[name], chartOrder = c, append(chartOrder, name)
		}
		if !slices.Contains(c.order, of) {
			c.order = append(c.order, of)
		}
		c.points[of] = append(c.points[of], chart.Point{X: float64(turn), Y: stats.Quantity{Value: value, Interval: stats.Everything()}})
	}
	var walk func(name, of string, value any)
	walk = func(name, of string, value any) {
		switch v := value.(type) {
		case float64:
			number(name, of, v)
		case map[string]any:
			if row := namesOf(v); row != nil {
				if tables[name] == nil {
					tables[name] = &Table{Name: "notes", Title: name, Track: -1, Columns: []Column{KeyColumn("turn"), textColumn("who"), textColumn(name)}}
					tableOrder = append(tableOrder, name)
				}
				t := tables[name]
				for _, key := range slices.Sorted(maps.Keys(row)) {
					t.Rows = append(t.Rows, []Cell{Word(last), Word(key), Word(row[key])})
				}
				return
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if one, ok := v[key].(float64); ok {
					number(name, key, one)
				} else if of == "" && strings.Count(name, " ") == 0 { // one level
					walk(name+" "+key, of, v[key])
				}
			}
		}
	}
	for i := range lines {
		l := &lines[i]
		if l.Turn != last {
			last = l.Turn
			turn++ // strands that are played at once have no common number
			if n, err := strconv.Atoi(l.Turn); err == nil && !strands {
				turn = n
			}
		}
		var value any
		if l.Said == results.LineNote && json.Unmarshal([]byte(l.Text), &value) == nil {
			walk(l.Label, l.Seat, value)
		}
	}
	for _, name := range chartOrder {
		if b, ok := charts[name].block(name, !strands, colours); ok && len(out) < maxNoteCharts {
			out = append(out, b)
		}
	}
	for _, name := range tableOrder[:min(len(tableOrder), maxNoteTables)] {
		out = append(out, Block{Title: name, Table: tables[name]})
	}
	return out
}

// namesOf returns an object whose values are all short texts; nil for any other.
func namesOf(v map[string]any) map[string]string {
	const longest = 60
	out := map[string]string{}
	for key, value := range v {
		text, ok := value.(string)
		if !ok || len(text) > longest {
			return nil
		}
		out[key] = text
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// block draws the numbers; numbered means that turns have the numbers that they are called by. It is not ok if they are the same all the time, or too few.
func (c *noteNumbers) block(name string, numbered bool, colours *Palette) (b Block, ok bool) {
	b.Title = name
	low, high, points := math.Inf(1), math.Inf(-1), 0
	var lines []chart.Line
	for i, of := range c.order[:min(len(c.order), maxNoteSeries)] {
		look := chart.Series(i)
		if of != "" {
			look = colours.Look(of)
			b.Legend = append(b.Legend, Series{Name: of, Look: look})
		}
		lines = append(lines, chart.Line{Name: of, Look: look, Points: c.points[of]})
		points = max(points, len(c.points[of]))
		for _, p := range c.points[of] {
			low, high = min(low, p.Y.Value), max(high, p.Y.Value)
		}
	}
	b.Drawing = chart.Plot{Label: name + " over the turns", X: "turn", Y: name, Height: 150, Ticks: 4, Now: numbered}.Lines(lines)
	return b, points >= minNotePoints && low < high
}
