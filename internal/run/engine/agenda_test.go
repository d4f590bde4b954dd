package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/journal"
	"parley/world"
)

// TestAgenda: every episode is taken once, in order, and a stage begins when the previous one has
// ended.
func TestAgenda(t *testing.T) {
	t.Parallel()
	plan, o := stages{3, 2}, world.Outcome{Data: json.RawMessage("{}")}
	j := &journal.Memory{}
	if err := j.Append(t.Context(), &journal.Ended{Episode: 1, Outcome: o}); err != nil {
		t.Fatal(err)
	}
	head, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := newAgenda(world.Define(crowd()), &plan, nil, head, func(from, to int, each func(*journal.Ended) error) error {
		return head.Ended.Outcomes(t.Context(), j, from, to, each)
	})
	var got []string
	for {
		st, recorded, err := a.advance()
		if err != nil || recorded {
			t.Fatal(recorded, err)
		}
		if st == nil {
			break
		}
		got = append(got, fmt.Sprintf("stage %d from %d", st.Stage, st.First))
		for a.more() {
			next, ok, err := a.take()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(next.number, ok))
			if a.done() {
				t.Errorf("the stage is done before episode %d has ended", next.number)
			}
			if ok {
				a.count(&journal.Ended{Episode: next.number, Outcome: o}, nil)
			}
		}
		if !a.done() {
			t.Error("the stage is not done though all its episodes have ended")
		}
	}
	if want := []string{"stage 0 from 0", "0 true", "1 false", "2 true", "stage 1 from 3", "3 true", "4 true"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDigest: the digest is the same in whatever order episodes end, whichever of them have ended, and also if too
// many wait for an earlier one.
func TestDigest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(rt, "episodes")
		numbers := make([]int, n)
		for i := range numbers {
			numbers[i] = i
		}
		numbers = rapid.Permutation(numbers).Draw(rt, "order")
		numbers = numbers[:rapid.IntRange(0, n).Draw(rt, "ended")]
		limit := rapid.SampledFrom([]int{0, 100, maxWaiting}).Draw(rt, "limit")
		ends := map[int]*journal.Ended{}
		j, got := &journal.Memory{}, newDigest(limit)
		failed, highest := 0, 0
		for _, i := range numbers {
			e := &journal.Ended{Episode: i, Outcome: world.Outcome{Data: json.RawMessage(fmt.Sprintf(`{"n": %d}`, i))}}
			if i%3 == 0 {
				e.Outcome.Failed = "it broke"
				failed++
			}
			if err := j.Append(t.Context(), e); err != nil {
				rt.Fatal(err)
			}
			ends[i] = e
			got.add(e, outcomeLine(e))
			highest = max(highest, got.size)
		}
		want := newDigest(maxWaiting)
		for i := range n {
			if e := ends[i]; e != nil {
				want.hash.Write(outcomeLine(e))
			}
		}
		sum, err := got.sum(t.Context(), j)
		wantSum, _ := want.sum(t.Context(), nil)
		if err != nil || sum != wantSum || got.ended != len(ends) || got.failed != failed || highest > limit {
			rt.Fatalf("%s of %d, %d failed, %d bytes waiting, %v; want %s of %d, %d failed, %d", sum, got.ended, got.failed, highest, err, wantSum, len(ends), failed, limit)
		}
	})
}

// TestFixedPlanKeepsNoOutcomes: the outcomes of a list are not kept, and those of a plan that may read them are.
func TestFixedPlanKeepsNoOutcomes(t *testing.T) {
	t.Parallel()
	list := world.Repeat(world.Spec{Params: []byte("{}")}, 5)
	for name, c := range map[string]struct {
		plan world.Stages
		want int
	}{"list": {list, 1}, "stages": {&stages{5}, 5}} {
		a := newAgenda(world.Define(crowd()), c.plan, nil, &journal.Head{}, nil)
		if _, _, err := a.advance(); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			a.count(&journal.Ended{Episode: i}, nil)
		}
		if len(a.played) != c.want {
			t.Errorf("%s: %d episodes are kept, want %d", name, len(a.played), c.want)
		}
		if st, _, err := a.advance(); st != nil || err != nil {
			t.Errorf("%s: %+v after the last stage, %v", name, st, err)
		}
	}
}
