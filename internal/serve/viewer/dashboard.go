// Part dashboard says what the process that plays a run is doing, as parts of a page: speed beside
// the limits, money beside the budget, and how both were before.
//
// It renders no page: package viewer does.

package viewer

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"time"

	"parley/internal/kit/text"
	"parley/internal/read/chart"
	"parley/internal/read/report"
	"parley/internal/run/control"
	"parley/stats"
)

// liveDashboard is what a process is doing.
type liveDashboard struct {
	*control.LiveState
	Share  float64 // of the budget that is spent
	Errors []Errors
	// Exhausted is the time until the budget is spent, at the current rate; 0: unknown.
	Exhausted time.Duration
	Short     bool // the budget does not suffice for the known episodes
	Trends    []trend
}

// Errors are the failed attempts of a model of one kind.
type Errors struct {
	Model, Kind string
	control.LiveError
}

// trend is how a number was over time.
type trend struct {
	Name, Now string
	Drawing   template.HTML
}

// newDashboard returns the dashboard of a state.
func newDashboard(s *control.LiveState) *liveDashboard {
	d := &liveDashboard{LiveState: s, Trends: trends(&s.History)}
	if s.Budget > 0 {
		d.Share = s.Spent.Dollars() / s.Budget.Dollars()
		d.Short = s.Projected > s.Budget
		if minutes := s.Budget.Minus(s.Spent).Dollars() / s.Burn.Dollars(); s.Burn > 0 && minutes > 0 && minutes < maxMinutes {
			d.Exhausted = time.Duration(minutes * float64(time.Minute)).Round(time.Second)
		}
	}
	for _, m := range s.Models {
		for _, kind := range slices.Sorted(maps.Keys(m.Errors)) {
			d.Errors = append(d.Errors, Errors{m.Name, string(kind), m.Errors[kind]})
		}
	}
	return d
}

// maxMinutes is the longest time that is worth naming: a year.
const maxMinutes = 365 * 24 * 60

// maxDashboardRows is how many rows a table has.
const maxDashboardRows = 20

// TopServers returns the servers that are listed, those with the most calls in flight first.
func (d *liveDashboard) TopServers() []control.Server {
	all := slices.Clone(d.Servers)
	slices.SortStableFunc(all, func(a, b control.Server) int { return b.InFlight - a.InFlight })
	return all[:min(len(all), maxDashboardRows)]
}

// TopModels returns the models that are listed.
func (d *liveDashboard) TopModels() []control.Model {
	return d.Models[:min(len(d.Models), maxDashboardRows)]
}

// TopErrors returns the failed attempts that are listed.
func (d *liveDashboard) TopErrors() []Errors { return d.Errors[:min(len(d.Errors), maxDashboardRows)] }

// TopBatches returns the batches that are listed.
func (d *liveDashboard) TopBatches() []control.Batch {
	return d.Batches[:min(len(d.Batches), maxDashboardRows)]
}

// Unlisted says how many rows of a table are left out.
func (*liveDashboard) Unlisted(n int) string {
	if n <= maxDashboardRows {
		return ""
	}
	return fmt.Sprintf("%s more are not listed.", text.GroupDigits(n-maxDashboardRows))
}

// Together reports whether a server limits input and output tokens together.
func (d *liveDashboard) Together() bool {
	return slices.ContainsFunc(d.Servers, func(s control.Server) bool { return s.Tokens.Limit > 0 })
}

// Age returns how long ago a batch was sent.
func (d *liveDashboard) Age(b control.Batch) string {
	return report.Duration(max(0, d.At.Sub(b.Began)).Round(time.Second))
}

// Used returns the share of a limit that is used.
func (*liveDashboard) Used(now, limit float64) float64 { return min(1, now/limit) }

// Rate formats a number of units.
func (*liveDashboard) Rate(x float64) string {
	if x < 10 && x != math.Trunc(x) {
		return fmt.Sprintf("%.1f", x)
	}
	return text.GroupDigits(int(math.Round(x)))
}

// trends draws a history.
func trends(h *control.History) (out []trend) {
	const fewest = 3 // points: a line needs some
	if len(h.Points) < fewest {
		return nil
	}
	dollars := func(x float64) string { return "$" + chart.Tick(x) }
	for i, t := range []struct {
		name string
		of   int
		tick func(float64) string
	}{
		{"calls in flight", control.PointInFlight, chart.Tick}, {"calls a second", control.PointCalls, chart.Tick}, {"tokens a second", control.PointTokens, chart.Tick},
		{"failed attempts a second", control.PointErrors, chart.Tick}, {"dollars spent", control.PointSpent, dollars},
	} {
		line, highest := chart.Line{Name: t.name, Look: chart.Series(i), Bare: true}, 0.0
		for j, p := range h.Points {
			highest = max(highest, p[t.of])
			at := time.Duration(j) * h.Every
			line.Points = append(line.Points, chart.Point{X: at.Seconds(), Y: stats.Quantity{Value: p[t.of], Interval: stats.Everything()}})
		}
		if highest == 0 && t.of != control.PointInFlight && t.of != control.PointCalls {
			continue // nothing fails, or nothing costs anything
		}
		last := h.Points[len(h.Points)-1][t.of]
		p := chart.Plot{Label: fmt.Sprintf("%s over the time of this process: now %s, at most %s", t.name, t.tick(round(last)), t.tick(round(highest))), X: "time", Y: t.name, Height: trendHeight, Ticks: trendTicks, XTick: report.SecondsTick, YTick: t.tick}
		out = append(out, trend{Name: t.name, Now: t.tick(round(last)), Drawing: p.Lines([]chart.Line{line})})
	}
	return out
}

// trendHeight is the height of a drawing in pixels, and trendTicks about how many numbers its x axis has.
const (
	trendHeight = 150
	trendTicks  = 3
)

// round rounds a number to three digits.
func round(x float64) float64 {
	if x == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-2)
	return math.Round(x/unit) * unit
}
