package rollout

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"parley/world"
	"parley/worlds/rollout/rules"
)

// maxPoints is the maximum number of points of a curve.
const maxPoints = 24

// showCurve shows the mean reward over the run. A point covers whole groups.
func (g *exhibits) showCurve() world.Show {
	c := world.Curves{X: "episode", Y: "reward"}
	for _, who := range g.players {
		var of []*group
		for _, k := range g.groups {
			if k.env == who.env {
				of = append(of, k)
			}
		}
		curve := world.Curve{Name: g.label(who)}
		size := max(1, (len(of)+maxPoints-1)/maxPoints, minInPoint(len(of)))
		for part := range slices.Chunk(of, size) {
			var in []*seen
			for _, k := range part {
				in = append(in, k.members...)
			}
			if s := sample(in, reward(who)); s.Episodes() > 0 {
				curve.Points = append(curve.Points, world.CurvePoint{X: middle(in), Sample: s})
			}
		}
		if len(curve.Points) > 1 {
			c.Curves = append(c.Curves, curve)
		}
	}
	if len(c.Curves) == 0 {
		return nil
	}
	return c
}

// minInPoint is the minimum number of groups of a point, if there are enough.
func minInPoint(groups int) int { return min(5, max(1, groups/4)) }

func middle(of []*seen) float64 {
	sum := 0.0
	for _, e := range of {
		sum += float64(e.number)
	}
	return sum / float64(len(of))
}

// showVersions shows the mean reward by version of the weights, if there are several.
func (g *exhibits) showVersions() world.Show {
	c := world.Curves{X: "version of the weights", Y: "reward"}
	several := false
	for _, who := range g.players {
		by := map[float64][]*seen{}
		for _, e := range g.episodes {
			for _, p := range e.got {
				if p.player == who && p.known {
					by[p.version] = append(by[p.version], e)
				}
			}
		}
		curve := world.Curve{Name: g.label(who)}
		for _, v := range slices.Sorted(maps.Keys(by)) {
			curve.Points = append(curve.Points, world.CurvePoint{X: v, Sample: sample(by[v], reward(who))})
		}
		several = several || len(curve.Points) > 1
		if len(curve.Points) > 0 {
			c.Curves = append(c.Curves, curve)
		}
	}
	if !several {
		return nil
	}
	return c
}

// showDistribution shows how many episodes got which reward.
func (g *exhibits) showDistribution() world.Show {
	values := make([][]float64, len(g.players))
	names := make([]string, len(g.players))
	for i, who := range g.players {
		names[i] = g.label(who)
		for _, e := range g.episodes {
			if x, ok := reward(who)(e); ok {
				values[i] = append(values[i], x)
			}
		}
	}
	return histogram("reward", "episodes", names, values)
}

func (g *exhibits) showSteps() world.Show {
	values := make([][]float64, len(g.envs))
	for i, env := range g.envs {
		for _, e := range g.of(env) {
			if e.stop != rules.StopFailed {
				values[i] = append(values[i], float64(e.steps))
			}
		}
	}
	return histogram("steps", "episodes", g.envs, values)
}

// maxBars is the maximum number of bars of a series.
const maxBars = 12

// histogram counts values: each by itself if there are few, otherwise in equal ranges.
func histogram(x, y string, names []string, values [][]float64) world.Show {
	distinct := map[float64]bool{}
	for _, vs := range values {
		for _, v := range vs {
			distinct[v] = true
		}
	}
	if len(distinct) == 0 {
		return nil
	}
	b := world.Bars{X: x, Y: y}
	at := slices.Sorted(maps.Keys(distinct))
	place := func(v float64) int { i, _ := slices.BinarySearch(at, v); return i }
	for _, v := range at {
		b.Labels = append(b.Labels, number(v))
	}
	if len(at) > maxBars {
		low, width, n := ranges(at[0], at[len(at)-1])
		place = func(v float64) int { return max(0, min(n-1, int((v-low)/width))) }
		b.Labels = nil
		for i := range n {
			b.Labels = append(b.Labels, brief(low+float64(i)*width)+"–"+brief(low+float64(i+1)*width))
		}
	}
	for i, vs := range values {
		s := world.BarSeries{Name: names[i], Values: make([]float64, len(b.Labels))}
		for _, v := range vs {
			s.Values[place(v)]++
		}
		b.Series = append(b.Series, s)
	}
	return b
}

