package planfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"parley/world"
	"parley/world/worldtest"
)

// grower is a kind that makes plans of its own: each plays its cell as often as the
// messages say, one stage for each.
func grower() world.Kind { return world.Define(growing{talk()}) }

type growing struct{ worldtest.Simple[talkParams] }

func (growing) Plan(p *talkParams, cell world.Spec, seed uint64) (world.Stages, error) {
	if seed != 7 {
		return nil, fmt.Errorf("the seed is %d", seed)
	}
	if p.Messages == 99 {
		return nil, errors.New("too many")
	}
	return &grown{cell: cell, left: p.Messages}, nil
}

func (growing) Forecast(*talkParams, world.Spec, uint64) ([]world.Part, error) { return nil, nil }

type grown struct {
	cell world.Spec
	left int
}

func (g *grown) Next([]world.Played) world.Specs {
	if g.left == 0 {
		return world.Specs{}
	}
	g.left--
	return world.List(g.cell)
}

// TestOwnPlan: a kind that decides itself what is played is asked once for each episode of
// the plan file, and its plans are played beside each other.
func TestOwnPlan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"episodes: 2\nparams: {messages: 2}", "0 1|0 1"},
		{"plan: {matrix: {agents: [a], self: true, params: {messages: [1, 2]}, repeat: 2}}", "0 0 1 1|0 1"},
	} {
		p, err := Parse("plan.yaml", []byte("kind: talk\nseed: 7\nagents: {a: sim/small}\n"+c.src), []world.Kind{grower()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := p.World()
		if err != nil {
			t.Fatal(err)
		}
		var stages []string
		for {
			specs := plan.Next(make([]world.Played, 0))
			if specs.Len() == 0 {
				break
			}
			var deals []string
			for _, s := range specs.All() {
				deals = append(deals, fmt.Sprint(s.Deal))
			}
			stages = append(stages, strings.Join(deals, " "))
		}
		if got := strings.Join(stages, "|"); got != c.want {
			t.Errorf("%s: played %s, want %s", c.src, got, c.want)
		}
	}
}

func TestOwnPlanErrors(t *testing.T) {
	t.Parallel()
	parse := func(src string) (*Plan, error) {
		return Parse("plan.yaml", []byte("kind: talk\nseed: 7\nagents: {a: sim/small}\n"+src), []world.Kind{grower()}, nil)
	}
	if _, err := parse("plan: {until: {score: points, width: 0.1}}"); err == nil || !strings.Contains(err.Error(), "plan.yaml:4:8: plan.until: talk decides by itself when to stop: remove until") {
		t.Errorf("until: %v", err)
	}
	p, err := parse("params: {messages: 99}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.World(); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("a plan that the kind refuses: %v", err)
	}
	if p, err = parse("episodes: 2000000000\nparams: {messages: 2}"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.World(); err == nil || !strings.Contains(err.Error(), "more than 1000000 plans of its kind's own") {
		t.Errorf("many plans: %v", err)
	}
}

// lister is a kind that makes a list of as many episodes as params.messages of each.
func lister() world.Kind { return world.Define(listing{growing{talk()}}) }

type listing struct{ growing }

func (listing) Plan(p *talkParams, cell world.Spec, _ uint64) (world.Stages, error) {
	return world.Blocks(world.Block{Groups: []world.Group{{Spec: cell, Size: p.Messages}}, Rounds: 1})
}

func (listing) Uniform(*talkParams) bool { return true }

// TestOwnLists: lists that a kind makes are one list, of which specs share what they can; what they
// come to is bounded, whichever number makes it large.
func TestOwnLists(t *testing.T) {
	t.Parallel()
	planOf := func(src string) (world.Stages, error) {
		p, err := Parse("plan.yaml", []byte("kind: talk\nseed: 7\nagents: {a: sim/small}\n"+src), []world.Kind{lister()}, nil)
		if err != nil {
			return nil, err
		}
		return p.World()
	}
	plan, err := planOf("episodes: 1000000000\nparams: {messages: 2}")
	if err != nil {
		t.Fatal(err)
	}
	list, ok := plan.(world.Specs)
	if !ok || list.Len() != 2_000_000_000 {
		t.Fatalf("%T of %d", plan, list.Len())
	}
	if a, b := list.At(0), list.At(1_999_999_999); b.Deal != 999_999_999 || reflect.ValueOf(a.Lineup).Pointer() != reflect.ValueOf(b.Lineup).Pointer() || &a.Params[0] != &b.Params[0] {
		t.Errorf("the specs do not share their lineup and params: %+v, %+v", a, b)
	}
	for _, src := range []string{
		"episodes: 2147483647\nparams: {messages: 2}",
		"plan: {matrix: {agents: [a], self: true, params: {messages: [1, 2]}, repeat: 1000000000}}",
	} {
		if _, err := planOf(src); err == nil || !strings.Contains(err.Error(), "more than 2147483647 episodes") {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// TestUntilIsBounded: many cells and a large min make no stage that cannot be held.
func TestUntilIsBounded(t *testing.T) {
	t.Parallel()
	_, err := Parse("plan.yaml", []byte("kind: talk\nagents: {a: sim/small}\nplan: {matrix: {agents: [a], self: true, params: {messages: [1, 2]}}, until: {score: points, seat: first, width: 0.1, min: 2000000000, max: 2000000000}}"), testKinds(), nil)
	if err == nil || !strings.Contains(err.Error(), "2 cells make a stage of more than 2147483647 episodes") {
		t.Error(err)
	}
}

// TestManyTexts: aliases of one long text are counted with its length.
func TestManyTexts(t *testing.T) {
	t.Parallel()
	src := "kind: talk\nseed: 7\nagents: {a: sim/small}\nparams:\n  topic: &t " + strings.Repeat("x", 500_000) + "\n  more: [" + strings.TrimSuffix(strings.Repeat("*t, ", 5000), ", ") + "]\n"
	if _, err := Parse("plan.yaml", []byte(src), []world.Kind{grower()}, nil); err == nil || !strings.Contains(err.Error(), "its texts are more than 16 MiB when its aliases (*) are followed") {
		t.Errorf("%.300v", err)
	}
}

// stopping is stopped while it reads a file.
type stopping struct {
	worldtest.Simple[talkParams]
	stop func()
}

func (s stopping) Load(_ *talkParams, f world.Files) ([]string, error) {
	s.stop()
	_, err := f.Text("plan.yaml")
	return nil, err
}

// TestLoadStops: a plan whose files are being read is given up with the context.
func TestLoadStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte("kind: talk\nagents: {a: sim/small}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	why := errors.New("stopped by a signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	k := world.Define(stopping{talk(), func() { cancel(why) }})
	if _, err := Load(ctx, filepath.Join(dir, "plan.yaml"), []world.Kind{k}, nil, Reach{}); !errors.Is(err, why) {
		t.Error(err)
	}
}
