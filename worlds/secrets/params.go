package secrets

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/world"
	"parley/worlds/secrets/reveal"
)

// Params are the params of a game in a plan file. The doc tags explain each.
type Params struct {
	Mode        string             `json:"mode" doc:"How points are given." oneof:"standard,retained,diversity,targeted"`
	Players     int                `json:"players" doc:"The number of players. Two players have the seats first and second, more have player1, player2 and so on." range:"2..100"`
	Rounds      int                `json:"rounds" doc:"The number of rounds. In a round everybody talks to one other player. With an odd number of players, one sits out." range:"1..200"`
	Messages    int                `json:"messages" doc:"The number of messages that each player writes in a conversation." range:"1..200"`
	Pairing     string             `json:"pairing" doc:"Who talks to whom. random: a new schedule in every episode. round-robin: the same schedule in every episode. swiss: players with similar points. Two players meet again only if they must." oneof:"random,round-robin,swiss"`
	Memory      string             `json:"memory" doc:"Which conversations a prompt has. long: earlier ones too. short: only the current one." oneof:"long,short"`
	Context     []string           `json:"context" doc:"The parts of a prompt: any of chat_history (earlier conversations with all players, if memory is long), secret, collected_secrets, rules."`
	Persona     map[string]string  `json:"persona" doc:"How a seat plays, by seat: plain, aggressive, or any text, which is added to its instructions."`
	Points      map[string]float64 `json:"points" doc:"Payments that differ from those of the mode: neither, both, only_other, only_own (standard), secret (diversity, targeted), target (targeted)." range:"-1000000..1000000"`
	Target      string             `json:"target" doc:"The seat whose secret is the target, in mode targeted. Empty: a random seat in every episode."`
	TargetKnown string             `json:"target_known" doc:"Who knows whose secret is the target, in mode targeted." oneof:"everyone,holder,others,nobody"`
	Judge       string             `json:"judge" doc:"Whether an agent in the seat judge reads each conversation. none: no judge. report: its verdict is recorded next to that of the rule. decide: its verdict counts." oneof:"none,report,decide"`
	Forms       []string           `json:"forms" doc:"The forms of giving a secret away that count."`
	Categories  []string           `json:"categories" doc:"The categories of words to draw secrets from."`
	Words       []string           `json:"words" doc:"Your own words to draw secrets from, instead of the categories."`
	Secrets     map[string]string  `json:"secrets,omitempty" doc:"The secret of a seat in every episode, by seat. Other seats draw theirs."`
	Texts       map[string]string  `json:"texts,omitempty" doc:"Your own texts instead of those of the game: intro, which begins the instructions, and rules."`
}

// The parts of the context.
const (
	historyPart   = "chat_history"
	secretPart    = "secret"
	collectedPart = "collected_secrets"
	rulesPart     = "rules"
)

// contextParts lists the parts that instructions can have.
func contextParts() []string { return []string{historyPart, secretPart, collectedPart, rulesPart} }

// textIntro begins instructions. Together with theRules it is a text that a plan may replace.
const textIntro = "intro"

// The values of memory.
const (
	memoryLong  = "long"
	memoryShort = "short"
)

// The values of target_known.
const (
	knownToEveryone = "everyone"
	knownToHolder   = "holder"
	knownToOthers   = "others"
	knownToNobody   = "nobody"
)

// The values of judge.
const (
	judgeNone   = "none"
	judgeReport = "report"
	judgeDecide = "decide"
)

// Defaults returns the plain game: two players, one conversation.
func (definition) Defaults() *Params {
	return &Params{
		Mode: modeStandard, Players: 2, Rounds: 1, Messages: 3, Pairing: pairRandom, Memory: memoryLong, Context: contextParts(),
		Persona: map[string]string{}, Points: map[string]float64{}, TargetKnown: knownToEveryone, Judge: judgeNone, Forms: formNames(),
		Categories: wordCategories(), Words: []string{}, Secrets: map[string]string{}, Texts: map[string]string{},
	}
}

