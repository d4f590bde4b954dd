package results

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"parley/internal/run/planner"
	"parley/journal"
	"parley/world"
)

// Deal is what an episode depends on before it is played. Episodes with the same deal can be paired, and are not independent.
type Deal struct {
	Run    string `json:"run,omitempty"` // set if the episode shares its deal with no episode of another run, as in a fork
	Kind   string `json:"kind,omitempty"`
	What   string `json:"what,omitempty"` // what else the kind deals, such as a problem
	Seed   uint64 `json:"seed,omitempty"` // with Number, what chance depends on
	Number int    `json:"number,omitempty"`
}

// Compare orders deals.
func (d Deal) Compare(other Deal) int {
	return cmp.Or(cmp.Compare(d.Run, other.Run), cmp.Compare(d.Kind, other.Kind), cmp.Compare(d.What, other.What),
		cmp.Compare(d.Seed, other.Seed), cmp.Compare(d.Number, other.Number))
}

// Deals finds the deals of a run's episodes.
type Deals struct {
	seed   uint64
	kind   world.Kind
	given  map[string]world.Task // by kind and params
	parts  bool                  // tasks are parts of several things, such as evolutions: these have the deals
	scores bool                  // the run scores another: its episodes have the deals and plays of those that they score
}

// Deals returns the deals of r. It uses the kind only if it is the one that played r.
func (r *Run) Deals() *Deals {
	d := newDeals(r.Head.Begun)
	if k := r.kind; k.Name == r.Head.Begun.Kind && k.Version == r.Head.Begun.KindVersion {
		d.kind = k
		d.findParts(r.Head)
	}
	return d
}

func newDeals(b *journal.Begun) *Deals {
	s, err := ScoredOf(b)
	d := &Deals{given: map[string]world.Task{}, scores: err == nil && s.Run != ""}
	if b != nil {
		d.seed = b.Seed
	}
	return d
}

// Of returns the deal of an episode.
func (d *Deals) Of(spec world.Spec) Deal {
	if d.scores {
		if s, err := ScoredIn(spec.Params); err == nil && s.Deal != (Deal{}) { // a run file may hold anything
			return s.Deal
		}
	}
	g := d.task(spec)
	switch {
	case d.parts && g.Of > 0:
		return Deal{Kind: spec.Kind, Seed: d.seed, Number: g.Of - 1}
	case g.Deals > 0:
		return Deal{Kind: spec.Kind, What: g.Name, Number: spec.Deal % g.Deals}
	case g.Whole:
		return Deal{Kind: spec.Kind, What: g.Name}
	}
	return Deal{Kind: spec.Kind, What: g.Name, Seed: d.seed, Number: spec.Deal}
}

func (d *Deals) task(spec world.Spec) world.Task {
	key := spec.Kind + " " + string(spec.Params)
	g, ok := d.given[key]
	if !ok {
		g = d.read(spec)
		d.given[key] = g
	}
	return g
}

// Tasks reports whether the deals of an episode are tasks of which there are only so many: more repeats play the same ones.
func (d *Deals) Tasks(spec world.Spec) bool { return d.task(spec).Deals > 0 }

// findParts finds whether tasks are parts of several things.
func (d *Deals) findParts(head *journal.Head) {
	first := 0
	for spec := range head.Plays() {
		of := d.task(spec).Of
		if first == 0 {
			first = of
		}
		if d.parts = of != 0 && of != first; d.parts {
			return
		}
	}
}

// play returns what an episode has in common with its copies, and whether others may have it too and be no copies: see journal.Ended.
func (d *Deals) play(spec world.Spec, e *journal.Ended) (play journal.Digest, chance bool) {
	if !d.scores {
		return e.Play, e.Chance
	}
	s, err := ScoredIn(spec.Params)
	raw, cause := hex.DecodeString(s.Play)
	if err != nil || cause != nil || len(raw) != len(play) {
		return journal.Digest{}, true // a run file may hold anything
	}
	return journal.Digest(raw), s.Chance
}

func (d *Deals) read(spec world.Spec) (g world.Task) {
	kind := d.kind.Of(spec)
	params, err := kind.Read(spec.Params)
	if err != nil {
		return g // a run file may hold anything
	}
	return kind.TaskName(params)
}

// Units numbers the deals and plays of one or several runs.
type Units struct {
	deals map[Deal]int
	plays map[journal.Digest]int
}

// NewUnits returns empty Units.
func NewUnits() *Units { return &Units{map[Deal]int{}, map[journal.Digest]int{}} }

// Of returns the unit of an episode of r, as Each passes it. d are the deals of r.
func (u *Units) Of(r *Run, d *Deals, p world.Played) (unit world.Unit) {
	if r.Head.Begun.Fork == nil { // all episodes of a fork have one deal, and the question is how it can end
		unit.Deal = numberOf(u.deals, d.Of(p.Spec))
	}
	unit.Play = u.Play(r, d, p)
	return unit
}

