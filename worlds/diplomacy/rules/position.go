package rules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Dislodged is a unit that must retreat. The zero Dislodged is no unit.
type Dislodged struct {
	Unit Unit
	// Attacker is where the attack came from, or Nowhere if that is unknown.
	Attacker Location
	// Retreats are the locations that it can go to. Without any the unit is lost.
	Retreats Set[Location]
}

// Position is the whole state of a game. Positions are values: copy them by assignment and
// compare them with ==.
type Position struct {
	Phase     Phase
	Units     [Provinces]Unit
	Dislodged [Provinces]Dislodged
	Owners    [Provinces]Power // of supply centres
}

// Start is the position the game begins with.
func (r *Rules) Start() Position {
	p := Position{Phase: First()}
	for _, u := range r.Board.Start() {
		p.Units[r.Board.Province(u.Location)] = u
		p.Owners[r.Board.Province(u.Location)] = u.Power
	}
	return p
}

// Centres is the number of supply centres of a power.
func (p *Position) Centres(w Power) int {
	n := 0
	for _, owner := range p.Owners {
		if owner == w {
			n++
		}
	}
	return n
}

// Count is the number of units of a power, without those that must retreat.
func (p *Position) Count(w Power) int {
	n := 0
	for i := range p.Units {
		if p.Units[i].Power == w {
			n++
		}
	}
	return n
}

// Winner is the power with a majority of the centres, or None.
func (p *Position) Winner() Power {
	for _, w := range Powers() {
		if p.Centres(w) >= majority {
			return w
		}
	}
	return None
}

// Alive reports whether a power has a unit or a centre left.
func (p *Position) Alive(w Power) bool {
	for i := range p.Units {
		if p.Units[i].Power == w || p.Owners[i] == w || p.Dislodged[i].Unit.Power == w {
			return true
		}
	}
	return false
}

// pending reports whether a unit can retreat.
func (p *Position) pending() bool {
	for i := range p.Dislodged {
		if !p.Dislodged[i].Retreats.Empty() {
			return true
		}
	}
	return false
}

// surplus is how many units a power may build, or, if negative, must remove.
func (p *Position) surplus(w Power) int { return p.Centres(w) - p.Count(w) }

// Season is a time of the year.
type Season uint8

// The seasons. In winter units are built and removed.
const (
	Spring Season = iota
	Fall
	Winter
)

// String is the season's name.
func (s Season) String() string { return [...]string{"spring", "fall", "winter"}[min(s, Winter)] }

// Step is what is done in a phase.
type Step uint8

// The steps of a season.
const (
	Movement Step = iota
	Retreats
	Adjustments
)

// String is the step's name.
func (s Step) String() string {
	return [...]string{"movement", "retreat", "adjustment"}[min(s, Adjustments)]
}

// Phase is a step of a season of a year.
type Phase struct {
	Year   int
	Season Season
	Step   Step
}

// First is the phase the game begins with.
func First() Phase { return Phase{Year: 1901} }

// String is the phase's name: S1901M, F1901R, W1901A.
func (p Phase) String() string {
	return fmt.Sprintf("%c%d%c", "SFW"[min(p.Season, Winter)], p.Year, "MRA"[min(p.Step, Adjustments)])
}

// ParsePhase reads the name of a phase.
func ParsePhase(name string) (Phase, error) {
	bad := fmt.Errorf("phase %q: a phase is written like S1901M, F1901R or W1901A", name)
	if len(name) < 3 {
		return Phase{}, bad
	}
	season, step := strings.IndexByte("SFW", name[0]), strings.IndexByte("MRA", name[len(name)-1])
	year, err := strconv.Atoi(name[1 : len(name)-1])
	p := Phase{Year: year, Season: Season(max(season, 0)), Step: Step(max(step, 0))}
	if err != nil || season < 0 || step < 0 || year < 0 || !p.exists() || p.String() != name {
		return Phase{}, bad
	}
	return p, nil
}

// exists reports whether the phase exists: winter has adjustments, and only winter.
func (p Phase) exists() bool { return (p.Season == Winter) == (p.Step == Adjustments) }

