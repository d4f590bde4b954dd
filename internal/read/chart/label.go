package chart

import (
	"math"
	"unicode/utf8"
)

// label is text near a point of a drawing. It is written at the first of spots where it overlaps
// nothing, or not at all: the page must also say it elsewhere.
type label struct {
	x, y  float64 // x is a share of the width
	words string
	class string
	spots []spot
}

// spot is a possible position of a label, relative to its point.
type spot struct {
	dx, dy float64
	anchor string // start, middle or end
}

// obstacle is a marker that labels must not overlap.
type obstacle struct{ x, y, r float64 }

// layouts returns the widths that labels are laid out for: a phone, half a screen and
// a whole page. A label that fits only in a wider one has a class that hides it in narrower ones.
func layouts() []struct {
	width float64
	class string
} {
	return []struct {
		width float64
		class string
	}{{320, ""}, {530, " minor"}, {900, " wide"}}
}

// box is a rectangle of a drawing.
type box struct{ left, top, right, bottom float64 }

func (b box) meets(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

// wordsWidth estimates the width of words, and rather overestimates it.
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

// box returns the rectangle of the label at a spot, in a drawing of the given width.
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

// maxNames is the maximum number of labels: more would not fit.
const maxNames = 60

// labels writes the labels that fit beside each other and beside points, to the right of from, a share of
// the width.
func (c *canvas) labels(from float64, all []label, points []obstacle) {
	all = all[:min(len(all), maxNames)]
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

// every returns the step, a round number, that leaves at most about limit of n labels.
func every(n, limit int) int {
	return max(1, int(math.Ceil(roundStep(float64(n)/float64(limit)))))
}
