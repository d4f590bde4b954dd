package secrets

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/world"
	"parley/worlds/secrets/reveal"
)

// The bounds of params.
const (
	maxPlayers  = 100
	maxRounds   = 200
	maxMessages = 200
	maxCalls    = 100_000 // of an episode
	maxPoints   = 1_000_000
	minWord     = 3 // letters: a shorter word is said by accident
	maxWord     = 40
	maxText     = 10_000
)

// check returns all errors in p, each with the name of its param.
func (p *Params) check() error {
	c := &world.ParamErrors{Kind: "secrets"}
	c.OneOf("mode", p.Mode, Modes())
	c.OneOf("pairing", p.Pairing, methods())
	c.OneOf("memory", p.Memory, []string{memoryLong, memoryShort})
	c.OneOf("target_known", p.TargetKnown, []string{everyone, holderOnly, othersOnly, nobody})
	c.OneOf("judge", p.Judge, []string{JudgeNone, JudgeReport, JudgeDecide})
	c.Each("context", p.Context, contextParts())
	c.Each("forms", p.Forms, formNames())
	c.Each("categories", p.Categories, wordCategories())
	if len(p.Forms) == 0 {
		c.Addf("forms", "none: nothing would give a secret away; use %s", listed(formNames()))
	}
	p.checkSizes(c)
	if slices.Contains(Modes(), p.Mode) {
		p.checkPoints(c)
	}
	p.checkWords(c)
	if p.Players >= 2 && p.Players <= maxPlayers {
		p.checkSeats(c)
	}
	return c.Err()
}

func (p *Params) checkSizes(c *world.ParamErrors) {
	c.IntRange("players", p.Players, 2, maxPlayers)
	c.IntRange("rounds", p.Rounds, 1, maxRounds)
	if p.Messages < 1 || p.Messages > maxMessages {
		c.Addf("messages", "%d: want 1 to %d; it counts those of each player", p.Messages, maxMessages)
		return
	}
	if p.Rounds > maxRounds || p.Players > maxPlayers {
		return
	}
	if calls := p.Rounds * (p.Players / 2) * 2 * p.Messages; calls > maxCalls {
		c.Addf("rounds", "%d rounds of %d players with %d messages each are %d messages in one episode: want at most %d", p.Rounds, p.Players, p.Messages, calls, maxCalls)
	}
}

// checkSeats checks the params about seats, and that there are words for all players.
func (p *Params) checkSeats(c *world.ParamErrors) {
	for _, seat := range slices.Sorted(maps.Keys(p.Persona)) {
		switch text := p.Persona[seat]; {
		case !slices.Contains(p.seats(), seat):
			c.Addf("persona."+seat, "unknown seat; want one of %s", listed(p.seats()))
		case len(text) > maxText || !utf8.ValidString(text):
			c.Addf("persona."+seat, "want a text of at most %d bytes", maxText)
		}
	}
	switch {
	case p.Target == "":
	case p.Mode != Targeted:
		c.Addf("target", "mode %s has none: use mode %s, or leave it empty", p.Mode, Targeted)
	case !slices.Contains(p.seats(), p.Target):
		c.Addf("target", "unknown seat %.40q; want one of %s, or empty", p.Target, listed(p.seats()))
	}
	for _, seat := range slices.Sorted(maps.Keys(p.Secrets)) {
		if !slices.Contains(p.seats(), seat) {
			c.Addf("secrets."+seat, "unknown seat; want one of %s", listed(p.seats()))
		}
	}
	if len(p.Secrets) >= p.Players {
		return // nothing is drawn
	}
	switch n := p.wordCount(); {
	case n == 0 && len(p.Categories) > 0: // all of them are unknown, which is already reported
	case n == 0:
		c.Addf("categories", "none, and no words either: use %s", listed(wordCategories()))
	case n < p.Players && len(p.Words) > 0:
		c.Addf("words", "%d for %d players: want one or more for each", n, p.Players)
	case n < p.Players:
		c.Addf("categories", "they have %d words for %d players: add some", n, p.Players)
	}
}

func (p *Params) checkPoints(c *world.ParamErrors) {
	var allowed []string
	for _, pay := range payments(p.Mode) {
		allowed = append(allowed, pay.name)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Points)) {
		switch v := p.Points[name]; {
		case len(allowed) == 0:
			c.Addf("points."+name, "mode %s pays by how rare a secret is: there is nothing to set", p.Mode)
		case !slices.Contains(allowed, name):
			c.Addf("points."+name, "mode %s does not pay for this; want one of %s", p.Mode, listed(allowed))
		case math.IsNaN(v) || math.Abs(v) > maxPoints:
			c.Addf("points."+name, "%v: want -%d to %d", v, maxPoints, maxPoints)
		}
	}
}

// checkWords checks the words that the plan gives: those of seats, and those to draw from.
func (p *Params) checkWords(c *world.ParamErrors) {
	seen := map[string]string{}
	for _, seat := range slices.Sorted(maps.Keys(p.Secrets)) {
		checkWord(c, "secrets."+seat, p.Secrets[seat], seen)
	}
	clear(seen) // a word of a seat is not drawn
	for i, w := range p.Words {
		checkWord(c, fmt.Sprintf("words[%d]", i), w, seen)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Texts)) {
		switch text := p.Texts[name]; {
		case name != textIntro && name != theRules:
			c.Addf("texts."+name, "unknown text; want one of %s", listed([]string{textIntro, theRules}))
		case len(text) > maxText || !utf8.ValidString(text):
			c.Addf("texts."+name, "want a text of at most %d bytes", maxText)
		}
	}
}

// checkWord checks a word. seen has the words before it.
func checkWord(c *world.ParamErrors, key, w string, seen map[string]string) {
	parts := reveal.Words(w)
	folded := strings.Join(parts, " ")
	n := utf8.RuneCountInString(strings.Join(parts, ""))
	switch {
	case n < minWord && !reveal.Unspaced(folded) || n == 0:
		c.Addf(key, "%q: want %d letters or more, or it is said by accident", w, minWord)
	case len(w) > maxWord:
		c.Addf(key, "%.20q…: want at most %d bytes", w, maxWord)
	case strings.ContainsFunc(w, unicode.IsControl) || !utf8.ValidString(w):
		c.Addf(key, "%q: want plain text on one line", w)
	case seen[folded] != "":
		c.Addf(key, "%q and %q sound the same: want different ones", seen[folded], w)
	default:
		seen[folded] = w
	}
}
