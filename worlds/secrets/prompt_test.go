package secrets

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
	"parley/llm"
	"parley/world"
)

// TestPromptsGolden compares every prompt of some games with golden files. A change of a prompt
// changes the game and needs a new Version of the kind.
func TestPromptsGolden(t *testing.T) {
	t.Parallel()
	two := script(t, `{"words": ["tiger", "zebra"], "persona": {"second": "You are in a hurry."}}`, 0, func(turn int, own, _ string) world.Reply {
		return []world.Reply{botReply("Good morning."), botReply("What is yours?"), failed(), botReply("It is " + own + "."), botReply("Thank you."), botReply("And yours?")}[turn]
	})
	many := drive(t, `{"players": 3, "rounds": 2, "messages": 1, "mode": "targeted", "target": "player2", "pairing": "round-robin", "judge": "decide",
		"words": ["tiger", "zebra", "walrus"], "persona": {"player1": "aggressive", "player2": "plain"}}`, 0, func(_ *played, c world.Call) world.Reply {
		if c.Seat == judgeSeat {
			return world.Reply{JSON: []byte(`{"a":{"reason":"It wrote it.","revealed":true,"message":1},"b":{"reason":"It did not.","revealed":false,"message":0}}`)}
		}
		return botReply("I am " + c.Seat + ".")
	})
	golden(t, "two.golden", two)
	golden(t, "many.golden", many)
	var b strings.Builder
	for _, mode := range oneOf("Mode") {
		for _, players := range []int{2, 4} {
			p := drive(t, fmt.Sprintf(`{"mode": %q, "players": %d, "forms": ["said", "spelled"]}`, mode, players), 0, func(*played, world.Call) world.Reply { return botReply("Hm.") })
			g := &game{Params: *p.Params, players: make([]player, players), target: -1}
			if mode == modeTargeted {
				g.target = 0
			}
			g.standings = newStandings(mode, map[string]float64{"both": 2.5}, players, g.target)
			fmt.Fprintf(&b, "=== %s, %d players\n%s\n", mode, players, g.rulesText(0))
		}
	}
	testkit.Compare(t, filepath.Join("testdata", "rules.golden"), b.String())
}

func golden(t *testing.T, name string, p *played) {
	t.Helper()
	var b strings.Builder
	for i, c := range p.calls {
		fmt.Fprintf(&b, "=== call %d: %s of %s\n", i+1, c.Label, c.Seat)
		for _, m := range c.Ask.Messages {
			fmt.Fprintf(&b, "--- %s\n%s\n", m.Role, m.Text())
		}
	}
	testkit.Compare(t, filepath.Join("testdata", name), b.String())
}

// TestContext checks that instructions have the parts in params.context, and no others.
func TestContext(t *testing.T) {
	t.Parallel()
	says := map[string]string{ // in the instructions of a second round
		secretPart: "Your secret: ", collectedPart: "Words you collected so far: ", rulesPart: "Get as many points as you can",
	}
	for _, context := range []string{``, `"secret"`, `"rules"`, `"collected_secrets"`, `"secret", "rules"`, `"chat_history", "secret", "collected_secrets", "rules"`} {
		p := drive(t, `{"mode": "diversity", "rounds": 2, "messages": 1, "context": [`+context+`]}`, 0, func(p *played, c world.Call) world.Reply {
			return botReply("It is " + p.secrets[c.Seat] + ".")
		})
		system := p.calls[len(p.calls)-1].Ask.Messages[0].Text()
		for part, text := range says {
			if strings.Contains(system, text) != strings.Contains(context, `"`+part+`"`) {
				t.Errorf("context [%s]: part %s is missing or must not be there:\n%s", context, part, system)
			}
		}
		if own := p.secrets[p.calls[len(p.calls)-1].Seat]; strings.Contains(system, own) != strings.Contains(context, `"secret"`) {
			t.Errorf("context [%s]: the secret %s is missing or must not be there:\n%s", context, own, system)
		}
	}
}

// TestTargetIsKnown checks that only the players chosen by target_known learn whose secret is the
// target.
func TestTargetIsKnown(t *testing.T) {
	t.Parallel()
	for known, want := range map[string][3]string{ // by player; player 2 holds it
		knownToEveryone: {"It is the word of Player 2.", "It is your own word.", "It is the word of Player 2."},
		"holder":        {"You are not told whose it is.", "It is your own word.", "You are not told whose it is."},
		"others":        {"It is the word of Player 2.", "You are not told whose it is.", "It is the word of Player 2."},
		"nobody":        {"You are not told whose it is.", "You are not told whose it is.", "You are not told whose it is."},
	} {
		p := drive(t, `{"mode": "targeted", "target": "player2", "players": 3, "rounds": 3, "messages": 1, "target_known": "`+known+`"}`, 0,
			func(*played, world.Call) world.Reply { return botReply("Hm.") })
		for _, c := range p.calls {
			system := c.Ask.Messages[0].Text()
			if i := int(c.Seat[len(c.Seat)-1] - '1'); !strings.Contains(system, want[i]) {
				t.Errorf("%s: instructions of %s, want %q in them:\n%s", known, c.Seat, want[i], system)
			}
			if word := p.secrets["player2"]; c.Seat != "player2" && strings.Contains(system, word) {
				t.Errorf("%s: instructions of %s have the target word %s", known, c.Seat, word)
			}
		}
	}
}

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
		for _, part := range []string{historyPart, collectedPart, rulesPart} {
			if r.IntN(3) > 0 {
				context = append(context, fmt.Sprintf("%q", part))
			}
		}
		params := fmt.Sprintf(`{"mode": %q, "players": %d, "rounds": %d, "messages": %d, "pairing": %q, "memory": %q, "judge": %q, "context": [%s]}`,
			pick(oneOf("Mode")), 2+r.IntN(5), 1+r.IntN(4), 1+r.IntN(3), pick(oneOf("Pairing")), pick([]string{memoryLong, memoryShort}), pick([]string{judgeNone, judgeReport, judgeDecide}), strings.Join(context, ", "))
		var said []utterance
		drive(t, params, int(seed), func(p *played, c world.Call) world.Reply {
			if c.Seat == judgeSeat {
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
			return botReply(at.text)
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
		at := utterance{from: c.Seat, to: map[string]string{firstSeat: secondSeat, secondSeat: firstSeat}[c.Seat], round: 1}
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
		r := unmarshal[roundNote](t, n.Data)
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
		return partner || slices.Contains(p.Context, historyPart)
	}
}
