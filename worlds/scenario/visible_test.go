package scenario

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/script"
)

// A canary is a word that says who may read it: secret-0-3- may be read by actors 0 and
// 3, and by no other actor.
var canary = regexp.MustCompile(`secret-((?:\d+-)+)n\d+`)

// aviary answers every call with canaries that say who may read each part of the answer.
type aviary struct {
	t    *rapid.T
	n    int
	size int // actors
}

func (a *aviary) word(readers ...int) string {
	a.n++
	slices.Sort(readers)
	text := "secret-"
	for _, r := range slices.Compact(readers) {
		text += fmt.Sprintf("%d-", r)
	}
	return fmt.Sprintf("%sn%d", text, a.n)
}

func (a *aviary) answer(c world.Call) world.Reply {
	who := -1
	_, _ = fmt.Sscanf(c.Seat, "a%d", &who)
	last := c.Ask.Messages[1].Text()
	var v any
	switch c.Label {
	case "opening":
		v = a.opening(who)
	case "answer":
		other := -1
		_, _ = fmt.Sscanf(last[strings.LastIndex(last, "an exchange with Actor ")+len("an exchange with Actor "):], "%d", &other)
		v = map[string]any{"reply": a.word(who, other)}
	case "coalition":
		v = map[string]any{"answer": a.word(membersIn(last)...), "accept": rapid.IntRange(0, 3).Draw(a.t, "accepts") > 0}
	case "joint statement":
		v = map[string]any{"agreement": a.word(membersIn(last)...), "joint_statement": "public"}
	case "decision":
		own := []string{a.word(who)}
		v = map[string]any{"reasoning": a.word(who), "long_term_goals": own, "short_term_goals": own, "reflection": a.word(who), "action": a.word(who)}
	case "private summary":
		v = map[string]any{"summary": a.word(who)}
	case "update":
		v = map[string]any{"state": "public", "key_changes": []string{"public"}, "consequences": []string{}, "hidden": []string{a.word(99)}}
	default:
		return good(c)
	}
	b, err := json.Marshal(v)
	if err != nil {
		a.t.Fatal(err)
	}
	return world.Reply{JSON: b, Finish: llm.FinishStop}
}

// opening writes to some and proposes a coalition to some.
func (a *aviary) opening(who int) any {
	type message struct {
		To   string `json:"to"`
		Text string `json:"text"`
	}
	var messages []message
	var members []string
	with := []int{who}
	for other := range a.size {
		if other == who {
			continue
		}
		if rapid.Bool().Draw(a.t, "writes") {
			messages = append(messages, message{fmt.Sprintf("a%d", other), a.word(who, other)})
		}
		if rapid.Bool().Draw(a.t, "invites") {
			members = append(members, fmt.Sprintf("a%d", other))
			with = append(with, other)
		}
	}
	return map[string]any{"public_statement": "public", "messages": messages, "coalition": map[string]any{"members": members, "purpose": a.word(with...)}}
}

var proposedTo = regexp.MustCompile(`proposed a coalition of ([^:\n]+):`)

// membersIn finds who is in the coalition that a question is about: the last it speaks of.
func membersIn(text string) []int {
	all := proposedTo.FindAllStringSubmatch(text, -1)
	var members []int
	for name := range strings.SplitSeq(all[len(all)-1][1], ", ") {
		i := -1
		_, _ = fmt.Sscanf(name, "Actor %d", &i)
		members = append(members, i)
	}
	return members
}

