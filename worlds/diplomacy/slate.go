package diplomacy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// given is an order that counts.
type given struct {
	order   rules.Order
	missing bool // the player did not give it
}

// slate collects the orders of one player.
type slate struct {
	g      *game
	p      *player
	open   []rules.Province // provinces that still need an order
	left   int              // how many orders are still wanted
	orders []given
	wrong  []Refused
}

func newSlate(g *game, p *player) *slate {
	s := &slate{g: g, p: p}
	for _, c := range g.brief.Choices(p.power) {
		s.open = append(s.open, c.At)
	}
	s.left = len(s.open)
	if g.pos.Phase.Step == rules.Adjustments {
		s.left = max(g.rules.Allowed(&g.pos, p.power), -g.rules.Allowed(&g.pos, p.power))
	}
	return s
}

// take reads orders: each unchanged, or refused with a reason.
func (s *slate) take(texts []string) {
	const limit = 60 // more than any power has units
	for _, text := range texts[:min(len(texts), limit)] {
		o, err := rules.Parse(s.g.rules.Board, text)
		if err != nil {
			if why := errors.Unwrap(err); why != nil {
				err = why // without the order itself, which the note has
			}
			s.refuse(text, "unreadable", err)
			continue
		}
		legal, err := s.g.rules.Check(&s.g.pos, s.p.power, o)
		if err != nil {
			s.refuse(text, "illegal "+o.Kind.String(), err)
			continue
		}
		if err := s.use(legal); err != nil {
			s.refuse(text, "too many", err)
		}
	}
}

// use accepts a legal order, unless there is already one for the same province.
func (s *slate) use(o rules.Order) error {
	if s.left == 0 {
		return fmt.Errorf("%s has ordered enough already", s.p.power.Name())
	}
	if o.Kind != rules.Waive {
		at := s.g.rules.Board.Province(o.At)
		i := slices.Index(s.open, at)
		if i < 0 {
			return fmt.Errorf("%s has an order already", s.g.rules.Board.Code(o.At))
		}
		s.open = slices.Delete(s.open, i, i+1)
	}
	s.left--
	if s.left == 0 {
		s.open = nil
	}
	s.orders = append(s.orders, given{order: o})
	return nil
}

func (s *slate) refuse(text, reason string, err error) {
	s.p.stats.Refused["order: "+reason]++
	s.wrong = append(s.wrong, Refused{
		Phase: s.g.pos.Phase.String(), What: "order", Reason: reason, Text: pressLine(text, 80), Why: pressLine(err.Error(), 200),
	})
}

// note records the refused orders.
func (s *slate) note(t *world.Table) {
	for _, r := range s.wrong {
		t.Note(noteRefused, s.p.seat, r)
	}
}

// complaint lists the refused orders for the player.
func (s *slate) complaint() string {
	lines := make([]string, len(s.wrong))
	for i, r := range s.wrong {
		lines[i] = fmt.Sprintf("- %q: %s", r.Text, r.Why)
	}
	return strings.Join(lines, "\n")
}

func (s *slate) openSet() rules.Set[rules.Province] {
	var set rules.Set[rules.Province]
	for _, p := range s.open {
		set.Add(p)
	}
	return set
}

// done returns the orders. In a movement phase, units without a legal order hold; in other
// phases the rules decide.
func (s *slate) done() []given {
	if s.g.pos.Phase.Step != rules.Movement {
		return s.orders
	}
	for _, at := range s.open {
		u := s.g.pos.Units[at]
		s.orders = append(s.orders, given{rules.NewOrder(rules.Hold, u.Type, u.Location), true})
		s.p.stats.Missing++
	}
	return s.orders
}
