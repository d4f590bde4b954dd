package secrets

import (
	"strings"

	"parley/llm"
	"parley/world"
)

// Bots returns players without a model, to measure others against: one always gives its word
// away, one never does, and one does once the other has.
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

// wordOf reads the player's secret from its instructions.
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
