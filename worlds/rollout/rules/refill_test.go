package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/world"
	"parley/world/part"
)

// lab plays a refill: rewards says what the episodes of a group get.
type lab struct {
	t       *testing.T
	plan    world.Stages
	rewards func(group string) []float64
	last    []world.Played
}

// tasks are n tasks of an entry.
func tasks(entry string, n int) (all []Task) {
	for i := range n {
		all = append(all, Task{Env: "maze", Params: json.RawMessage("{}"), Group: fmt.Sprintf("%s:%d", entry, i+1), Index: i + 1, Size: 2})
	}
	return all
}

func playRefill(t *testing.T, r Refill, tasks []Task, rewards func(group string) []float64) *lab {
	t.Helper()
	return &lab{t: t, rewards: rewards, plan: r.plan(tasks, false, func(task Task, deal int) (world.Group, error) {
		return world.Group{Spec: world.Spec{Cell: task.Group, Deal: deal}, Size: task.Size}, nil
	})}
}

// stage plays a stage and returns the names of its groups.
func (l *lab) stage() string {
	l.t.Helper()
	specs := l.plan.Next(l.last)
	if err := l.plan.(part.FailingStages).Err(); err != nil {
		l.t.Fatal(err)
	}
	l.last = nil
	var names []string
	for i, s := range specs.All() {
		from, _ := specs.Group(i)
		if i == from {
			names = append(names, s.Cell)
		}
		var o world.Outcome
		if paid := l.rewards(s.Cell); paid == nil {
			o.Failed = "lost"
		} else {
			o.Scores = []world.Score{{Seat: "agent", Name: "reward", Value: paid[i-from]}, {Name: "steps", Value: float64(i)}}
		}
		l.last = append(l.last, world.Played{Episode: i, Spec: s, Outcome: o})
	}
	return strings.Join(names, " ")
}

// stages checks the groups of the next stages.
func (l *lab) stages(want ...string) {
	l.t.Helper()
	for i, w := range want {
		if got := l.stage(); got != w {
			l.t.Errorf("stage %d: %q, want %q", i, got, w)
		}
	}
}

func (l *lab) change(change string) error {
	return l.plan.(part.ChangingStages).Change(json.RawMessage(change))
}

func refill(change func(*Refill)) Refill {
	r := refillDefaults()
	r.Useful = 2
	change(&r)
	return r
}

// TestRefill checks that groups of equal reward, and failed ones, are replaced until enough are useful, and that more
// are drawn at once the rarer useful ones are.
func TestRefill(t *testing.T) {
	t.Parallel()
	useful := func(names ...string) func(string) []float64 {
		return func(group string) []float64 {
			switch {
			case group == "a:1":
				return nil
			case slices.Contains(names, group):
				return []float64{0, 1}
			}
			return []float64{1, 1}
		}
	}
	for _, c := range []struct {
		name   string
		refill Refill
		useful func(string) []float64
		want   []string
	}{
		{"all useful", refill(func(*Refill) {}), useful("a:1", "a:2", "a:3"), []string{"a:1 a:2", "a:3 a:4", ""}},
		{"rare", refill(func(r *Refill) { r.Stage, r.MaxGroups = 9, 100 }), useful("a:2", "a:5"), []string{"a:1 a:2", "a:3 a:4", "a:5 a:1/2 a:2/2", ""}},
		{"a stage is bounded", refill(func(r *Refill) { r.Stage = 1 }), useful("a:2", "a:3"), []string{"a:1", "a:2", "a:3", ""}},
		{"never", refill(func(r *Refill) { r.MaxGroups = 7 }), useful(), []string{"a:1 a:2", "a:3 a:4", "a:5 a:1/2", "a:2/2", ""}},
		{"four times by default", refill(func(r *Refill) { r.Stage = 5 }), useful(), []string{"a:1 a:2", "a:3 a:4 a:5 a:1/2 a:2/2", "a:3/2", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := playRefill(t, c.refill, tasks("a", 5), c.useful)
			l.stages(c.want...)
		})
	}
}

// TestPools checks that tasks are drawn by how often they were passed.
func TestPools(t *testing.T) {
	t.Parallel()
	rewards := func(group string) []float64 {
		switch group[:3] {
		case "a:1":
			return []float64{1, 1} // easy
		case "a:2":
			return []float64{0, 0} // hard
		default:
			return []float64{0.5, 1} // neither, but easy if 0.5 is enough
		}
	}
	l := playRefill(t, refill(func(r *Refill) {
		r.Useful, r.Stage, r.MaxGroups, r.EasyWeight, r.HardWeight = 100, 4, 100, 0, 0.5
	}), tasks("a", 4), rewards)
	l.stages("a:1 a:2 a:3 a:4", "a:3/2 a:4/2 a:2/2 a:3/3")
	l = playRefill(t, refill(func(r *Refill) { r.Useful, r.Stage, r.MaxGroups, r.Pass, r.EasyWeight = 100, 4, 100, 0.5, 0 }), tasks("a", 4), rewards)
	l.stages("a:1 a:2 a:3 a:4", "a:2/2 a:2/3 a:2/4 a:2/5")
}

