package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/ask/sim/simhttp"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds"
)

// plays are the episodes of a run as a set: what was played, and its outcomes, whatever the
// number of the episode.
func plays(t *testing.T, file string) map[string]int {
	t.Helper()
	set, ends := map[string]int{}, endsOf(t, file)
	for _, st := range headOf(t, file).Stages {
		for i, s := range st.Specs.All() {
			e := ends[st.First+i]
			set[fmt.Sprintf("%s %s %v %d: %x %v %s", s.Cell, s.Params, s.Lineup, s.Deal, e.Play, e.Outcome.Scores, e.Outcome.Data)]++
		}
	}
	return set
}

const matrixed = `kind: secrets
seed: 5
agents:
  small: {model: sim/small, max_tokens: 120}
  large: {model: sim/large, max_tokens: 120}
params: {messages: 2}
plan: {matrix: {agents: [small, large], repeat: 3}}
`

const third = "agents.other={model: sim/other, max_tokens: 120}"

const grouped = `kind: rollout
seed: 1
episodes: 3
agents:
  policy: {model: sim/small, temperature: 1}
lineup: {agent: policy}
params: {env: arithmetic, env_params: {problems: 1, terms: 2}, group: 3}
`

const untilKnown = `kind: secrets
seed: 5
agents:
  small: {model: sim/small, max_tokens: 120}
  large: {model: sim/large, max_tokens: 120}
lineup: {first: small, second: large}
params: {messages: 2}
plan: {until: {score: revealed, seat: first, width: 0.4, min: 4, max: 9, step: 3}}
`

// growing are plans, and what makes them larger.
func growing() map[string]struct {
	plan string
	sets []string
} {
	return map[string]struct {
		plan string
		sets []string
	}{
		"episodes":         {conversations, []string{"episodes=75"}},
		"repeat":           {matrixed, []string{"plan.matrix.repeat=5"}},
		"an agent":         {matrixed, []string{third, "plan.matrix.agents=[other, small, large]"}},
		"a value":          {matrixed, []string{"plan.matrix.params={messages: [1, 2]}"}},
		"agents and all":   {matrixed, []string{third, "plan.matrix.agents=[small, other, large]", "plan.matrix.repeat=4", "plan.matrix.params={messages: [4, 2]}"}},
		"a matrix":         {conversations, []string{"episodes=", "plan.matrix={params: {messages: [3, 2]}, repeat: 60}"}},
		"groups":           {grouped, []string{"episodes=5"}},
		"a smaller width":  {untilKnown, []string{"plan.until.width=0.2"}},
		"a larger max":     {strings.Replace(untilKnown, "0.4", "0.1", 1), []string{"plan.until.max=20"}},
		"until and values": {untilKnown, []string{"plan.until.width=0.3", "plan.until.max=11", "plan.matrix={params: {messages: [2, 3]}}"}},
	}
}

// TestGrownIsPlayedAtOnce: a run that grows is in the end the run of the larger plan; what was
// recorded keeps its numbers and is not asked again.
func TestGrownIsPlayedAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range growing() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			small, large := filepath.Join(dir, "small.parley"), filepath.Join(dir, "large.parley")
			first := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, c.plan), File: small})
			before := endsOf(t, small)
			p := Play{Kinds: worlds.Standard(), Plan: parsed(t, c.plan, c.sets...), File: small}
			growth, err := p.Growth(t.Context())
			if err != nil || growth == nil || growth.Recorded != first.Episodes.Total {
				t.Fatalf("%+v, %v", growth, err)
			}
			sum := played(t, p)
			whole := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, c.plan, c.sets...), File: large})
			if sum.State != journal.Complete || sum.Grown == nil || whole.Episodes.Total == first.Episodes.Total || sum.Episodes != whole.Episodes || sum.Calls.Total != whole.Calls.Total ||
				sum.Calls.Asked != whole.Calls.Total-first.Calls.Total || sum.Calls.Replayed != 0 {
				t.Errorf("grown %+v\nat once %+v", sum, whole)
			}
			if n := growth.New; (n == nil) != strings.Contains(c.plan, "until") || n != nil && *n != whole.Episodes.Total-first.Episodes.Total {
				t.Errorf("%+v", growth)
			}
			grown := headOf(t, small)
			ends := endsOf(t, small)
			if want, got := plays(t, large), plays(t, small); !maps.Equal(got, want) {
				t.Errorf("played other episodes:\n%v\nat once:\n%v", got, want)
			}
			for n, e := range before {
				if is := ends[n]; is.Play != e.Play || !is.At.Equal(e.At) {
					t.Errorf("episode %d is another", n)
				}
			}
			if g := grown.Begun.Grown; len(g) != 1 || g[0].Episodes != first.Episodes.Total {
				t.Errorf("recorded %+v", g)
			}
			if again := played(t, p); again.Calls.Asked != 0 || again.Grown != nil || len(headOf(t, small).Begun.Grown) != 1 {
				t.Errorf("once more: %+v", again)
			}
		})
	}
}

