package secrets

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/worlds/secrets/reveal"
)

// The bounds of params.
const (
	maxPlayers  = 100
	maxRounds   = 200
	maxMessages = 200
	maxCalls    = 100_000 // of an episode
	maxPoints   = 1_000_000
	minWord     = 3 // letters: a shorter one is said by accident
	maxWord     = 40
	maxPersona  = 10_000
)

// check says what is wrong with p, naming the param.
func (p *Params) check() error {
	for _, c := range []func() error{p.checkChoices, p.checkSizes, p.checkLists, p.checkPersona, p.checkPoints, p.checkTarget, p.checkWords} {
		if err := c(); err != nil {
			return err
		}
	}
	return nil
}

// wrong is an error about a param.
func wrong(param, format string, args ...any) error {
	return fmt.Errorf("secrets: params.%s: %s", param, fmt.Sprintf(format, args...))
}

func (p *Params) checkChoices() error {
	for _, c := range []struct {
		param, value string
		allowed      []string
	}{
		{"mode", p.Mode, Modes()},
		{"pairing", p.Pairing, pairings()},
		{"memory", p.Memory, []string{memoryLong, memoryShort}},
		{"target_known", p.TargetKnown, []string{everyone, holderOnly, othersOnly, nobody}},
		{"judge", p.Judge, []string{JudgeNone, JudgeReport, JudgeDecide}},
	} {
		if !slices.Contains(c.allowed, c.value) {
			return wrong(c.param, "%.40q is none: use %s", c.value, listed(c.allowed))
		}
	}
	return nil
}

func (p *Params) checkSizes() error {
	for _, c := range []struct {
		param            string
		value, low, high int
		also             string
	}{
		{"players", p.Players, 2, maxPlayers, ""},
		{"rounds", p.Rounds, 1, maxRounds, ""},
		{"messages", p.Messages, 1, maxMessages, "; it counts those of each player"},
	} {
		if c.value < c.low || c.value > c.high {
			return wrong(c.param, "%d: want %d to %d%s", c.value, c.low, c.high, c.also)
		}
	}
	if calls := p.Rounds * (p.Players / 2) * 2 * p.Messages; calls > maxCalls {
		return wrong("rounds", "%d rounds of %d players with %d messages each are %d messages in one episode: want at most %d", p.Rounds, p.Players, p.Messages, calls, maxCalls)
	}
	return nil
}

func (p *Params) checkLists() error {
	for _, c := range []struct {
		param           string
		values, allowed []string
	}{
		{"context", p.Context, ContextParts()},
		{"forms", p.Forms, formNames()},
		{"categories", p.Categories, Categories()},
	} {
		for i, v := range c.values {
			if !slices.Contains(c.allowed, v) {
				return wrong(c.param, "%.40q is none: use %s", v, listed(c.allowed))
			}
			if slices.Contains(c.values[:i], v) {
				return wrong(c.param, "%s is listed twice", v)
			}
		}
	}
	if len(p.Forms) == 0 {
		return wrong("forms", "none: nothing would give a secret away; use %s", listed(formNames()))
	}
	return nil
}

func (p *Params) checkPersona() error {
	for _, seat := range slices.Sorted(maps.Keys(p.Persona)) {
		if !slices.Contains(p.seats(), seat) {
			return wrong("persona."+seat, "is no seat of a player: use %s", listed(p.seats()))
		}
		if text := p.Persona[seat]; len(text) > maxPersona || !utf8.ValidString(text) {
			return wrong("persona."+seat, "want a text of at most %d bytes", maxPersona)
		}
	}
	return nil
}

func (p *Params) checkPoints() error {
	var allowed []string
	for _, pay := range payments(p.Mode) {
		allowed = append(allowed, pay.name)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Points)) {
		switch v := p.Points[name]; {
		case len(allowed) == 0:
			return wrong("points."+name, "mode %s pays by how rare a secret is: there is nothing to set", p.Mode)
		case !slices.Contains(allowed, name):
			return wrong("points."+name, "is nothing that mode %s pays: use %s", p.Mode, listed(allowed))
		case math.IsNaN(v) || math.Abs(v) > maxPoints:
			return wrong("points."+name, "%v: want -%d to %d", v, maxPoints, maxPoints)
		}
	}
	return nil
}

func (p *Params) checkTarget() error {
	switch {
	case p.Target == "":
		return nil
	case p.Mode != Targeted:
		return wrong("target", "mode %s has none: use mode %s, or leave it empty", p.Mode, Targeted)
	case !slices.Contains(p.seats(), p.Target):
		return wrong("target", "%.40q is no seat of a player: use %s, or leave it empty", p.Target, listed(p.seats()))
	}
	return nil
}

func (p *Params) checkWords() error {
	seen := map[string]string{}
	for _, w := range p.Words {
		parts := reveal.Words(w)
		folded := strings.Join(parts, " ")
		n := utf8.RuneCountInString(strings.Join(parts, ""))
		switch {
		case n < minWord && !reveal.Unspaced(folded) || n == 0:
			return wrong("words", "%q: want %d letters or more, or it is said by accident", w, minWord)
		case len(w) > maxWord:
			return wrong("words", "%.20q…: want at most %d bytes", w, maxWord)
		case strings.ContainsFunc(w, unicode.IsControl) || !utf8.ValidString(w):
			return wrong("words", "%q: want plain text on one line", w)
		case seen[folded] != "":
			return wrong("words", "%q and %q sound the same: want different ones", seen[folded], w)
		}
		seen[folded] = w
	}
	switch n := len(p.words()); {
	case n == 0:
		return wrong("categories", "none, and no words either: use %s", listed(Categories()))
	case n < p.Players && len(p.Words) > 0:
		return wrong("words", "%d for %d players: want one or more for each", n, p.Players)
	case n < p.Players:
		return wrong("categories", "they have %d words for %d players: add some", n, p.Players)
	}
	return nil
}