// State is a position as the Python package diplomacy writes it in JSON. Powers are
// written FRANCE; a unit that must retreat is among the units with a star,
// *A BUR, and among the retreats with the locations that it can go to.
type State struct {
	Name     string                         `json:"name"`
	Units    map[string][]string            `json:"units"`
	Retreats map[string]map[string][]string `json:"retreats"`
	Centers  map[string][]string            `json:"centers"`
}

// State returns a position as a State, which does not hold where attacks came from.
func (r *Rules) State(p *Position) State {
	s := State{
		Name: p.Phase.String(), Units: map[string][]string{},
		Retreats: map[string]map[string][]string{}, Centers: map[string][]string{},
	}
	for _, w := range Powers() {
		s.Units[w.String()] = append([]string{}, r.UnitTexts(p, w)...)
		s.Centers[w.String()] = append([]string{}, r.CentreTexts(p, w)...)
		s.Retreats[w.String()] = map[string][]string{}
	}
	for i := range p.Dislodged {
		if d := &p.Dislodged[i]; d.Unit.Power != None {
			w := d.Unit.Power.String()
			s.Units[w] = append(s.Units[w], "*"+r.Board.UnitText(d.Unit))
			s.Retreats[w][r.Board.UnitText(d.Unit)] = r.RetreatTexts(d)
		}
	}
	return s
}

// FromState reads a position.
func (r *Rules) FromState(s State) (Position, error) {
	var p Position
	var err error
	if p.Phase, err = ParsePhase(s.Name); err != nil {
		return p, err
	}
	if err := r.Fill(&p, s.Units, s.Centers); err != nil {
		return p, err
	}
	retreats, err := ByPower(s.Retreats)
	if err != nil {
		return p, fmt.Errorf("retreats: %w", err)
	}
	for w, units := range retreats {
		for _, text := range slices.Sorted(maps.Keys(units)) {
			if err := r.Dislodge(&p, Power(w), text, "", append([]string{}, units[text]...)); err != nil {
				return p, fmt.Errorf("retreats: %s: %w", Power(w).Name(), err)
			}
		}
	}
	return p, nil
}

// Fill adds the units and centres of each power. It skips units with a star: those must
// retreat.
func (r *Rules) Fill(p *Position, units, centres map[string][]string) error {
	for _, part := range []struct {
		name  string
		lists map[string][]string
		add   func(*Position, Power, string) error
	}{{"units", units, r.Put}, {"centers", centres, r.Own}} {
		lists, err := ByPower(part.lists)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		for w, list := range lists {
			for _, text := range list {
				if part.name == "units" && strings.HasPrefix(text, "*") {
					continue
				}
				if err := part.add(p, Power(w), text); err != nil {
					return fmt.Errorf("%s: %s: %w", part.name, Power(w).Name(), err)
				}
			}
		}
	}
	return nil
}

// ByPower converts a map by the powers' names to a list in the order of powers.
func ByPower[T any](lists map[string]T) ([Turkey + 1]T, error) {
	var all [Turkey + 1]T
	var seen [Turkey + 1]bool
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		w, ok := ParsePower(name)
		if !ok {
			return all, fmt.Errorf("unknown power %q; want one of %s", name, joinedPowerNames())
		}
		if seen[w] {
			return all, fmt.Errorf("%s is listed twice", w.Name())
		}
		seen[w], all[w] = true, lists[name]
	}
	return all, nil
}

func joinedPowerNames() string {
	var names []string
	for _, w := range Powers() {
		names = append(names, w.Name())
	}
	return strings.Join(names, ", ")
}

// Put adds a unit, written like A PAR or F STP/SC.
func (r *Rules) Put(p *Position, w Power, text string) error {
	u, err := r.readUnit(w, text)
	if err != nil {
		return err
	}
	at := &p.Units[r.Board.Province(u.Location)]
	if at.Power != None {
		return fmt.Errorf("unit %q: %s of %s is there already", text, r.Board.UnitText(*at), at.Power.Name())
	}
	*at = u
	return nil
}

