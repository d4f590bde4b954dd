package scenario

import (
	"slices"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/script"
)

// TestPrivateTalkIsSummedUp checks that only the parties to a talk summarize it when it leaves the window, and
// that their later prompts have the summary.
func TestPrivateTalkIsSummedUp(t *testing.T) {
	t.Parallel()
	s := stage(3, 4, func(s *script.Script) {
		s.Window = 1
		s.Talk = script.Talk{Bilateral: true, Max: 1, Rounds: 1}
	})
	for name, c := range map[string]struct {
		reply any
		want  string
	}{
		"written":      {`{"summary":"the gist of it"}`, "the gist of it"},
		"nobody wrote": {llm.KindTimeout, "Turn 1, Actor 0 to Actor 1: a word in private"},
	} {
		spoken := false
		out := playScript(s, 0, answers(map[string]any{
			"opening": func(call world.Call) world.Reply {
				if call.Seat == "a0" && !spoken {
					spoken = true // in the first turn only
					return reply(`{"messages":[{"to":"a1","text":"a word in private"}]}`)
				}
				return reply(`{"messages":[]}`)
			},
			"answer":  `{"reply":"an answer in private"}`,
			"private": c.reply,
		}))
		var asked, read []string
		for _, call := range out.calls {
			if call.Label == "private summary" {
				asked = append(asked, call.Seat)
			}
			if call.Label == "decision" && strings.Contains(call.Ask.Messages[1].Text(), c.want) {
				read = append(read, call.Seat)
			}
		}
		if !slices.Equal(asked, []string{"a0", "a1"}) {
			t.Errorf("%s: %v are asked to sum up", name, asked)
		}
		// Turn 1 leaves the window after turn 2: turns 3 and 4 are decided with the summary.
		if !slices.Equal(read, []string{"a0", "a1", "a0", "a1"}) {
			t.Errorf("%s: %q is read by %v", name, c.want, read)
		}
	}
}

func reply(text string) world.Reply {
	return answers(map[string]any{"x": text})(world.Call{Label: "x"})
}
