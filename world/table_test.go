package world_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley/world"
)

func TestNotesComeWithTheirTurn(t *testing.T) {
	t.Parallel()
	s := world.Begin(world.Func(func(t *world.Table) world.Outcome {
		t.Note("metric", "", 1)
		t.Note("board", "a", map[string]int{"z": 1, "y": 2})
		t.One(ask("a"))
		t.Note("end", "", nil)
		return world.Outcome{}
	}), world.Deal{})
	first, second := s.Next(nil), s.Next([]world.Reply{{}})
	want := []world.Note{{Kind: "metric", Data: json.RawMessage("1")}, {Kind: "board", Seat: "a", Data: json.RawMessage(`{"y":2,"z":1}`)}}
	if !reflect.DeepEqual(first.Notes, want) {
		t.Errorf("first: %+v", first.Notes)
	}
	if len(second.Notes) != 1 || second.Notes[0].Kind != "end" {
		t.Errorf("second: %+v", second.Notes)
	}
}

// TestPhases: a phase begins with the turn in which the world names it. Several can begin with one turn, and other notes
// are no phases.
func TestPhases(t *testing.T) {
	t.Parallel()
	s := world.Begin(world.Func(func(t *world.Table) world.Outcome {
		t.Phase("S1901M")
		t.One(ask("a"))
		t.Phase("S1901R")
		t.Note("phase", "", map[string]int{"units": 3})
		t.Note("year", "", "1901")
		t.Phase("F1901M")
		t.One(ask("a"))
		return world.Outcome{}
	}), world.Deal{})
	var got [][]string
	for _, replies := range [][]world.Reply{nil, {{}}, {{}}} {
		var names []string
		for _, n := range s.Next(replies).Notes {
			names = append(names, n.Phase())
		}
		got = append(got, names)
	}
	if want := [][]string{{"S1901M"}, {"S1901R", "", "", "F1901M"}, nil}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestForkAdvancesApart: strands of a fork do not wait for each other, and what they come
// to does not depend on who goes first.
func TestForkAdvancesApart(t *testing.T) {
	t.Parallel()
	play := func(order ...int) (paths []string, data any) {
		s := world.Begin(world.Func(func(t *world.Table) world.Outcome {
			got := make([]string, 2)
			t.Fork(2, func(i int, t *world.Table) {
				for range i + 1 {
					got[i] += t.One(ask(fmt.Sprint(i))).Text + fmt.Sprint(t.Rand().IntN(100))
				}
			})
			return world.Outcome{Data: got}
		}), world.Deal{Seed: 5})
		forks := s.Next(nil).Forks
		begun := map[int]bool{}
		for _, i := range order {
			var replies []world.Reply
			if begun[i] {
				replies = []world.Reply{{Text: "x"}}
			}
			begun[i] = true
			forks[i].Next(replies)
		}
		return []string{forks[0].Path, forks[1].Path}, s.Next(nil).Outcome.Data
	}
	paths, want := play(0, 0, 1, 1, 1)
	if !reflect.DeepEqual(paths, []string{"0.0/", "0.1/"}) {
		t.Errorf("paths %v", paths)
	}
	for _, order := range [][]int{{1, 1, 1, 0, 0}, {0, 1, 1, 0, 1}, {1, 0, 0, 1, 1}} {
		if _, got := play(order...); !reflect.DeepEqual(got, want) {
			t.Errorf("order %v: %v, want %v", order, got, want)
		}
	}
}

// TestForkMisuse: a table that is not the strand's own is refused, whichever it is.
func TestForkMisuse(t *testing.T) {
	t.Parallel()
	uses := map[string]func(*world.Table){
		"Ask":  func(t *world.Table) { t.One(ask("a")) },
		"Fork": func(t *world.Table) { t.Fork(1, func(int, *world.Table) {}) },
		"Note": func(t *world.Table) { t.Note("k", "", 1) },
		"Rand": func(t *world.Table) { t.Rand() },
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := func(whose string, turn world.Turn) {
				if !turn.Done || !strings.HasPrefix(turn.Panic, "world: "+name+" at the table of another strand") {
					t.Errorf("%s: done %v, panic %q", whose, turn.Done, turn.Panic)
				}
			}
			var sibling *world.Table
			s := world.Begin(world.Func(func(parent *world.Table) world.Outcome {
				parent.Fork(3, func(i int, t *world.Table) {
					switch i {
					case 0:
						sibling = t
						t.One(ask("a"))
					case 1:
						use(parent)
					case 2:
						use(sibling)
					}
				})
				use(sibling)
				return world.Outcome{}
			}), world.Deal{})
			forks := s.Next(nil).Forks
			forks[0].Next(nil)
			refused("the parent's", forks[1].Next(nil))
			refused("a sibling's that waits", forks[2].Next(nil))
			if turn := forks[0].Next([]world.Reply{{}}); !turn.Done || turn.Panic != "" {
				t.Errorf("the sibling was disturbed: %+v", turn)
			}
			refused("one that is done", s.Next(nil))
		})
	}
}