// TestGrowthIsCutOff stops a growing run early, or before it begins, and resumes it from
// the file alone. Each is stopped at one moment, or with PARLEY_SWEEP, which .ci/run kills sets, at all.
func TestGrowthIsCutOff(t *testing.T) {
	t.Parallel()
	all := growing()
	for n, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := all[name]
			dir := t.TempDir()
			large := parsed(t, c.plan, c.sets...)
			whole := filepath.Join(dir, "whole.parley")
			played(t, Play{Kinds: worlds.Standard(), Plan: large, File: whole})
			cuts := []func(t *testing.T, file string){recordedOnly(large), stoppedAt(large, 1), stoppedAt(large, 20)}
			switch {
			case large.Kind.External():
				cuts = cuts[:1] // episodes that are cut off are tried again, and draw again
			case os.Getenv("PARLEY_SWEEP") == "":
				cuts = cuts[n%3:][:1]
			}
			for i, cut := range cuts {
				file := filepath.Join(dir, fmt.Sprint(i, ".parley"))
				played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, c.plan), File: file})
				cut(t, file)
				sum := played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true})
				if got, want := plays(t, file), plays(t, whole); sum.State != journal.Complete || !maps.Equal(got, want) {
					t.Errorf("cut %d: %s, with other episodes:\n%v\nat once:\n%v", i, sum.State, got, want)
				}
			}
		})
	}
}

// recordedOnly records that a run grows, and no more: as if the process had been killed then.
func recordedOnly(large *planfile.Plan) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		t.Helper()
		store, err := runfile.Open(t.Context(), file, runfile.Resume)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		head, err := store.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c, err := (Play{Kinds: worlds.Standard(), Plan: large, File: file}).choose(head)
		if err == nil {
			err = store.Append(t.Context(), c.Begun)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// stoppedAt ends a growing run after so many replies.
func stoppedAt(large *planfile.Plan, replies int) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		t.Helper()
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		n := 0
		_, err := Play{Kinds: worlds.Standard(), Plan: large, File: file, Events: func(e Event) {
			if e.Replied == nil {
				return
			}
			if n++; n == replies {
				stop(errors.New("pulled the plug"))
			}
		}}.Run(ctx, context.Background())
		if err != nil && !strings.Contains(err.Error(), "plug") {
			t.Fatal(err)
		}
	}
}

// TestGrowTwice: cells are renamed by each growth, and readers see the last names.
func TestGrowTwice(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	one := []string{"episodes="}
	played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, "episodes=2"), File: file})
	two := append(one, "plan.matrix={params: {messages: [3, 2]}, repeat: 2}")
	played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, two...), File: file})
	three := append(one, "plan.matrix={params: {messages: [2, 3], mode: [standard, retained]}, repeat: 2}")
	if sum := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, three...), File: file}); sum.Episodes.Total != 8 {
		t.Fatalf("%+v", sum)
	}
	store, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	list, err := store.List(t.Context(), runfile.Listing{})
	if err != nil {
		t.Fatal(err)
	}
	head, cells := headOf(t, file), map[string]int{}
	for _, l := range list {
		st := head.Stages[l.Stage]
		if spec := st.Specs.At(l.Episode - st.First); spec.Cell != l.Spec.Cell {
			t.Errorf("episode %d is of cell %q and %q", l.Episode, spec.Cell, l.Spec.Cell)
		}
		cells[l.Spec.Cell]++
	}
	if len(cells) != 4 || cells["messages=2, mode=standard"] != 2 || len(head.Begun.Grown) != 2 || head.Begun.Grown[1].Episodes != 4 {
		t.Errorf("%v, %+v", cells, head.Begun.Grown)
	}
}

