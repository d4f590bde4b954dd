package scenario

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/script"
)

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
	for _, f := range of[recordEvent](t, out, "event") {
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
		"every 3 from 1":        {script.Event{Type: script.Trend, Range: []int{1, 10}, Frequency: 3}, "5", []int{1, 4, 7, 10}},
		"every 2 from 3 to 7":   {script.Event{Type: script.Trend, Range: []int{3, 7}, Frequency: 2}, "5", []int{3, 5, 7}},
		"a trend once":          {script.Event{Type: script.Trend, Range: []int{2, 9}, Frequency: 2, Once: true}, "5", []int{2}},
		"scheduled":             {script.Event{Type: script.Scheduled, Turns: []int{4}, Once: true}, "5", []int{4}},
		"scheduled twice":       {script.Event{Type: script.Scheduled, Turns: []int{2, 6}}, "5", []int{2, 6}},
		"scheduled twice, once": {script.Event{Type: script.Scheduled, Turns: []int{2, 6}, Once: true}, "5", []int{2}},
		"certain":               {script.Event{Type: script.Random, Probability: new(1.0)}, "5", all},
		"never":                 {script.Event{Type: script.Random, Probability: new(0.0)}, "5", nil},
		"scheduled, but never":  {script.Event{Type: script.Scheduled, Turns: []int{4}, Probability: new(0.0)}, "5", nil},
		"certain once":          {script.Event{Type: script.Random, Probability: new(1.0), Once: true}, "5", []int{1}},
		"certain in a range":    {script.Event{Type: script.Random, Probability: new(1.0), Range: []int{4, 6}}, "5", []int{4, 5, 6}},
		">=":                    {script.Event{Type: script.Conditional, Conditions: when(">= 5")}, "5", all},
		">= not":                {script.Event{Type: script.Conditional, Conditions: when(">= 5.1")}, "5", nil},
		">":                     {script.Event{Type: script.Conditional, Conditions: when("> 4")}, "5", all},
		"> not":                 {script.Event{Type: script.Conditional, Conditions: when("> 5")}, "5", nil},
		"<=":                    {script.Event{Type: script.Conditional, Conditions: when("<= 5")}, "5", all},
		"<":                     {script.Event{Type: script.Conditional, Conditions: when("< 5")}, "5", nil},
		"==":                    {script.Event{Type: script.Conditional, Conditions: when("== 5")}, "5", all},
		"a bare number":         {script.Event{Type: script.Conditional, Conditions: when("5")}, "5", all},
		"!=":                    {script.Event{Type: script.Conditional, Conditions: when("!= 5")}, "5", nil},
		"!= of another":         {script.Event{Type: script.Conditional, Conditions: when("!= 4")}, "5", all},
		"conditional once":      {script.Event{Type: script.Conditional, Conditions: when(">= 5"), Once: true}, "5", []int{1}},
		"all must hold":         {script.Event{Type: script.Conditional, Conditions: append(when(">= 5"), when("< 5")...)}, "5", nil},
		"not known is not true": {script.Event{Type: script.Conditional, Conditions: when("!= 5")}, "", nil},
		"not known is not 0":    {script.Event{Type: script.Conditional, Conditions: when("<= 0")}, "", nil},
		"out of range":          {script.Event{Type: script.Conditional, Conditions: when("> 0")}, "11", nil},
		"conditional in range":  {script.Event{Type: script.Conditional, Conditions: when("> 0"), Range: []int{9, 10}}, "5", []int{9, 10}},
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
	e := script.Event{Name: "luck", Description: "It happens.", Type: script.Random, Probability: new(0.3)}
	n, different := 0, false
	var first []int
	for deal := range 20 {
		got := fired(t, 10, deal, "5", e)["luck"]
		n += len(got)
		if deal == 0 {
			first = got
		}
		different = different || !slices.Equal(got, first)
		other := script.Event{Name: "other", Description: "Too.", Type: script.Random, Probability: new(0.5)}
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
		if got := of[recordEvent](t, out, "event"); len(got) != want || want > 0 && got[0].Type != "black_swan" {
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
		s.Events = []script.Event{{Name: "flood", Description: "The river rises.", Type: script.Scheduled, Turns: []int{2}, Once: true}}
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
	worlds := of[recordWorld](t, out, "world")
	if times != 2 || len(of[recordEvent](t, out, "event")) != 1 || out.outcome.Failed != "" || !worlds[1].Stale || worlds[1].State != worlds[0].State || worlds[1].Failed != llm.KindTimeout {
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
		rec, ok := out.outcome.Data.(recordOutcome)
		if !ok || rec.Turns != c.want {
			t.Errorf("%s: %d turns (%s), want %d", name, rec.Turns, rec.Ended, c.want)
		}
		// What a model measures is known only when the next turn is decided; words are at once.
		dropped := c.want < 6 && c.by == script.ByModel
		if got := len(of[recordDropped](t, out, "dropped")) > 0; got != dropped {
			t.Errorf("%s: dropped %v", name, got)
		}
		if n := out.count("decision"); n != 2*c.want && !dropped {
			t.Errorf("%s: %d decisions", name, n)
		}
	}
}
