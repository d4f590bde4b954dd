package rollout

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	ownLimit  = regexp.MustCompile(`worth (\d{1,9}) to you`)
	lineCount = regexp.MustCompile(`(\d{1,9}) times in all`)
	highest   = regexp.MustCompile(`whole number from 1 to (\d{1,9})`)
	onTable   = regexp.MustCompile(`(?:^|\n)(\d{1,9}) is on the table\.\s*$`)
	ownOffer  = regexp.MustCompile(`OFFER (\d{1,9})$`)
)

// deal is a negotiation as one side sees it.
type deal struct {
	*turn

	sign    int // 1: sells, -1: buys
	limit   int
	largest int
	left    int // utterances left, with this one
	table   int // the price that can be accepted; 0: none
}

// bargain opens high, concedes step by step, and accepts an offer that is no worse than its next one. Near the
// end it mostly accepts any gain.
func (t *turn) bargain() (string, bool) {
	limit, lines, high := ownLimit.FindStringSubmatch(t.rules), lineCount.FindStringSubmatch(t.rules), highest.FindStringSubmatch(t.rules)
	if limit == nil || lines == nil || high == nil || t.asked() == "" {
		return "", false
	}
	d := deal{turn: t, sign: 1, limit: whole(limit[1]), largest: max(1, whole(high[1]))}
	d.left = whole(lines[1]) - 2*len(t.said)
	if strings.Contains(t.rules, "You want to buy") {
		d.sign = -1
		d.left--
	}
	if m := onTable.FindStringSubmatch(t.asked()); m != nil {
		d.table = whole(m[1])
	}
	next := d.next()
	if d.table > 0 && d.accepts(next) {
		return t.pick("That is fair. ACCEPT", "We have a deal. ACCEPT", "Well, then. ACCEPT"), true
	}
	return fmt.Sprintf("%s OFFER %d", t.pick("It is a fine lamp.", "Let us meet somewhere.", "I can move a little.", "That is my price for now."), next), true
}

// gain returns what a price is worth to this side.
func (d *deal) gain(price int) int { return d.sign * (price - d.limit) }

// next returns the price to ask for now: at first one on its side of the limit, then one closer to the limit
// or to the offer on the table.
func (d *deal) next() int {
	worst := 0
	if d.table > 0 && !d.fails(d.skill) {
		worst = max(0, d.gain(d.table))
	}
	for _, said := range slices.Backward(d.said) {
		if m := ownOffer.FindStringSubmatch(said); m != nil {
			kept := 0.85 - d.Float64()*(1-d.skill)
			return d.price(float64(worst) + float64(d.gain(whole(m[1]))-worst)*kept)
		}
	}
	room := d.largest - d.limit
	if d.sign < 0 {
		room = d.limit - 1
	}
	return d.price(float64(room) * (0.2 + 0.6*d.Float64()))
}

// price returns the price with a gain, within the allowed range.
func (d *deal) price(gain float64) int {
	return min(max(d.limit+d.sign*int(gain), 1), d.largest)
}

func (d *deal) accepts(next int) bool {
	gain := d.gain(d.table)
	switch {
	case gain < 0:
		return false
	case gain >= d.gain(next):
		return true
	case d.left <= 1:
		return gain > 0 || !d.fails(0.5)
	case d.left <= 3:
		return gain > 0 && !d.fails(d.skill)
	default:
		return gain > 0 && d.fails(0.8+0.2*d.skill) // too soon
	}
}
