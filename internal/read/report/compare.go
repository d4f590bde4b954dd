// Part compare finds what differs between runs, agents, models or cells, what the data
// cannot show yet, and how many more episodes would show it.
//
// Groups are compared deal by deal if they had the same deals, and as wholes otherwise;
// every comparison says which. A deal counts
// once, however many episodes and seats it has. Branches of an episode are compared only with
// each other and with what they were forked from. P is adjusted for the number of
// comparisons. The same runs give the same digits.
//
// collect groups the scores of runs, pair finds what can be compared with
// what, judge tests it, and Document puts it into words and tables.

package report

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/internal/kit/statmath"
	"parley/internal/kit/text"
	"parley/internal/run/results"
	"parley/world"
)

// Common values of Config.By: see results.Factors for all.
const (
	ByFile  = "file"
	ByAgent = "agent"
	byModel = "model"
	byCell  = "cell"
)

// The ways to correct for the number of comparisons.
const (
	holm = "holm"
	bh   = "bh"
	none = "none"
)

// ErrOne is returned if there are not two groups to compare.
var ErrOne = errors.New("nothing to compare")

// ErrUnknown is returned for an unknown score or group.
var ErrUnknown = errors.New("unknown")

// Config selects what to compare.
type Config struct {
	By      string   // factors, separated by commas: see results.Factors; default: file if there are several, else agent
	Correct string   // default: holm
	Scores  []string // default: all
	Against string   // compare all groups with this one; default: every pair
	All     bool     // show every comparison, however many there are
}

const (
	alpha = 0.05
	power = 0.8
)

// Comparison is the result of one comparison.
type Comparison struct {
	Score string
	Of    string // the agent or seat of the score; empty if groups determine it
	A, B  string

	Paired     bool   // unit by unit
	Unit       string // what counts once: deal, forked episode or repeat
	N          int    // units, or those of the smaller group
	MeanA      statmath.Quantity
	MeanB      statmath.Quantity
	Difference statmath.Quantity // A minus B
	Effect     statmath.Quantity // the difference in standard deviations, or Cohen's h of shares
	Test       statmath.Test
	Adjusted   float64 // P, adjusted for all comparisons; NaN if unknown

	// More is how many more units would show the difference, if it is as large as it looks. It is 0 if the
	// difference shows, and -1 if the number is unknown or the difference is noise. Episodes is the number of episodes
	// of these units.
	More, Episodes int
	// Least is the smallest number of units with which the test can show anything, if there are fewer.
	Least int
	// Beyond is a number of units that would still not show the difference. It is 0 if More is known.
	Beyond int
	Played int    // episodes of both sides
	Note   string // a caveat

	perDeal int // episodes
	pairs   pairing
	shares  bool
}

// Differs reports whether the groups differ.
func (c *Comparison) Differs() bool { return c.Adjusted < alpha }

// Result has all comparisons.
type Result struct {
	By, Correct string
	Groups      []string
	Comparisons []Comparison // the most interesting first if there are more than shown
	Copies      []string     // which runs have copies of episodes, why, and what to do

	all bool // show all
}

// shown is the maximum number of comparisons that people see, unless they ask for all.
const shown = 20

// Runs compares runs. The names identify the runs.
func Runs(runs []*results.Run, names []string, c Config) (*Result, error) {
	c = c.resolved(len(runs))
	found, err := collect(runs, names, c)
	if err != nil {
		return nil, err
	}
	if err := known("score", c.Scores, found.scores); err != nil {
		return nil, err
	}
	if len(found.groups) < 2 {
		return nil, fmt.Errorf("compare: by %s: %w: %s", c.By, ErrOne, oneGroup(c, names, found.groups))
	}
	if err := known(c.By, []string{c.Against}, found.groups); c.Against != "" && err != nil {
		return nil, err
	}
	matches := matches(found, c.Against)
	if len(matches) == 0 {
		return nil, fmt.Errorf("compare: by %s: %w: no two groups have the same score", c.By, ErrOne)
	}
	r := &Result{By: c.By, Correct: c.Correct, Groups: found.groups, all: c.All}
	for i, one := range runs {
		if note := results.CopiesNote(one.Head); note != "" {
			r.Copies = append(r.Copies, names[i]+": "+note)
		}
	}
	for _, m := range matches {
		r.Comparisons = append(r.Comparisons, m.compare(bounds(runs, m.score), len(matches)))
	}
	r.adjust()
	r.plan()
	if len(r.Comparisons) > shown {
		slices.SortStableFunc(r.Comparisons, byInterest)
	}
	return r, nil
}