// Own gives a supply centre, written like PAR, to a power.
func (r *Rules) Own(p *Position, w Power, text string) error {
	place, err := ParseLocation(r.Board, text)
	if err != nil {
		return err
	}
	at := r.Board.Province(place)
	switch owner := p.Owners[at]; {
	case !r.Board.SupplyCentres().Has(at):
		return fmt.Errorf("centre %q: %s has no supply centre", text, r.Board.Name(at))
	case owner != None:
		return fmt.Errorf("centre %q: %s owns it already", text, owner.Name())
	}
	p.Owners[at] = w
	return nil
}

// Dislodge adds a unit that must retreat. The attacker may be empty. If retreats is nil, the
// unit can retreat to any free location. Call Put for the other units first.
func (r *Rules) Dislodge(p *Position, w Power, text, attacker string, retreats []string) error {
	u, err := r.readUnit(w, text)
	if err != nil {
		return err
	}
	d := Dislodged{Unit: u, Attacker: Nowhere}
	if attacker != "" {
		from, err := ParseLocation(r.Board, attacker)
		if err != nil {
			return err
		}
		d.Attacker = Location(r.Board.Province(from))
	}
	free := r.Board.Moves(u.Type, u.Location)
	for at := range free.All() {
		if p.Units[r.Board.Province(at)].Power != None {
			free.Remove(at)
		}
	}
	if d.Retreats, err = r.readRetreats(u, free, d.Attacker, retreats); err != nil {
		return err
	}
	at := &p.Dislodged[r.Board.Province(u.Location)]
	if at.Unit.Power != None {
		return fmt.Errorf("dislodged %q: %s of %s is dislodged there already", text, r.Board.UnitText(at.Unit), at.Unit.Power.Name())
	}
	*at = d
	return nil
}

func (r *Rules) readRetreats(u Unit, free Set[Location], attacker Location, texts []string) (Set[Location], error) {
	if texts == nil {
		if attacker != Nowhere {
			free.Remove(attacker)
			for _, at := range r.Board.fleetLocations(r.Board.Province(attacker)) {
				free.Remove(at)
			}
		}
		return free, nil
	}
	var set Set[Location]
	for _, text := range texts {
		at, err := ParseLocation(r.Board, text)
		if err != nil {
			return set, err
		}
		if !free.Has(at) {
			return set, fmt.Errorf("retreat %q: %s cannot go there; free are: %s", text, r.Board.UnitText(u), r.placesText(free))
		}
		set.Add(at)
	}
	return set, nil
}

// readUnit reads a unit and checks that it can be at its location.
func (r *Rules) readUnit(w Power, text string) (Unit, error) {
	t, at, err := ParseUnit(r.Board, text)
	if err != nil {
		return Unit{}, err
	}
	if t == Army {
		at = Location(r.Board.Province(at))
	}
	if !r.Board.canStand(t, at) {
		name := r.Board.Name(r.Board.Province(at))
		coasts := r.Board.fleetLocations(r.Board.Province(at))
		if t == Fleet && len(coasts) > 1 {
			return Unit{}, fmt.Errorf("unit %q: say which coast: %s or %s", text, r.Board.Code(coasts[0]), r.Board.Code(coasts[1]))
		}
		return Unit{}, fmt.Errorf("unit %q: no such unit can stand in %s", text, name)
	}
	return Unit{Power: w, Type: t, Location: at}, nil
}

// UnitTexts returns the units of a power as they are written, sorted.
func (r *Rules) UnitTexts(p *Position, w Power) []string {
	var texts []string
	for _, u := range p.Units {
		if u.Power == w && w != None {
			texts = append(texts, r.Board.UnitText(u))
		}
	}
	slices.Sort(texts)
	return texts
}

// CentreTexts returns the centres of a power as they are written, sorted.
func (r *Rules) CentreTexts(p *Position, w Power) []string {
	var texts []string
	for c, owner := range p.Owners {
		if owner == w && w != None {
			texts = append(texts, r.Board.Code(Location(c)))
		}
	}
	return texts
}

// RetreatTexts returns the retreats of a unit as they are written, sorted, never nil.
func (r *Rules) RetreatTexts(d *Dislodged) []string {
	texts := []string{}
	for at := range d.Retreats.All() {
		texts = append(texts, r.Board.Code(at))
	}
	slices.Sort(texts)
	return texts
}
