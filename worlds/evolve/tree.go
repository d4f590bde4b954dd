package evolve

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"parley/world"
)

// The sizes of the tree of a winner, in pixels. It is narrow enough for a phone.
const (
	treeWidth, treeRow = 400, 46
	trunkAt, branchAt  = 16, 236
	maxRows, dot, text = 40, 6, 13
)

// tree draws the ancestors of a winner: its first parents from top to bottom, and
// their other parents beside them.
func tree(line []Ancestor) world.Figure {
	trunk := trunkOf(line)
	if len(trunk) == 0 {
		return world.Figure{}
	}
	cut := max(0, len(trunk)-maxRows)
	trunk = trunk[cut:]
	var b strings.Builder
	height := treeRow*len(trunk) + 8
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" width="%d" height="%d" font-size="%d" font-family="sans-serif" fill="currentColor">`, treeWidth, height, treeWidth, height, text)
	for i, a := range trunk {
		y := treeRow*i + treeRow/2
		if i > 0 {
			edge(&b, trunkAt, y-treeRow, trunkAt, y)
			for _, id := range a.Parents[min(1, len(a.Parents)):] {
				k := slices.IndexFunc(line, func(x Ancestor) bool { return x.ID == id })
				if k < 0 || slices.ContainsFunc(trunk, func(x *Ancestor) bool { return x.ID == id }) {
					continue // in the trunk itself: the label says so
				}
				edge(&b, branchAt, y-treeRow, trunkAt, y)
				node(&b, branchAt, y-treeRow, &line[k], false)
			}
		}
		node(&b, trunkAt, y, a, i == len(trunk)-1)
	}
	b.WriteString("</svg>")
	return world.Figure{SVG: b.String(), Alt: treeWords(trunk, cut)}
}

// trunkOf returns the first parents of the winner, oldest first.
func trunkOf(line []Ancestor) []*Ancestor {
	var trunk []*Ancestor
	for at := len(line) - 1; at >= 0 && len(trunk) <= len(line); {
		trunk = append(trunk, &line[at])
		if len(line[at].Parents) == 0 {
			break
		}
		first := line[at].Parents[0]
		at = slices.IndexFunc(line[:at], func(x Ancestor) bool { return x.ID == first }) // parents come before children
	}
	slices.Reverse(trunk)
	return trunk
}

func edge(b *strings.Builder, fromX, fromY, toX, toY int) {
	middle := (fromY + toY) / 2
	fmt.Fprintf(b, `<path d="M%d %dC%d %d %d %d %d %d" fill="none" stroke="currentColor" stroke-opacity="0.35" stroke-width="1.5"/>`, fromX, fromY, fromX, middle, toX, middle, toX, toY)
}

// node draws a prompt: its number, its fitness, and how it was bred.
func node(b *strings.Builder, x, y int, a *Ancestor, winner bool) {
	weight, fill := "normal", "0.5"
	if winner {
		weight, fill = "bold", "1"
	}
	fmt.Fprintf(b, `<circle cx="%d" cy="%d" r="%d" fill-opacity="%s"/>`, x, y, dot, fill)
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="%s">%d: %.3f, generation %d</text>`, x+2*dot, y, weight, a.ID, a.Fitness, a.Generation)
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="%d" fill-opacity="0.7">`, x+2*dot, y+text+1, text-2)
	_ = xml.EscapeText(b, []byte(a.Operator)) // a strings.Builder takes everything
	b.WriteString("</text>")
}

func treeWords(trunk []*Ancestor, cut int) string {
	var words []string
	for _, a := range trunk {
		words = append(words, fmt.Sprintf("prompt %d of generation %d by %s, fitness %.3f", a.ID, a.Generation, a.Operator, a.Fitness))
	}
	if cut > 0 {
		words = slices.Insert(words, 0, fmt.Sprintf("%d more", cut))
	}
	return "From top to bottom: " + strings.Join(words, "; ") + "."
}
