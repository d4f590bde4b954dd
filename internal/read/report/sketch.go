package report

import (
	"math"

	"parley/internal/kit/statmath"
)

// Sketches draws the tracked column of a table with characters, one string for each row: a dot with whiskers,
// and a line at 0 if the scale includes it.
func (t *Table) Sketches(width int) []string {
	var out []string
	if t.Track < 0 || width < 3 {
		return make([]string, len(t.Rows))
	}
	for _, g := range groups(t) {
		at := func(x float64) int { return int(math.Round(g.scale.At(x) * float64(width-1))) }
		for _, r := range g.Rows {
			q, ok := r[t.Track].Value.(statmath.Quantity)
			if !ok || !q.Known() {
				out = append(out, "")
				continue
			}
			line := make([]rune, width)
			for i := range line {
				line[i] = ' '
			}
			if g.scale.Min <= 0 && g.scale.Max >= 0 {
				line[at(0)] = '┊'
			}
			low, high := 0, width-1
			if !math.IsInf(q.Low, -1) {
				low = at(q.Low)
			}
			if !math.IsInf(q.High, 1) {
				high = at(q.High)
			}
			for i := low; i <= high && (!math.IsInf(q.Low, -1) || !math.IsInf(q.High, 1)); i++ {
				line[i] = '─'
			}
			for i, end := range map[int]float64{low: q.Low, high: q.High} {
				if !math.IsInf(end, 0) {
					line[i] = '|'
				}
			}
			line[at(q.Value)] = '●'
			out = append(out, string(line))
		}
	}
	return out
}
