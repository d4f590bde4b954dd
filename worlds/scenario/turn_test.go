package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/script"
)

func TestChecks(t *testing.T) {
	t.Parallel()
	issue := func(severity string) string {
		return `{"explanation":"I looked.","issues":[{"issue":"It is wrong.","severity":"` + severity + `"}]}`
	}
	for name, c := range map[string]struct {
		change func(*script.Validation)
		reply  any
		turns  int // that are played of 4
		notes  int
		failed bool
	}{
		"nothing found":               {nil, `{"explanation":"","issues":[]}`, 4, 0, false},
		"nothing found, with reports": {func(v *script.Validation) { v.Reports = true }, `{"explanation":"","issues":[]}`, 4, 4, false},
		"found":                       {nil, issue("high"), 4, 4, false},
		"nobody could say":            {nil, llm.KindTimeout, 4, 4, false},
		"critical, and not halted":    {nil, issue("critical"), 4, 4, false},
		"critical, halted":            {func(v *script.Validation) { v.HaltOnCritical = true }, issue("critical"), 1, 1, true},
		"high, and not halted":        {func(v *script.Validation) { v.HaltOnCritical = true }, issue("high"), 4, 4, false},
		"too many":                    {func(v *script.Validation) { v.MaxIssues = 3 }, issue("low"), 3, 3, true},
		"only at the end":             {func(v *script.Validation) { v.LastOnly = true }, issue("low"), 4, 1, false},
		"only at the end, halted":     {func(v *script.Validation) { v.LastOnly, v.HaltOnCritical = true, true }, issue("critical"), 4, 1, true},
	} {
		s := stage(2, 4, func(s *script.Script) {
			s.Validation = script.Validation{Checks: []script.Check{{Name: script.CheckWorld, Severity: "medium"}}, Summary: true}
			if c.change != nil {
				c.change(&s.Validation)
			}
		})
		out := playScript(s, 0, answers(map[string]any{"check": c.reply}))
		rec, _ := out.outcome.Data.(recordOutcome)
		notes := of[recordFinding](t, out, "check")
		if rec.Turns != c.turns || len(notes) != c.notes || (out.outcome.Failed != "") != c.failed {
			t.Errorf("%s: %d turns, %d findings, failed %q", name, rec.Turns, len(notes), out.outcome.Failed)
		}
		if c.reply == llm.KindTimeout && (notes[0].Passed || !notes[0].Unknown || len(rec.Issues) > 0) {
			t.Errorf("%s: %+v", name, notes[0])
		}
	}
}

// TestEveryCheckAsks checks who is asked about whom, and the text of the question.
func TestEveryCheckAsks(t *testing.T) {
	t.Parallel()
	for check, want := range map[string]struct {
		calls int
		holds []string
	}{
		script.CheckDecisions:   {2, []string{"never borrow", "my deed"}},
		script.CheckWorld:       {1, []string{"my deed", "The new world"}},
		script.CheckInformation: {2, []string{"the hidden door", "my deed", "words for one"}},
		script.CheckGoals:       {2, []string{"grow", "my deed"}},
		script.CheckRules:       {1, []string{"No magic.", "The new world"}},
	} {
		s := stage(2, 1, func(s *script.Script) {
			s.Actors[0].Constraints, s.Actors[0].Private, s.Actors[0].Goals = []string{"never borrow"}, []string{"the hidden door"}, []string{"grow"}
			s.Talk = script.Talk{Bilateral: true, Max: 1, Rounds: 1}
			s.Validation = script.Validation{Checks: []script.Check{{Name: check, Severity: "low"}}, Rules: []string{"No magic."}}
		})
		out := playScript(s, 0, answers(map[string]any{
			"opening":  `{"messages":[{"to":"a1","text":"words for one"}]}`,
			"decision": `{"reasoning":"why","long_term_goals":[],"short_term_goals":[],"action":"my deed"}`,
			"update":   `{"state":"The new world.","key_changes":[],"consequences":[],"hidden":[]}`,
		}))
		if n := out.count("check"); n != want.calls {
			t.Errorf("%s: %d calls", check, n)
		}
		for _, text := range want.holds {
			if !slices.ContainsFunc(contains(out.calls, text), func(i int) bool { return strings.HasPrefix(out.calls[i].Label, "check") }) {
				t.Errorf("%s: no check has %q in its prompt", check, text)
			}
		}
	}
}

