package results

import (
	"fmt"
	"strings"
	"testing"

	"parley/journal"
	"parley/world"
)

// stagesOf returns stages with these deals: one digit for each episode.
func stagesOf(stages ...string) (out []journal.Staged) {
	first := 0
	for _, deals := range stages {
		var specs []world.Spec
		for _, d := range deals {
			specs = append(specs, world.Spec{Kind: "k", Deal: int(d - '0')})
		}
		out = append(out, journal.Staged{First: first, Specs: world.List(specs...)})
		first += len(specs)
	}
	return out
}

// TestCounted checks which episodes count while a run is not complete: whole deals, in the order of the plan.
func TestCounted(t *testing.T) {
	t.Parallel()
	rounds, err := world.Blocks(world.Block{Groups: []world.Group{{Spec: world.Spec{Deal: 3}, Size: 2}, {Spec: world.Spec{Deal: 4}, Size: 1}}, Rounds: world.MaxEpisodes / 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		stages []journal.Staged
		ended  []int
		last   journal.State
		fork   bool
		want   string // the episodes that count
	}{
		{name: "a prefix", stages: stagesOf("00112233"), ended: []int{0, 1, 2, 3, 4, 6, 7}, want: "0 1 2 3"},
		{name: "a hole in the first deal", stages: stagesOf("00112233"), ended: []int{1, 2, 3, 4, 5, 6, 7}, want: ""},
		{name: "the order is the plan's", stages: stagesOf("3120"), ended: []int{0, 1, 3}, want: "0 1"},
		{name: "a deal that comes again later", stages: stagesOf("01230123"), ended: []int{0, 1, 2, 3, 4, 5, 7}, want: "0 1 4 5"},
		{name: "a deal of which only the second is missing", stages: stagesOf("0011"), ended: []int{0, 2, 3}, want: ""},
		{name: "a stage that ended counts", stages: stagesOf("0011", "0011"), ended: []int{0, 1, 2, 3, 4, 6, 7}, want: "0 1 2 3"},
		{name: "complete, and some cannot be read", stages: stagesOf("0011"), ended: []int{1, 2}, last: journal.Complete, want: "1 2"},
		{name: "stopped, and nothing is missing", stages: stagesOf("0011"), ended: []int{0, 1, 2, 3}, last: journal.Stopped, want: "0 1 2 3"},
		{name: "a fork counts episodes", stages: stagesOf("0000"), ended: []int{0, 1, 3}, fork: true, want: "0 1"},
		// Deals 3 3 4, 4 4 5, 5 5 6: deal 4 has episodes 2, 3 and 4.
		{name: "rounds", stages: []journal.Staged{{Specs: rounds}}, ended: []int{0, 1, 2, 3, 4, 5, 6}, want: "0 1 2 3 4"},
		{name: "stages in another order", stages: []journal.Staged{{First: 4, Specs: world.Repeat(world.Spec{}, 4)}, {First: 0, Specs: world.Repeat(world.Spec{}, 4)}}, ended: []int{0, 1, 5}, want: "0 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			head := &journal.Head{Begun: &journal.Begun{Kind: "k"}, Stages: c.stages, Last: journal.Closed{State: c.last}}
			if c.fork {
				head.Begun.Fork = &journal.Origin{}
			}
			for _, n := range c.ended {
				head.Ended.Put(0, &journal.Ended{Episode: n})
			}
			r := Outcomes(head, world.Kind{})
			var got []string
			r.Each(func(p world.Played) { got = append(got, fmt.Sprint(p.Episode)) })
			if strings.Join(got, " ") != c.want {
				t.Errorf("%v, want %s", got, c.want)
			}
			left := len(got) < len(c.ended)
			if note := r.CountedNote(); (note != "") != left || left && !strings.Contains(note, fmt.Sprintf("%d of these", len(c.ended)-len(got))) {
				t.Errorf("%q", note)
			}
			r.Everything = true
			all := 0
			r.Each(func(world.Played) { all++ })
			if all < len(c.ended) || r.Biased() != left || (r.CountedNote() != "") != left {
				t.Errorf("everything: %d episodes, biased %v: %q", all, r.Biased(), r.CountedNote())
			}
		})
	}
}
