package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/price"
	"parley/internal/ask/settings"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/journal/journaltest"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds"
)

const forkPlan = `
kind: secrets
seed: 3
agents: {small: sim/small, large: sim/large, keeper: {bot: keeper}}
plan: {matrix: {agents: [small, large, keeper], repeat: 1, params: {messages: [2, 3]}}}
`

// forkable plays a plan into a new run file, and says where that is.
func forkable(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.parley")
	played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, forkPlan), File: file, Tool: "test"})
	return file
}

// written forks, and says where to.
func written(t *testing.T, f Fork) string {
	t.Helper()
	f.File, f.Tool, f.Repeat = filepath.Join(t.TempDir(), "fork.parley"), "test", max(1, f.Repeat)
	if err := f.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f.File
}

// recordedRun is a run file read back.
type recordedRun struct {
	head    *journal.Head
	ends    map[int]journal.Ended
	specs   []world.Spec
	replies map[string]*journal.Replied // by episode, strand, turn and index
	notes   map[string]string           // by episode, strand and turn
}

func readRun(t *testing.T, file string) recordedRun {
	t.Helper()
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	r := recordedRun{replies: map[string]*journal.Replied{}, notes: map[string]string{}}
	err = s.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		switch e := e.(type) {
		case *journal.Staged:
			for _, s := range e.Specs.All() {
				r.specs = append(r.specs, s)
			}
		case *journal.Turned:
			b, err := json.Marshal(e.Notes)
			r.notes[fmt.Sprintf("%d %s%d", e.Episode, e.Strand, e.Turn.Turn)] = string(b)
			return err
		case *journal.Replied:
			r.replies[fmt.Sprintf("%d %s%d:%d", e.Episode, e.Strand, e.Turn.Turn, e.Index)] = e
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.head, err = s.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.ends = journaltest.Ends(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r recordedRun) secrets(t *testing.T, episode int) map[string]string {
	t.Helper()
	var data struct {
		Secrets map[string]string `json:"secrets"`
	}
	if err := json.Unmarshal(r.ends[episode].Outcome.Data.(json.RawMessage), &data); err != nil {
		t.Fatal(err)
	}
	return data.Secrets
}

// TestForkAtEveryTurn: whatever the turn, what was played before it is the same and not
// asked again, and everything after it is a new draw.
func TestForkAtEveryTurn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it plays much, and others play the same")
	}
	const episode = 7 // of the second variant: three messages of each
	from := forkable(t)
	before, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	was := readRun(t, from)
	for turn := range 6 {
		file := written(t, Fork{Kinds: worlds.Standard(), From: from, Episode: episode, Turn: turn, Repeat: 2})
		asked, bots := 0, 0
		sum := played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true, Tool: "test"})
		is := readRun(t, file)
		if want := (journal.Origin{File: from, Run: was.head.Begun.Run, Episode: episode, Turn: turn}); is.head.Begun.Fork == nil || *is.head.Begun.Fork != want {
			t.Errorf("turn %d: origin %+v, want %+v", turn, is.head.Begun.Fork, want)
		}
		if len(is.specs) != 2 || !reflect.DeepEqual(is.specs[0], is.specs[1]) || is.specs[0].Deal != was.specs[episode].Deal {
			t.Errorf("turn %d: specs %+v", turn, is.specs)
		}
		for i := range 2 {
			if !reflect.DeepEqual(is.secrets(t, i), was.secrets(t, episode)) {
				t.Errorf("turn %d: other secrets were dealt", turn)
			}
			for n := range 6 {
				a, b := was.replies[fmt.Sprintf("%d %d:0", episode, n)], is.replies[fmt.Sprintf("%d %d:0", i, n)]
				if b.Copied != (n < turn) {
					t.Errorf("turn %d: call %d: copied is %v", turn, n, b.Copied)
				}
				switch {
				case n < turn && (a.Response.Text != b.Response.Text || !reflect.DeepEqual(a.Request, b.Request) || a.Agent != b.Agent || b.Cost() != 0):
					t.Errorf("turn %d: call %d is %+v, and was %+v", turn, n, b, a)
				case n < turn && was.notes[fmt.Sprintf("%d %d", episode, n)] != is.notes[fmt.Sprintf("%d %d", i, n)]:
					t.Errorf("turn %d: the notes of %d changed", turn, n)
				case n >= turn && b.Request == nil:
					bots++
				case n >= turn:
					asked++
					if a.Request.Sample == b.Request.Sample {
						t.Errorf("turn %d: call %d draws the same again", turn, n)
					}
				}
			}
		}
		if sum.State != journal.Complete || sum.Calls.Asked != asked || asked+bots != 2*(6-turn) {
			t.Errorf("turn %d: %s, %d asked, %d counted, %d of bots", turn, sum.State, sum.Calls.Asked, asked, bots)
		}
	}
	if after, err := os.ReadFile(from); err != nil || string(after) != string(before) {
		t.Error("the run that was forked has changed", err)
	}
}