// TestVisibility checks that no prompt of an actor has text that the actor may not read.
func TestVisibility(t *testing.T) {
	t.Parallel()
	read := map[string]int{} // canaries of each label that were read by somebody at all
	rapid.Check(t, func(t *rapid.T) {
		a := &aviary{t: t, size: rapid.IntRange(2, 4).Draw(t, "actors")}
		s := stage(a.size, 3, func(s *script.Script) {
			s.Talk = script.Talk{Statements: rapid.Bool().Draw(t, "statements"), Bilateral: true, Coalitions: a.size > 2, Max: rapid.IntRange(1, 4).Draw(t, "most"), Rounds: rapid.IntRange(1, 3).Draw(t, "rounds")}
			s.Reflect, s.Window = true, rapid.IntRange(1, 3).Draw(t, "window")
			for i := range s.Actors {
				s.Actors[i].Private = []string{a.word(i)}
				s.Actors[i].Goals = []string{a.word(i)}
			}
			s.Validation.Checks = []script.Check{{Name: script.CheckInformation, Severity: "low"}}
		})
		out := playScript(s, 0, a.answer)
		if out.failure != "" {
			t.Fatal(out.failure)
		}
		for _, c := range out.calls {
			who := -1
			if _, err := fmt.Sscanf(c.Seat, "a%d", &who); err != nil {
				continue // not an actor
			}
			for _, m := range c.Ask.Messages {
				for _, found := range canary.FindAllStringSubmatch(m.Text(), -1) {
					read[c.Label]++
					if !slices.Contains(strings.Split(found[1], "-"), fmt.Sprint(who)) {
						t.Fatalf("actor %d reads %s when it is asked for its %s:\n%s", who, found[0], c.Label, m.Text())
					}
				}
			}
		}
	})
	for _, label := range []string{"opening", "answer", "coalition", "joint statement", "decision", "private summary"} {
		if read[label] == 0 {
			t.Errorf("no actor read anything private when it was asked for its %s: the test sees nothing", label)
		}
	}
}

// TestNarratorGetsNoSecrets checks that the narrator reads only actions: no private knowledge, private talk or
// reasons.
func TestNarratorGetsNoSecrets(t *testing.T) {
	t.Parallel()
	s := stage(3, 2, func(s *script.Script) {
		s.Actors[0].Private = []string{"the vault is empty"}
		s.Talk = script.Talk{Bilateral: true, Max: 1, Rounds: 1}
	})
	out := playScript(s, 0, answers(map[string]any{
		"opening": `{"messages":[{"to":"a1","text":"private words"}]}`, "answer": `{"reply":"private answer"}`,
		"decision": `{"reasoning":"my real reason","long_term_goals":["goal"],"short_term_goals":[],"action":"the visible deed"}`,
	}))
	for text, want := range map[string]bool{"the vault is empty": false, "private words": false, "private answer": false, "my real reason": false, "the visible deed": true} {
		narrator := 0
		for _, i := range contains(out.calls, text) {
			if out.calls[i].Seat == script.Narrator {
				narrator++
			}
		}
		if (narrator > 0) != want {
			t.Errorf("the narrator reads %q %d times", text, narrator)
		}
		if text != "my real reason" && len(contains(out.calls, text)) == 0 {
			t.Errorf("%q is in no prompt: the test checks nothing", text)
		}
	}
}

// TestSimultaneous checks that no actor sees what another decides or says at the same time.
func TestSimultaneous(t *testing.T) {
	t.Parallel()
	s := stage(4, 1, func(s *script.Script) { s.Talk = script.Talk{Statements: true} })
	said := func(c world.Call) world.Reply {
		return world.Reply{JSON: json.RawMessage(fmt.Sprintf(`{"public_statement":"statement of %s"}`, c.Seat))}
	}
	did := func(c world.Call) world.Reply {
		return world.Reply{JSON: json.RawMessage(fmt.Sprintf(`{"reasoning":"","long_term_goals":[],"short_term_goals":[],"action":"deed of %s"}`, c.Seat))}
	}
	out := playScript(s, 0, answers(map[string]any{"opening": said, "decision": did}))
	for _, c := range out.calls {
		text := c.Ask.Messages[0].Text() + c.Ask.Messages[1].Text()
		if c.Label == "opening" && strings.Contains(text, "statement of") || c.Label == "decision" && strings.Contains(text, "deed of") {
			t.Errorf("%s of %s knows what others do at the same moment", c.Label, c.Seat)
		}
		if c.Label == "decision" && strings.Count(text, "statement of") != 4 {
			t.Errorf("%s decides without having heard the statements", c.Seat)
		}
		if c.Label == "update" && strings.Count(text, "deed of") != 4 {
			t.Error("the narrator does not know what was done")
		}
	}
}
