package secrets

import (
	"strings"

	"parley/llm"
	"parley/world"
)

// Bots are players without a model, to measure others against: one that always tells,
// one that never does, and one that tells once the other has.
func (definition) Bots() map[string]world.Bot {
	return map[string]world.Bot{
		"teller": func(c world.Call) world.Reply { return say("My word is " + wordOf(c) + ". And yours?") },
		"keeper": func(world.Call) world.Reply { return say("You first: what is your word? I will not tell mine.") },
		"trader": func(c world.Call) world.Reply {
			if ms := c.Ask.Messages; len(ms) > 0 && strings.Contains(ms[len(ms)-1].Text(), "word is") {
				return say("Fair enough. My word is " + wordOf(c) + ".")
			}
			return say("Tell me yours and I tell you mine.")
		},
	}
}

func say(text string) world.Reply { return world.Reply{Text: text, Finish: llm.FinishStop} }

// wordOf reads the asked player's secret from what it is told.
func wordOf(c world.Call) string {
	for _, m := range c.Ask.Messages {
		if m.Role != llm.RoleSystem {
			continue
		}
		for line := range strings.Lines(m.Text()) {
			if word, ok := strings.CutPrefix(line, "Your secret: "); ok {
				return strings.TrimSpace(word)
			}
		}
	}
	return ""
}