func formNames() []string {
	all := reveal.Forms()
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = string(f)
	}
	return names
}

// forms returns the forms that count.
func (p *Params) forms() []reveal.Form {
	forms := make([]reveal.Form, len(p.Forms))
	for i, f := range p.Forms {
		forms[i] = reveal.Form(f)
	}
	return forms
}

// seats lists the seats of the players.
func (p *Params) seats() []string {
	if p.Players == 2 {
		return []string{firstSeat, secondSeat}
	}
	var names []string
	for i := range p.Players {
		names = append(names, fmt.Sprintf("player%d", i+1))
	}
	return names
}

// hasPart reports whether instructions have a part of the context.
func (p *Params) hasPart(part string) bool { return slices.Contains(p.Context, part) }

// joinNames joins names for a message.
func joinNames(names []string) string { return strings.Join(names, ", ") }

// The bounds of params.
const (
	maxCalls = 100_000 // of an episode
	minWord  = 3       // letters: a shorter word is said by accident
	maxWord  = 40
	maxText  = 10_000
)

// check returns all errors in p, each with the name of its param.
func (p *Params) check() error {
	c := &world.ParamErrors{Kind: "secrets"}
	c.Each("context", p.Context, contextParts())
	c.Each("forms", p.Forms, formNames())
	c.Each("categories", p.Categories, wordCategories())
	if len(p.Forms) == 0 {
		c.Addf("forms", "none: nothing would give a secret away; use %s", joinNames(formNames()))
	}
	if calls := p.Rounds * (p.Players / 2) * 2 * p.Messages; calls > maxCalls {
		c.Addf("rounds", "%d rounds of %d players with %d messages each are %d messages in one episode: want at most %d", p.Rounds, p.Players, p.Messages, calls, maxCalls)
	}
	p.checkPoints(c)
	p.checkWords(c)
	p.checkSeats(c)
	return c.Err()
}

// checkSeats checks the params about seats, and that there are words for all players.
func (p *Params) checkSeats(c *world.ParamErrors) {
	for _, seat := range slices.Sorted(maps.Keys(p.Persona)) {
		switch text := p.Persona[seat]; {
		case !slices.Contains(p.seats(), seat):
			c.Addf("persona."+seat, "unknown seat; want one of %s", joinNames(p.seats()))
		case len(text) > maxText || !utf8.ValidString(text):
			c.Addf("persona."+seat, "want a text of at most %d bytes", maxText)
		}
	}
	switch {
	case p.Target == "":
	case p.Mode != modeTargeted:
		c.Addf("target", "mode %s has none: use mode %s, or leave it empty", p.Mode, modeTargeted)
	case !slices.Contains(p.seats(), p.Target):
		c.Addf("target", "unknown seat %.40q; want one of %s, or empty", p.Target, joinNames(p.seats()))
	}
	for _, seat := range slices.Sorted(maps.Keys(p.Secrets)) {
		if !slices.Contains(p.seats(), seat) {
			c.Addf("secrets."+seat, "unknown seat; want one of %s", joinNames(p.seats()))
		}
	}
	if len(p.Secrets) >= p.Players {
		return // nothing is drawn
	}
	switch n := len(p.pool()); {
	case n == 0 && len(p.Categories) > 0: // all of them are unknown, which is already reported
	case n == 0:
		c.Addf("categories", "none, and no words either: use %s", joinNames(wordCategories()))
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
		switch {
		case len(allowed) == 0:
			c.Addf("points."+name, "mode %s pays by how rare a secret is: there is nothing to set", p.Mode)
		case !slices.Contains(allowed, name):
			c.Addf("points."+name, "mode %s does not pay for this; want one of %s", p.Mode, joinNames(allowed))
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
		case name != textIntro && name != rulesPart:
			c.Addf("texts."+name, "unknown text; want one of %s", joinNames([]string{textIntro, rulesPart}))
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
