package report

import (
	"fmt"
	"math"

	"parley/internal/kit/statmath"
	"parley/internal/read/chart"
	"parley/world"
)

// heatScale maps numbers to colours. A scale with both signs has a colour for each.
type heatScale struct{ low, high float64 }

// newHeatScale returns a scale over the bounds of the numbers. Where there is no bound, it ends at the
// largest number seen.
func newHeatScale(h world.HeatMap, values [][]statmath.Quantity) heatScale {
	if h.Share {
		return heatScale{0, 1}
	}
	var seen []float64
	for _, row := range values {
		for _, q := range row {
			if q.Known() {
				seen = append(seen, q.Value)
			}
		}
	}
	round := chart.NewScale(4, seen...)
	s := heatScale{round.Min, round.Max}
	within, known := world.Bounds{}, false
	for _, row := range h.Cells {
		for _, c := range row {
			if c == nil {
				continue
			}
			if !known {
				within, known = c.Bounds, true
			}
			within = within.Join(c.Bounds)
		}
	}
	if within.Any() {
		return s
	}
	if !math.IsInf(within.Low, 0) {
		s.low = within.Low
	}
	if !math.IsInf(within.High, 0) {
		s.high = within.High
	}
	return s
}

// cell is a number and its colour.
func (s heatScale) cell(q statmath.Quantity, tip string) HeatCell {
	if !q.Known() {
		return HeatCell{Text: "–", Tip: tip, Level: -1}
	}
	c := s.colour(q.Value)
	c.Text, c.Tip = digits(math.Round(q.Value*100)/100), fmt.Sprintf("%s (n = %d)", tip, q.N)
	return c
}

func (s heatScale) colour(v float64) HeatCell {
	at := heatLevels / 2.0
	switch {
	case s.low < 0 && s.high > 0:
		at = math.Abs(v) / max(-s.low, s.high) * heatLevels
	case s.high > s.low:
		at = (v - s.low) / (s.high - s.low) * heatLevels
	}
	return HeatCell{Level: int(math.Round(min(heatLevels, max(0, at)))), Below: s.low < 0 && s.high > 0 && v < 0}
}

// ramp returns the colours from the lowest number to the highest.
func (s heatScale) ramp() (out []HeatCell) {
	for i := range heatLevels + 1 {
		out = append(out, s.colour(s.low+(s.high-s.low)*float64(i)/heatLevels))
	}
	return out
}