// ranges divides an interval into a few parts at round numbers.
func ranges(low, high float64) (from, width float64, n int) {
	const about = 8
	unit := math.Pow(10, math.Floor(math.Log10((high-low)/about)))
	for _, times := range []float64{1, 2, 2.5, 5, 10} {
		if width = unit * times; (high-low)/width <= about {
			break
		}
	}
	from = math.Floor(low/width) * width
	return from, width, max(1, min(about+2, int(math.Floor((high-from)/width))+1))
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

func brief(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

func (g *exhibits) showStops() world.Show {
	counts := map[rules.Stop]map[string]float64{}
	for _, e := range g.episodes {
		if counts[e.stop] == nil {
			counts[e.stop] = map[string]float64{}
		}
		counts[e.stop][e.env]++
	}
	b := world.Bars{X: "stop", Y: "episodes"}
	for _, env := range g.envs {
		b.Series = append(b.Series, world.BarSeries{Name: env})
	}
	for _, stop := range []rules.Stop{rules.StopTerminated, rules.StopTruncated, rules.StopEmpty, rules.StopLength, rules.StopTooLong, rules.StopMaxSteps, rules.StopFailed} {
		if counts[stop] == nil {
			continue
		}
		b.Labels = append(b.Labels, string(stop))
		for i, env := range g.envs {
			b.Series[i].Values = append(b.Series[i].Values, counts[stop][env])
		}
	}
	return b
}

// minShare is the smallest share of the time that is shown.
const minShare = 0.0005

// showTime shows what episodes spend their time on.
func (g *exhibits) showTime() world.Show {
	parts := []struct {
		name string
		of   func(world.Took) float64
	}{
		{"models answer", func(t world.Took) float64 { return t.Asked }},
		{"waiting for models: limits, retries", func(t world.Took) float64 { return t.Queued }},
		{"environments: resets, prompts, steps", func(t world.Took) float64 { return t.Acted }},
		{"waiting for an environment", func(t world.Took) float64 { return t.Waited }},
		{"the rest", func(t world.Took) float64 {
			return max(0, t.Ended-t.Began-t.Asked-t.Queued-t.Acted-t.Waited)
		}},
	}
	t := world.Grid{Columns: []string{"time", "seconds an episode", "share"}}
	for _, p := range parts {
		seconds, share := &world.Sample{Bounds: world.AtLeast0()}, &world.Sample{Bounds: world.Bounds{High: 1}}
		for _, e := range g.episodes {
			all := 0.0
			for _, q := range parts {
				all += q.of(e.took)
			}
			if all > 0 {
				seconds.Add(e.unit, p.of(e.took))
				share.Add(e.unit, p.of(e.took)/all)
			}
		}
		if seconds.Episodes() > 0 && share.Estimate(0.95).Value >= minShare {
			t.Rows = append(t.Rows, []any{p.name, seconds, share})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// allEnvs stands for every environment.
const allEnvs = "(all)"

// showOpen shows how many environments were in use over time.
func (g *exhibits) showOpen() world.Show {
	end := 0.0
	for _, e := range g.episodes {
		end = max(end, e.took.Ended)
	}
	if end <= 0 {
		return nil
	}
	const parts = 60
	width := end / parts
	c := world.Curves{X: "seconds played", Y: "environments in use"}
	names := g.envs
	if len(names) > 1 {
		names = append([]string{allEnvs}, names...)
	}
	for _, env := range names {
		use := make([]float64, parts) // seconds of use in each part
		for _, e := range g.of(env) {
			for i := int(e.took.Began / width); i < parts && float64(i)*width < e.took.Ended; i++ {
				use[i] += max(0, min(e.took.Ended, float64(i+1)*width)-max(e.took.Began, float64(i)*width))
			}
		}
		curve := world.Curve{Name: env}
		for i, seconds := range use {
			s := &world.Sample{}
			s.Add(world.Unit{}, seconds/width)
			curve.Points = append(curve.Points, world.CurvePoint{X: (float64(i) + 0.5) * width, Sample: s})
		}
		c.Curves = append(c.Curves, curve)
	}
	return c
}