// TestShrinking names what a smaller plan leaves out, and what else cannot change.
func TestShrinking(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{}
	for _, c := range []struct{ plan, set, want string }{
		{conversations, "episodes=59", "episodes was 60, and is 59 in the plan: episode 59 (deal 59) is recorded and not in the plan"},
		{matrixed, "plan.matrix.repeat=2", "plan.matrix.repeat was 3, and is 2"},
		{matrixed, "plan.matrix.agents=[small, other]", `plan.matrix.agents was ["small","large"], and is ["small","other"] in the plan; agents was ["large","small"], and is ["other","small"] in the plan: episode 0 (deal 0, cell first=small, second=large)`},
		{matrixed, "params.messages=1", "params.messages was 2, and is 1"},
		{matrixed, "agents.large.max_tokens=121", "agents.large.max_tokens was 120, and is 121"},
		{matrixed, "episode_budget=3", "episode_budget was 0, and is 3"},
		{untilKnown, "plan.until.width=0.5", "plan.until.width was 0.4, and is 0.5"},
		{untilKnown, "plan.until.max=8", "plan.until.max was 9, and is 8"},
		{untilKnown, "plan.until.step=2", "plan.until.step was 3, and is 2"},
		{conversations, "plan.until={score: revealed, seat: first, width: 0.5}", "plan.until was not set"},
	} {
		file := files[c.plan]
		if file == "" {
			file = filepath.Join(dir, fmt.Sprint(len(files), ".parley"))
			files[c.plan] = file
			played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, c.plan), File: file})
		}
		sets := []string{c.set}
		switch {
		case strings.Contains(c.set, "until="):
			sets = append(sets, "episodes=")
		case strings.Contains(c.set, "other"):
			sets = append(sets, third, "agents.large=")
		}
		before := headOf(t, file)
		_, err := Play{Kinds: worlds.Standard(), Plan: parsed(t, c.plan, sets...), File: file}.Run(t.Context(), t.Context())
		if err == nil || !IsUsage(err) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--out") {
			t.Errorf("%s: %v, want %q", c.set, err, c.want)
		}
		if after := headOf(t, file); len(after.Begun.Grown) > 0 || string(after.Begun.Plan) != string(before.Begun.Plan) {
			t.Errorf("%s: the file has changed", c.set)
		}
	}
}

// TestNamesOfCells: a recorded cell may get another name, and no other cell its old one: names in
// the file stay, and would be those of two cells.
func TestNamesOfCells(t *testing.T) {
	t.Parallel()
	const small = "plan.matrix={agents: [small, large], variations: {low: {params: {messages: 3}}, high: {params: {messages: 5}}}}"
	file := filepath.Join(t.TempDir(), "run.parley")
	played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, matrixed, small), File: file})
	for _, c := range []struct{ set, want string }{
		{"plan.matrix={agents: [small, large], variations: {low: {params: {messages: 1}}, mid: {params: {messages: 3}}, high: {params: {messages: 5}}}}", "another cell has its name"},
		{"plan.matrix={agents: [small, large], variations: {high: {params: {messages: 3}}, low: {params: {messages: 5}}, mid: {params: {messages: 4}}}}", "another cell has its name"},
		{"plan.matrix={agents: [small, large], variations: {least: {params: {messages: 3}}, most: {params: {messages: 5}}, mid: {params: {messages: 4}}}}", ""},
	} {
		_, err := Play{Kinds: worlds.Standard(), Plan: parsed(t, matrixed, c.set), File: file}.Run(t.Context(), context.Background())
		if (err == nil) != (c.want == "") || err != nil && (!IsUsage(err) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.set, err)
		}
	}
}

// TestUnreached: a run that ends at its most episodes says that the score is not known well enough.
func TestUnreached(t *testing.T) {
	t.Parallel()
	for width, want := range map[string]int{"0.4": 0, "0.05": 1} {
		plan := parsed(t, untilKnown, "plan.until.width="+width)
		sum := played(t, Play{Kinds: worlds.Standard(), Plan: plan, File: filepath.Join(t.TempDir(), "run.parley")})
		if len(sum.Unreached) != want || want > 0 && !strings.Contains(sum.Unreached[0], "after 9 episodes, and plan.until asks for ±0.05") {
			t.Errorf("width %s: %v", width, sum.Unreached)
		}
	}
}

// folderOf reads everything that stands in a file's folder.
func folderOf(t *testing.T, file string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(file), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(b)
	}
	return all
}

