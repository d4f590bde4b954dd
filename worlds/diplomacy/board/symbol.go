package board

import (
	"fmt"
	"strings"
)

// symbols are the units, the badges and the legend. What a unit is filled with comes
// from where it is used.
func symbols() string {
	return `<g id="pb-army"><circle r="20"/><g fill="none" stroke="currentColor" stroke-linecap="round"><path stroke-width="6.5" d="M-6 1L12-8"/><path stroke-width="3.5" d="M-3 5L-13 10"/><circle cx="-2" cy="5" r="6" stroke-width="3.5"/></g></g>
<g id="pb-fleet"><path d="M-27 4H27Q24 19 13 19H-15Q-24 17-27 4zM-3-23V1H-21Q-9-9-3-23zM3-20Q17-10 19 1H3z"/></g>
<path id="pb-built" d="M0-9V9M-9 0H9"/>
<path id="pb-struck" d="M-24-24L24 24M24-24L-24 24"/>
<path id="pb-cross" d="M-8-8L8 8M8-8L-8 8"/>
<path id="pb-beaten" d="M0-34L8-25 19-28 20-17 31-12 26-2 33 8 23 14 22 26 10 24 2 33-7 25-18 28-20 17-31 13-26 3-33-7-23-13-22-25-10-24z"/>
` + legend()
}

// legend explains the signs in a strip under the map.
func legend() string {
	var b strings.Builder
	b.WriteString(`<g id="pb-legend">` + "\n")
	x := 24.0
	y := float64(height + foot/2)
	item := func(sign, text string, wide float64) {
		fmt.Fprintf(&b, "<g transform=\"translate(%.0f %.0f)\">%s</g><text class=\"pb-key\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", x+wide/2, y, sign, x+wide+10, y+8, text)
		x += wide + 10 + 12.4*float64(len(text)) + 22
	}
	line := func(look, more string) string {
		return fmt.Sprintf(`<path class="pb-order pb-%s" d="M-30 0H20%s"/>`, look, more)
	}
	const head = "M20-7L32 0 20 7z"
	item(`<use href="#pb-army" class="pb-unit pb-germany"/>`, "army", 40)
	item(`<use href="#pb-fleet" class="pb-unit pb-germany"/>`, "fleet", 54)
	item(`<circle class="pb-centre" r="8"/>`, "centre", 16)
	item(line("success", head), "succeeds", 64)
	item(line("bounce", head+"M40-13V13"), "bounces", 76)
	item(line("failed", head)+`<use href="#pb-cross" class="pb-order pb-failed" x="-6"/>`, "fails", 64)
	item(`<path class="pb-order pb-aid pb-success" d="M-30 0H32"/>`, "support", 64)
	item(`<circle class="pb-order pb-success" r="20"/>`, "hold", 44)
	item(`<circle class="pb-order pb-aid pb-success" r="20"/>`, "convoy", 44)
	item(`<use href="#pb-beaten" class="pb-order pb-dislodged" transform="scale(.7)"/>`, "dislodged", 48)
	item(`<use href="#pb-built" class="pb-order pb-success"/>`, "build", 22)
	item(`<use href="#pb-cross" class="pb-order pb-dislodged"/>`, "disband", 22)
	b.WriteString("</g>\n")
	return b.String()
}
