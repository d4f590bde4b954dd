package planfile

import (
	"fmt"
	"slices"
	"testing"
)

// places are n seats and as many agents.
func places(n int) (seats, agents []string) {
	for i := range n {
		seats, agents = append(seats, fmt.Sprintf("seat %02d", i)), append(agents, fmt.Sprintf("agent%02d", i))
	}
	return seats, agents
}

// TestSquaresAreBalanced: of n agents in n seats, Diplomacy's seven among them, every agent sits
// in every seat once, meets every other one in every lineup, and follows it once (twice for an
// odd n, with twice as many lineups).
func TestSquaresAreBalanced(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 10; n++ {
		seats, agents := places(n)
		for rotate, want := range map[string]Balance{
			"latin":    {Lineups: n, Seats: true, Meetings: true, Neighbours: n%2 == 0},
			"williams": {Lineups: n * (1 + n%2), Seats: true, Meetings: true, Neighbours: true},
		} {
			m := Matrix{Agents: agents, Seats: seats, Rotate: rotate}
			got := balance(seats, m.Seatings(seats))
			if got.Lineups != want.Lineups || got.Seats != want.Seats || got.Meetings != want.Meetings || got.Neighbours != want.Neighbours {
				t.Errorf("%s of %d: %+v", rotate, n, got)
			}
		}
	}
}

// TestRotationOfOtherNumbers: more or fewer agents than seats, and lineups that are moved round.
func TestRotationOfOtherNumbers(t *testing.T) {
	t.Parallel()
	seven, agents := places(7)
	one := map[string]string{}
	for _, seat := range seven {
		one[seat] = "many"
	}
	one[seven[0]] = "alone"
	for _, c := range []struct {
		name    string
		m       Matrix
		seats   []string
		lineups int
	}{
		{"two agents in seven seats, 2 lineups and not 128", Matrix{Agents: agents[:2], Seats: seven, Self: true, Rotate: "latin"}, seven, 2},
		{"five agents in two seats", Matrix{Agents: agents[:5], Seats: seven[:2], Rotate: "latin"}, seven[:2], 5},
		{"five agents in two seats, williams", Matrix{Agents: agents[:5], Seats: seven[:2], Rotate: "williams"}, seven[:2], 10},
		{"one agent against six", Matrix{Lineups: []map[string]string{one}, Rotate: "latin"}, seven, 7},
	} {
		got := balance(c.seats, c.m.Seatings(c.seats))
		if got.Lineups != c.lineups {
			t.Errorf("%s: %+v", c.name, got)
		}
		for _, agent := range []string{"agent00", "agent01", "alone"} {
			counts := map[int]bool{}
			for _, seat := range c.seats {
				n := 0
				for _, l := range c.m.Seatings(c.seats) {
					if l[seat] == agent {
						n++
					}
				}
				counts[n] = true
			}
			if len(counts) != 1 {
				t.Errorf("%s: %s is not in every seat equally often: %v", c.name, agent, counts)
			}
		}
	}
}

// TestBalanceSaysWhatIsUneven names the highest and the lowest count.
func TestBalanceSaysWhatIsUneven(t *testing.T) {
	t.Parallel()
	m := Matrix{Agents: []string{"a", "b", "c"}, Seats: []string{"x", "y"}} // no swap: a is always first
	got := balance(m.Seats, m.Seatings(m.Seats))
	want := []string{"a sits in x 2 times, and a in y 0 times", "b follows a 1 times, and a follows b 0 times"}
	if got.Seats || got.Neighbours || !got.Meetings || !slices.Equal(got.Uneven, want) {
		t.Errorf("%+v", got)
	}
	m.Swap = true
	if got := balance(m.Seats, m.Seatings(m.Seats)); len(got.Uneven) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestSeatings(t *testing.T) {
	t.Parallel()
	abc := []string{"a", "b", "c"}
	for _, c := range []struct {
		m    Matrix
		want int
	}{
		{Matrix{Agents: abc, Seats: []string{"x", "y"}, Swap: true}, 6},
		{Matrix{Agents: abc, Seats: []string{"x", "y"}, Swap: true, Self: true}, 9},
		{Matrix{Agents: abc, Seats: []string{"x", "y"}}, 3},
		{Matrix{Agents: abc, Seats: []string{"x", "y"}, Self: true}, 6},
		{Matrix{Agents: abc, Seats: []string{"x"}}, 3},
		{Matrix{Agents: abc[:2], Seats: []string{"x", "y", "z"}, Swap: true}, 0},
		{Matrix{Agents: abc, Seats: []string{"x", "y", "z"}, Swap: true}, 6},
		{Matrix{Lineup: map[string][]string{"x": abc, "y": abc[:2]}}, 6},
		{Matrix{Agents: abc, Seats: []string{"x"}, Lineup: map[string][]string{"y": abc}}, 9},
		{Matrix{}, 1},
		{Matrix{Lineup: map[string][]string{"x": make([]string, 1000), "y": make([]string, 1000)}}, maxCells + 1},
		{Matrix{Agents: make([]string, 100), Seats: make([]string, 20), Swap: true, Self: true}, maxCells + 1},
	} {
		if got := len(c.m.Seatings(nil)); got != c.want {
			t.Errorf("%+v: %d seatings, want %d", c.m, got, c.want)
		}
	}
}

// TestVariations: a cell is labelled by its variation first, and has its params and lineup.
func TestVariations(t *testing.T) {
	t.Parallel()
	p, err := Parse("plan.yaml", []byte(`kind: talk
agents: {a: {model: sim/small, tags: {prompt: terse}}, b: sim/small, c: {model: sim/large, tags: {prompt: long}}}
lineup: {first: a}
plan:
  matrix:
    params: {messages: [2, 4]}
    variations:
      dry: {params: {style: {tone: dry}}, lineup: {second: b}, tags: {mood: low}}
      warm: {params: {style: {tone: warm}}, lineup: {second: c}, tags: {mood: high}}
`), testKinds(), nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := p.World()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range plan.Next(nil).All() {
		got = append(got, fmt.Sprintf("%s: %s against %s, %s", s.Cell, s.Lineup["first"], s.Lineup["second"], s.Params))
	}
	if len(got) != 4 || got[0][:len("dry, messages=2: a against b, ")] != "dry, messages=2: a against b, " || got[3][:len("warm, messages=4: a against c")] != "warm, messages=4: a against c" {
		t.Errorf("%q", got)
	}
	again, err := FromJSON(p.JSON(), testKinds(), nil)
	if err != nil || string(again.JSON()) != string(p.JSON()) {
		t.Errorf("%v\n%s\n%s", err, p.JSON(), again.JSON())
	}
}
