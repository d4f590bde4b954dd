package world_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/world"
)

// drawn is a sequence of random blocks, and the list it means.
func drawn(t *rapid.T) (world.Specs, []world.Spec) {
	var parts []world.Specs
	var list []world.Spec
	for range rapid.IntRange(0, 4).Draw(t, "parts") {
		blocks := make([]world.Block, rapid.IntRange(1, 3).Draw(t, "blocks"))
		for i := range blocks {
			b := world.Block{Rounds: rapid.IntRange(1, 3).Draw(t, "rounds")}
			for range rapid.IntRange(1, 3).Draw(t, "groups") {
				b.Groups = append(b.Groups, world.Group{Spec: world.Spec{Cell: rapid.StringMatching("[ab]").Draw(t, "cell"), Deal: rapid.IntRange(0, 2).Draw(t, "deal")}, Size: rapid.IntRange(1, 3).Draw(t, "size")})
			}
			for round := range b.Rounds {
				for _, g := range b.Groups {
					s := g.Spec
					s.Deal += round
					for range g.Size {
						list = append(list, s)
					}
				}
			}
			blocks[i] = b
		}
		part, err := world.Blocks(blocks...)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	return world.Join(parts...), list
}

// TestSpecs: a sequence of blocks equals its list.
func TestSpecs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs, want := drawn(t)
		var all []world.Spec
		for i, s := range specs.All() {
			if !reflect.DeepEqual(s, specs.At(i)) {
				t.Fatalf("place %d: %v and %v", i, s, specs.At(i))
			}
			if from, to := specs.Group(i); i < from || i >= to || !reflect.DeepEqual(specs.At(from), s) || !reflect.DeepEqual(specs.At(to-1), s) {
				t.Fatalf("place %d is in a group from %d to %d", i, from, to)
			}
			all = append(all, s)
		}
		if specs.Len() != len(want) || !reflect.DeepEqual(all, want) {
			t.Fatalf("%d specs\n%v, want\n%v", specs.Len(), all, want)
		}
		for i, s := range specs.Distinct() {
			if !reflect.DeepEqual(s, want[i]) {
				t.Fatalf("place %d: %v, want %v", i, s, want[i])
			}
		}
		same := func(a, b world.Spec) bool { return reflect.DeepEqual(a, b) }
		if i := specs.Diff(world.List(want...), same); i >= 0 {
			t.Fatal("differs from its list at", i)
		}
		if len(want) == 0 {
			return
		}
		at := rapid.IntRange(0, len(want)-1).Draw(t, "at")
		want[at].Cell = "another"
		if i := specs.Diff(world.List(want...), same); i != at {
			t.Fatal("differs at", i, "and not", at)
		}
	})
}

// TestSpecsOfOneShape: of sequences with the same blocks, one spec of each group is compared.
func TestSpecsOfOneShape(t *testing.T) {
	t.Parallel()
	compared := 0
	same := func(a, b world.Spec) bool { compared++; return reflect.DeepEqual(a, b) }
	a, b := world.Repeat(world.Spec{Cell: "a"}, world.MaxEpisodes), world.Repeat(world.Spec{Cell: "b"}, world.MaxEpisodes)
	if a.Diff(a, same) != -1 || a.Diff(b, same) != 0 || compared != 2 {
		t.Errorf("%d are compared", compared)
	}
}

// TestSpecsAreBounded: no block says more than can be, whatever its numbers are.
func TestSpecsAreBounded(t *testing.T) {
	t.Parallel()
	block := func(rounds, deal int, sizes ...int) world.Block {
		b := world.Block{Rounds: rounds}
		for _, n := range sizes {
			b.Groups = append(b.Groups, world.Group{Spec: world.Spec{Deal: deal}, Size: n})
		}
		return b
	}
	limit, huge := world.MaxEpisodes, math.MaxInt
	for _, c := range []struct {
		blocks []world.Block
		want   string // of the error; empty: none
	}{
		{nil, ""},
		{[]world.Block{block(limit, 0, 1)}, ""},
		{[]world.Block{block(1, huge-1, limit)}, ""},
		{[]world.Block{block(1, math.MinInt, 1), block(1, 0, limit-1)}, ""},
		{[]world.Block{block(1, 0)}, "0 groups"},
		{[]world.Block{block(0, 0, 1)}, "0 rounds"},
		{[]world.Block{block(-1, 0, 1)}, "-1 rounds"},
		{[]world.Block{block(huge, 0, 1)}, "rounds"},
		{[]world.Block{block(1, 0, 0)}, "a group of 0"},
		{[]world.Block{block(1, 0, math.MinInt)}, "a group of -"},
		{[]world.Block{block(1, 0, limit, 1)}, "a group of 1"},
		{[]world.Block{block(limit, 0, 2)}, "a group of 2"},
		{[]world.Block{block(1, 0, huge, huge)}, "a group of"},
		{[]world.Block{block(2, huge-1, 1)}, "the deal is too large"},
		{[]world.Block{block(1, 0, 1), block(1, 0, limit)}, "block 2 of 2: there are more than 2147483647 episodes"},
	} {
		s, err := world.Blocks(c.blocks...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.blocks, err, c.want)
		}
		if n := s.Len(); n > 0 {
			s.At(n - 1)
		}
	}
	if all := world.Join(world.Repeat(world.Spec{}, huge), world.List(world.Spec{})); all.Len() != huge {
		t.Error("a length has overflowed:", all.Len())
	}
}

func TestSpecsAsJSON(t *testing.T) {
	t.Parallel()
	for want, specs := range map[string]world.Specs{
		`[]`: {},
		`[{"groups":[{"spec":{"kind":"k","lineup":null,"deal":0},"size":1}],"rounds":1000000}]`: world.Repeat(world.Spec{Kind: "k"}, 1_000_000),
	} {
		if b, err := json.Marshal(specs); err != nil || string(b) != want {
			t.Errorf("%s, %v; want %s", b, err, want)
		}
	}
}

// A plan of two billion episodes takes as much memory as a plan of one.
func ExampleRepeat() {
	specs := world.Repeat(world.Spec{Kind: "secrets"}, 2_000_000_000)
	fmt.Println(specs.Len(), specs.At(1_999_999_999).Deal)
	// Output: 2000000000 1999999999
}

// TestSpecsCut: what is cut out of a sequence is that part of the list, and maps keep places.
func TestSpecsCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs, want := drawn(t)
		from := rapid.IntRange(0, len(want)).Draw(t, "from")
		to := rapid.IntRange(from, len(want)).Draw(t, "to")
		cut := specs.Cut(from, to).Map(func(s world.Spec) world.Spec { s.Cell += "!"; return s })
		if cut.Len() != to-from {
			t.Fatalf("%d specs from %d to %d", cut.Len(), from, to)
		}
		for i, got := range cut.All() {
			if w := want[from+i]; got.Cell != w.Cell+"!" || got.Deal != w.Deal || !reflect.DeepEqual(got, cut.At(i)) {
				t.Fatalf("place %d is %v, want %v", i, got, w)
			}
		}
	})
	large := world.Repeat(world.Spec{}, world.MaxEpisodes).Cut(5, world.MaxEpisodes-5)
	if n := large.Len(); n != world.MaxEpisodes-10 || large.At(0).Deal != 5 || large.At(n-1).Deal != world.MaxEpisodes-6 {
		t.Errorf("%d specs", n)
	}
}
