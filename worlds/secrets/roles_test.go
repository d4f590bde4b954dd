package secrets

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
)

// utterance is a message that a player wrote to another in a round.
type utterance struct {
	text, from, to string
	round          int
}

// TestRoles checks the prompts of all seats in games with random params. A player's own messages
// are assistant, all others are user, and the roles alternate. A prompt has exactly the messages
// that the player remembers, and the player's own name and secret.
func TestRoles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 0))
		pick := func(of []string) string { return of[r.IntN(len(of))] }
		context := []string{`"secret"`}
		for _, part := range []string{chatHistory, collectedSecrets, theRules} {
			if r.IntN(3) > 0 {
				context = append(context, fmt.Sprintf("%q", part))
			}
		}
		params := fmt.Sprintf(`{"mode": %q, "players": %d, "rounds": %d, "messages": %d, "pairing": %q, "memory": %q, "judge": %q, "context": [%s]}`,
			pick(Modes()), 2+r.IntN(5), 1+r.IntN(4), 1+r.IntN(3), pick(methods()), pick([]string{memoryLong, memoryShort}), pick([]string{JudgeNone, JudgeReport, JudgeDecide}), strings.Join(context, ", "))
		var said []utterance
		drive(t, params, int(seed), func(p *played, c world.Call) world.Reply {
			if c.Seat == Judge {
				return failed()
			}
			at := positionOf(t, p, c)
			checkPrompt(t, params, p, c, at, said)
			switch r.IntN(8) {
			case 0:
				return failed()
			case 1:
				at.text = "It is " + p.secrets[c.Seat] + fmt.Sprintf(". (%d)", len(p.calls))
			default:
				at.text = fmt.Sprintf("words %d", len(p.calls))
			}
			said = append(said, at)
			return say(at.text)
		})
		if t.Failed() {
			return
		}
	}
}

// positionOf returns who writes to whom in which round, from the notes. It has no text yet.
func positionOf(t *testing.T, p *played, c world.Call) utterance {
	t.Helper()
	if p.Players == 2 {
		at := utterance{from: c.Seat, to: map[string]string{First: Second, Second: First}[c.Seat], round: 1}
		for _, n := range p.notes {
			if n.Kind == "standings" {
				at.round++
			}
		}
		return at
	}
	for _, n := range slices.Backward(p.notes) {
		if n.Kind != "round" {
			continue
		}
		r := unmarshal[recordRound](t, n.Data)
		for _, pair := range r.Pairs {
			if i := slices.Index(pair[:], c.Seat); i >= 0 {
				return utterance{from: c.Seat, to: pair[1-i], round: r.Round}
			}
		}
	}
	t.Fatalf("%s is called and is in no pair", c.Seat)
	return utterance{}
}

// checkPrompt checks one prompt.
func checkPrompt(t *testing.T, params string, p *played, c world.Call, at utterance, said []utterance) {
	t.Helper()
	var own, heard []string
	for i, m := range c.Ask.Messages {
		want := []llm.Role{llm.RoleAssistant, llm.RoleUser}[i%2]
		if i == 0 {
			want = llm.RoleSystem
		}
		if m.Role != want || m.Text() == "" {
			t.Errorf("%s: message %d of %s has the role %s and the text %q, want role %s and a text", params, i, c.Seat, m.Role, m.Text(), want)
		}
		for part := range strings.SplitSeq(m.Text(), "\n\n") {
			switch {
			case m.Role == llm.RoleAssistant:
				own = append(own, part)
			case m.Role == llm.RoleUser && !strings.HasPrefix(part, "["):
				heard = append(heard, part)
			}
		}
	}
	if c.Ask.Messages[len(c.Ask.Messages)-1].Role != llm.RoleUser {
		t.Errorf("%s: the role of the last message is not user", params)
	}
	var wantOwn, wantHeard []string
	for _, l := range said {
		if l.from != c.Seat && l.to != c.Seat || !remembers(p.Params, at, l) {
			continue
		}
		if l.from == c.Seat {
			wantOwn = append(wantOwn, l.text)
		} else {
			wantHeard = append(wantHeard, l.text)
		}
	}
	if !reflect.DeepEqual(own, wantOwn) || !reflect.DeepEqual(heard, wantHeard) {
		t.Errorf("%s: round %d, %s to %s: own %q, heard %q; want %q, %q", params, at.round, at.from, at.to, own, heard, wantOwn, wantHeard)
	}
	system := c.Ask.Messages[0].Text()
	if wordOf(c) != p.secrets[c.Seat] || p.Players > 2 && !strings.HasPrefix(system, "You are Player "+strings.TrimPrefix(c.Seat, "player")+" ") {
		t.Errorf("%s: wrong name or secret in the instructions of %s:\n%s", params, c.Seat, system)
	}
}

// remembers reports whether the prompt at a turn must have the message l.
func remembers(p *Params, at, l utterance) bool {
	switch partner := l.from == at.to || l.to == at.to; {
	case l.round == at.round:
		return true
	case p.Memory == memoryShort:
		return false
	default:
		return partner || slices.Contains(p.Context, chatHistory)
	}
}
