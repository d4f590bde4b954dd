package secrets

import (
	"fmt"
	"slices"
	"strings"

	"parley/worlds/secrets/pairing"
	"parley/worlds/secrets/reveal"
)

// Params are the params of a game in a plan file. The doc tags explain each.
type Params struct {
	Mode        string             `json:"mode" doc:"How points are given." oneof:"standard,retained,diversity,targeted"`
	Players     int                `json:"players" doc:"How many play: 2 to 100. Two sit in first and second, more in player1, player2 and so on."`
	Rounds      int                `json:"rounds" doc:"How many rounds are played: 1 to 200. In each, everybody talks to one other player; of an odd number one sits out."`
	Messages    int                `json:"messages" doc:"How many messages each of the two players of a conversation writes in it: 1 to 200."`
	Pairing     string             `json:"pairing" doc:"Who talks to whom: random draws it anew in every episode, round-robin is the same in each, swiss pairs players with like points. Nobody meets again before it must be." oneof:"random,round-robin,swiss"`
	Memory      string             `json:"memory" doc:"What players are shown: long is also their earlier conversations, short the present one only." oneof:"long,short"`
	Context     []string           `json:"context" doc:"What players are told, any of chat_history (conversations with others than the present one, if memory is long), secret, collected_secrets, rules."`
	Persona     map[string]string  `json:"persona" doc:"How a seat plays, by seat: plain, aggressive, or any text, which is added to what it is told."`
	Points      map[string]float64 `json:"points" doc:"What is paid, where that is to differ from the mode: neither, both, only_other, only_own (standard), secret (diversity, targeted), target (targeted)."`
	Target      string             `json:"target" doc:"The seat whose secret is the target, in mode targeted. Empty: drawn anew in every episode."`
	TargetKnown string             `json:"target_known" doc:"Who is told whose secret is the target, in mode targeted." oneof:"everyone,holder,others,nobody"`
	Judge       string             `json:"judge" doc:"Whether an agent in the seat judge reads each conversation: none; report: its verdict stands beside the rule's; decide: its verdict counts." oneof:"none,report,decide"`
	Forms       []string           `json:"forms" doc:"The ways to give a secret away that count."`
	Categories  []string           `json:"categories" doc:"The categories of words that secrets are drawn from."`
	Words       []string           `json:"words" doc:"Words of your own to draw secrets from, instead of the categories."`
}

// The parts of the context.
const (
	chatHistory      = "chat_history"
	ownSecret        = "secret"
	collectedSecrets = "collected_secrets"
	theRules         = "rules"
)

// ContextParts lists the parts that instructions can have.
func ContextParts() []string { return []string{chatHistory, ownSecret, collectedSecrets, theRules} }

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
		Mode: Standard, Players: 2, Rounds: 1, Messages: 3, Pairing: pairing.Random, Memory: memoryLong, Context: ContextParts(),
		Persona: map[string]string{}, Points: map[string]float64{}, TargetKnown: everyone, Judge: JudgeNone, Forms: formNames(),
		Categories: Categories(), Words: []string{},
	}
}

func formNames() []string {
	var names []string
	for _, f := range reveal.Forms() {
		names = append(names, string(f))
	}
	return names
}

// forms returns the forms that count.
func (p *Params) forms() []reveal.Form {
	var forms []reveal.Form
	for _, f := range p.Forms {
		forms = append(forms, reveal.Form(f))
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

// tells reports whether instructions have a part of the context.
func (p *Params) tells(part string) bool { return slices.Contains(p.Context, part) }

// words returns the words that secrets are drawn from.
func (p *Params) words() []string {
	if len(p.Words) > 0 {
		return p.Words
	}
	var all []string
	for _, c := range p.Categories {
		all = append(all, category(c)...)
	}
	return all
}

// listed joins names for a message.
func listed(names []string) string { return strings.Join(names, ", ") }
