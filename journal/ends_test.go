package journal_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/journal"
	"parley/world"
)

// numbers is a journal that notes which ends are read.
type numbers struct {
	journal.Memory
	read []int
}

func (j *numbers) Outcomes(_ context.Context, entries []int, _ func(*journal.Ended) error) error {
	j.read = append(j.read, entries...)
	return nil
}

// TestEnds: Ends is a map from episodes to their ends, in little memory.
func TestEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var got journal.Ends
		want, at := map[int]journal.Ended{}, map[int]int{}
		for range rapid.IntRange(0, 200).Draw(rt, "steps") {
			n := rapid.OneOf(rapid.IntRange(0, 50), rapid.IntRange(0, world.MaxEpisodes)).Draw(rt, "episode")
			if rapid.IntRange(0, 3).Draw(rt, "deleted") == 0 {
				got.Delete(n)
				delete(want, n)
				continue
			}
			e := journal.Ended{
				Episode: n, Attempt: rapid.OneOf(rapid.IntRange(0, 3), rapid.Int()).Draw(rt, "attempt"), Chance: rapid.Bool().Draw(rt, "chance"),
				Play: journal.Digest{byte(n)}, Outcome: world.Outcome{Failed: rapid.SampledFrom([]string{"", "", "broken", "late"}).Draw(rt, "failed")},
			}
			for i := range rapid.IntRange(0, 3).Draw(rt, "scores") {
				e.Outcome.Scores = append(e.Outcome.Scores, world.Score{Seat: fmt.Sprint(i), Name: rapid.SampledFrom([]string{"", "a", "bb"}).Draw(rt, "name"), Value: rapid.Float64().Draw(rt, "value")})
			}
			entry := rapid.OneOf(rapid.IntRange(1, 100), rapid.Int()).Draw(rt, "entry")
			got.Put(entry, &e)
			want[n], at[n] = e, entry
		}
		failed := 0
		for n, e := range want {
			if e.Outcome.Failed != "" {
				failed++
			}
			if one, ok := got.Of(n); !ok || !got.Has(n) || got.Play(n) != e.Play || !reflect.DeepEqual(one, e) {
				rt.Fatalf("%+v, want %+v", one, e)
			}
		}
		inOrder := slices.Collect(got.All())
		if got.Len() != len(want) || got.Failed() != failed || len(inOrder) != len(want) {
			rt.Fatalf("%d and %d failed, want %d and %d", got.Len(), got.Failed(), len(want), failed)
		}
		for i, n := range slices.Sorted(maps.Keys(want)) {
			if !reflect.DeepEqual(inOrder[i], want[n]) {
				rt.Fatalf("%+v, want %+v", inOrder[i], want[n])
			}
			if j := new(numbers); got.Outcomes(t.Context(), j, n, n+1, nil) != nil || !slices.Equal(j.read, []int{at[n]}) {
				rt.Fatalf("the end of episode %d is read from entries %d, want %d", n, j.read, at[n])
			}
		}
		if _, ok := got.Of(-1); ok || got.Has(-1) {
			rt.Fatal("episode -1 has ended")
		}
	})
}

// TestOutcomesInRange: complete ends are read in order, of the wanted episodes only, however many there are.
func TestOutcomesInRange(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	for n := range 1000 {
		n = (n*7 + 3) % 1000 // another order
		if err := j.Append(t.Context(), &journal.Ended{Episode: n * 3, Stack: fmt.Sprint(n * 3)}); err != nil {
			t.Fatal(err)
		}
	}
	head, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to int }{{0, world.MaxEpisodes}, {-5, 10}, {10, 11}, {9, 10}, {1500, 1000}, {299, 2401}, {3000, 4000}} {
		var got, want []int
		err := head.Ended.Outcomes(t.Context(), j, c.from, c.to, func(e *journal.Ended) error {
			if e.Stack != fmt.Sprint(e.Episode) {
				t.Errorf("episode %d has the end of %s", e.Episode, e.Stack)
			}
			got = append(got, e.Episode)
			return nil
		})
		for n := max(0, c.from); n < min(c.to, 3000); n++ {
			if n%3 == 0 {
				want = append(want, n)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v: %d, want %d, %v", c, len(got), len(want), err)
		}
	}
	if e, err := head.Ended.Outcome(t.Context(), j, 1); e != nil || err != nil {
		t.Errorf("%+v, %v", e, err)
	}
	if err := j.Outcomes(t.Context(), []int{1001}, func(*journal.Ended) error { return nil }); err == nil {
		t.Error("an entry that is not there is read")
	}
}

// BenchmarkEnds puts a million ends with four scores each. The bytes of all of them are the memory that a
// process has for a run of so many episodes.
func BenchmarkEnds(b *testing.B) {
	b.ReportAllocs()
	const episodes = 1_000_000
	scores := make([]world.Score, 4)
	for i := range scores {
		scores[i] = world.Score{Seat: fmt.Sprint(i), Name: "points"}
	}
	for range b.N {
		var all journal.Ends
		for n := range episodes {
			all.Put(3*n+3, &journal.Ended{Episode: n, Outcome: world.Outcome{Scores: scores}})
		}
		if all.Len() != episodes {
			b.Fatal(all.Len())
		}
	}
}
