package world_test

import (
	"testing"

	"parley/llm"
	"parley/world"
)

// TestNothingAnswered: an episode in which no ask was answered has failed, names the commonest
// failure, and has no scores; one answer anywhere is enough, and acts do not count.
func TestNothingAnswered(t *testing.T) {
	t.Parallel()
	ask := world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}}}
	act := world.Call{Seat: "a", Act: &world.Act{Name: "step"}}
	play := func(own string) world.World {
		return world.Func(func(t *world.Table) world.Outcome {
			t.Ask(ask, act, ask)
			t.Fork(2, func(_ int, t *world.Table) { t.One(ask) })
			return world.Outcome{Scores: []world.Score{{Name: "issues"}}, Failed: own, Data: 7}
		})
	}
	long, late, ok := llm.KindTooLong, llm.KindTimeout, llm.Kind("")
	for _, c := range []struct {
		own    string
		kinds  [4]llm.Kind // of the asks
		failed string
		scores int
	}{
		{"", [4]llm.Kind{late, long, late, late}, "no call was answered: timeout (3 of 4 calls), too_long (1)", 0},
		{"", [4]llm.Kind{late, long, long, late}, "no call was answered: timeout (2 of 4 calls), too_long (2)", 0},
		{"", [4]llm.Kind{long, late, late, long}, "no call was answered: timeout (2 of 4 calls), too_long (2)", 0},
		{"the narrator wrote nothing", [4]llm.Kind{late, late, late, late}, "no call was answered: timeout (4 of 4 calls)", 0},
		{"the narrator: timeout", [4]llm.Kind{late, late, late, late}, "the narrator: timeout", 0},
		{"", [4]llm.Kind{late, late, late, ok}, "", 1},
		{"", [4]llm.Kind{ok, late, late, late}, "", 1},
	} {
		reply := func(i int) world.Reply { return world.Reply{Failed: c.kinds[i]} }
		s := world.Begin(play(c.own), world.Deal{})
		s.Next(nil)
		turn := s.Next([]world.Reply{reply(0), {}, reply(1)})
		for i, f := range turn.Forks {
			f.Next(nil)
			f.Next([]world.Reply{reply(2 + i)})
		}
		o := s.Next(nil).Outcome
		if o.Failed != c.failed || len(o.Scores) != c.scores || o.Data != 7 {
			t.Errorf("%v: %+v", c.kinds, o)
		}
	}
	silent := world.Begin(world.Func(func(*world.Table) world.Outcome { return world.Outcome{Scores: make([]world.Score, 1)} }), world.Deal{})
	if o := silent.Next(nil).Outcome; o.Failed != "" || len(o.Scores) != 1 {
		t.Errorf("a world that asks nothing: %+v", o)
	}
}
