package report

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/internal/kit/statmath"
	"parley/internal/kit/text"
	"parley/internal/run/results"
	"parley/world"
)

// Common values of CompareConfig.By: see results.Factors for all.
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

// ErrNothingToCompare is returned if there are not two groups to compare.
var ErrNothingToCompare = errors.New("nothing to compare")

// ErrUnknown is returned for an unknown score or group.
var ErrUnknown = errors.New("unknown")

// CompareConfig selects what to compare.
type CompareConfig struct {
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
	// FailedA and FailedB are how many episodes of the groups failed. They have no score.
	FailedA, FailedB int
	Caution          string // why the numbers may be wrong; empty: nothing is known

	perDeal int // episodes
	extra   int // units of the larger group besides N
	shares  bool
}

// Differs reports whether the groups differ.
func (c *Comparison) Differs() bool { return c.Adjusted < alpha }

// CompareResult has all comparisons.
type CompareResult struct {
	By, Correct string
	Groups      []string
	Comparisons []Comparison // the most interesting first if there are more than shown
	Copies      []string     // which runs have copies of episodes, why, and what to do
	Notes       []string     // what is not counted or compared, and why

	all bool // show all
}

// maxComparisons is the maximum number of comparisons that people see, unless they ask for all.
const maxComparisons = 20

// Compare finds what differs between runs, agents, models or cells, what the data cannot show yet, and how many more episodes would
// show it. The names identify the runs.
//
// Groups are compared deal by deal if they had the same deals, and as wholes otherwise; every comparison says which. A deal counts
// once, however many episodes and seats it has. Branches of an episode are compared only with each other and with what they were
// forked from. P is adjusted for the number of comparisons. The same runs give the same digits.
//
// collect groups the scores of runs, pair finds what can be compared with what, judge tests it, and Document puts it into words and
// tables.
func Compare(runs []*results.Run, names []string, c CompareConfig) (*CompareResult, error) {
	c = c.resolved(len(runs))
	same := sameScores(runs, c.Scores)
	found, err := collect(runs, names, c, same)
	if err != nil {
		return nil, err
	}
	if err := refuseUnknown("score", c.Scores, found.scores); err != nil {
		return nil, err
	}
	if len(found.groups) < 2 {
		return nil, fmt.Errorf("by %s: %w: %s", c.By, ErrNothingToCompare, strings.Join(append([]string{oneGroup(c, names, found.groups)}, found.onlyFailed()...), "; "))
	}
	if err := refuseUnknown(c.By, []string{c.Against}, found.groups); c.Against != "" && err != nil {
		return nil, err
	}
	matches := matches(found, c.Against)
	if len(matches) == 0 {
		return nil, fmt.Errorf("by %s: %w: no two groups have the same score", c.By, ErrNothingToCompare)
	}
	r := &CompareResult{By: c.By, Correct: c.Correct, Groups: found.groups, all: c.All}
	biased, tasks := false, false
	for i, one := range runs {
		if note := results.CopiesNote(one.Head); note != "" {
			r.Copies = append(r.Copies, names[i]+": "+note)
		}
		if note := one.CountedNote(); note != "" {
			r.Notes = append(r.Notes, names[i]+": "+note)
		} else if ended := one.Head.Ended.Len(); ended < one.Episodes.Total {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: The run is not complete: %s of %s episodes have ended.", names[i], text.GroupDigits(ended), text.GroupDigits(one.Episodes.Total)))
		}
		biased = biased || one.Biased()
		if deals := one.Deals(); !tasks {
			for spec := range one.Head.Plays() {
				tasks = deals.Tasks(spec)
				break
			}
		}
	}
	r.Notes = append(r.Notes, found.onlyFailed()...)
	for _, name := range slices.Sorted(maps.Keys(same)) {
		r.Notes = append(r.Notes, fmt.Sprintf("%s is the same as %s in every episode, so it is not compared.", name, same[name]))
	}
	for _, m := range matches {
		one := m.compare(bounds(runs, m.score), len(matches))
		if tasks && one.Unit == "deal" {
			one.Unit = "different deal"
		}
		if biased {
			one.Caution = join(results.BiasedNote, one.Caution)
		}
		r.Comparisons = append(r.Comparisons, one)
	}
	r.adjust()
	r.plan()
	if len(r.Comparisons) > maxComparisons {
		slices.SortStableFunc(r.Comparisons, byInterest)
	}
	return r, nil
}

