package estimate

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/provider"
	"parley/internal/kit/statmath"
	"parley/internal/run/results"
	"parley/llm"
)

// TimeUse is how long a run will take, at the free pace.
type TimeUse struct {
	// Seconds has the time of the tightest bound as its low end. Its high end adds the longest
	// sequence of turns.
	Seconds statmath.Interval `json:"seconds"`
	// Turns is how many consecutive turns with calls an episode has, on average and at most.
	// In waves over a batch API, each is a wave.
	Turns    float64 `json:"turns_in_a_row"`
	TurnsMax int     `json:"turns_in_a_row_max"`
	// Latency is the assumed duration of a call, in seconds.
	Latency float64 `json:"latency_s"`
	// Bound names what takes longest.
	Bound string `json:"bound"`
	// Assumes lists the other assumptions.
	Assumes []string `json:"assumes"`
}

// bound is how long one limit alone would make the run take, in seconds.
type bound struct {
	what string
	time statmath.Interval
}

func (c Config) time(t *trial, o *outlook, e *Estimate) TimeUse {
	lat := c.Latency.Seconds()
	u := TimeUse{Latency: lat, Assumes: []string{}}
	turns := make([]float64, len(t.episodes))
	for i, ep := range t.episodes {
		turns[i] = float64(ep.turnsInARow())
		u.TurnsMax = max(u.TurnsMax, ep.turnsInARow())
	}
	u.Turns = o.strata(o.parts, turns, true).Mean(results.Confidence).Mean
	row := bound{"turns in a row", statmath.Interval{
		Low:  lat * maxOfCells(o.parts, func(p part) float64 { return certain(p, turns[p.from:p.to]) }),
		High: lat * maxOfCells(o.parts, func(p part) float64 { return float64(p.stages) * slices.Max(turns[p.from:p.to]) }),
	}}
	bounds := c.rates(t, e, &u)
	if n := c.Plan.Concurrency; n > 0 {
		bounds = append(bounds, bound{fmt.Sprintf("limits.concurrency of %d", n), times(e.Calls.Total, lat/float64(n))})
	}
	if live := c.Plan.Live; live > 0 {
		played := statmath.Interval{Low: float64(e.Episodes.Low), High: float64(e.Episodes.High)}
		bounds = append(bounds, bound{fmt.Sprintf("limits.live of %d", live), times(played, u.Turns*lat/float64(live))})
	}
	if c.Plan.Pace != "wave" { // batches set less aside
		bounds = append(bounds, c.waits(t, e, lat))
	}
	longest := row
	for _, b := range bounds {
		u.Seconds.Low = max(u.Seconds.Low, b.time.Low)
		u.Seconds.High = max(u.Seconds.High, b.time.High)
		if b.time.High > longest.time.High {
			longest = b
		}
	}
	u.Seconds.Low = max(u.Seconds.Low, row.time.Low)
	u.Seconds.High += row.time.High
	u.Bound = longest.what
	return u
}

// waits returns how long calls take where no more of them are in flight than the budget has room for. A server that is not known to
// stop at max_tokens may show at once that it does.
func (c Config) waits(t *trial, e *Estimate, latency float64) bound {
	b := bound{what: "calls that wait for room in the budget"}
	for _, m := range e.Models {
		if r := t.rooms[m.Model]; r.AtOnce > 0 {
			all := times(m.Calls.Total, latency/float64(r.AtOnce))
			if r.Exceeds {
				all.Low = 0
			}
			b.time = sum(b.time, all)
		}
	}
	return b
}

// certain returns the consecutive turns of a part that is always played.
func certain(p part, turns []float64) float64 {
	if p.low == 0 {
		return 0
	}
	return statmath.Mean(turns, results.Confidence).Mean
}

// rates returns the bounds from the limits of each account. Models that share limits add up.
func (c Config) rates(t *trial, e *Estimate, u *TimeUse) []bound {
	type load struct {
		limits                         provider.Limits
		calls, input, output, together statmath.Interval
	}
	loads := map[string]*load{}
	for _, m := range e.Models {
		name, limits := limitsOf(t.account(m.Model), m.Model)
		l := loads[name]
		if l == nil {
			l = &load{limits: limits}
			loads[name] = l
		}
		l.calls, l.input = sum(l.calls, m.Calls.Total), sum(l.input, m.Input.Total)
		l.output, l.together = sum(l.output, m.Output.Total), sum(l.together, m.charged.Total)
	}
	var bounds []bound
	for _, name := range slices.Sorted(maps.Keys(loads)) {
		l := loads[name]
		for _, r := range []struct {
			what      string
			perMinute float64
			of        statmath.Interval
		}{
			{"rpm", l.limits.RPM, l.calls}, {"tpm", l.limits.TPM, l.together},
			{"itpm", l.limits.ITPM, l.input}, {"otpm", l.limits.OTPM, l.output},
		} {
			if r.perMinute > 0 {
				bounds = append(bounds, bound{fmt.Sprintf("%s of %s", r.what, name), times(r.of, 60/r.perMinute)})
			}
		}
		if l.limits == (provider.Limits{}) && !strings.HasPrefix(name, "sim") {
			u.Assumes = append(u.Assumes, name+" has no limits in the plan: the estimate assumes that it accepts every call")
		}
		bounds = append(bounds, bound{"concurrency of " + name, inFlight(l.calls, l.limits.Concurrency, u.Latency)})
	}
	return bounds
}

// inFlight returns how long calls take with this limit of calls in flight. Without a limit, few are
// in flight at first, and soon more: see limiter.
func inFlight(calls statmath.Interval, limit int, latency float64) statmath.Interval {
	if limit > 0 {
		return times(calls, latency/float64(limit))
	}
	least := times(calls, latency/limiter.MaxConcurrency)
	ramp := limiter.RampTime(calls.High, time.Duration(latency*float64(time.Second))).Seconds()
	return statmath.Interval{Low: least.Low, High: max(least.High, ramp+latency)}
}

// limitsOf returns the limits of a model and their owner: the longest pattern that the model
// matches, or the account for all other models.
func limitsOf(p provider.Provider, model string) (string, provider.Limits) {
	_, name := llm.SplitModel(model)
	for _, pattern := range p.LimitPatterns() {
		if ok, _ := path.Match(pattern, name); ok {
			return p.Name + "/" + pattern, p.ModelLimits[pattern]
		}
	}
	return p.Name, p.Limits
}

func sum(a, b statmath.Interval) statmath.Interval {
	return statmath.Interval{Low: a.Low + b.Low, High: a.High + b.High}
}

func times(i statmath.Interval, f float64) statmath.Interval {
	return statmath.Interval{Low: i.Low * f, High: i.High * f}
}
