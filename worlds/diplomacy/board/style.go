package board

import (
	"fmt"
	"strings"
)

// power is a player's name and colours, each light and dark.
type power struct {
	name string
	unit [2]string // its units
	mark [2]string // what is drawn on them
	tint [2]string // its provinces
	line [2]string // its lines in charts; empty: as its units
}

// powers in the usual, alphabetical order, in the usual colours.
func powers() []power {
	white := [2]string{"#fff", "#fff"}
	return []power{
		{"Austria", [2]string{"#c5322a", "#d8473d"}, white, [2]string{"#f0b3a6", "#6d322c"}, [2]string{}},
		{"England", [2]string{"#233f92", "#3f60c9"}, white, [2]string{"#a9b5e2", "#2b3a70"}, [2]string{}},
		{"France", [2]string{"#2590c9", "#35a3dd"}, white, [2]string{"#9bd4ef", "#1d5674"}, [2]string{}},
		{"Germany", [2]string{"#4a4a4a", "#7b7b7b"}, white, [2]string{"#c2bfb8", "#56544f"}, [2]string{}},
		{"Italy", [2]string{"#2b8a4b", "#36a35b"}, white, [2]string{"#aedba8", "#28583a"}, [2]string{}},
		{"Russia", [2]string{"#f8f5ff", "#efe8fb"}, [2]string{"#5a3d8a", "#5a3d8a"}, [2]string{"#d9c8ea", "#57456f"}, [2]string{"#5a3d8a", "#efe8fb"}},
		{"Turkey", [2]string{"#e3b21c", "#e6ba33"}, [2]string{"#3d2f00", "#3d2f00"}, [2]string{"#f5dd82", "#75621f"}, [2]string{"#967200", "#e6ba33"}},
	}
}

// Colours are those of the powers in charts, by name in capitals: light and dark. They are
// those of their units, darker where these would hardly be seen on a light page.
func Colours() map[string][2]string {
	out := map[string][2]string{}
	for _, p := range powers() {
		c := p.line
		if c[0] == "" {
			c = p.unit
		}
		out[strings.ToUpper(p.name)] = c
	}
	return out
}

func findPower(name string) (power, bool) {
	for _, p := range powers() {
		if strings.EqualFold(p.name, name) {
			return p, true
		}
	}
	return power{}, false
}

// class is the name of a power in the style.
func (p power) class() string { return strings.ToLower(p.name) }

// colours are the variables of the style that are not a power's: name, light, dark.
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

// rules are the style's rules; $name stands for a variable.
const rules = `.pb{background:$page;color:$ink;font-family:system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.pb-page{fill:$page}
.pb-sea{fill:$sea}
.pb-land{fill:$land}
.pb-none{fill:$none}
.pb-over{fill:none;stroke-linejoin:round;stroke-linecap:round;pointer-events:none}
.pb-isle{fill:$none;stroke:$coast;stroke-width:2}
.pb-lake{fill:$sea;stroke:$coast;stroke-width:2}
.pb-bank{stroke:$coast;stroke-width:11;stroke-linecap:butt}
.pb-strait{stroke:$sea;stroke-width:7}
.pb-sea-line{stroke:$sea-line;stroke-width:3;stroke-dasharray:1 7}
.pb-land-line{stroke:$land-line;stroke-width:2.5}
.pb-coast{stroke:$coast;stroke-width:3}
.pb-label{font-size:20px;font-weight:700;letter-spacing:.5px;text-anchor:middle;fill:$ink;stroke:$land;stroke-width:4;stroke-opacity:.55;paint-order:stroke}
.pb-water{fill:$sea-ink;stroke:$sea;stroke-opacity:.8;font-style:italic}
.pb-name{font-size:17px;font-weight:400;letter-spacing:0}
.pb-centre{fill:$ink;stroke:$page;stroke-width:2}
.pb-text{font-size:25px;fill:$ink}
.pb-key{font-size:21px;fill:$ink}
.pb-title{font-size:42px;font-weight:700;fill:$ink}
.pb-small{font-size:27px}
.pb-gone{opacity:.4}
.pb-order{fill:none;stroke-width:6;stroke-linecap:round;stroke-linejoin:round}
.pb-case{fill:none;stroke:$page;stroke-width:12;stroke-linecap:round;stroke-linejoin:round;opacity:.75}
.pb-aid{stroke-width:5;stroke-dasharray:9 10}
.pb-retreat{stroke-dasharray:20 10}
.pb-success{stroke:$success}
.pb-bounce{stroke:$bounce}
.pb-failed{stroke:$failed}
.pb-dislodged{stroke:$dislodged}
.pb-pending{stroke:$pending}
.pb-unit{stroke:$ink;stroke-width:2.5;stroke-linejoin:round}
`

// style writes the style sheet. Every colour is there twice, first as itself, for
// programs that draw SVG and know no variables.
func style() string {
	light := map[string]string{}
	var day, night, sheet strings.Builder
	set := func(name, inDay, inNight string) {
		light[name] = inDay
		fmt.Fprintf(&day, "--pb-%s:%s;", name, inDay)
		fmt.Fprintf(&night, "--pb-%s:%s;", name, inNight)
	}
	for _, c := range colours() {
		set(c[0], c[1], c[2])
	}
	sheet.WriteString(rules)
	for _, p := range powers() {
		c := p.class()
		set(c, p.unit[0], p.unit[1])
		set(c+"-mark", p.mark[0], p.mark[1])
		set(c+"-tint", p.tint[0], p.tint[1])
		fmt.Fprintf(&sheet, ".pb-%s{fill:$%s;color:$%s-mark}\n.pb-%s-tint{fill:$%s-tint}\n", c, c, c, c, c)
	}
	return "<style>.pb{" + day.String() + "}\n@media(prefers-color-scheme:dark){.pb{" + night.String() + "}}\n" + expand(sheet.String(), light) + "</style>\n"
}

// expand writes declarations with $name as two: the colour, and the variable.
func expand(sheet string, light map[string]string) string {
	var b strings.Builder
	for rule := range strings.Lines(sheet) {
		head, body, _ := strings.Cut(strings.TrimSuffix(rule, "}\n"), "{")
		b.WriteString(head + "{")
		for i, d := range strings.Split(body, ";") {
			if i > 0 {
				b.WriteByte(';')
			}
			if property, name, ok := strings.Cut(d, "$"); ok {
				d = property + light[name] + ";" + property + "var(--pb-" + name + ")"
			}
			b.WriteString(d)
		}
		b.WriteString("}\n")
	}
	return b.String()
}
