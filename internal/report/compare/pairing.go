package compare

import (
	"fmt"
	"slices"

	"parley/internal/view"
)

// pairing is two groups, ready to be tested: a value for each deal.
type pairing struct {
	paired   bool
	a, b     []float64 // of the same deals, where paired
	single   bool      // each is one observation, no mean of several
	episodes int       // of both, that one more deal takes
	unit     string    // what counts once, where that is no deal
	note     string
	x, y     []observation // what is compared; nil: everything
}

// pair finds what of two groups can be compared deal by deal: where most deals of one are
// also the other's, in the same place. Where no place is the same, as with agents that
// never sat in the same seat, deals are still the same.
func pair(x, y []observation) pairing {
	x, y, deals, left := collapse(x, y)
	p := pairOnce(x, y)
	if n := alike(x, y); n > 0 {
		p.note = join(fmt.Sprintf("%d of %d deals were played word for word alike on both sides, as by answers from a cache or by a model that always answers the same", n, left), p.note)
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
		note = "what goes on from one episode counts once, and these do not go on from the same"
	}
	if p := matched(x, y); p.paired {
		return p
	}
	x, y = anywhere(x), anywhere(y)
	if p := matched(x, y); p.paired {
		p.note = "they never sat in the same seat: the difference may be the seats'"
		return p
	}
	if note == "" && strangers(x, y) {
		note = "they were given nothing that is the same: the difference may lie in that"
	}
	a, alone := means(x)
	b, single := means(y)
	return pairing{a: a, b: b, single: alone && single, episodes: perDeal(len(a), x) + perDeal(len(b), y), note: note}
}

// strangers says whether two groups are of different kinds, or were given different things
// beside chance: no number of episodes takes that out.
func strangers(x, y []observation) bool {
	known := map[[2]string]bool{}
	for _, o := range x {
		known[[2]string{o.deal.Kind, o.deal.What}] = true
	}
	return !slices.ContainsFunc(y, func(o observation) bool { return known[[2]string{o.deal.Kind, o.deal.What}] })
}

// anywhere forgets where observations were made.
func anywhere(all []observation) []observation {
	out := slices.Clone(all)
	for i := range out {
		out[i].stratum = stratum{}
	}
	return out
}

// cell is what one group came to in one deal, place by place.
type cell []part

// part is the observations of one place.
type part struct {
	at  stratum
	sum float64
	n   int
}

func (c cell) find(at stratum) *part {
	for i := range c {
		if c[i].at == at {
			return &c[i]
		}
	}
	return nil
}

// cells sorts observations by deal, and lists deals in order.
func cells(all []observation) (map[view.Deal]cell, []view.Deal) {
	out := map[view.Deal]cell{}
	var order []view.Deal
	for _, o := range all {
		c, ok := out[o.deal]
		if !ok {
			order = append(order, o.deal)
		}
		p := c.find(o.stratum)
		if p == nil {
			c = append(c, part{at: o.stratum})
			p = &c[len(c)-1]
		}
		p.sum += o.value
		p.n++
		out[o.deal] = c
	}
	slices.SortFunc(order, view.Deal.Compare)
	return out, order
}

// matched pairs deals. It is not paired where fewer than half of the deals of the smaller
// group have a partner.
func matched(x, y []observation) pairing {
	one, order := cells(x)
	other, deals := cells(y)
	p := pairing{single: true}
	for _, d := range order {
		var sumA, sumB float64
		places := 0
		for _, a := range one[d] {
			if b := other[d].find(a.at); b != nil {
				sumA += a.sum / float64(a.n)
				sumB += b.sum / float64(b.n)
				places++
				p.single = p.single && a.n == 1 && b.n == 1
			}
		}
		if places > 0 {
			p.single = p.single && places == 1
			p.a, p.b = append(p.a, sumA/float64(places)), append(p.b, sumB/float64(places))
		}
	}
	p.paired = len(p.a) >= 2 && 2*len(p.a) >= min(len(order), len(deals))
	all := map[view.Deal]bool{}
	for _, d := range append(order, deals...) {
		all[d] = true
	}
	p.episodes = perDeal(len(all), append(slices.Clone(x), y...)) // they may meet in the same ones
	return p
}

// means is what a group came to in each deal, over all places.
func means(all []observation) (values []float64, single bool) {
	by, order := cells(all)
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

// perDeal is how many episodes a deal takes, on average and rounded up.
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
