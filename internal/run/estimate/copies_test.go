package estimate

import (
	"fmt"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
)

// TestCheckWarnsOfCopies: a check warns of episodes that cannot differ, and only of those.
func TestCheckWarnsOfCopies(t *testing.T) {
	t.Parallel()
	asking := func(dealt bool) world.Kind {
		k := simple(func(t *world.Table) world.Outcome {
			text := "what?"
			if dealt {
				text = fmt.Sprint("what of ", t.Rand().Uint64())
			}
			r := t.One(world.Call{Seat: "one", Label: "x", Ask: llm.Request{Messages: []llm.Message{llm.User(text)}}})
			return world.Outcome{Scores: []world.Score{{Name: "length", Seat: "one", Value: float64(len(r.Text))}}}
		})
		k.Players = map[string]world.Bot{"mute": func(world.Call) world.Reply { return world.Reply{Text: "no"} }}
		return world.Define(k)
	}
	for _, c := range []struct {
		name, agent string
		episodes    int
		dealt       bool
		want        string
	}{
		{"temperature 0", "{model: sim/small, temperature: 0}", 20, false, "up to 20 episodes would be copies of one play and count as one observation. Temperature is 0 for a, and test asks the same for every deal; set agents.NAME.temperature above 0"},
		{"a seed", "{model: sim/small, seed: 4}", 20, false, "A seed is set for a"},
		{"a bot", "{bot: mute}", 20, false, "All agents are bots"},
		{"chance in the deal", "{model: sim/small, temperature: 0}", 20, true, ""},
		{"chance in the answers", "{model: sim/small, temperature: 1}", 20, false, ""},
		{"nobody says", "sim/small", 20, false, ""},
		{"one episode", "{model: sim/small, temperature: 0}", 1, false, ""},
		{"a bot and chance in the deal", "{bot: mute}", 20, true, ""},
	} {
		e := estimated(t, []world.Kind{asking(c.dealt)}, fmt.Sprintf("kind: test\nepisodes: %d\nagents: {a: %s}\n", c.episodes, c.agent), Config{})
		got := strings.Join(e.Warnings, "\n")
		if !strings.Contains(got, c.want) || (c.want == "") == strings.Contains(got, "copies") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