// Play returns the number of the play of an episode of r; 0: it has no copy. d are the deals of r.
func (u *Units) Play(r *Run, d *Deals, p world.Played) int {
	if p.Unit.Play == 0 {
		return 0
	}
	play, _ := d.play(p.Spec, &journal.Ended{Play: r.Head.Ended.Play(p.Episode)})
	return numberOf(u.plays, play)
}

// runUnits are the units of the episodes of a run that ended, by their place among these.
type runUnits struct {
	deals, plays firsts
	copyable     func(world.Spec, *journal.Ended) (journal.Digest, bool)
	fork         bool // all episodes have one deal, and the question is how it can end
	left         uncounted
}

// of returns the unit of an episode, and what of it other episodes share: a deal or play that is only its own is 0 there.
func (u *runUnits) of(place int, spec world.Spec, e *journal.Ended) (unit, shared world.Unit) {
	if !u.fork {
		shared.Deal = u.deals.At(place)
		unit.Deal = cmp.Or(shared.Deal, place+1)
	}
	if _, ok := u.copyable(spec, e); ok {
		shared.Play = u.plays.At(place)
		unit.Play = cmp.Or(shared.Play, place+1)
	}
	return unit, shared
}

// FindUnits finds which episodes share a deal or a play, and which do not count. After it, several goroutines may read the run.
func (r *Run) FindUnits() {
	if r.units != nil {
		return
	}
	n := r.Head.Ended.Len()
	deals := r.Deals()
	r.units = &runUnits{fork: r.Head.Begun.Fork != nil, copyable: deals.copyable(r.Head), left: r.findUncounted()}
	if !r.units.fork {
		r.units.deals = findCopies(n, r.dealKeys(deals))
	}
	r.units.plays = findCopies(n, func(yield func(int, journal.Digest) bool) {
		i := 0
		for spec, e := range r.Head.Plays() {
			if play, ok := r.units.copyable(spec, &e); ok && !yield(i, play) {
				return
			}
			i++
		}
	})
}

// copyable returns a function that returns the play of an episode, and whether others with the same play are its copies.
func (d *Deals) copyable(head *journal.Head) func(world.Spec, *journal.Ended) (journal.Digest, bool) {
	type asked struct {
		cell    string
		opening uint64
	}
	short := func(yield func(int, asked) bool) {
		i := 0
		for spec, e := range head.Plays() {
			if play, chance := d.play(spec, &e); chance && e.Outcome.Failed == "" && !yield(i, asked{spec.Cell, planner.Opening(play)}) {
				return
			}
			i++
		}
	}
	var copies planner.Copies
	if again := findCopies(0, short); again != nil {
		i := 0
		for spec, e := range head.Plays() {
			if play, chance := d.play(spec, &e); chance && e.Outcome.Failed == "" && again.At(i) != 0 {
				copies.See(spec.Cell, play)
			}
			i++
		}
	}
	return func(spec world.Spec, e *journal.Ended) (journal.Digest, bool) {
		play, chance := d.play(spec, e)
		if chance {
			return play, copies.Copied(spec.Cell, play)
		}
		return play, play != (journal.Digest{})
	}
}

// dealKeys yields the deals of the episodes that ended: a number for all but the number of the deal, and that.
func (r *Run) dealKeys(deals *Deals) iter.Seq2[int, [2]int] {
	return func(yield func(int, [2]int) bool) {
		kinds, i := map[Deal]int{}, 0
		for spec := range r.Head.Plays() {
			d := deals.Of(spec)
			of := d.Number
			d.Number = 0
			if !yield(i, [2]int{numberOf(kinds, d), of}) {
				return
			}
			i++
		}
	}
}

func numberOf[K comparable](known map[K]int, key K) int {
	if known[key] == 0 {
		known[key] = len(known) + 1
	}
	return known[key]
}

// Distinct counts the different plays of the episodes that ended without failing, and the
// episodes that copy an earlier one: word for word the same, and not by chance. A copy is not
// independent evidence. Of a run of scores, the plays are those of the episodes that it scores.
func Distinct(head *journal.Head) (distinct, copies int) {
	plays := knownPlays(head)
	first := findCopies(head.Ended.Len(), playDigests(plays))
	for i, p := range plays {
		switch first.At(i) {
		case 0, i + 1:
			distinct++
		default:
			if p.copyable {
				copies++
			}
		}
	}
	return distinct, copies
}

// knownPlay is the play of an episode that did not fail.
type knownPlay struct {
	play     journal.Digest
	copyable bool // others that are the same are copies
	spec     world.Spec
}

// knownPlays yields the episodes that did not fail and whose play is known, with their places among these.
func knownPlays(head *journal.Head) iter.Seq2[int, knownPlay] {
	copyable := newDeals(head.Begun).copyable(head)
	return func(yield func(int, knownPlay) bool) {
		i := 0
		for spec, e := range head.Plays() {
			if e.Outcome.Failed != "" || e.Play == (journal.Digest{}) {
				continue
			}
			play, ok := copyable(spec, &e)
			if !yield(i, knownPlay{play, ok, spec}) {
				return
			}
			i++
		}
	}
}

