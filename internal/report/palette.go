package report

import (
	"slices"

	"parley/internal/report/chart"
	"parley/internal/view"
)

// palette gives everybody the same colour all over a report: agents first, in the order of
// the plan, and whatever else is drawn as it comes up.
type palette struct{ names []string }

func newPalette(r *view.Run) *palette {
	p := &palette{}
	for _, a := range r.Head.Begun.Agents {
		p.class(a.Name)
	}
	return p
}

// class is the colour of a name.
func (p *palette) class(name string) string {
	if name == "" {
		return chart.Class(-1)
	}
	i := slices.Index(p.names, name)
	if i < 0 {
		i = len(p.names)
		p.names = append(p.names, name)
	}
	return chart.Class(i)
}
