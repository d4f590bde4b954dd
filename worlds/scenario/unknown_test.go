package scenario

import (
	"maps"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/script"
)

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
		rec, _ := p.outcome.Data.(recordOutcome)
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
