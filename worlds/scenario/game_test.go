package scenario

import (
	"cmp"
	"fmt"
	"maps"
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
		rec, _ := out.outcome.Data.(outcomeData)
		notes := of[checkNote](t, out, "check")
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
		if pacts := of[coalitionNote](t, out, "coalition"); len(pacts) != 1 || pacts[0].Formed != want || (pacts[0].Statement != "") != want {
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
	for _, d := range of[decisionNote](t, out, "decision") {
		got = append(got, fmt.Sprint(d.Turn, d.Added, d.Dropped))
	}
	if want := []string{"1 [roses] [bread]", "3 [] []", "4 [] [roses]"}; !reflect.DeepEqual(got, want) {
		t.Errorf("decisions %q, want %q", got, want)
	}
	if sil := of[silenceNote](t, out, "silence"); len(sil) != 1 || sil[0].Turn != 2 || sil[0].Failed != llm.KindTimeout {
		t.Errorf("silences %+v", sil)
	}
	rec, _ := out.outcome.Data.(outcomeData)
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
	pacts := of[coalitionNote](t, out, "coalition")
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

// fired plays a script of one actor and returns the turns in which its events happened.
func fired(t *testing.T, turns, deal int, value string, events ...script.Event) map[string][]int {
	t.Helper()
	s := stage(1, turns, func(s *script.Script) {
		s.Metrics, s.Events = []script.Metric{numeric("tension")}, events
	})
	if p := s.Problems(); len(p) > 0 {
		t.Fatal(p)
	}
	metric := `{"evidence":"","known":true,"value":` + value + `}`
	if value == "" {
		metric = `{"evidence":"","known":false,"value":0}`
	}
	out := playScript(s, deal, answers(map[string]any{"metric": metric}))
	if out.failure != "" {
		t.Fatal(out.failure)
	}
	got := map[string][]int{}
	for _, f := range of[eventNote](t, out, "event") {
		got[f.Name] = append(got[f.Name], f.Turn)
	}
	return got
}

func TestEvents(t *testing.T) {
	t.Parallel()
	when := func(op string) []script.Condition {
		c, err := script.Compare("tension", op)
		if err != nil {
			t.Fatal(err)
		}
		return []script.Condition{c}
	}
	all := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for name, c := range map[string]struct {
		event script.Event
		value string
		want  []int
	}{
		"every 3 from 1":        {script.Event{Type: script.EventTrend, Range: []int{1, 10}, Frequency: 3}, "5", []int{1, 4, 7, 10}},
		"every 2 from 3 to 7":   {script.Event{Type: script.EventTrend, Range: []int{3, 7}, Frequency: 2}, "5", []int{3, 5, 7}},
		"a trend once":          {script.Event{Type: script.EventTrend, Range: []int{2, 9}, Frequency: 2, Once: true}, "5", []int{2}},
		"scheduled":             {script.Event{Type: script.EventScheduled, Turns: []int{4}, Once: true}, "5", []int{4}},
		"scheduled twice":       {script.Event{Type: script.EventScheduled, Turns: []int{2, 6}}, "5", []int{2, 6}},
		"scheduled twice, once": {script.Event{Type: script.EventScheduled, Turns: []int{2, 6}, Once: true}, "5", []int{2}},
		"certain":               {script.Event{Type: script.EventRandom, Probability: new(1.0)}, "5", all},
		"never":                 {script.Event{Type: script.EventRandom, Probability: new(0.0)}, "5", nil},
		"scheduled, but never":  {script.Event{Type: script.EventScheduled, Turns: []int{4}, Probability: new(0.0)}, "5", nil},
		"certain once":          {script.Event{Type: script.EventRandom, Probability: new(1.0), Once: true}, "5", []int{1}},
		"certain in a range":    {script.Event{Type: script.EventRandom, Probability: new(1.0), Range: []int{4, 6}}, "5", []int{4, 5, 6}},
		">=":                    {script.Event{Type: script.EventConditional, Conditions: when(">= 5")}, "5", all},
		">= not":                {script.Event{Type: script.EventConditional, Conditions: when(">= 5.1")}, "5", nil},
		">":                     {script.Event{Type: script.EventConditional, Conditions: when("> 4")}, "5", all},
		"> not":                 {script.Event{Type: script.EventConditional, Conditions: when("> 5")}, "5", nil},
		"<=":                    {script.Event{Type: script.EventConditional, Conditions: when("<= 5")}, "5", all},
		"<":                     {script.Event{Type: script.EventConditional, Conditions: when("< 5")}, "5", nil},
		"==":                    {script.Event{Type: script.EventConditional, Conditions: when("== 5")}, "5", all},
		"a bare number":         {script.Event{Type: script.EventConditional, Conditions: when("5")}, "5", all},
		"!=":                    {script.Event{Type: script.EventConditional, Conditions: when("!= 5")}, "5", nil},
		"!= of another":         {script.Event{Type: script.EventConditional, Conditions: when("!= 4")}, "5", all},
		"conditional once":      {script.Event{Type: script.EventConditional, Conditions: when(">= 5"), Once: true}, "5", []int{1}},
		"all must hold":         {script.Event{Type: script.EventConditional, Conditions: append(when(">= 5"), when("< 5")...)}, "5", nil},
		"not known is not true": {script.Event{Type: script.EventConditional, Conditions: when("!= 5")}, "", nil},
		"not known is not 0":    {script.Event{Type: script.EventConditional, Conditions: when("<= 0")}, "", nil},
		"out of range":          {script.Event{Type: script.EventConditional, Conditions: when("> 0")}, "11", nil},
		"conditional in range":  {script.Event{Type: script.EventConditional, Conditions: when("> 0"), Range: []int{9, 10}}, "5", []int{9, 10}},
	} {
		c.event.Name, c.event.Description = "e", "Something happens."
		if got := fired(t, 10, 0, c.value, c.event)["e"]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: in turns %v, want %v", name, got, c.want)
		}
	}
}

// TestChance checks that events happen with their probability, differ between deals, and are the same in the
// same deal whatever else is in the scenario.
func TestChance(t *testing.T) {
	t.Parallel()
	e := script.Event{Name: "luck", Description: "It happens.", Type: script.EventRandom, Probability: new(0.3)}
	n, different := 0, false
	var first []int
	for deal := range 20 {
		got := fired(t, 10, deal, "5", e)["luck"]
		n += len(got)
		if deal == 0 {
			first = got
		}
		different = different || !slices.Equal(got, first)
		other := script.Event{Name: "other", Description: "Too.", Type: script.EventRandom, Probability: new(0.5)}
		if again := fired(t, 10, deal, "1", other, e)["luck"]; !slices.Equal(got, again) {
			t.Errorf("deal %d: %v alone, %v beside another", deal, got, again)
		}
	}
	// 200 draws of 0.3: 60 expected, with a standard deviation of 6.5.
	if n < 30 || n > 90 || !different {
		t.Errorf("%d of 200, different %v", n, different)
	}
}

func TestBlackSwan(t *testing.T) {
	t.Parallel()
	for p, want := range map[float64]int{0: 0, 1: 5} {
		s := stage(1, 5, func(s *script.Script) { s.BlackSwan = p })
		out := playScript(s, 0, answers(map[string]any{"update": `{"black_swan":"The moon is gone.","state":"Darkness.","key_changes":[],"consequences":[],"hidden":[]}`}))
		if got := of[eventNote](t, out, "event"); len(got) != want || want > 0 && got[0].Type != "black_swan" {
			t.Errorf("probability %v: %v", p, got)
		}
		if n := len(contains(out.calls, "that nobody foresaw: invent it")); n != want {
			t.Errorf("probability %v: the narrator is asked %d times", p, n)
		}
	}
}

// TestNarratorCatchesUp checks that events during a failure of the narrator are not lost and happen once, and
// that a narrator that keeps failing fails the scenario.
func TestNarratorCatchesUp(t *testing.T) {
	t.Parallel()
	s := stage(1, 4, func(s *script.Script) {
		s.Events = []script.Event{{Name: "flood", Description: "The river rises.", Type: script.EventScheduled, Turns: []int{2}, Once: true}}
	})
	updates := 0
	reply := func(fails func(n int) bool) *played {
		updates = 0
		return playScript(s, 0, func(c world.Call) world.Reply {
			if c.Label != "update" {
				return good(c)
			}
			if updates++; fails(updates) {
				return world.Reply{Failed: llm.KindTimeout}
			}
			return good(c)
		})
	}
	out := reply(func(n int) bool { return n == 2 })
	times := 0
	for _, i := range contains(out.calls, "The river rises.") {
		if out.calls[i].Label == "update" {
			times++
		}
	}
	worlds := of[worldNote](t, out, "world")
	if times != 2 || len(of[eventNote](t, out, "event")) != 1 || out.outcome.Failed != "" || !worlds[1].Stale || worlds[1].State != worlds[0].State || worlds[1].Failed != llm.KindTimeout {
		t.Errorf("narrated %d times, worlds %+v, %+v", times, worlds, out.outcome)
	}
	out = reply(func(n int) bool { return n >= 2 })
	if out.outcome.Failed == "" || out.outcome.Scores != nil || out.count("update") != 3 {
		t.Errorf("%+v after %d accounts", out.outcome, out.count("update"))
	}
}

func TestEndsOnCondition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value string
		by    string
		want  int
	}{
		"never":             {"3", script.ByModel, 6},
		"at once":           {"9", script.ByModel, 1},
		"not known":         {"", script.ByModel, 6},
		"at once, by words": {"", script.ByKeyword, 1},
	} {
		s := stage(2, 6, func(s *script.Script) {
			m := numeric("tension")
			m.Extraction = script.Extraction{Type: c.by, Keywords: []string{"war"}, Scoring: "count"}
			s.Metrics = []script.Metric{m}
			s.End = []script.Condition{{Metric: "tension", Op: ">=", Value: "9"}}
		})
		known := fmt.Sprintf(`{"evidence":"","known":%v,"value":%s}`, c.value != "", cmp.Or(c.value, "0"))
		out := playScript(s, 0, answers(map[string]any{"metric": known, "update": `{"state":"war war war war war war war war war","key_changes":[],"consequences":[],"hidden":[]}`}))
		rec, ok := out.outcome.Data.(outcomeData)
		if !ok || rec.Turns != c.want {
			t.Errorf("%s: %d turns (%s), want %d", name, rec.Turns, rec.Ended, c.want)
		}
		// What a model measures is known only when the next turn is decided; words are at once.
		dropped := c.want < 6 && c.by == script.ByModel
		if got := len(of[droppedNote](t, out, "dropped")) > 0; got != dropped {
			t.Errorf("%s: dropped %v", name, got)
		}
		if n := out.count("decision"); n != 2*c.want && !dropped {
			t.Errorf("%s: %d decisions", name, n)
		}
	}
}

