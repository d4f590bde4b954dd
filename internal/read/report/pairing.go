package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/internal/run/planner"
	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
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
	if p := pairDeals(x, y); p.paired {
		return p
	}
	x, y = withoutStrata(x), withoutStrata(y)
	if p := pairDeals(x, y); p.paired {
		p.note = "they never had the same seat, so the difference may be due to the seats"
		return p
	}
	if note == "" && noCommonDeals(x, y) {
		note = "they had no deals in common, so the difference may be due to the deals"
	}
	a, alone := means(x)
	b, single := means(y)
	return pairing{a: a, b: b, single: alone && single, episodes: perDeal(len(a), x) + perDeal(len(b), y), note: note}
}

// noCommonDeals reports whether two groups are of different kinds, or had different deals
// apart from chance, which no number of episodes can average out.
func noCommonDeals(x, y []observation) bool {
	known := map[[2]string]bool{}
	for _, o := range x {
		known[[2]string{o.deal.Kind, o.deal.What}] = true
	}
	return !slices.ContainsFunc(y, func(o observation) bool { return known[[2]string{o.deal.Kind, o.deal.What}] })
}

// withoutStrata returns observations without their strata.
func withoutStrata(all []observation) []observation {
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

// pairDeals pairs deals. The result is not paired if fewer than half of the deals of the smaller
// group have a partner.
func pairDeals(x, y []observation) pairing {
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

// observation is a score of one seat of an episode, or of the whole episode.
type observation struct {
	deal    results.Deal
	play    int // see world.Unit; numbered across runs
	stratum stratum
	episode int // numbered across runs
	value   float64

	self ref
	from []ref // the episodes that it continues, the nearest first
	past ref   // of these and self, the nearest that the other side has too
}

// stratum is what must be the same besides the deal for two observations to be a pair.
type stratum struct {
	setting    int // of the params
	cell, seat string
}

// series is one score, by group.
type series struct {
	score, of string
	share     bool // all values are 0 or 1
	by        map[string][]observation
	seats     map[string]bool         // that have the score
	failed    map[string]*failedGroup // by group too
	spent     map[int]journal.Spending
}

type collection struct {
	groups []string
	series []*series
	scores []string // all scores, whether asked for or not
}

// collect groups the scores of all runs, without those that are the same as another.
func collect(runs []*results.Run, names []string, c CompareConfig, same map[string]string) (*collection, error) {
	if c.By == ByFile {
		names = groupForks(runs, names)
	}
	factors, err := results.FactorsOf(runs, names, strings.Split(c.By, ","))
	if err != nil {
		return nil, err
	}
	out, from := &collection{}, pasts(runs)
	spent := map[int]journal.Spending{} // by episode, numbered across runs
	at := map[[2]string]*series{}
	subject, where := subjects(runs, factors), stratumOf(factors)
	units := results.NewUnits() // across runs
	episodes := 0
	var failed []failedEpisode
	group := func(run int, spec world.Spec, seat string) (string, bool) {
		levels, ok := factors.Of(run, spec, seat)
		return strings.Join(levels[:len(factors.Names)], ", "), ok
	}
	for i, r := range runs {
		deals := r.Deals()
		r.Each(func(p world.Played) {
			episodes++
			deal, play := deals.Of(p.Spec), units.Play(r, deals, p)
			if p.Episode < len(r.Spent) {
				spent[episodes] = r.Spent[p.Episode]
			}
			if p.Outcome.Failed != "" {
				failed = append(failed, failedEpisode{i, episodes, p.Spec, deal})
				return
			}
			for _, s := range p.Outcome.Scores {
				if !slices.Contains(out.scores, s.Name) {
					out.scores = append(out.scores, s.Name)
				}
				if same[s.Name] != "" || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || (len(c.Scores) > 0 && !slices.Contains(c.Scores, s.Name)) {
					continue
				}
				group, ok := group(i, p.Spec, s.Seat)
				if !ok {
					continue
				}
				key := [2]string{s.Name, subject(p.Spec, s.Seat)}
				if at[key] == nil {
					at[key] = &series{score: key[0], of: key[1], share: true, by: map[string][]observation{}, seats: map[string]bool{}, spent: spent}
					out.series = append(out.series, at[key])
				}
				at[key].seats[s.Seat] = true
				at[key].share = at[key].share && (s.Value == 0 || s.Value == 1)
				at[key].by[group] = append(at[key].by[group], observation{
					deal: deal, play: play, stratum: where(p.Spec, s.Seat), episode: episodes, value: s.Value,
					self: ref{r.Head.Begun.Run, p.Episode}, from: from[i],
				})
				if !slices.Contains(out.groups, group) {
					out.groups = append(out.groups, group)
				}
			}
		})
	}
	out.addFailed(failed, group, subject)
	out.sort()
	return out, nil
}

// sort puts the series of one score together, in the order that worlds name scores.
func (c *collection) sort() {
	first := map[string]int{}
	for i, s := range c.series {
		if _, ok := first[s.score]; !ok {
			first[s.score] = i
		}
	}
	slices.SortStableFunc(c.series, func(a, b *series) int { return first[a.score] - first[b.score] })
}

// stratumOf returns a function that finds the stratum of a score: whatever is
// neither a factor nor follows from one.
func stratumOf(factors *results.Factors) func(world.Spec, string) stratum {
	settings := settings{of: factors, known: map[string]int{}, numbers: map[string]int{}}
	whose := factors.Any(results.OfAgent, results.OfLineup, results.OfFile) // these determine the lineup
	seats, cells, variations := factors.Any(results.OfSeat), factors.Any(results.OfCell), factors.Any(results.OfVariation)
	params, files := factors.Any(results.OfParam), factors.Any(results.OfFile) && len(factors.Names) == 1
	return func(spec world.Spec, seat string) (at stratum) {
		if at.seat = seat; seats {
			at.seat = ""
		}
		switch {
		case cells:
		case variations:
			if !whose && !params {
				at.cell = strings.TrimPrefix(spec.Cell, planner.VariationOf(spec.Cell))
			}
		case files:
			at.cell = spec.Cell
		default:
			at.setting = settings.number(spec.Params)
			if !whose {
				at.cell = fmt.Sprint(spec.Lineup)
			}
		}
		return at
	}
}

// settings numbers params, ignoring those that are factors or only tell episodes apart.
type settings struct {
	of      *results.Factors
	known   map[string]int // by params
	numbers map[string]int // by params without factors
}

func (s settings) number(params json.RawMessage) int {
	n, ok := s.known[string(params)]
	if ok {
		return n
	}
	left := s.of.WithoutParams(params)
	n, ok = s.numbers[left]
	if !ok {
		n = len(s.numbers)
		s.numbers[left] = n
	}
	s.known[string(params)] = n
	return n
}

// subjects returns a function that finds whose score a score is, if groups do not determine it: an agent's if all
// files have an agent in common, otherwise a seat's. A fork may put another agent into a seat, so for branches
// it is the seat's.
func subjects(runs []*results.Run, factors *results.Factors) func(world.Spec, string) string {
	switch {
	case factors.Any(results.OfAgent, results.OfSeat):
		return func(world.Spec, string) string { return "" }
	case factors.Any(results.OfFile):
		common := agentsOf(runs[0])
		for _, r := range runs[1:] {
			names := agentsOf(r)
			maps.DeleteFunc(common, func(name string, _ bool) bool { return !names[name] })
		}
		if len(common) > 0 && !forked(runs) {
			return func(spec world.Spec, seat string) string { return spec.Lineup[seat] }
		}
	}
	return func(_ world.Spec, seat string) string { return seat }
}

func agentsOf(r *results.Run) map[string]bool {
	names := map[string]bool{}
	for _, a := range r.Head.Begun.Agents {
		names[a.Name] = true
	}
	return names
}

// ref identifies an episode of a run, which may or may not be among those compared.
type ref struct {
	run     string
	episode int
}

// pasts returns, for each run, the episodes that it continues: the episode it was forked from,
// the episode that one was forked from, and so on, as far as the runs show.
func pasts(runs []*results.Run) [][]ref {
	origin := map[string]*ref{}
	for _, r := range runs {
		if b := r.Head.Begun; b.Fork != nil {
			origin[b.Run] = &ref{b.Fork.Run, b.Fork.Episode}
		}
	}
	out := make([][]ref, len(runs))
	for i, r := range runs {
		at := origin[r.Head.Begun.Run]
		for at != nil && len(out[i]) < len(runs) { // a file may claim to be forked from itself
			out[i] = append(out[i], *at)
			at = origin[at.run]
		}
	}
	return out
}

func forked(runs []*results.Run) bool {
	return slices.ContainsFunc(runs, func(r *results.Run) bool { return r.Head.Begun.Fork != nil })
}

// groupForks gives the same name to forks of several episodes that were changed in the same way, so
// that they form one group.
func groupForks(runs []*results.Run, names []string) []string {
	type change struct{ origin, how string }
	of := func(r *results.Run) (c change, ok bool) {
		b := r.Head.Begun
		if b.Fork == nil || len(r.Head.Stages) == 0 || r.Head.Stages[0].Specs.Len() == 0 {
			return c, false
		}
		spec := r.Head.Stages[0].Specs.At(0)
		agents, err := json.Marshal(b.Agents)
		return change{b.Fork.Run, fmt.Sprintf("%d %s %v %s", b.Fork.Turn, spec.Params, spec.Lineup, agents)}, err == nil
	}
	alike := map[change][]int{}
	for i, r := range runs {
		if c, ok := of(r); ok {
			alike[c] = append(alike[c], i)
		}
	}
	out := slices.Clone(names)
	for _, members := range alike {
		episodes := map[int]bool{}
		for _, i := range members {
			episodes[runs[i].Head.Begun.Fork.Episode] = true
		}
		if len(episodes) < 2 {
			continue // of one episode: more draws, which stay separate
		}
		for _, i := range members {
			out[i] = fmt.Sprintf("%s and %d more", names[members[0]], len(members)-1)
		}
		if len(members) == len(runs) {
			return names
		}
	}
	return out
}

// branches compares episodes that continue the same past episodes. It is not ok if there are none. A past
// counts as one pair, however often it was continued. If there is only one past, every
// continuation counts, and the comparison is only about that past.
func branches(x, y []observation) (pairing, bool) {
	x, y = related(x, y), related(y, x)
	x, y = shared(x, y), shared(y, x)
	if len(x) == 0 || len(y) == 0 {
		return pairing{}, false
	}
	if p := pairDeals(x, y); p.paired {
		if slices.ContainsFunc(slices.Concat(x, y), func(o observation) bool { return o.past != o.self }) {
			p.unit = "forked episode"
		}
		p.x, p.y = x, y
		return p, true
	}
	if p := pairDeals(byPast(x), byPast(y)); p.paired {
		p.unit, p.note, p.x, p.y = "repeat", onePast, x, y
		return p, true
	}
	x, y = byEpisode(x), byEpisode(y)
	a, alone := means(x)
	b, single := means(y)
	p := pairing{a: a, b: b, single: alone && single, episodes: 2, unit: "repeat", note: onePast, x: x, y: y}
	if min(len(a), len(b)) == 1 && max(len(a), len(b)) > 1 {
		p.note += "; one of them has a single episode: for more, fork it again unchanged with --repeat"
	}
	return p, true
}

const onePast = "both continue one and the same episode, so this is only about what follows from there"

// related keeps the observations of x that share a past with some of y, and sets the
// nearest. It clears the cell, which a fork does not keep.
func related(x, y []observation) (out []observation) {
	known := map[ref]bool{}
	for _, o := range y {
		known[o.self] = true
		for _, r := range o.from {
			known[r] = true
		}
	}
	for _, o := range x {
		for _, r := range append([]ref{o.self}, o.from...) {
			if known[r] {
				o.past, o.stratum = r, stratum{seat: o.stratum.seat}
				out = append(out, o)
				break
			}
		}
	}
	return out
}

// shared keeps the observations of x whose nearest past is also the nearest past of some of y.
func shared(x, y []observation) []observation {
	pasts := map[ref]bool{}
	for _, o := range y {
		pasts[o.past] = true
	}
	return slices.DeleteFunc(slices.Clone(x), func(o observation) bool { return !pasts[o.past] })
}

// byPast counts each common past once.
func byPast(all []observation) []observation {
	return recounted(all, func(o observation) results.Deal { return results.Deal{Run: o.past.run, Number: o.past.episode} })
}

// byEpisode counts each episode once.
func byEpisode(all []observation) []observation {
	return recounted(all, func(o observation) results.Deal { return results.Deal{Number: o.episode} })
}

func recounted(all []observation, unit func(observation) results.Deal) []observation {
	out := slices.Clone(all)
	for i := range out {
		out[i].deal = unit(out[i])
	}
	return out
}

// alike counts the deals that two groups without a common episode played word for word the same.
func alike(x, y []observation) (n int) {
	plays := map[results.Deal]map[int]bool{}
	episodes := episodesOf(x)
	for _, o := range x {
		if plays[o.deal] == nil {
			plays[o.deal] = map[int]bool{}
		}
		plays[o.deal][o.play] = true
	}
	same, met := map[results.Deal]bool{}, map[results.Deal]bool{}
	for _, o := range y {
		if episodes[o.episode] {
			return 0
		}
		if !met[o.deal] {
			met[o.deal], same[o.deal] = true, true
		}
		same[o.deal] = same[o.deal] && o.play != 0 && plays[o.deal][o.play]
	}
	for _, all := range same {
		if all {
			n++
		}
	}
	return n
}

// collapse renames a deal that both groups played exactly like an earlier deal to the earlier one,
// so that they count once. It returns the numbers of deals before and after.
func collapse(x, y []observation) (a, b []observation, deals, left int) {
	signature := map[results.Deal][]string{}
	chance := map[results.Deal]bool{}
	for side, all := range [][]observation{x, y} {
		for _, o := range all {
			signature[o.deal] = append(signature[o.deal], fmt.Sprint(side, o.stratum, o.play))
			chance[o.deal] = chance[o.deal] || o.play == 0
		}
	}
	order := make([]results.Deal, 0, len(signature))
	for d := range signature {
		order = append(order, d)
	}
	slices.SortFunc(order, results.Deal.Compare)
	first, renamed := map[string]results.Deal{}, map[results.Deal]results.Deal{}
	for _, d := range order {
		slices.Sort(signature[d])
		key := fmt.Sprint(signature[d])
		if earlier, ok := first[key]; ok && !chance[d] {
			renamed[d] = earlier
			continue
		}
		first[key] = d
	}
	if len(renamed) == 0 {
		return x, y, len(order), len(order)
	}
	rename := func(all []observation) []observation {
		return recounted(all, func(o observation) results.Deal { return cmp.Or(renamed[o.deal], o.deal) })
	}
	return rename(x), rename(y), len(order), len(order) - len(renamed)
}