// TestInformationCheckReadsOnePair checks that the check of an actor's knowledge gets the messages to that
// actor, and no others.
func TestInformationCheckReadsOnePair(t *testing.T) {
	t.Parallel()
	s := stage(6, 1, func(s *script.Script) {
		s.Talk = script.Talk{Bilateral: true, Coalitions: true, Max: 2, Rounds: 1}
		s.Validation = script.Validation{Checks: []script.Check{{Name: script.CheckInformation, Severity: "low"}}}
	})
	out := playScript(s, 0, answers(map[string]any{
		"opening@a0": `{"messages":[{"to":"a1","text":"for the pair"}],"coalition":{"members":["a1","a2"],"purpose":"for the three"}}`,
		"opening":    `{"messages":[],"coalition":{"members":[],"purpose":""}}`,
	}))
	for text, want := range map[string]string{"for the pair": "Actor 0, Actor 1", "for the three": "Actor 0, Actor 1, Actor 2"} {
		var about []string
		for _, i := range contains(out.calls, text) {
			if c := out.calls[i]; c.Seat == script.Validator {
				_, rest, _ := strings.Cut(c.Ask.Messages[0].Text(), "The actor is ")
				name, _, _ := strings.Cut(rest, " (")
				about = append(about, name)
			}
		}
		if got := strings.Join(about, ", "); got != want {
			t.Errorf("%q is read in checks of %s, want %s", text, got, want)
		}
	}
}

// TestOneRefusalIsEnough: a coalition is formed if all accept, whoever answers last.
func TestOneRefusalIsEnough(t *testing.T) {
	t.Parallel()
	for accepts, want := range map[string]bool{"a1 a2": true, "a1": false, "a2": false, "": false} {
		s := stage(3, 1, func(s *script.Script) { s.Talk = script.Talk{Coalitions: true, Max: 1, Rounds: 1} })
		out := playScript(s, 0, answers(map[string]any{
			"opening@a0": `{"coalition":{"members":["a1","a2"],"purpose":"peace"}}`,
			"opening":    `{"coalition":{"members":[],"purpose":""}}`,
			"coalition": func(c world.Call) world.Reply {
				return answers(map[string]any{"x": fmt.Sprintf(`{"answer":"so","accept":%v}`, strings.Contains(accepts, c.Seat))})(world.Call{Label: "x"})
			},
			"joint": `{"agreement":"peace","joint_statement":"Peace to all."}`,
		}))
		if pacts := of[coalition](t, out, "coalition"); len(pacts) != 1 || pacts[0].Formed != want || (pacts[0].Statement != "") != want {
			t.Errorf("%q accept: %+v", accepts, pacts)
		}
	}
}

// TestGoalsEvolve: goals are those of the last decision that had any; what was added and
// dropped is noted; a silent actor keeps them.
func TestGoalsEvolve(t *testing.T) {
	t.Parallel()
	s := stage(1, 4, func(s *script.Script) { s.Actors[0].Goals = []string{"peace", "bread"} })
	replies := []any{
		`{"reasoning":"","long_term_goals":["peace","roses"],"short_term_goals":["sow"],"action":"I sow."}`,
		llm.KindTimeout,
		`{"reasoning":"","long_term_goals":[],"short_term_goals":[],"action":"I wait."}`,
		`{"reasoning":"","long_term_goals":["peace"],"short_term_goals":[],"action":"I rest."}`,
	}
	n := 0
	out := playScript(s, 0, func(c world.Call) world.Reply {
		if c.Label != "decision" {
			return good(c)
		}
		n++
		return answers(map[string]any{"decision": replies[n-1]})(c)
	})
	var got []string
	for _, d := range of[recordDecision](t, out, "decision") {
		got = append(got, fmt.Sprint(d.Turn, d.Added, d.Dropped))
	}
	if want := []string{"1 [roses] [bread]", "3 [] []", "4 [] [roses]"}; !reflect.DeepEqual(got, want) {
		t.Errorf("decisions %q, want %q", got, want)
	}
	if sil := of[silence](t, out, "silence"); len(sil) != 1 || sil[0].Turn != 2 || sil[0].Failed != llm.KindTimeout {
		t.Errorf("silences %+v", sil)
	}
	rec, _ := out.outcome.Data.(recordOutcome)
	if !reflect.DeepEqual(rec.Goals["a0"], []string{"peace"}) {
		t.Errorf("at the end %v", rec.Goals)
	}
	if len(contains(out.calls, "in the long run: roses")) != 3 {
		t.Errorf("its goals are shown to the actor %d times", len(contains(out.calls, "in the long run: roses")))
	}
}