// measuredStage is a scenario with a metric that a model reads, one that counts words, and a check.
func measuredStage(turns int) *script.Script {
	return stage(2, turns, func(s *script.Script) {
		words := numeric("words")
		words.Extraction = script.Extraction{Type: script.ByKeyword, Keywords: []string{"a"}, Scoring: "count"}
		s.Metrics = []script.Metric{numeric("level"), words}
		s.Validation = script.Validation{Checks: []script.Check{{Name: script.CheckWorld, Severity: "low"}}, Summary: true}
	})
}

func scoreOf(o world.Outcome, name string) (float64, bool) {
	for _, s := range o.Scores {
		if s.Name == name {
			return s.Value, true
		}
	}
	return 0, false
}

// TestUnknownIsNoScore checks that a missing measurement has no score and is counted.
func TestUnknownIsNoScore(t *testing.T) {
	t.Parallel()
	late := func(n int) func(world.Call) world.Reply { // the first n are answered
		return func(c world.Call) world.Reply {
			if n--; n < 0 {
				return world.Reply{Failed: llm.KindTooLong}
			}
			return good(c)
		}
	}
	for _, c := range []struct {
		name       string
		by         map[string]any
		failed     string
		scores     map[string]bool // those there must be, or must not be
		untold     int
		unanswered int
	}{
		{name: "all is well", scores: map[string]bool{"level": true, "words": true, "issues": true, "turns": true}},
		{name: "a check fails", by: map[string]any{"check": late(0)}, scores: map[string]bool{"level": true, "issues": false, "turns": true}},
		{name: "one of the checks fails", by: map[string]any{"check": late(1)}, scores: map[string]bool{"issues": false}},
		{name: "the metric fails", by: map[string]any{"metric": late(0)}, scores: map[string]bool{"level": false, "words": true, "issues": true}, unanswered: 3},
		{name: "the last account fails", by: map[string]any{"update": late(1)}, scores: map[string]bool{"level": false, "words": false, "turns": true}, untold: 1},
		{name: "no account", by: map[string]any{"update": late(0)}, failed: "the narrator wrote nothing: too_long (2 of 2 calls); that was in 2 turns, one after the other", untold: 2},
		{name: "no decision", by: map[string]any{"decision": late(0)}, failed: "no actor ever decided anything: too_long (4 of 4 calls)"},
	} {
		by := map[string]any{"metric": `{"evidence":"","known":true,"value":1}`}
		maps.Copy(by, c.by)
		p := playScript(measuredStage(2), 0, answers(by))
		rec, _ := p.outcome.Data.(outcomeData)
		if p.failure != "" || p.outcome.Failed != c.failed || rec.NotNarrated != c.untold || rec.Unanswered != c.unanswered {
			t.Errorf("%s: failed %q %q, %d untold, %d unanswered", c.name, p.failure, p.outcome.Failed, rec.NotNarrated, rec.Unanswered)
		}
		if c.failed != "" && len(p.outcome.Scores) > 0 {
			t.Errorf("%s: scores %v", c.name, p.outcome.Scores)
		}
		for name, want := range c.scores {
			if _, ok := scoreOf(p.outcome, name); ok != want {
				t.Errorf("%s: score %s: %v, want %v: %v", c.name, name, ok, want, p.outcome.Scores)
			}
		}
	}
}