// TestForkOtherwise continues with other agents and settings.
func TestForkOtherwise(t *testing.T) {
	t.Parallel()
	from := forkable(t)
	was := readRun(t, from)
	seat := was.replies["0 2:0"].Seat
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		sets := []string{"agents.small.model=sim/other", "agents.large.model=sim/other", "agents.small.temperature=0.3", "budget=1", "prices="}
		file := written(t, Fork{Kinds: worlds.Standard(), From: from, Turn: 2, Sets: sets})
		played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true})
		for at, r := range readRun(t, file).replies {
			if want := r.Turn.Turn >= 2; r.Request == nil || (r.Request.Model == "sim/other") != want || r.Copied == want {
				t.Errorf("%s: %+v", at, r)
			}
		}
	})
	t.Run("agent", func(t *testing.T) {
		t.Parallel()
		file := written(t, Fork{Kinds: worlds.Standard(), From: from, Turn: 2, Sets: []string{"lineup." + seat + "=keeper"}})
		played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true})
		is := readRun(t, file)
		if r := is.replies["0 0:0"]; r.Agent != was.replies["0 0:0"].Agent || r.Request == nil {
			t.Errorf("who spoke first is now %s", r.Agent)
		}
		if r := is.replies["0 2:0"]; r.Agent != "keeper" || r.Request != nil {
			t.Errorf("turn 2 is played by %s", r.Agent)
		}
		if is.specs[0].Cell != "" || is.specs[0].Lineup[seat] != "keeper" {
			t.Errorf("spec %+v", is.specs[0])
		}
	})
	t.Run("params", func(t *testing.T) {
		t.Parallel()
		file := written(t, Fork{Kinds: worlds.Standard(), From: from, Turn: 3, Sets: []string{"params.messages=5"}})
		if sum := played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true}); sum.Calls.Total != 10 || sum.Calls.Asked != 7 {
			t.Errorf("%d calls, %d asked", sum.Calls.Total, sum.Calls.Asked)
		}
	})
	t.Run("repeats", func(t *testing.T) {
		t.Parallel()
		file := written(t, Fork{Kinds: worlds.Standard(), From: from, Turn: 1, Repeat: 30})
		played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true})
		texts := map[string]bool{}
		for _, r := range readRun(t, file).replies {
			if !r.Copied {
				texts[r.Response.Text] = true
			}
		}
		if len(texts) <= 3 { // one for each turn that is played
			t.Errorf("30 episodes drew the same %d answers", len(texts))
		}
	})
}

// TestForkResumes: a fork is a run like any other. It can be stopped and resumed, and
// forked.
func TestForkResumes(t *testing.T) {
	t.Parallel()
	from := forkable(t)
	whole := played(t, Play{Kinds: worlds.Standard(), File: written(t, Fork{Kinds: worlds.Standard(), From: from, Turn: 2, Repeat: 3}), MustExist: true})

	file := written(t, Fork{Kinds: worlds.Standard(), From: from, Turn: 2, Repeat: 3})
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("enough"))
	sum, err := Play{Kinds: worlds.Standard(), File: file, MustExist: true}.Run(t.Context(), stopped)
	if err != nil || sum.State != journal.Stopped || sum.Calls.Asked != 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if sum = played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true}); sum.State != journal.Complete || sum.Digest != whole.Digest || sum.Calls.Total != 12 {
		t.Errorf("resumed: %+v\nuninterrupted: %+v", sum, whole)
	}
	if sum = played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true}); sum.Calls.Asked != 0 || sum.Digest != whole.Digest {
		t.Errorf("played again: %+v", sum)
	}

	playing, err := runfile.Open(t.Context(), file, runfile.Resume) // somebody else, meanwhile
	if err != nil {
		t.Fatal(err)
	}
	again := written(t, Fork{Kinds: worlds.Standard(), From: file, Episode: 2, Turn: 3})
	if err := playing.Close(); err != nil {
		t.Fatal(err)
	}
	played(t, Play{Kinds: worlds.Standard(), File: again, MustExist: true})
	was, is := readRun(t, file), readRun(t, again)
	for n := range 3 {
		a, b := was.replies[fmt.Sprintf("2 %d:0", n)], is.replies[fmt.Sprintf("0 %d:0", n)]
		if a.Response.Text != b.Response.Text || !b.Copied || b.At != a.At {
			t.Errorf("call %d of the fork's fork: %+v, and was %+v", n, b, a)
		}
	}
	if f := is.head.Begun.Fork; f.Run != was.head.Begun.Run || f.Episode != 2 || f.Turn != 3 || is.replies["0 3:0"].Copied {
		t.Errorf("origin %+v", f)
	}
}

