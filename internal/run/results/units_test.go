package results

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/journal"
	"parley/world"
)

func TestDistinct(t *testing.T) {
	t.Parallel()
	ended := func(play byte, chance bool, failed string) journal.Ended {
		return journal.Ended{Play: journal.Digest{15: play}, Chance: chance, Outcome: world.Outcome{Failed: failed}}
	}
	head := &journal.Head{}
	head.Add(&journal.Staged{Specs: world.Repeat(world.Spec{}, 9)})
	for i, e := range []journal.Ended{
		ended(1, false, ""), ended(1, false, ""), ended(1, false, ""), // two copies
		ended(2, true, ""), ended(2, true, ""), // the same by chance
		ended(3, false, "it broke"), ended(3, false, "it broke"),
		ended(0, false, ""), ended(0, false, ""), // not recorded
	} {
		e.Episode = i
		head.Add(&e)
	}
	if distinct, copies := Distinct(head); distinct != 2 || copies != 2 {
		t.Errorf("%d distinct plays and %d copies, want 2 and 2", distinct, copies)
	}
}

// TestNote: the note says how many copies there are, why, and what to do.
func TestNote(t *testing.T) {
	t.Parallel()
	zero, one, seed := 0.0, 1.0, int64(7)
	for name, c := range map[string]struct {
		agent world.Agent
		deals [2]int
		play  byte
		want  []string
	}{
		"cold":          {world.Agent{Temperature: &zero}, [2]int{0, 1}, 1, []string{"Of 3 episodes, 1 is an exact copy of another and does not count.", "Temperature is 0 for a", "copies were asked the same though their deals differ", "set agents.NAME.temperature above 0", "plan.matrix"}},
		"seeded":        {world.Agent{Temperature: &one, Seed: &seed}, [2]int{4, 4}, 1, []string{"A seed is set for a", "have the same deal", "leave out agents.NAME.seed", "play more deals"}},
		"deterministic": {world.Agent{Temperature: &one}, [2]int{0, 1}, 1, []string{"The provider gives the same answer"}},
		"all different": {world.Agent{Temperature: &zero}, [2]int{0, 1}, 2, nil},
	} {
		c.agent.Name, c.agent.Model = "a", "lab/x"
		lineup := map[string]string{"s": "a"}
		head := &journal.Head{
			Begun:  &journal.Begun{Agents: []world.Agent{c.agent}},
			Stages: []journal.Staged{{Specs: world.List(world.Spec{Lineup: lineup, Deal: c.deals[0]}, world.Spec{Lineup: lineup, Deal: c.deals[1]}, world.Spec{Lineup: lineup, Deal: 9})}},
		}
		for i, play := range []byte{1, c.play, 3} {
			head.Add(&journal.Ended{Episode: i, Play: journal.Digest{play}})
		}
		got := CopiesNote(head)
		if c.want == nil && got != "" {
			t.Errorf("%s: %s", name, got)
		}
		for _, part := range c.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q is not in %q", name, part, got)
			}
		}
	}
}

// TestFind: equal keys get the place of the first of them, and others none.
func TestFind(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.SliceOf(rapid.IntRange(0, 30)).Draw(rt, "keys")
		got := findCopies(rapid.IntRange(0, 40).Draw(rt, "expected"), slices.All(keys))
		all := true
		for i, k := range keys {
			want := 0
			if slices.Index(keys, k) != i || slices.Contains(keys[i+1:], k) {
				want, all = slices.Index(keys, k)+1, false
			}
			if got.At(i) != want {
				rt.Fatalf("key %d has place %d, want %d", i, got.At(i), want)
			}
		}
		if all != (got == nil) || got.At(len(keys)) != 0 {
			rt.Fatalf("%v for %v", got, keys)
		}
	})
}

// TestShortCopies: equal plays in which little was said are copies if models answer the same whenever they are asked the same, and
// chance if somewhere in the cell they do not.
func TestShortCopies(t *testing.T) {
	t.Parallel()
	play := func(asked, answered byte) (d journal.Digest) {
		d[0], d[15] = asked, answered
		return d
	}
	for _, c := range []struct {
		name        string
		plays       func(i int) journal.Digest
		independent int
	}{
		{"always the same", func(int) journal.Digest { return play(1, 1) }, 1},
		{"two questions", func(i int) journal.Digest { return play(byte(1+i%2), 1) }, 2},
		{"answers vary", func(i int) journal.Digest { return play(1, byte(1+i%2)) }, 40},
		{"answers vary once", func(i int) journal.Digest { return play(byte(1+i%2), byte(1+i/39)) }, 40},
		{"only bots", func(int) journal.Digest { return play(0, 1) }, 40},
	} {
		head := &journal.Head{Begun: &journal.Begun{Run: "r"}, Stages: []journal.Staged{{Specs: world.Repeat(world.Spec{Kind: "duel"}, 41)}}}
		for i := range 40 {
			head.Ended.Put(0, &journal.Ended{Episode: i, Play: c.plays(i), Chance: true, Outcome: world.Outcome{Scores: []world.Score{{Name: "x", Value: float64(c.plays(i)[0] + c.plays(i)[15])}}}})
		}
		head.Ended.Put(0, &journal.Ended{Episode: 40, Play: play(1, 99), Chance: true, Outcome: world.Outcome{Failed: "no answer"}}) // it shows nothing
		q := Outcomes(head, world.Kind{}).Scores(func(g Group) Group { return g })[0].Estimate()
		if _, copies := Distinct(head); q.N != c.independent || copies != 40-c.independent {
			t.Errorf("%s: independent %d, copies %d; want %d", c.name, q.N, copies, c.independent)
		}
	}
}
