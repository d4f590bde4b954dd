package chart

import (
	"math"
	"unicode/utf8"
)

// label is words near a place of a drawing. They stand at the first of spots where they cover
// nothing, and nowhere if there is none: what they say must also be said elsewhere.
type label struct {
	x, y  float64 // x is a share of the width
	words string
	class string
	spots []spot
}

// spot is where words may stand, relative to the place they belong to.
type spot struct {
	dx, dy float64
	anchor string // start, middle or end
}

// obstacle is a marker that labels do not cover.
type obstacle struct{ x, y, r float64 }

// layouts are the widths that labels are laid out for: those of a phone, of half a screen and
// of a whole page. Words with room in a wider one only have a class that hides them in narrower ones.
func layouts() []struct {
	width float64
	class string
} {
	return []struct {
		width float64
		class string
	}{{320, ""}, {530, " minor"}, {900, " wide"}}
}

// box is a part of a drawing.
type box struct{ left, top, right, bottom float64 }

func (b box) meets(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

// wordsWidth is about how wide words are. It is rather more than they are.
func wordsWidth(words string) float64 {
	w := 0.0
	for _, r := range shortened(words) {
		if r >= 0x1100 && utf8.RuneLen(r) > 2 { // Chinese, Japanese, Korean, pictures
			w += 13
		} else {
			w += 7
		}
	}
	return w
}

// box is what the words cover at a spot in a drawing of a width.
func (l label) box(s spot, width float64) box {
	x, w := l.x*width+s.dx, wordsWidth(l.words)
	switch s.anchor {
	case "middle":
		x -= w / 2
	case "end":
		x -= w
	}
	y := l.y + s.dy
	return box{x, y - 11, x + w, y + 3}
}

// mostNames is how many labels are tried: of more, most would have no room.
const mostNames = 60

// labels writes words where they have room beside each other and beside points, from a share of
// the width on.
func (c *canvas) labels(from float64, all []label, points []obstacle) {
	all = all[:min(len(all), mostNames)]
	at := make([]*spot, len(all))
	class := make([]string, len(all))
	for _, layout := range layouts() {
		width := layout.width
		free := func(b box) bool {
			if b.left < from*width-1 || b.right > width+1 {
				return false
			}
			for j, other := range all {
				if at[j] != nil && b.meets(other.box(*at[j], width)) {
					return false
				}
			}
			for _, p := range points {
				if b.meets(box{p.x*width - p.r, p.y - p.r, p.x*width + p.r, p.y + p.r}) {
					return false
				}
			}
			return true
		}
		for i, l := range all {
			for k := range l.spots {
				if at[i] == nil && free(l.box(l.spots[k], width)) {
					at[i], class[i] = &l.spots[k], l.class+layout.class
				}
			}
		}
	}
	for i, l := range all {
		if s := at[i]; s != nil {
			c.textAt(pct(l.x), px(l.y+s.dy), px(s.dx), class[i], s.anchor, l.words)
		}
	}
}

// every is how many labels of n there are to one that is written, a round number.
func every(n, most int) int {
	step := int(math.Ceil(roundStep(float64(n) / float64(most))))
	return max(1, step)
}