// TestOneTurnWithoutNarrator checks that a scenario of one turn fails if the narrator fails, although it cannot
// fail twice in a row.
func TestOneTurnWithoutNarrator(t *testing.T) {
	t.Parallel()
	p := playScript(measuredStage(1), 0, answers(map[string]any{"update": llm.KindTooLong}))
	if want := "the narrator never wrote anything: too_long (1 of 1 calls)"; p.outcome.Failed != want || len(p.outcome.Scores) > 0 {
		t.Errorf("%q, %v", p.outcome.Failed, p.outcome.Scores)
	}
}

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

// TestModelMetrics checks that a value outside its range, an unknown category, a failure and "not known" are
// all unknown, and never 0.
func TestModelMetrics(t *testing.T) {
	t.Parallel()
	level := script.Metric{Name: "level", Description: "How.", Type: script.Categorical, Categories: []string{"low", "high"}, Extraction: script.Extraction{Type: script.ByModel}}
	truth := script.Metric{Name: "truth", Description: "Whether.", Type: script.Boolean, Extraction: script.Extraction{Type: script.ByModel}}
	for _, c := range []struct {
		metric  script.Metric
		reply   any
		want    float64
		unknown string
	}{
		{numeric("n"), `{"evidence":"e","known":true,"value":7}`, 7, ""},
		{numeric("n"), `{"evidence":"e","known":true,"value":0}`, 0, ""},
		{numeric("n"), `{"evidence":"e","known":true,"value":"7.5"}`, 7.5, ""},
		{numeric("n"), `{"evidence":"e","known":false,"value":0}`, 0, "the text does not say"},
		{numeric("n"), `{"evidence":"e","known":true,"value":11}`, 0, "out of range: 11"},
		{numeric("n"), `{"evidence":"e","known":true,"value":null}`, 0, "no value"},
		{numeric("n"), `{"evidence":"e","known":true}`, 0, "no value"},
		{numeric("n"), `[1]`, 0, "no answer"},
		{numeric("n"), llm.KindMalformed, 0, "no answer"},
		{level, `{"evidence":"e","known":true,"value":"HIGH"}`, 1, ""},
		{level, `{"evidence":"e","known":true,"value":"medium"}`, 0, "no value"},
		{truth, `{"evidence":"e","known":true,"value":true}`, 1, ""},
		{truth, `{"evidence":"e","known":true,"value":false}`, 0, ""},
	} {
		s := stage(1, 1, func(s *script.Script) { s.Metrics = []script.Metric{c.metric} })
		out := playScript(s, 0, answers(map[string]any{"metric": c.reply}))
		notes := of[metricNote](t, out, "metric")
		last := notes[len(notes)-1]
		if (last.Value == nil) != (c.unknown != "") || last.Value != nil && *last.Value != c.want || !strings.Contains(last.Unknown, c.unknown) {
			t.Errorf("%s %v: %+v, want %v %s", c.metric.Type, c.reply, last, c.want, c.unknown)
		}
		scored := false
		for _, sc := range out.outcome.Scores {
			name, want := c.metric.Name, c.want
			if len(c.metric.Categories) > 0 { // the share of each
				name, want = categoryScore(name, c.metric.Categories[int(c.want)]), 1
			}
			scored = scored || sc.Name == name && sc.Value == want
		}
		if scored != (c.unknown == "") {
			t.Errorf("%s %v: scores %v", c.metric.Type, c.reply, out.outcome.Scores)
		}
	}
}

