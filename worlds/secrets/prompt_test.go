package secrets

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
	"parley/world"
)

// TestPromptsGolden compares every prompt of some games with golden files. A change of a prompt
// changes the game and needs a new Version of the kind.
func TestPromptsGolden(t *testing.T) {
	t.Parallel()
	two := script(t, `{"words": ["tiger", "zebra"], "persona": {"second": "You are in a hurry."}}`, 0, func(turn int, own, _ string) world.Reply {
		return []world.Reply{say("Good morning."), say("What is yours?"), failed(), say("It is " + own + "."), say("Thank you."), say("And yours?")}[turn]
	})
	many := drive(t, `{"players": 3, "rounds": 2, "messages": 1, "mode": "targeted", "target": "player2", "pairing": "round-robin", "judge": "decide",
		"words": ["tiger", "zebra", "walrus"], "persona": {"player1": "aggressive", "player2": "plain"}}`, 0, func(_ *played, c world.Call) world.Reply {
		if c.Seat == Judge {
			return world.Reply{JSON: []byte(`{"a":{"reason":"It wrote it.","revealed":true,"message":1},"b":{"reason":"It did not.","revealed":false,"message":0}}`)}
		}
		return say("I am " + c.Seat + ".")
	})
	golden(t, "two.golden", two)
	golden(t, "many.golden", many)
	var b strings.Builder
	for _, mode := range Modes() {
		for _, players := range []int{2, 4} {
			p := drive(t, fmt.Sprintf(`{"mode": %q, "players": %d, "forms": ["said", "spelled"]}`, mode, players), 0, func(*played, world.Call) world.Reply { return say("Hm.") })
			g := &game{Params: *p.Params, players: make([]player, players), target: -1}
			if mode == Targeted {
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
		ownSecret: "Your secret: ", collectedSecrets: "Words you collected so far: ", theRules: "Get as many points as you can",
	}
	for _, context := range []string{``, `"secret"`, `"rules"`, `"collected_secrets"`, `"secret", "rules"`, `"chat_history", "secret", "collected_secrets", "rules"`} {
		p := drive(t, `{"mode": "diversity", "rounds": 2, "messages": 1, "context": [`+context+`]}`, 0, func(p *played, c world.Call) world.Reply {
			return say("It is " + p.secrets[c.Seat] + ".")
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
		everyone: {"It is the word of Player 2.", "It is your own word.", "It is the word of Player 2."},
		"holder": {"You are not told whose it is.", "It is your own word.", "You are not told whose it is."},
		"others": {"It is the word of Player 2.", "You are not told whose it is.", "It is the word of Player 2."},
		"nobody": {"You are not told whose it is.", "You are not told whose it is.", "You are not told whose it is."},
	} {
		p := drive(t, `{"mode": "targeted", "target": "player2", "players": 3, "rounds": 3, "messages": 1, "target_known": "`+known+`"}`, 0,
			func(*played, world.Call) world.Reply { return say("Hm.") })
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
