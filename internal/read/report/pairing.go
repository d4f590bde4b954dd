package report

import (
	"fmt"
	"slices"

	"parley/internal/run/results"
)

// pairing is two groups, ready to be tested: a value for each deal.
type pairing struct {
	paired   bool
	a, b     []float64 // of the same deals if paired
	single   bool      // each value is one observation, not a mean
	episodes int       // of both sides, for one more deal
	unit     string    // what counts once, if it is not a deal
	note     string
	x, y     []observation // what is compared; nil for everything
}

// pair pairs two groups deal by deal if most deals of one are
// also the other's, in the same stratum. If no stratum is the same, as with agents that
// never had the same seat, it pairs deals regardless of the stratum.
func pair(x, y []observation) pairing {
	x, y, deals, left := collapse(x, y)
	p := pairOnce(x, y)
	if n := alike(x, y); n > 0 {
		p.note = join(fmt.Sprintf("%d of %d deals were played word for word alike on both sides, for example with answers from a cache or a model that always answers the same", n, left), p.note)
	}
	if left < deals {
		p.note = join(fmt.Sprintf("%d deals are %d distinct plays: the rest are exact copies, and count once", deals, left), p.note)
	}
	return p
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + "; " + b
}

func pairOnce(x, y []observation) pairing {
	note := ""
	if slices.ContainsFunc(slices.Concat(x, y), func(o observation) bool { return len(o.from) > 0 }) {
		if p, ok := branches(x, y); ok {
			return p
		}
		note = "everything that continues one episode counts once, and these do not continue the same episodes"
	}
	if p := matched(x, y); p.paired {
		return p
	}
	x, y = anywhere(x), anywhere(y)
	if p := matched(x, y); p.paired {
		p.note = "they never had the same seat, so the difference may be due to the seats"
		return p
	}
	if note == "" && strangers(x, y) {
		note = "they had no deals in common, so the difference may be due to the deals"
	}
	a, alone := means(x)
	b, single := means(y)
	return pairing{a: a, b: b, single: alone && single, episodes: perDeal(len(a), x) + perDeal(len(b), y), note: note}
}

// strangers reports whether two groups are of different kinds, or had different deals
// apart from chance, which no number of episodes can average out.
func strangers(x, y []observation) bool {
	known := map[[2]string]bool{}
	for _, o := range x {
		known[[2]string{o.deal.Kind, o.deal.What}] = true
	}
	return !slices.ContainsFunc(y, func(o observation) bool { return known[[2]string{o.deal.Kind, o.deal.What}] })
}

// anywhere returns observations without their strata.
func anywhere(all []observation) []observation {
	out := slices.Clone(all)
	for i := range out {
		out[i].stratum = stratum{}
	}
	return out
}

// dealt has the observations of one group in one deal, by stratum.
type dealt []dealtPart

// dealtPart is the observations of one stratum.
type dealtPart struct {
	at  stratum
	sum float64
	n   int
}

func (c dealt) find(at stratum) *dealtPart {
	for i := range c {
		if c[i].at == at {
			return &c[i]
		}
	}
	return nil
}

// byDeal groups observations by deal, and returns the deals in order.
func byDeal(all []observation) (map[results.Deal]dealt, []results.Deal) {
	out := map[results.Deal]dealt{}
	var order []results.Deal
	for _, o := range all {
		c, ok := out[o.deal]
		if !ok {
			order = append(order, o.deal)
		}
		p := c.find(o.stratum)
		if p == nil {
			c = append(c, dealtPart{at: o.stratum})
			p = &c[len(c)-1]
		}
		p.sum += o.value
		p.n++
		out[o.deal] = c
	}
	slices.SortFunc(order, results.Deal.Compare)
	return out, order
}

// matched pairs deals. The result is not paired if fewer than half of the deals of the smaller
// group have a partner.
func matched(x, y []observation) pairing {
	one, order := byDeal(x)
	other, deals := byDeal(y)
	p := pairing{single: true}
	for _, d := range order {
		var sumA, sumB float64
		strata := 0
		for _, a := range one[d] {
			if b := other[d].find(a.at); b != nil {
				sumA += a.sum / float64(a.n)
				sumB += b.sum / float64(b.n)
				strata++
				p.single = p.single && a.n == 1 && b.n == 1
			}
		}
		if strata > 0 {
			p.single = p.single && strata == 1
			p.a, p.b = append(p.a, sumA/float64(strata)), append(p.b, sumB/float64(strata))
		}
	}
	p.paired = len(p.a) >= 2 && 2*len(p.a) >= min(len(order), len(deals))
	all := map[results.Deal]bool{}
	for _, d := range append(order, deals...) {
		all[d] = true
	}
	p.episodes = perDeal(len(all), slices.Concat(x, y)) // they may be in the same episodes
	return p
}

// means returns the mean of a group in each deal, over all strata.
func means(all []observation) (values []float64, single bool) {
	by, order := byDeal(all)
	single = true
	for _, d := range order {
		sum, n := 0.0, 0
		for _, p := range by[d] {
			sum += p.sum
			n += p.n
		}
		values = append(values, sum/float64(n))
		single = single && n == 1
	}
	return values, single
}

// perDeal returns the average number of episodes of a deal, rounded up.
func perDeal(deals int, all []observation) int {
	if deals == 0 {
		return 0
	}
	return (len(episodesOf(all)) + deals - 1) / deals
}

func episodesOf(all []observation) map[int]bool {
	out := map[int]bool{}
	for _, o := range all {
		out[o.episode] = true
	}
	return out
}