// TestLevels checks that a level opens when enough of the last one passed, or when nothing of it can be drawn.
func TestLevels(t *testing.T) {
	t.Parallel()
	all := append(tasks("a", 2), tasks("b", 2)...)
	l := playRefill(t, refill(func(r *Refill) { r.Useful, r.Stage, r.MaxGroups, r.Advance = 100, 2, 100, 0.75 }), all, func(group string) []float64 {
		if group == "a:1/2" || group == "a:2/2" {
			return []float64{1, 1}
		}
		return []float64{0, 1}
	})
	l.stages("a:1 a:2", "a:1/2 a:2/2", "a:1/3 a:2/3")
	if !strings.Contains(l.stage(), "b:1") {
		t.Error("the second level is not open")
	}
	l = playRefill(t, refill(func(r *Refill) { r.Stage, r.Advance, r.HardWeight = 2, 1, 0 }), all, func(string) []float64 { return []float64{0, 0} })
	l.stages("a:1 a:2", "b:1 b:2", "")
}

// TestChange checks that tasks are added, weighted and removed, and that a wrong change changes nothing.
func TestChange(t *testing.T) {
	t.Parallel()
	l := playRefill(t, refill(func(r *Refill) { r.Useful, r.Stage, r.MaxGroups = 100, 4, 100 }), tasks("a", 4), func(string) []float64 { return []float64{1, 1} })
	l.stages("a:1 a:2 a:3 a:4")
	for change, want := range map[string]string{
		`{`:                   "cannot be read",
		`{"remove":["a"]} {}`: "more text after the object",
		`{}`:                  "nothing to change",
		`{"adds":1}`:          "unknown field",
		`{"add":[{"name":"x","env_name":"maze"}],"remove":["b:1"]}`:               `no task "b:1"`,
		`{"add":[{"name":"x:1","env_name":"maze"}]}`:                              "add[0].name",
		`{"add":[{"name":"x","env_name":"../maze"}]}`:                             "add[0].env_name",
		`{"add":[{"name":"x","env_name":"maze","env_params":3}]}`:                 "add[0].env_params",
		`{"add":[{"name":"x","env_name":"maze"},{"name":"x","env_name":"maze"}]}`: "already",
		`{"add":[{"name":"a","env_name":"maze"}]}`:                                "already",
		`{"add":[{"name":"x","env_name":"maze","env_num":-1}]}`:                   "add[0].env_num",
		`{"add":[{"name":"x","env_name":"maze","weight":-1}]}`:                    "add[0].weight",
		`{"weights":{"a":-1}}`:                                                    "weights",
	} {
		if err := l.change(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
	if err := l.change(`{"add":[{"name":"x","env_name":"maze","env_num":2,"weight":0.5}],"weights":{"a":0,"a:3":2,"a:1":1},"remove":["a:4"]}`); err != nil {
		t.Fatal(err)
	}
	l.stages("x a:3/2 a:1/2 a:3/3", "a:3/4 a:1/3 x/2 a:3/5")
	if err := l.change(`{"remove":["a","x"]}`); err != nil {
		t.Fatal(err)
	}
	l.stages("")
}

// FuzzChange checks that no change panics, and that one that is refused changes nothing.
func FuzzChange(f *testing.F) {
	f.Add(`{"add":[{"name":"x","env_name":"maze"}],"weights":{"a":0.5},"remove":["a:1"]}`)
	f.Add(`{"weights":{"a":1e308}}`)
	f.Fuzz(func(t *testing.T, change string) {
		same := func(string) []float64 { return []float64{0, 0} }
		r := refill(func(r *Refill) { r.Stage = 3 })
		a, b := playRefill(t, r, tasks("a", 3), same), playRefill(t, r, tasks("a", 3), same)
		if a.stage() != b.stage() {
			t.Fatal("the plans differ")
		}
		if a.change(change) == nil {
			_ = b.change(change)
		}
		for range 3 {
			if x, y := a.stage(), b.stage(); x != y {
				t.Fatalf("%q and %q", x, y)
			}
		}
	})
}
