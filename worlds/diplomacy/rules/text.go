package rules

import (
	"fmt"
	"slices"
)

// Put adds a unit, written like A PAR or F STP/SC.
func (r *Rules) Put(p *Position, w Power, text string) error {
	u, err := r.readUnit(w, text)
	if err != nil {
		return err
	}
	at := &p.Units[r.Board.Province(u.Location)]
	if at.Power != None {
		return fmt.Errorf("rules: unit %q: %s of %s is there already", text, r.Board.UnitText(*at), at.Power.Name())
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
		return fmt.Errorf("rules: centre %q: %s has no supply centre", text, r.Board.Name(at))
	case owner != None:
		return fmt.Errorf("rules: centre %q: %s owns it already", text, owner.Name())
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
		return fmt.Errorf("rules: dislodged %q: %s of %s is dislodged there already", text, r.Board.UnitText(at.Unit), at.Unit.Power.Name())
	}
	*at = d
	return nil
}

func (r *Rules) readRetreats(u Unit, free Set[Location], attacker Location, texts []string) (Set[Location], error) {
	if texts == nil {
		if attacker != Nowhere {
			free.Remove(attacker)
			for _, at := range r.Board.FleetLocations(r.Board.Province(attacker)) {
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
			return set, fmt.Errorf("rules: retreat %q: %s cannot go there; free are: %s", text, r.Board.UnitText(u), r.placesText(free))
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
	if !r.Board.Stands(t, at) {
		name := r.Board.Name(r.Board.Province(at))
		coasts := r.Board.FleetLocations(r.Board.Province(at))
		if t == Fleet && len(coasts) > 1 {
			return Unit{}, fmt.Errorf("rules: unit %q: say which coast: %s or %s", text, r.Board.Code(coasts[0]), r.Board.Code(coasts[1]))
		}
		return Unit{}, fmt.Errorf("rules: unit %q: no such unit can stand in %s", text, name)
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