func TestEmptyTurns(t *testing.T) {
	t.Parallel()
	s := world.Begin(world.Func(func(t *world.Table) world.Outcome {
		t.Ask()
		t.Fork(0, nil)
		t.Fork(-1, nil)
		return world.Outcome{Data: "done"}
	}), world.Deal{})
	if turn := s.Next(nil); !turn.Done || turn.Outcome.Data != "done" || turn.Panic != "" {
		t.Errorf("an ask without calls made a turn: %+v", turn)
	}
}

// TestStopFrees: a world that is left in the middle runs its deferred calls and is gone;
// goleak in TestMain sees to the latter.
func TestStopFrees(t *testing.T) {
	t.Parallel()
	unwound := 0
	s := world.Begin(world.Func(func(t *world.Table) world.Outcome {
		defer func() { unwound++ }()
		t.Fork(2, func(_ int, t *world.Table) {
			defer func() { unwound++ }()
			t.One(ask("a"))
		})
		return world.Outcome{}
	}), world.Deal{})
	forks := s.Next(nil).Forks
	forks[0].Next(nil) // the other has not even begun
	for _, f := range append(forks, s) {
		f.Stop()
		f.Stop()
	}
	if unwound != 2 {
		t.Errorf("%d strands were unwound, want the 2 that had begun", unwound)
	}
}

// TestRandByPlace: chance depends on the seed, the deal and the strand, and on nothing else.
func TestRandByPlace(t *testing.T) {
	t.Parallel()
	draw := func(d world.Deal, waste int) [3]uint64 {
		var out [3]uint64
		s := world.Begin(world.Func(func(t *world.Table) world.Outcome {
			for range waste {
				t.Note("k", "", 1)
			}
			out[0] = t.Rand().Uint64()
			t.Fork(2, func(i int, t *world.Table) { out[i+1] = t.Rand().Uint64() })
			return world.Outcome{}
		}), d)
		for _, f := range s.Next(nil).Forks {
			f.Next(nil)
		}
		s.Next(nil)
		return out
	}
	seen := map[uint64]bool{}
	for _, d := range []world.Deal{{}, {Seed: 1}, {Number: 1}, {Seed: 1, Number: 1}, {Seed: 2}} {
		got := draw(d, 0)
		for _, x := range got {
			if seen[x] {
				t.Errorf("%+v draws the same as another position", d)
			}
			seen[x] = true
		}
		if again := draw(d, 3); again != got {
			t.Errorf("%+v draws %v, then %v", d, got, again)
		}
	}
	// The stream is part of what is recorded: it must not change between versions.
	if got, want := draw(world.Deal{Seed: 1}, 0)[0], uint64(6514106037134341192); got != want {
		t.Errorf("the first draw of seed 1 is %d, and was %d", got, want)
	}
}