func TestActorMetricsAndThresholds(t *testing.T) {
	t.Parallel()
	warn, critical := 5.0, 2.0
	s := stage(2, 4, func(s *script.Script) {
		own, shared := numeric("effort"), numeric("health")
		own.ActorSpecific = true
		shared.Warning, shared.Critical = &warn, &critical
		s.Metrics = []script.Metric{own, shared}
	})
	values := []string{"9", "null", "5", "4", "1"} // from turn 0; null is not known
	turn := 0
	out := playScript(s, 0, func(c world.Call) world.Reply {
		switch c.Label {
		case "metric health":
			turn++
			return answers(map[string]any{"metric": `{"evidence":"","known":true,"value":` + values[turn-1] + `}`})(c)
		case "metric effort":
			value := map[bool]string{true: "3", false: "8"}[strings.Contains(c.Ask.Messages[0].Text(), "Actor 0")]
			return answers(map[string]any{"metric": `{"evidence":"","known":true,"value":` + value + `}`})(c)
		}
		return good(c)
	})
	var got []string
	for _, th := range of[thresholdNote](t, out, "threshold") {
		got = append(got, fmt.Sprint(th.Turn, th.Level, th.Limit))
	}
	if want := []string{"2warning5", "4critical2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("thresholds %v, want %v", got, want)
	}
	scores := fmt.Sprint(out.outcome.Scores)
	if want := "[{a0 effort 3} {a1 effort 8} { health 1} { turns 4}]"; scores != want {
		t.Errorf("scores %s, want %s", scores, want)
	}
	if n := out.count("metric"); n != 5+2*4 {
		t.Errorf("%d metrics were asked for", n)
	}
}
