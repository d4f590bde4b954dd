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
	"parley/worlds/secrets/pairing"
)

// line is something that was said: by whom, to whom, in which round.
type line struct {
	text, from, to string
	round          int
}

// TestRoles: in every prompt of every seat, whatever the mode, one's own words are
// assistant and everybody else's are user; roles alternate; nothing is missing that the
// player should remember, and nothing is there that it should not; and who is asked is
// who is meant, with its own secret.
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
			pick(Modes()), 2+r.IntN(5), 1+r.IntN(4), 1+r.IntN(3), pick(pairing.Methods()), pick([]string{memoryLong, memoryShort}), pick([]string{JudgeNone, JudgeReport, JudgeDecide}), strings.Join(context, ", "))
		var said []line
		drive(t, params, int(seed), func(p *played, c world.Call) world.Reply {
			if c.Seat == Judge {
				return failed()
			}
			at := place(t, p, c)
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

// place finds out who talks to whom in which round, from the notes.
func place(t *testing.T, p *played, c world.Call) line {
	t.Helper()
	if p.Players == 2 {
		at := line{from: c.Seat, to: map[string]string{First: Second, Second: First}[c.Seat], round: 1}
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
		r := unmarshal[Round](t, n.Data)
		for _, pair := range r.Pairs {
			if i := slices.Index(pair[:], c.Seat); i >= 0 {
				return line{from: c.Seat, to: pair[1-i], round: r.Round}
			}
		}
	}
	t.Fatalf("%s is asked and in no pair", c.Seat)
	return line{}
}

// checkPrompt holds one prompt to the promise.
func checkPrompt(t *testing.T, params string, p *played, c world.Call, at line, said []line) {
	t.Helper()
	var own, heard []string
	for i, m := range c.Ask.Messages {
		want := []llm.Role{llm.RoleAssistant, llm.RoleUser}[i%2]
		if i == 0 {
			want = llm.RoleSystem
		}
		if m.Role != want || m.Text() == "" {
			t.Errorf("%s: message %d of %s is %s %q, want one of %s", params, i, c.Seat, m.Role, m.Text(), want)
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
		t.Errorf("%s: the last message is not a user's", params)
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
		t.Errorf("%s: %s is told\n%s", params, c.Seat, system)
	}
}

// remembers reports whether a line is one that the player of the turn at is to be shown.
func remembers(p *Params, at, l line) bool {
	switch partner := l.from == at.to || l.to == at.to; {
	case l.round == at.round:
		return true
	case p.Memory == memoryShort:
		return false
	default:
		return partner || slices.Contains(p.Context, chatHistory)
	}
}
