// Package compare says what differs between runs, agents, models or cells, what the data
// cannot show yet, and how many more episodes would show it.
//
// What it promises: groups are compared deal by deal where they were dealt the same, by
// chance and by what the kind says an episode is about, and as wholes elsewhere, and every comparison says which; what belongs to one deal counts
// once, however many episodes and seats it has; branches of an episode are compared with
// each other and with what they were forked from, and with nothing else; P is adjusted for the number of
// comparisons; the same runs give the same digits.
//
// The flow: collect groups the scores of runs, pairing finds what can be compared with
// what, judge tests it, and document puts it into words and tables.
//
// It is not for statistics of its own: they are package stats'.
package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/internal/near"
	"parley/internal/stats"
	"parley/internal/view"
	"parley/world"
)

// Some of the things that can be compared with each other: see view.Factors for all.
const (
	ByFile  = "file"
	ByAgent = "agent"
	ByModel = "model"
	ByCell  = "cell"
)

// The ways to correct for the number of comparisons.
const (
	Holm = "holm"
	BH   = "bh"
	None = "none"
)

// ErrOne is returned where there are not two groups to compare.
var ErrOne = errors.New("there is nothing to compare")

// ErrUnknown is returned for a name that is none of a score or a group.
var ErrUnknown = errors.New("unknown name")

// Config says what to compare.
type Config struct {
	By      string   // factors, with commas between: see view.Factors; default: file where there are several, else agent
	Correct string   // default: holm
	Scores  []string // only these; default: all
	Against string   // compare all groups with this one; default: each with each
	All     bool     // show every comparison, however many there are
}

const (
	alpha = 0.05
	power = 0.8
)

// Comparison is what became of one.
type Comparison struct {
	Score string
	Of    string // whose score: an agent or a seat; empty where groups say it
	A, B  string

	Paired     bool   // unit by unit
	Unit       string // what counts once: deal, forked episode or repeat
	N          int    // units, or those of the smaller group
	MeanA      stats.Quantity
	MeanB      stats.Quantity
	Difference stats.Quantity // of A less B
	Effect     stats.Quantity // the same in standard deviations, or Cohen's h of shares
	Test       stats.Test
	Adjusted   float64 // P for all comparisons together; NaN where it is not known

	// More is how many more units a difference as it seems would take to show; 0 where it
	// shows, -1 where nobody can say or it would be noise. Episodes is how many episodes these are.
	More, Episodes int
	// Least is the fewest units with which the test can show anything at all, where there are fewer.
	Least int
	// Beyond is set where even so many units in all would not show a difference as it seems.
	Beyond int
	Played int    // episodes of both sides
	Note   string // what to bear in mind

	perDeal int // episodes
	pairs   pairing
	shares  bool
}

// Differs says whether the groups differ.
func (c *Comparison) Differs() bool { return c.Adjusted < alpha }

// Result is all comparisons.
type Result struct {
	By, Correct string
	Groups      []string
	Comparisons []Comparison // of more than shown, those of most interest first
	Copies      []string     // which runs have copies of episodes, why, and what to do

	all bool // are to be shown
}

// shown is how many comparisons are shown where there are more, unless all are asked for.
const shown = 20

// Runs compares. The names tell runs apart.
func Runs(runs []*view.Run, names []string, c Config) (*Result, error) {
	c = c.resolved(len(runs))
	found, err := collect(runs, names, c)
	if err != nil {
		return nil, err
	}
	if err := known("score", c.Scores, found.scores); err != nil {
		return nil, err
	}
	if len(found.groups) < 2 {
		return nil, fmt.Errorf("compare: by %s: %w: %s", c.By, ErrOne, oneGroup(found.groups))
	}
	if err := known(c.By, []string{c.Against}, found.groups); c.Against != "" && err != nil {
		return nil, err
	}
	matches := matches(found, c.Against)
	if len(matches) == 0 {
		return nil, fmt.Errorf("compare: by %s: %w: no score is there for two of them", c.By, ErrOne)
	}
	r := &Result{By: c.By, Correct: c.Correct, Groups: found.groups, all: c.All}
	for i, one := range runs {
		if note := view.CopiesNote(one.Head); note != "" {
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

// byInterest puts the smallest adjusted P first, of equal ones the largest effect, and what is
// not known last.
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

// matches lists what is to be compared with what.
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

// compare tests one of so many matches.
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
		c.Note = join("the means are over all of their episodes, and the difference over what both played alike", c.Note)
	}
	return c
}

// bounds are what a score can be in all runs.
func bounds(runs []*view.Run, score string) world.Bounds {
	b := runs[0].Bounds[score]
	for _, r := range runs[1:] {
		b = b.Join(r.Bounds[score])
	}
	return b
}

// known makes sure that names are among those that there are.
func known(what string, names, there []string) error {
	for _, name := range names {
		if slices.Contains(there, name) || len(there) == 0 {
			continue
		}
		hint := ""
		if n := near.Name(name, there); n != "" {
			hint = fmt.Sprintf("; did you mean %q?", n)
		}
		return fmt.Errorf("compare: %w: there is no %s %q%s There are: %s", ErrUnknown, what, name, orStop(hint), strings.Join(there, "; "))
	}
	return nil
}

func orStop(hint string) string { return cmp.Or(hint, ".") }

func (c Config) resolved(runs int) Config {
	if c.By == "" {
		c.By = ByAgent
		if runs > 1 {
			c.By = ByFile
		}
	}
	c.Correct = cmp.Or(c.Correct, Holm)
	return c
}

func oneGroup(groups []string) string {
	if len(groups) == 0 {
		return "no episode has come to a score yet"
	}
	return fmt.Sprintf("%q is the only one", groups[0])
}

// adjust corrects P for the number of comparisons.
func (r *Result) adjust() {
	ps := make([]float64, len(r.Comparisons))
	for i, c := range r.Comparisons {
		ps[i] = c.Test.P
	}
	adjusted := stats.Adjust(r.Correct, ps)
	for i := range r.Comparisons {
		r.Comparisons[i].Adjusted = adjusted[i]
	}
}
