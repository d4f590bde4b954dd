package secrets

import (
	"fmt"
	"slices"
	"strings"

	"parley/worlds/secrets/reveal"
)

// Params are the params of a game in a plan file. The doc tags explain each.
type Params struct {
	Mode        string             `json:"mode" doc:"How points are given." oneof:"standard,retained,diversity,targeted"`
	Players     int                `json:"players" doc:"The number of players: 2 to 100. Two players have the seats first and second, more have player1, player2 and so on."`
	Rounds      int                `json:"rounds" doc:"The number of rounds: 1 to 200. In a round everybody talks to one other player. With an odd number of players, one sits out."`
	Messages    int                `json:"messages" doc:"The number of messages that each player writes in a conversation: 1 to 200."`
	Pairing     string             `json:"pairing" doc:"Who talks to whom. random: a new schedule in every episode. round-robin: the same schedule in every episode. swiss: players with similar points. Two players meet again only if they must." oneof:"random,round-robin,swiss"`
	Memory      string             `json:"memory" doc:"Which conversations a prompt has. long: earlier ones too. short: only the current one." oneof:"long,short"`
	Context     []string           `json:"context" doc:"The parts of a prompt: any of chat_history (earlier conversations with all players, if memory is long), secret, collected_secrets, rules."`
	Persona     map[string]string  `json:"persona" doc:"How a seat plays, by seat: plain, aggressive, or any text, which is added to its instructions."`
	Points      map[string]float64 `json:"points" doc:"Payments that differ from those of the mode: neither, both, only_other, only_own (standard), secret (diversity, targeted), target (targeted)."`
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
	chatHistory      = "chat_history"
	ownSecret        = "secret"
	collectedSecrets = "collected_secrets"
	theRules         = "rules"
)

// contextParts lists the parts that instructions can have.
func contextParts() []string { return []string{chatHistory, ownSecret, collectedSecrets, theRules} }

// textIntro begins instructions. Together with theRules it is a text that a plan may replace.
const textIntro = "intro"

// The values of memory.
const (
	memoryLong  = "long"
	memoryShort = "short"
)

// The values of target_known.
const (
	everyone   = "everyone"
	holderOnly = "holder"
	othersOnly = "others"
	nobody     = "nobody"
)

// The values of judge.
const (
	JudgeNone   = "none"
	JudgeReport = "report"
	JudgeDecide = "decide"
)

// Defaults returns the plain game: two players, one conversation.
func (definition) Defaults() *Params {
	return &Params{
		Mode: Standard, Players: 2, Rounds: 1, Messages: 3, Pairing: random, Memory: memoryLong, Context: contextParts(),
		Persona: map[string]string{}, Points: map[string]float64{}, TargetKnown: everyone, Judge: JudgeNone, Forms: formNames(),
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
		return []string{First, Second}
	}
	var names []string
	for i := range p.Players {
		names = append(names, fmt.Sprintf("player%d", i+1))
	}
	return names
}

// hasPart reports whether instructions have a part of the context.
func (p *Params) hasPart(part string) bool { return slices.Contains(p.Context, part) }

// listed joins names for a message.
func listed(names []string) string { return strings.Join(names, ", ") }