// TestCompleteIsLeftAlone plays a run that is complete again: it says the same and not a
// byte changes.
func TestCompleteIsLeftAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	first := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations), File: file})
	before := folderOf(t, file)
	for name, p := range map[string]Play{
		"resume":             {File: file, MustExist: true},
		"run":                {Plan: parsed(t, conversations), File: file},
		"resume, same value": {File: file, MustExist: true, Sets: []string{"seed=5"}},
	} {
		p.Kinds = worlds.Standard()
		sum := played(t, p)
		if sum.State != journal.Complete || sum.Digest != first.Digest || sum.Calls.Asked != 0 || sum.Calls.Total != first.Calls.Total || *sum.Cost != *first.Cost {
			t.Errorf("%s: %+v", name, sum)
		}
		if after := folderOf(t, file); !maps.Equal(after, before) {
			t.Errorf("%s: the file has changed, or others stand beside it", name)
		}
	}
}

// TestCompleteWithWorkersIsLeftAlone plays a run again that is complete and was collected from the log of a hub.
func TestCompleteWithWorkersIsLeftAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	first := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, "episodes=2"), File: file})
	store, err := runfile.Open(t.Context(), file, runfile.Resume)
	if err != nil {
		t.Fatal(err)
	}
	err = store.Append(t.Context(), &journal.Opened{}, &journal.Collected{Log: 7, Through: 9}, &journal.Closed{State: journal.Complete})
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	before := folderOf(t, file)
	sum := played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true})
	if sum.State != journal.Complete || sum.Episodes != first.Episodes || sum.Digest != first.Digest || sum.Calls.Asked != 0 {
		t.Errorf("%+v", sum)
	}
	if after := folderOf(t, file); !maps.Equal(after, before) {
		t.Error("the file has changed, or others stand beside it")
	}
}

// TestCompleteNeedsNoKey plays a complete run again although its provider can no longer
// be asked.
func TestCompleteNeedsNoKey(t *testing.T) {
	server, err := simhttp.New(simhttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	lab := httptest.NewServer(server)
	text := strings.ReplaceAll(conversations, "sim/large", "lab/large") + "providers:\n  lab: {dialect: openai, base_url: \"" + lab.URL + "/v1\", key_env: PARLEY_TEST_GONE_KEY}\n"
	file := filepath.Join(t.TempDir(), "run.parley")
	t.Setenv("PARLEY_TEST_GONE_KEY", "sk-here-for-now")
	first := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, text), File: file})
	lab.Close()
	t.Setenv("PARLEY_TEST_GONE_KEY", "")
	if sum := played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true}); sum.State != journal.Complete || sum.Digest != first.Digest {
		t.Errorf("%+v", sum)
	}
	if _, err := (Play{Kinds: worlds.Standard(), Plan: parsed(t, text), File: file + "2"}).Run(t.Context(), context.Background()); err == nil {
		t.Error("a new run needs no key either")
	}
}

// budgetIn is the budget that a run file's plan has now.
func budgetIn(t *testing.T, file string) float64 {
	t.Helper()
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var plan struct{ Budget float64 }
	if err := json.Unmarshal(head.Begun.Plan, &plan); err != nil {
		t.Fatal(err)
	}
	return plan.Budget
}

// TestRaisedBudgetStays: a budget that is raised on resume applies to later processes and forks of
// the file, whether or not there was something left to play.
func TestRaisedBudgetStays(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	sum := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, "budget=0.001"), File: file})
	if sum.State != journal.Stopped {
		t.Fatalf("%+v", sum)
	}
	for _, budget := range []float64{3, 4} { // the second time it is complete
		sum = played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true, Sets: []string{fmt.Sprintf("budget=%v", budget)}})
		if got := budgetIn(t, file); sum.State != journal.Complete || got != budget {
			t.Errorf("%s with a budget of %v, want %v", sum.State, got, budget)
		}
	}
	begun := headOf(t, file)
	fork := written(t, Fork{Kinds: worlds.Standard(), From: file, Episode: 1, Turn: 2})
	if got := budgetIn(t, fork); got != 4 {
		t.Errorf("the fork has a budget of %v", got)
	}
	if played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true}); !headOf(t, file).Last.At.Equal(begun.Last.At) {
		t.Error("it was complete, and was completed again")
	}
}

