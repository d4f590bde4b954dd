package report

import (
	"fmt"
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strings"

	"parley/internal/read/chart"
	"parley/internal/run/results"
	"parley/world"
	"parley/world/part"
)

// Palette gives every name the same look throughout a report: agents first, in the order of
// the plan, then other names in the order they are drawn. Seats have the colours of their kind, if it has any.
// The zero value knows no names.
type Palette struct {
	names []string
	own   []string // seats with a colour from the kind
	kind  string
	by    map[string][2]string // the kind's colours, by seat
	// Failed is the error of results.CallKind if the kind failed to give its colours.
	Failed error
}

var (
	colourRE = regexp.MustCompile(`^#[0-9a-f]{6}$`)
	classRE  = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
)

// NewPalette returns the palette of a run.
func NewPalette(r *results.Run, kind world.Kind) *Palette {
	p := &Palette{kind: kind.Name}
	for _, k := range kind.All() {
		if painter, ok := world.As[part.Painter](k); ok && classRE.MatchString(k.Name) {
			p.kind, p.Failed = k.Name, results.CallKind(k, "Colours", func() error { p.by = painter.Colours(); return nil })
		}
	}
	for _, seat := range slices.Sorted(maps.Keys(p.by)) {
		if c := p.by[seat]; colourRE.MatchString(c[0]) && colourRE.MatchString(c[1]) {
			p.own = append(p.own, seat)
		}
	}
	for _, a := range r.Head.Begun.Agents {
		p.Look(a.Name)
	}
	return p
}

// Look returns the look of a name.
func (p *Palette) Look(name string) chart.Look {
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

// Seat returns the colour of the i-th speaker of a transcript: that of its agent, as in charts, if each seat has another one.
func (p *Palette) Seat(name string, i int, lineup map[string]string) string {
	if own := slices.Index(p.own, name); own >= 0 {
		return p.class(own)
	}
	agents := slices.Sorted(maps.Values(lineup))
	if agent, ok := lineup[name]; ok && len(slices.Compact(agents)) == len(lineup) {
		return p.Look(agent).Class
	}
	return chart.Series(i).Class
}

func (p *Palette) class(i int) string { return fmt.Sprintf("%s-%d", p.kind, i) }

// Style returns a style sheet with the colours of the kind.
func (p *Palette) Style() template.CSS {
	var b strings.Builder
	for i, seat := range p.own {
		fmt.Fprintf(&b, ".%s{--c:light-dark(%s,%s)}", p.class(i), p.by[seat][0], p.by[seat][1])
	}
	return template.CSS(b.String()) //nolint:gosec // names of kinds and colours that were checked
}
