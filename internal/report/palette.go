package report

import (
	"fmt"
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strings"

	"parley/internal/report/chart"
	"parley/internal/view"
	"parley/world"
)

// palette gives everybody the same look all over a report: agents first, in the order of
// the plan, and whatever else is drawn as it comes up. Seats that have a colour by their kind
// have it everywhere.
type palette struct {
	names []string
	own   []string // seats with a colour of their own
	kind  string
	by    map[string][2]string // the kind's colours, by seat
	// failed says why the kind gave none: an error of view.CallPart.
	failed error
}

var (
	colourRE = regexp.MustCompile(`^#[0-9a-f]{6}$`)
	classRE  = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
)

func newPalette(r *view.Run, kind world.Kind) *palette {
	p := &palette{kind: kind.Name}
	if painter, ok := world.As[world.Painter](kind); ok && classRE.MatchString(kind.Name) {
		p.failed = view.CallPart(kind, "Colours", func() error { p.by = painter.Colours(); return nil })
	}
	for _, seat := range slices.Sorted(maps.Keys(p.by)) {
		if c := p.by[seat]; colourRE.MatchString(c[0]) && colourRE.MatchString(c[1]) {
			p.own = append(p.own, seat)
		}
	}
	for _, a := range r.Head.Begun.Agents {
		p.look(a.Name)
	}
	return p
}

// look is how what has a name is drawn.
func (p *palette) look(name string) chart.Look {
	if name == "" {
		return chart.Series(-1)
	}
	if i := slices.Index(p.own, name); i >= 0 {
		return chart.Own(p.class(i), i)
	}
	i := slices.Index(p.names, name)
	if i < 0 {
		i = len(p.names)
		p.names = append(p.names, name)
	}
	return chart.Series(i)
}

// seat is the colour of the i-th speaker of a transcript.
func (p *palette) seat(name string, i int) string {
	if own := slices.Index(p.own, name); own >= 0 {
		return p.class(own)
	}
	return chart.Series(i).Class
}

func (p *palette) class(i int) string { return fmt.Sprintf("%s-%d", p.kind, i) }

// style is the colours that are the kind's.
func (p *palette) style() template.CSS {
	var b strings.Builder
	for i, seat := range p.own {
		fmt.Fprintf(&b, ".%s{--c:light-dark(%s,%s)}", p.class(i), p.by[seat][0], p.by[seat][1])
	}
	return template.CSS(b.String()) //nolint:gosec // names of kinds and colours that were checked
}