// TestWindow checks that prompts have the turns of the window in full and earlier turns in a summary, which
// takes no extra time.
func TestWindow(t *testing.T) {
	t.Parallel()
	const turns, window = 7, 2
	s := stage(1, turns, func(s *script.Script) { s.Window = window })
	n := 0
	out := playScript(s, 0, func(c world.Call) world.Reply {
		switch c.Label {
		case "update":
			n++
			return answers(map[string]any{"update": fmt.Sprintf(`{"state":"world-%d.","key_changes":[],"consequences":[],"hidden":[]}`, n)})(c)
		case "summary":
			k := strings.Count(c.Ask.Messages[1].Text(), "Sum up")
			upTo := 0
			_, _ = fmt.Sscanf(c.Ask.Messages[1].Text()[strings.Index(c.Ask.Messages[1].Text(), "turns 1 to ")+len("turns 1 to "):], "%d", &upTo)
			if !strings.Contains(c.Ask.Messages[0].Text(), fmt.Sprintf("world-%d.", upTo)) || k != 1 || upTo > 1 && !strings.Contains(c.Ask.Messages[0].Text(), fmt.Sprintf("summary-%d.", upTo-1)) {
				t.Errorf("the summary of turns 1 to %d is not made of the one before and of turn %d", upTo, upTo)
			}
			return answers(map[string]any{"summary": fmt.Sprintf(`{"summary":"summary-%d."}`, upTo)})(c)
		}
		return good(c)
	})
	if out.ticks != 2*turns {
		t.Errorf("%d latencies", out.ticks)
	}
	turn := 0
	for _, c := range out.calls {
		if c.Label != "decision" {
			continue
		}
		turn++
		text := c.Ask.Messages[0].Text()
		for k := 1; k < turn; k++ {
			full, short := strings.Contains(text, fmt.Sprintf("world-%d.", k)), strings.Contains(text, fmt.Sprintf("summary-%d.", k))
			if full != (k >= turn-window) || short != (k == turn-window-1) {
				t.Errorf("turn %d: of turn %d in full %v, in short %v", turn, k, full, short)
			}
		}
	}
	if got := out.count("summary"); got != turns-window-1 {
		t.Errorf("%d summaries", got)
	}
}

// TestTalkIsBounded checks that messages to nobody, to oneself, repeated or over the limit are left out, and
// that a pair has one exchange.
func TestTalkIsBounded(t *testing.T) {
	t.Parallel()
	s := stage(4, 1, func(s *script.Script) {
		s.Talk = script.Talk{Bilateral: true, Coalitions: true, Max: 2, Rounds: 1}
	})
	out := playScript(s, 0, answers(map[string]any{
		"opening@a0": `{"messages":[{"to":"a0","text":"me"},{"to":"mars","text":"x"},{"to":"a1","text":"one"},{"to":"a1","text":"again"},{"to":"a2","text":"two"},{"to":"a3","text":"three"}],"coalition":{"members":["a1"],"purpose":"too small"}}`,
		"opening@a1": `{"messages":[{"to":"a0","text":"back"},{"to":"a2","text":""}],"coalition":{"members":["a2","a3","a3","a1"],"purpose":"fine"}}`,
		"opening@a2": `{"messages":[],"coalition":{"members":["a3","a1"],"purpose":"the same"}}`,
		"opening@a3": llm.KindTimeout,
		"answer":     `{"reply":"well"}`, "coalition": `{"answer":"no","accept":false}`,
	}))
	var said []string
	for _, n := range out.notes {
		if n.Kind == "message" {
			said = append(said, n.Seat+string(n.Data))
		}
	}
	want := []string{
		`a0{"turn":1,"to":"a1","text":"one"}`, `a1{"turn":1,"to":"a0","text":"back"}`, `a1{"turn":1,"to":"a0","text":"well"}`, `a0{"turn":1,"to":"a1","text":"well"}`,
		`a0{"turn":1,"to":"a2","text":"two"}`, `a2{"turn":1,"to":"a0","text":"well"}`,
	}
	if !reflect.DeepEqual(said, want) {
		t.Errorf("said %q", said)
	}
	pacts := of[coalition](t, out, "coalition")
	if len(pacts) != 1 || pacts[0].Formed || !reflect.DeepEqual(pacts[0].Members, []string{"a1", "a2", "a3"}) || len(pacts[0].Answers) != 2 || out.count("joint") != 0 {
		t.Errorf("coalitions %+v", pacts)
	}
}

// TestDeaf checks that an actor without access to public statements never reads one.
func TestDeaf(t *testing.T) {
	t.Parallel()
	s := stage(2, 3, func(s *script.Script) {
		s.Talk, s.Actors[1].Deaf = script.Talk{Statements: true}, true
	})
	out := playScript(s, 0, answers(map[string]any{"opening": `{"public_statement":"hear, hear"}`}))
	readers := map[string]int{}
	for _, i := range contains(out.calls, "hear, hear") {
		readers[out.calls[i].Seat]++
	}
	if readers["a1"] > 0 || readers["a0"] == 0 {
		t.Errorf("read by %v", readers)
	}
}