// playDigests yields the plays of episodes.
func playDigests(episodes iter.Seq2[int, knownPlay]) iter.Seq2[int, journal.Digest] {
	return func(yield func(int, journal.Digest) bool) {
		for i, p := range episodes {
			if !yield(i, p.play) {
				return
			}
		}
	}
}

// CopiesNote says how many episodes of a run are copies, why, and what to do about it. It is empty
// if no episode is a copy.
func CopiesNote(head *journal.Head) string {
	_, copies := Distinct(head)
	if copies == 0 {
		return ""
	}
	episodes := 0
	for range knownPlays(head) {
		episodes++
	}
	are := "are exact copies of others and do"
	if copies == 1 {
		are = "is an exact copy of another and does"
	}
	if newDeals(head.Begun).scores {
		return fmt.Sprintf("Of %d scored episodes, %d %s not count.", episodes, copies, are)
	}
	why, remedy := whyCopies(head)
	return fmt.Sprintf("Of %d episodes, %d %s not count. %s: to get new plays, %s.", episodes, copies, are, why, remedy)
}

// whyCopies says why episodes are the same, and what to change.
func whyCopies(head *journal.Head) (why, remedy string) {
	deals := map[int]int{} // of the first episode of several with one play
	sameDeal := true
	agents := map[string]bool{}
	plays := knownPlays(head)
	first := findCopies(head.Ended.Len(), playDigests(plays))
	for i, p := range plays {
		same := first.At(i)
		if same == 0 || !p.copyable {
			continue
		}
		deal, known := deals[same]
		if !known {
			deals[same] = p.spec.Deal
			continue
		}
		sameDeal = sameDeal && deal == p.spec.Deal
		for _, name := range p.spec.Lineup {
			agents[name] = true
		}
	}
	why, remedy = Unvarying(head.Begun.Agents, func(name string) bool { return agents[name] })
	if why == "" {
		why, remedy = "The provider gives the same answer to the same question", "use a temperature above 0, or a provider that samples"
	}
	if sameDeal {
		return why + ", and copies have the same deal", remedy + ", or play more deals"
	}
	return why + ", and copies were asked the same though their deals differ", remedy + ", or vary what episodes are about, as with plan.matrix"
}

// Unvarying says which of the played agents always give the same answer to the same question, and
// how to change that. It returns "" unless all agents with a model do so.
func Unvarying(agents []world.Agent, played func(name string) bool) (why, remedy string) {
	var cold, seeded []string
	for _, a := range agents {
		switch {
		case a.Bot != "" || a.Human() || !played(a.Name):
		case a.Temperature != nil && *a.Temperature == 0:
			cold = append(cold, a.Name)
		case a.Seed != nil:
			seeded = append(seeded, a.Name)
		default:
			return "", ""
		}
	}
	var whys, remedies []string
	if len(cold) > 0 {
		whys = append(whys, "temperature is 0 for "+listNames(cold))
		remedies = append(remedies, "set agents.NAME.temperature above 0")
	}
	if len(seeded) > 0 {
		whys = append(whys, "a seed is set for "+listNames(seeded))
		remedies = append(remedies, "leave out agents.NAME.seed")
	}
	if len(whys) == 0 { // only bots
		return "All agents are bots", "use a model"
	}
	why = strings.Join(whys, " and ")
	return strings.ToUpper(why[:1]) + why[1:], strings.Join(remedies, " and ")
}

// listNames lists a few names.
func listNames(all []string) string {
	const limit = 4
	if slices.Sort(all); len(all) > limit {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:limit-1], ", "), len(all)-limit+1)
	}
	return strings.Join(all, ", ")
}

// firsts has for each of many keys 1 + the place of the first that is equal; 0 if no other is equal. It may be shorter: then the
// rest are 0.
type firsts []int32

// At returns what a key has.
func (f firsts) At(place int) int {
	if place >= len(f) {
		return 0
	}
	return int(f[place])
}

// findCopies finds equal keys. There are about n, which are read twice, each with its place. Only keys that occur more than once are
// held: among the deals and plays of millions of episodes most do not.
func findCopies[K comparable](n int, keys iter.Seq2[int, K]) firsts {
	seed, end := maphash.MakeSeed(), 0
	hashes := make([]uint64, 0, n)
	for i, k := range keys {
		hashes, end = append(hashes, maphash.Comparable(seed, k)), i+1
	}
	slices.Sort(hashes)
	if hashes = repeated(hashes); len(hashes) == 0 {
		return nil
	}
	out, first := make(firsts, end), map[K]int32{}
	for i, k := range keys {
		if _, ok := slices.BinarySearch(hashes, maphash.Comparable(seed, k)); !ok {
			continue
		}
		if first[k] == 0 {
			first[k] = int32(i) + 1
		}
		out[i] = first[k]
	}
	return out
}

// repeated keeps of a sorted list what it has more than once, each once.
func repeated(sorted []uint64) []uint64 {
	out := sorted[:0]
	for i := 1; i < len(sorted); i++ {
		if h := sorted[i]; h == sorted[i-1] && (len(out) == 0 || out[len(out)-1] != h) {
			out = append(out, h)
		}
	}
	return out
}
