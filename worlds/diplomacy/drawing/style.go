package drawing

import (
	_ "embed"
	"fmt"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// styleSheet is the style sheet; $name stands for a variable.
//
//go:embed style.css
var styleSheet string

// symbols are the units, the badges and the legend below the map. A unit takes its colour
// from the element that uses it.
//
//go:embed symbols.svg
var symbols string

// palette is the colours of a power, each for the light and the dark scheme.
type palette struct {
	unit  [2]string // its units
	mark  [2]string // what is drawn on them
	tint  [2]string // its provinces
	chart [2]string // its lines in charts; empty: the colour of its units
}

// paletteOf returns the usual colours of a power.
func paletteOf(w rules.Power) palette {
	white := [2]string{"#fff", "#fff"}
	return [...]palette{
		rules.Austria: {[2]string{"#c5322a", "#d8473d"}, white, [2]string{"#f0b3a6", "#6d322c"}, [2]string{}},
		rules.England: {[2]string{"#233f92", "#3f60c9"}, white, [2]string{"#a9b5e2", "#2b3a70"}, [2]string{}},
		rules.France:  {[2]string{"#2590c9", "#35a3dd"}, white, [2]string{"#9bd4ef", "#1d5674"}, [2]string{}},
		rules.Germany: {[2]string{"#4a4a4a", "#7b7b7b"}, white, [2]string{"#c2bfb8", "#56544f"}, [2]string{}},
		rules.Italy:   {[2]string{"#2b8a4b", "#36a35b"}, white, [2]string{"#aedba8", "#28583a"}, [2]string{}},
		rules.Russia:  {[2]string{"#f8f5ff", "#efe8fb"}, [2]string{"#5a3d8a", "#5a3d8a"}, [2]string{"#d9c8ea", "#57456f"}, [2]string{"#5a3d8a", "#efe8fb"}},
		rules.Turkey:  {[2]string{"#e3b21c", "#e6ba33"}, [2]string{"#3d2f00", "#3d2f00"}, [2]string{"#f5dd82", "#75621f"}, [2]string{"#967200", "#e6ba33"}},
	}[w]
}

// Colours returns the colours of the powers in charts, light and dark, by name in
// capitals: those of their units, or darker ones where a light page would hide them.
func Colours() map[string][2]string {
	out := map[string][2]string{}
	for _, w := range rules.Powers() {
		p := paletteOf(w)
		if p.chart[0] == "" {
			p.chart = p.unit
		}
		out[w.String()] = p.chart
	}
	return out
}

// class is the name of a power in the style sheet.
func class(w rules.Power) string { return strings.ToLower(w.Name()) }

// colours are the variables of the style that belong to no power: name, light, dark.
func colours() [][3]string {
	return [][3]string{
		{"page", "#fdfbf5", "#14181c"},
		{"ink", "#26251f", "#ece8dc"},
		{"sea", "#d9e7ea", "#1b2a33"},
		{"sea-line", "#a9c2ca", "#3a525f"},
		{"sea-ink", "#4f727f", "#8fb0be"},
		{"land", "#f4ecd6", "#3a372f"},
		{"land-line", "#a8997a", "#777060"},
		{"coast", "#6f6a58", "#a59d88"},
		{"none", "#d8d0bd", "#2a2823"},
		{"success", "#136f35", "#4cc274"},
		{"bounce", "#cf1f2c", "#ff6b6b"},
		{"failed", "#77736a", "#a39f94"},
		{"dislodged", "#d2660a", "#ff9d47"},
		{"pending", "#26251f", "#ece8dc"},
	}
}

// style writes the style sheet. Every colour is there twice, first as itself, for
// programs that draw SVG but know no variables.
func style() string {
	light := map[string]string{}
	var day, night, sheet strings.Builder
	set := func(name string, colour [2]string) {
		light[name] = colour[0]
		fmt.Fprintf(&day, "--pb-%s:%s;", name, colour[0])
		fmt.Fprintf(&night, "--pb-%s:%s;", name, colour[1])
	}
	for _, c := range colours() {
		set(c[0], [2]string{c[1], c[2]})
	}
	sheet.WriteString(styleSheet)
	for _, w := range rules.Powers() {
		c, p := class(w), paletteOf(w)
		set(c, p.unit)
		set(c+"-mark", p.mark)
		set(c+"-tint", p.tint)
		fmt.Fprintf(&sheet, ".pb-%s{fill:$%s;color:$%s-mark}\n.pb-%s-tint{fill:$%s-tint}\n", c, c, c, c, c)
	}
	return "<style>.pb{" + day.String() + "}\n@media(prefers-color-scheme:dark){.pb{" + night.String() + "}}\n" + expandVariables(sheet.String(), light) + "</style>\n"
}

// expandVariables writes each declaration with $name as two: the colour, and the variable.
func expandVariables(sheet string, light map[string]string) string {
	var b strings.Builder
	for rule := range strings.Lines(sheet) {
		head, body, _ := strings.Cut(strings.TrimSuffix(rule, "}\n"), "{")
		declarations := strings.Split(body, ";")
		for i, d := range declarations {
			if property, name, ok := strings.Cut(d, "$"); ok {
				declarations[i] = property + light[name] + ";" + property + "var(--pb-" + name + ")"
			}
		}
		b.WriteString(head + "{" + strings.Join(declarations, ";") + "}\n")
	}
	return b.String()
}
