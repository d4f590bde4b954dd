// Package worldsim helps to write stand-ins: the players of worlds for the simulated provider (see part.StandIn). A
// stand-in reads a prompt and answers as a model might, so that you can try a world without one.
//
// What it promises: everything here is a pure function of its arguments, and the same on every machine. It is not for
// worlds: they draw from their table.
package worldsim

import (
	"slices"
	"strings"

	"parley/llm"
)

// Dice draws from the seed of a request with SplitMix64.
type Dice struct{ state uint64 }

// NewDice returns dice that start at a seed.
func NewDice(seed uint64) *Dice { return &Dice{seed} }

// Next draws 64 bits.
func (d *Dice) Next() uint64 {
	d.state += 0x9E3779B97F4A7C15
	z := d.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Float draws a number in [0, 1).
func (d *Dice) Float() float64 { return float64(d.Next()>>11) / (1 << 53) }

// Pick draws one of the texts. There must be at least one.
func (d *Dice) Pick(texts ...string) string { return texts[d.Next()%uint64(len(texts))] }

// Instructions joins the system messages of a request, with a newline after each.
func Instructions(req *llm.Request) string {
	var b strings.Builder
	for _, m := range req.Messages {
		if m.Role == llm.RoleSystem {
			b.WriteString(m.Text() + "\n")
		}
	}
	return b.String()
}

// HasWord reports whether text contains one of words. Words are letters a to z: give text and words in lower case.
func HasWord(text string, words ...string) bool {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r < 'a' || r > 'z' }) {
		if slices.Contains(words, word) {
			return true
		}
	}
	return false
}

// Small reports whether a model's name says that it is small. Stand-ins play such a model worse than others.
func Small(model string) bool {
	return HasWord(strings.ToLower(model), "small", "mini", "nano", "tiny")
}

// Large reports whether a model's name says that it is large. Stand-ins play such a model better than others.
func Large(model string) bool {
	return HasWord(strings.ToLower(model), "large", "pro", "max", "huge")
}
