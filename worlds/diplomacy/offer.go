package diplomacy

import (
	"slices"

	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// offer returns the legal orders of a person's units and a picture of the board. open are the
// provinces that need orders. It returns nil for other players: the prompt is enough for them.
func (g *game) offer(p *player, open []rules.Province) *world.Offer {
	if !p.person {
		return nil
	}
	b := g.rules.Board
	o := &world.Offer{Field: "orders"}
	for _, c := range g.brief.Choices(p.power) {
		if !slices.Contains(open, c.At) {
			continue
		}
		row := world.Choice{Name: b.Name(c.At), At: b.Code(rules.Location(c.At))}
		for _, one := range c.Orders {
			row.Options = append(row.Options, one.Text(b))
		}
		o.Choices = append(o.Choices, row)
	}
	state := g.rules.State(&g.pos)
	svg, err := showPosition(b, state.Name, state, open)
	if err == nil { // the choices are enough without a picture
		o.Picture = world.Figure{SVG: svg, Alt: g.brief.Board()}
	}
	return o
}