// sameScores finds the scores that say the same as another one, which it returns by their names: in every episode, the same seats have the
// same values. Comparing both would count one finding twice. Scores that are asked for by name are all compared.
func sameScores(runs []*results.Run, asked []string) map[string]string {
	if len(asked) > 0 {
		return nil
	}
	seed, episode := maphash.MakeSeed(), 0
	var order []string
	all := map[string]*maphash.Hash{}
	for _, r := range runs {
		r.Each(func(p world.Played) {
			episode++
			if p.Outcome.Failed != "" {
				return
			}
			for _, s := range p.Outcome.Scores {
				h := all[s.Name]
				if h == nil {
					h = &maphash.Hash{}
					h.SetSeed(seed)
					all[s.Name], order = h, append(order, s.Name)
				}
				maphash.WriteComparable(h, episode)
				maphash.WriteComparable(h, s.Seat)
				maphash.WriteComparable(h, math.Float64bits(s.Value))
			}
		})
	}
	first, same := map[uint64]string{}, map[string]string{}
	for _, name := range order {
		sum := all[name].Sum64()
		if _, there := first[sum]; there {
			same[name] = first[sum]
			continue
		}
		first[sum] = name
	}
	return same
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
	c.countFailed(m)
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

// refuseUnknown refuses names that are not among all.
func refuseUnknown(what string, names, all []string) error {
	for _, name := range names {
		if slices.Contains(all, name) || len(all) == 0 {
			continue
		}
		hint := cmp.Or(text.Suggest(name, all), ".")
		return fmt.Errorf("%w %s %q%s There are: %s", ErrUnknown, what, name, hint, strings.Join(all, "; "))
	}
	return nil
}

func (c CompareConfig) resolved(runs int) CompareConfig {
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
func oneGroup(c CompareConfig, names, groups []string) string {
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
func (r *CompareResult) adjust() {
	ps := make([]float64, len(r.Comparisons))
	for i, c := range r.Comparisons {
		ps[i] = c.Test.P
	}
	adjusted := statmath.Adjust(r.Correct, ps)
	for i := range r.Comparisons {
		r.Comparisons[i].Adjusted = adjusted[i]
	}
}

const confidence = results.Confidence

// seed is the seed of all permutations.
const seed = 1

// judge tests a pairing, which is one of so many. No interval goes beyond the bounds of the score.
func (c *Comparison) judge(p pairing, share bool, within world.Bounds, matches int) {
	shares := share && p.single
	c.N = min(len(p.a), len(p.b))
	c.extra, c.shares = max(len(p.a), len(p.b))-c.N, shares
	switch {
	case p.paired && shares:
		n := tally(p.a, p.b)
		c.Difference, c.Test = statmath.PairedShareDifference(n, confidence), statmath.McNemar(n)
		c.Effect = statmath.PairedEffect(differences(p), confidence)
	case p.paired:
		d := differences(p)
		c.Difference, c.Test = statmath.PairedDifference(p.a, p.b, confidence), flip(d, matches)
		c.Effect = statmath.PairedEffect(d, confidence)
	case shares:
		k1, k2 := ones(p.a), ones(p.b)
		c.Difference, c.Test = statmath.ShareDifference(k1, len(p.a), k2, len(p.b), confidence), statmath.Fisher(k1, len(p.a), k2, len(p.b))
		c.Effect = statmath.CohenH(k1, len(p.a), k2, len(p.b), confidence)
	default:
		c.Difference, c.Test = statmath.MeanDifference(p.a, p.b, confidence), statmath.Welch(p.a, p.b)
		c.Effect = statmath.Hedges(p.a, p.b, confidence)
		if c.N == 1 && p.unit != "" { // an episode among its branches
			x, others := p.a, p.b
			if len(x) > 1 {
				x, others = p.b, p.a
			}
			c.Test = statmath.Among(x[0], others)
		}
	}
	c.Difference = within.Difference().Quantity(c.Difference)
}

// flip tests differences. P from n random draws is never below 1/n, which must not
// prevent a finding among many comparisons: if P is close to that, flip draws more.
// It draws less for very many differences, to bound the work.
func flip(differences []float64, matches int) statmath.Test {
	const work = 400_000_000
	n := max(1, len(differences))
	draws := min(9999, max(1999, work/n))
	t := statmath.Permutation{Seed: seed, Draws: draws}.SignFlip(differences)
	if more := min(100*matches, work/n); t.P < 20/float64(draws) && more > draws {
		t = statmath.Permutation{Seed: seed, Draws: more}.SignFlip(differences)
	}
	return t
}

// estimate returns the mean of a group as every other table shows it.
func estimate(all []observation, within world.Bounds) statmath.Quantity {
	sample := world.Sample{Bounds: within}
	deals := map[results.Deal]int{}
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(o observation) bool { return o.episode != all[0].episode })
		if n < 0 {
			n = len(all)
		}
		values := make([]float64, n)
		for i, o := range all[:n] {
			values[i] = o.value
		}
		d := all[0].deal
		if deals[d] == 0 {
			deals[d] = len(deals) + 1
		}
		unit := world.Unit{Deal: deals[d], Play: all[0].play}
		if len(all[0].from) > 0 {
			unit.Deal = 0 // all episodes of a fork have the same deal
		}
		sample.Add(unit, values...)
		all = all[n:]
	}
	return sample.Estimate(confidence)
}

func differences(p pairing) []float64 {
	out := make([]float64, len(p.a))
	for i := range out {
		out[i] = p.a[i] - p.b[i]
	}
	return out
}

func tally(a, b []float64) (n statmath.Pairs) {
	for i := range a {
		n.Count(a[i], b[i])
	}
	return n
}

func ones(xs []float64) (n int) {
	for _, x := range xs {
		if x == 1 {
			n++
		}
	}
	return n
}

// maxLeast is the largest number of units that leastUnits looks at.
const maxLeast = 2_000

// leastUnits returns the smallest number of units on the smaller side with which the test can find anything: an
// exact test has a smallest P. For Welch's test it is two. The larger side has so many units more.
func leastUnits(paired, shares bool, more int, level float64) int {
	for n := 2; ; n++ {
		var p float64
		switch {
		case paired:
			p = 2 * math.Pow(0.5, float64(n))
		case shares:
			p = statmath.Fisher(n, n, 0, n+more).P
		}
		if p < level || n >= maxLeast {
			return n
		}
	}
}

// plan finds how many more units would show the difference, if it is as large as it looks, and the
// smallest number that can show anything.
func (c *Comparison) plan(level float64) {
	if c.Differs() {
		return
	}
	c.More = -1
	if c.N < 2 || !c.Test.Known() {
		return
	}
	if least := leastUnits(c.Paired, c.shares, c.extra, level); least > c.N {
		c.Least = least
	}
	if c.Difference.Value == 0 || !c.Difference.Known() || c.noise() {
		return
	}
	limit := 100 * c.N // more is impractical
	n, ok := c.needs(level)
	if !ok || n > limit {
		c.Beyond = limit
		return
	}
	c.More = max(n, c.N+1, c.Least) - c.N
	c.Episodes = c.More * max(1, c.perDeal)
}

// needs returns about how many units the smaller side needs for the test to find the difference four times in five, if both sides get
// equally many more.
func (c *Comparison) needs(level float64) (n int, ok bool) {
	switch d := c.Effect.Value; {
	case math.IsNaN(d): // all units are equal: of pairs, the fewest with which the test can find anything are enough
		return 0, c.Paired
	case c.Paired:
		n, ok = statmath.PairedNeeded(d, level, power) // signs need about as many
	case c.shares:
		n, ok = statmath.SharesNeeded(c.MeanA.Value, c.MeanB.Value, level, power)
	default:
		n, ok = statmath.MeansNeeded(d, level, power)
	}
	if ok && c.shares {
		n = exactNeeded(n, c.Difference.Value)
	}
	if !ok || c.Paired {
		return n, ok
	}
	each, extra := float64(n), float64(c.extra)
	return int(math.Ceil((each - extra + math.Hypot(each, extra)) / 2)), ok // two groups that are as precise as two of n
}

// exactNeeded returns how many units an exact test of shares needs where n are enough without its correction for continuity: see
// Fleiss, Tytun and Ury (Biometrics 36, 1980).
func exactNeeded(n int, difference float64) int {
	root := 1 + math.Sqrt(1+4/(float64(n)*math.Abs(difference)))
	return int(math.Ceil(float64(n) / 4 * root * root))
}

// noise reports whether P is above a half: then the interval says all there is to say.
func (c *Comparison) noise() bool {
	half := c.Difference.Half()
	return c.Test.P > 0.5 && half > 0 && !math.IsInf(half, 0)
}

// plan finds for all open comparisons how many more units would show a difference, at the level
// that the next finding must be below while the others stay unchanged.
func (r *CompareResult) plan() {
	var open []int
	found := 0
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		switch {
		case c.Differs():
			found++
		case !math.IsNaN(c.Adjusted):
			open = append(open, i)
		}
	}
	level := alpha
	switch r.Correct {
	case holm:
		level /= float64(max(1, len(open)))
	case bh:
		level *= float64(found+1) / float64(found+max(1, len(open)))
	}
	for _, i := range open {
		r.Comparisons[i].plan(level)
	}
	for i := range r.Comparisons {
		if c := &r.Comparisons[i]; math.IsNaN(c.Adjusted) {
			c.More = -1
		}
	}
}