func TestForkRefusals(t *testing.T) {
	t.Parallel()
	from := forkable(t)
	foreign := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(foreign, []byte("no run at all, but some text"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.parley")
	s, err := runfile.Open(t.Context(), empty, runfile.Create)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fork Fork
		want string
	}{
		{Fork{Kinds: worlds.Standard(), Episode: 12}, "has no episode 12: it has 0 to 11"},
		{Fork{Kinds: worlds.Standard(), Episode: -1}, "has no episode -1"},
		{Fork{Kinds: worlds.Standard(), Turn: 4}, "there is no turn 4: it has 0 to 3"},
		{Fork{Kinds: worlds.Standard(), Turn: -1}, "there is no turn -1"},
		{Fork{Kinds: worlds.Standard(), Repeat: -1}, "want 1 to 10000"},
		{Fork{Kinds: worlds.Standard(), Repeat: 10_001}, "want 1 to 10000"},
		{Fork{Kinds: worlds.Standard(), From: "nowhere.parley"}, "there is no such run file"},
		{Fork{Kinds: worlds.Standard(), From: foreign}, "not a run file"},
		{Fork{Kinds: worlds.Standard(), From: empty}, "holds no run yet"},
		{Fork{Kinds: worlds.Standard(), File: from}, "exists already"},
		{Fork{Kinds: worlds.Standard(), Sets: []string{"kind=diplomacy"}}, "--set kind: a fork plays the same kind"},
		{Fork{Kinds: worlds.Standard(), Sets: []string{` "ki"nd = diplomacy`}}, "--set kind: a fork plays the same kind"},
		{Fork{Kinds: worlds.Standard(), Sets: []string{"seed=4"}}, "use --repeat"},
		{Fork{Kinds: worlds.Standard(), Sets: []string{"episodes=4"}}, "use --repeat"},
		{Fork{Kinds: worlds.Standard(), Sets: []string{"plan.matrix.repeat=4"}}, "use --repeat"},
		{Fork{Kinds: worlds.Standard(), Sets: []string{"out=x"}}, "--out"},
		{Fork{Kinds: worlds.Standard(), Sets: []string{"agents.small.modelx=sim/x"}}, "modelx"},
		{Fork{Kinds: worlds.Standard(), Sets: []string{"lineup.first=nobody"}}, "nobody"},
		{Fork{Kinds: worlds.Standard(), Turn: 3, Sets: []string{"params.messages=1"}}, "what was played before turn 3 does not fit the changed plan: it now ends at turn 2"},
	} {
		f := c.fork
		if f.From == "" {
			f.From = from
		}
		file := filepath.Join(t.TempDir(), "fork.parley")
		if f.File == "" {
			f.File = file
		}
		if f.Repeat == 0 {
			f.Repeat = 1
		}
		err := f.Write(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.fork, err, c.want)
		}
		var plan planfile.Errors
		if !IsUsage(err) && !errors.As(err, &plan) {
			t.Errorf("%+v: not the user's fault: %v", c.fork, err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%+v: left a file behind", c.fork)
		}
	}
}

// forked is a kind of one ask whose World may panic.
type forked struct {
	worldtest.Simple[struct{}]
	panics bool
}

func (f forked) World(p *struct{}, l world.Lineup) (world.World, error) {
	if f.panics {
		panic("no world today")
	}
	return f.Simple.World(p, l)
}

// TestForkOfAKindThatPanics: a fork refuses in words, and leaves no file behind.
func TestForkOfAKindThatPanics(t *testing.T) {
	t.Parallel()
	kind := func(panics bool) []world.Kind {
		return []world.Kind{world.Define(forked{worldtest.Simple[struct{}]{
			Kind: world.About{Name: "forked", Version: 1}, Sits: []string{"a"},
			Play: func(_ *struct{}, t *world.Table) world.Outcome {
				t.One(world.Call{Seat: "a", Label: "say", Ask: llm.Request{Messages: []llm.Message{llm.User("Hi.")}}})
				return world.Outcome{}
			},
		}, panics})}
	}
	plan, err := planfile.Parse("plan.yaml", []byte("kind: forked\nagents: {a: sim/small}\n"), kind(false), nil)
	if err != nil {
		t.Fatal(err)
	}
	from := inFolder(t)
	played(t, Play{Kinds: kind(false), Plan: plan, File: from})
	err = Fork{Kinds: kind(true), From: from, Repeat: 1, File: inFolder(t)}.Write(t.Context())
	if !IsUsage(err) || !strings.Contains(err.Error(), "the kind forked: World panicked: no world today") {
		t.Error(err)
	}
}

// branching is a kind whose worlds fork: one ask, two strands of two asks each with a fork
// within the second, two asks at once, one more.
func branching() world.Kind {
	type params struct {
		Extra bool `json:"extra" doc:"Whether one more is asked." `
		Swap  bool `json:"swap" doc:"Whether others are asked."`
	}
	ask := func(seat, text string) world.Call {
		return world.Call{Seat: seat, Label: "word", Ask: llm.Request{Messages: []llm.Message{llm.User(text)}}}
	}
	play := func(p *params, t *world.Table) world.Outcome {
		seats := []string{"a", "b"}
		if p.Swap {
			seats = []string{"b", "a"}
		}
		said := t.One(ask("a", "begin")).Text
		heard := make([]string, 2)
		t.Note("fork", "", "now")
		t.Fork(2, func(i int, t *world.Table) {
			heard[i] = t.One(ask(seats[i], said)).Text + t.One(ask("a", said)).Text
			if i == 1 {
				t.Fork(1, func(_ int, t *world.Table) { heard[1] += t.One(ask("b", "deep")).Text })
			}
			t.Note("heard", seats[i], heard[i])
		})
		calls := []world.Call{ask("a", heard[0]), ask("b", heard[1])}
		if p.Extra {
			calls = append(calls, ask("a", "extra"))
		}
		for _, r := range t.Ask(calls...) {
			said += r.Text
		}
		return world.Outcome{Data: said + t.One(ask("a", said)).Text}
	}
	return world.Define(worldtest.Simple[params]{Kind: world.About{Name: "branching", Version: 1}, Sits: []string{"a", "b"}, Play: play})
}

// playBranching plays a run file of that kind, which Play does not know.
func playBranching(t *testing.T, file string, begun journal.Begun, episodes int, entries ...journal.Entry) engine.Result {
	t.Helper()
	store, err := runfile.Open(t.Context(), file, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(Config{Config: dispatch.Config{Settings: settings.New(settings.Library)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	spec := world.Spec{Kind: "branching", Params: json.RawMessage(`{"extra":false,"swap":false}`), Lineup: map[string]string{"a": "x", "b": "x"}}
	res, err := engine.Run(t.Context(), engine.Config{Journal: store, Begun: begun, Kind: branching(), Plan: world.List(slices.Repeat([]world.Spec{spec}, episodes)...), Models: a})
	if err := errors.Join(err, a.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	return res
}

// TestForkStrands: what was forked before the turn comes along, whole, and what comes
// after is played again.
func TestForkStrands(t *testing.T) {
	t.Parallel()
	kinds := []world.Kind{branching()}
	plan, err := planfile.Parse("plan.yaml", []byte("kind: branching\nagents: {x: sim/small}\nlineup: {a: x, b: x}\n"), kinds, nil)
	if err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(t.TempDir(), "run.parley")
	playBranching(t, from, Play{}.begun(plan, price.Embedded(), &journal.Head{}), 2)
	was := readRun(t, from)
	for turn, kept := range []int{0, 1, 6, 8} { // replies
		f := Fork{Kinds: kinds, From: from, Episode: 1, Turn: turn, Repeat: 1}
		entries, err := f.entries(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "fork.parley")
		res := playBranching(t, file, journal.Begun{}, 1, entries...)
		is := readRun(t, file)
		copied := 0
		for at, r := range is.replies {
			if r.Copied {
				copied++
			}
			if r.Copied != (r.Response.Text == was.replies["1"+at[1:]].Response.Text) {
				t.Errorf("turn %d: %s: copied is %v", turn, at, r.Copied)
			}
		}
		if copied != kept || len(is.replies) != 9 || res.Made.Calls != 9-kept || res.State != journal.Complete {
			t.Errorf("turn %d: %d of %d replies copied, %d asked, %s", turn, copied, len(is.replies), res.Made.Calls, res.State)
		}
		if got := is.notes["0 1"]; got != was.notes["1 1"] {
			t.Errorf("turn %d: notes of the fork: %s", turn, got)
		}
		if got := is.notes["0 1.0/2"]; (got == was.notes["1 1.0/2"]) != (turn > 1) {
			t.Errorf("turn %d: notes of the first strand: %s", turn, got)
		}
	}
	for set, want := range map[string]string{
		"params.extra=true": "turn 2 now makes 3 calls, and made 2",
		"params.swap=true":  "call 1.0/0:0 is now word of b, and was word of a",
	} {
		_, err := Fork{Kinds: kinds, From: from, Turn: 3, Repeat: 1, Sets: []string{set}}.entries(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !IsUsage(err) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}