// TestRoomFor wants a folder for a run file before anything else.
func TestRoomFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "nowhere", "x.parley"): "the folder " + filepath.Join(dir, "nowhere") + " does not exist",
		filepath.Join(plain, "x.parley"):          plain + " is a file, not a folder",
		dir:                                       "is a folder: name a run file in it",
	} {
		_, err := Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations), File: file}.Run(t.Context(), context.Background())
		if err == nil || !IsUsage(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

// TestUnpriced: a cost of zero differs from an unknown cost.
func TestUnpriced(t *testing.T) {
	t.Parallel()
	const lab = "providers:\n  lab: {dialect: sim}\n  here: {dialect: sim, base_url: \"http://127.0.0.1:1/v1\"}\n"
	for name, c := range map[string]struct {
		sets     []string
		known    bool
		unpriced string
	}{
		"priced":          {nil, true, ""},
		"none is priced":  {[]string{"agents.small.model=lab/a", "agents.large.model=lab/b"}, false, "lab/a lab/b"},
		"one is":          {[]string{"agents.large.model=lab/b"}, true, "lab/b"},
		"on this machine": {[]string{"agents.small.model=here/a", "agents.large.model=here/a"}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := parsed(t, conversations+lab, append(c.sets, "episodes=2")...)
			sum := played(t, Play{Kinds: worlds.Standard(), Plan: plan, File: filepath.Join(t.TempDir(), "run.parley")})
			if got := strings.Join(sum.Unpriced, " "); (sum.Cost != nil) != c.known || got != c.unpriced {
				t.Errorf("cost %v, unpriced %q", sum.Cost, got)
			}
			// A check gets the same error as its run.
			e, err := Check{Plan: plan}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(e.Unpriced, " "); (e.Cost != nil) != c.known || got != c.unpriced {
				t.Errorf("check: cost %v, unpriced %q", e.Cost, got)
			}
		})
	}
}

// TestNewCodeIsRecordedWhenPlayed: code that can play nothing of a run leaves it as it was, so that the restored code continues it.
func TestNewCodeIsRecordedWhenPlayed(t *testing.T) {
	t.Parallel()
	file := inFolder(t)
	play := func(prompt, sum string, change bool, stop func()) error {
		kinds := []world.Kind{world.Define(worldtest.Simple[struct{}]{
			Kind: world.About{Name: "edited", Version: 1}, Sits: []string{"a"},
			Play: func(_ *struct{}, t *world.Table) world.Outcome {
				for i := range 100 { // many: a run that is stopped makes a few calls more
					if i == 2 {
						stop()
					}
					t.One(world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User(prompt)}}})
				}
				return world.Outcome{}
			},
		})}
		plan, err := planfile.Parse("plan.yaml", []byte("kind: edited\nagents: {a: sim/small}\n"), kinds, nil)
		if err != nil {
			t.Fatal(err)
		}
		drain, cancel := context.WithCancel(t.Context())
		defer cancel()
		if stop == nil {
			stop = func() {}
		} else {
			stop = cancel
		}
		code := []journal.Code{{Name: "edited.py:Edited", Language: "python 3.11.7", Files: map[string]string{"edited.py": sum}}}
		_, err = Play{Kinds: kinds, Plan: plan, File: file, Code: code, ChangedCode: change}.Run(t.Context(), drain)
		return err
	}
	edits := func() (sum string, edited []journal.Growth) {
		store, err := runfile.OpenRead(file)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		head, err := store.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return head.Begun.Code[0].Files["edited.py"], head.Begun.Edited
	}
	if err := play("Hello.", "1", false, func() {}); err != nil {
		t.Fatal(err)
	}
	if err := play("Good day.", "2", true, nil); !errors.Is(err, engine.ErrDiverged) {
		t.Fatal(err)
	}
	if err := play("Good day.", "2", false, nil); !IsUsage(err) {
		t.Fatal(err)
	}
	if sum, edited := edits(); sum != "1" || len(edited) > 0 {
		t.Errorf("nothing was played with the new code, and it is recorded: %s, %v", sum, edited)
	}
	if err := play("Hello.", "1", false, func() {}); err != nil { // the restored code
		t.Fatal(err)
	}
	if err := play("Hello.", "3", true, nil); err != nil { // asks the same
		t.Fatal(err)
	}
	if sum, edited := edits(); sum != "3" || len(edited) != 1 || edited[0].Episodes != 1 {
		t.Errorf("the code that played is not recorded: %s, %v", sum, edited)
	}
}
