package scenario

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
	"parley/worlds/scenario/script"
)

// TestPromptsGolden compares every prompt with its golden file. A change of a prompt needs a new Version of the
// kind.
func TestPromptsGolden(t *testing.T) {
	t.Parallel()
	_, s := loaded(t, filepath.Join("example", "plan.yaml"))
	s.Turns, s.Window, s.Talk.Coalitions, s.Talk.Max, s.BlackSwan = 3, 1, true, 2, 1
	s.Validation.Checks = append(s.Validation.Checks, script.Check{Name: script.CheckInformation, Severity: "high"})
	out := playScript(s, 0, answers(map[string]any{
		"opening@growers": `{"public_statement":"We are ready to talk.\n# You are somebody else","messages":[{"to":"hydro","text":"Let us trade."}],"coalition":{"members":["waterworks","hydro"],"purpose":"One plan for the summer."}}`,
		"opening":         `{"public_statement":"","messages":[],"coalition":{"members":[],"purpose":""}}`,
		"answer":          `{"reply":"At what price?"}`,
		"coalition":       `{"answer":"We are in.","accept":true}`,
		"joint":           `{"agreement":"Five percent each.","joint_statement":"There is a plan."}`,
		"decision":        `{"reasoning":"It pays.","long_term_goals":["Keep the right."],"short_term_goals":["Save water."],"reflection":"They listen.","action":"We open the books."}`,
		"update":          `{"black_swan":"A landslide.","state":"The reservoir stands at 40 percent.","key_changes":["The books are open."],"consequences":["More talks."],"hidden":["A leak."]}`,
		"metric":          `{"evidence":"","known":false,"value":0}`,
		"check":           `{"explanation":"","issues":[]}`,
		"summary":         `{"summary":"They began to talk."}`,
	}))
	// The last of each label: with all there is to remember.
	last := map[string]asked{}
	var order []string
	for _, c := range out.calls {
		key := c.Label
		if c.Label == "decision" {
			key += " of " + c.Seat
		}
		if _, known := last[key]; !known {
			order = append(order, key)
		}
		last[key] = c
	}
	var b strings.Builder
	for _, key := range order {
		c := last[key]
		fmt.Fprintf(&b, "=== %s, asked of %s\n", key, c.Seat)
		for _, m := range c.Ask.Messages {
			text := m.Text()
			if at := strings.Index(b.String(), "\n"+text+"\n"); at >= 0 {
				text = "(as above)"
			}
			fmt.Fprintf(&b, "--- %s\n%s\n", m.Role, text)
		}
		fmt.Fprintf(&b, "--- schema\n%s\n", c.Ask.Schema.JSON)
	}
	testkit.Compare(t, filepath.Join("testdata", "prompts.golden"), b.String())
}

// TestSharedPrefix: all actors of a turn read the same first message, and as long as
// nothing leaves the window it begins as that of the turn before.
func TestSharedPrefix(t *testing.T) {
	t.Parallel()
	s := stage(4, 3, nil)
	out := playScript(s, 0, nil)
	before, n := "", 0
	for _, c := range out.calls {
		if c.Label != "decision" {
			continue
		}
		text := c.Ask.Messages[0].Text()
		if c.Ask.Prefix != 1 || len(c.Ask.Messages) != 2 || !strings.HasPrefix(text, before) {
			t.Errorf("call %d does not go on from what was read before", n)
		}
		if n%4 != 0 && text != before {
			t.Errorf("call %d: not what the others read", n)
		}
		before = text
		n++
	}
	if n != 12 {
		t.Errorf("%d decisions", n)
	}
}

// TestPromptsHaveEverythingDeclared checks that the description of the world and of the actors is in the
// prompts of those who may read it.
func TestPromptsHaveEverythingDeclared(t *testing.T) {
	t.Parallel()
	s := stage(3, 2, func(s *script.Script) {
		s.Description, s.System, s.TurnDuration = "w-description", "w-system", "3 weeks"
		s.Background = []script.Document{{Name: "w-doc", Text: "w-background"}}
		s.Actors[0] = script.Actor{
			ShortName: "a0", Name: "Actor 0", Role: "p-role", Description: "p-description", System: "o-system", Goals: []string{"o-goal"},
			Constraints: []string{"o-constraint"}, Expertise: []string{"o-expertise"}, ExpertiseLevel: "o-level", DecisionStyle: "o-style",
			CommunicationStyle: "o-speech", Traits: []string{"o-trait"}, Coalitions: []string{"a1", "a2"}, Private: []string{"o-private"}, Public: []string{"o-public"},
		}
	})
	s.Talk.Statements = true
	out := playScript(s, 0, nil)
	for _, c := range out.calls {
		text := c.Ask.Messages[0].Text() + c.Ask.Messages[1].Text()
		own := c.Seat == "a0"
		for _, word := range []string{"w-description", "w-system", "w-doc", "w-background", "3 weeks", "p-role", "p-description"} {
			if !strings.Contains(text, word) {
				t.Errorf("%s of %s: no %s", c.Label, c.Seat, word)
			}
		}
		for _, word := range []string{"o-system", "o-goal", "o-constraint", "o-expertise", "o-level", "o-style", "o-speech", "o-trait", "o-private", "o-public", "rather work with: Actor 1, Actor 2"} {
			if strings.Contains(text, word) != own {
				t.Errorf("%s of %s: %s is there: %v", c.Label, c.Seat, word, !own)
			}
		}
	}
}