// byInterest orders by adjusted P, then by decreasing effect, with unknown values last.
func byInterest(a, b Comparison) int {
	known := func(x float64) float64 {
		if math.IsNaN(x) {
			return math.Inf(1)
		}
		return x
	}
	return cmp.Or(cmp.Compare(known(a.Adjusted), known(b.Adjusted)), cmp.Compare(known(-math.Abs(a.Effect.Value)), known(-math.Abs(b.Effect.Value))))
}

// match is two groups of a score.
type match struct {
	*series
	a, b string
}

// matches returns the pairs of groups to compare.
func matches(found *collection, against string) (out []match) {
	for _, s := range found.series {
		for i, a := range found.groups {
			for _, b := range found.groups[i+1:] {
				switch {
				case s.by[a] == nil || s.by[b] == nil:
				case against == a:
					out = append(out, match{s, b, a})
				case against == "" || against == b:
					out = append(out, match{s, a, b})
				}
			}
		}
	}
	return out
}

// compare tests a match, which is one of so many.
func (m match) compare(within world.Bounds, matches int) Comparison {
	p := pair(m.by[m.a], m.by[m.b])
	c := Comparison{Score: m.score, Of: m.of, A: m.a, B: m.b, Paired: p.paired, Unit: cmp.Or(p.unit, "deal"), Note: p.note, perDeal: p.episodes}
	if p.x == nil {
		p.x, p.y = m.by[m.a], m.by[m.b]
	}
	c.Played = len(episodesOf(slices.Concat(p.x, p.y)))
	c.MeanA, c.MeanB = estimate(p.x, within), estimate(p.y, within)
	c.judge(p, m.share, within, matches)
	if d := c.MeanA.Value - c.MeanB.Value - c.Difference.Value; math.Abs(d) > 1e-9*(math.Abs(c.MeanA.Value)+math.Abs(c.MeanB.Value)) {
		c.Note = join("the means are over all episodes, the difference only over what both played alike", c.Note)
	}
	return c
}

// bounds returns the bounds of a score over all runs.
func bounds(runs []*results.Run, score string) world.Bounds {
	b := runs[0].Bounds[score]
	for _, r := range runs[1:] {
		b = b.Join(r.Bounds[score])
	}
	return b
}

// known refuses names that are not among all.
func known(what string, names, all []string) error {
	for _, name := range names {
		if slices.Contains(all, name) || len(all) == 0 {
			continue
		}
		hint := cmp.Or(text.Suggest(name, all), ".")
		return fmt.Errorf("compare: %w %s %q%s There are: %s", ErrUnknown, what, name, hint, strings.Join(all, "; "))
	}
	return nil
}

func (c Config) resolved(runs int) Config {
	if c.By == "" {
		c.By = ByAgent
		if runs > 1 {
			c.By = ByFile
		}
	}
	c.Correct = cmp.Or(c.Correct, holm)
	return c
}

// oneGroup says why there are not two groups.
func oneGroup(c Config, names, groups []string) string {
	if len(groups) == 0 {
		return "no episode has a score yet"
	}
	without := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(groups, name) })
	if c.By != ByFile || len(without) == 0 {
		return fmt.Sprintf("%q is the only one", groups[0])
	}
	has, what := "has", "scores"
	if len(without) > 1 {
		has = "have"
	}
	if len(c.Scores) > 0 {
		what = "score " + strings.Join(c.Scores, ", ")
	}
	return fmt.Sprintf("%s %s no %s yet", strings.Join(without, ", "), has, what)
}

// adjust corrects P for the number of comparisons.
func (r *Result) adjust() {
	ps := make([]float64, len(r.Comparisons))
	for i, c := range r.Comparisons {
		ps[i] = c.Test.P
	}
	adjusted := statmath.Adjust(r.Correct, ps)
	for i := range r.Comparisons {
		r.Comparisons[i].Adjusted = adjusted[i]
	}
}
