package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/worldtest"
)

// stranger returns an external kind: it asks a model and a bot four times.
func stranger(version int, prompt string) worldtest.Simple[struct{}] {
	return worldtest.Simple[struct{}]{
		Kind: world.About{Name: "stranger", Version: version, Doc: "Asks."}, Sits: []string{"a", "b"},
		Players: map[string]world.Bot{"mute": func(world.Call) world.Reply { return world.Reply{Text: "-"} }},
		Play: func(_ *struct{}, t *world.Table) world.Outcome {
			for range 4 {
				t.Ask(world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User(prompt)}}}, world.Call{Seat: "b"})
			}
			return world.Outcome{}
		},
	}
}

// strangerPlan writes a plan of that kind.
func strangerPlan(t *testing.T) (plan, file string) {
	t.Helper()
	plan = write(t, "plan.yaml", "kind: stranger\nepisodes: 20\nagents: {x: {model: sim/small, max_tokens: 50}, y: {bot: mute}}\nlineup: {a: x, b: y}\n")
	return plan, strings.TrimSuffix(plan, ".yaml") + ".parley"
}

// parleyOf runs the program with one kind.
func parleyOf(t *testing.T, kind world.Kind, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Main(t.Context(), State{Args: args, Kinds: []world.Kind{kind}, Stdout: &stdout, Stderr: &stderr})
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// TestRunOfAnotherVersion checks that a run file of another version of its kind, or of an unknown kind, is
// refused before anything is printed or written.
func TestRunOfAnotherVersion(t *testing.T) {
	t.Parallel()
	sequential(t)
	for state, budget := range map[string]string{"complete": "9", "stopped": "0.0005"} {
		plan, file := strangerPlan(t)
		parleyOf(t, world.Define(stranger(1, "Hello.")), "run", plan, "--quiet", "--budget", budget)
		before := read(t, file)
		for _, c := range []struct {
			kind world.Kind
			want string
		}{
			{world.Define(stranger(2, "Hello.")), file + ": diverged: the run was recorded with stranger version 1, and this is stranger version 2: resume it with the version that recorded it, or begin a new run file (parley run PLAN --out FILE)\n"},
			{brings("other"), "recorded plan: kind: this program does not have the kind stranger: use the program that recorded it (this one has other)\n"},
		} {
			for _, args := range [][]string{{"run", plan}, {"run", file}, {"fork", file, "--episode", "0", "--turn", "0"}} {
				if args[1] == plan && c.kind.Name == "other" || args[0] == "fork" && c.kind.Name == "stranger" {
					continue // refused for another reason
				}
				got := parleyOf(t, c.kind, args...).want(t, exit.Misuse).wantErr(t, c.want)
				if got.stdout != "" || strings.Count(got.stderr, "\n") != 1 || state == "complete" && read(t, file) != before {
					t.Errorf("%s, %v: prints %q and %q, or changed the file", state, args, got.stdout, got.stderr)
				}
			}
		}
	}
}

// TestDivergedRunIsNotResumed checks that no command to resume is offered for a run whose world no longer asks
// what is recorded.
func TestDivergedRunIsNotResumed(t *testing.T) {
	t.Parallel()
	plan, file := strangerPlan(t)
	got := parleyOf(t, world.Define(stranger(1, "Hello.")), "run", plan, "--budget", "0.0005").want(t, exit.Budget)
	if !strings.Contains(got.stdout, "to resume it:\n    parley run") {
		t.Fatal(got.stdout)
	}
	got = parleyOf(t, world.Define(stranger(1, "Good day.")), "run", plan, "--budget", "9").want(t, exit.Misuse)
	again := "to run the plan in a new run file:\n    parley run " + terminal.ShellWord(plan) + " --budget 9 --out " + terminal.ShellWord(strings.TrimSuffix(file, ".parley")+"-again.parley") + "\n"
	if strings.Contains(got.stdout, "to resume it") || !strings.Contains(got.stdout, "asks something else") || !strings.Contains(got.stdout, again) {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
	// Its state says what happened, not that the process was killed.
	for _, verb := range [][]string{{"show", file}, {"ctl", file, "wait"}} {
		got := parleyOf(t, world.Define(stranger(1, "Hello.")), verb...)
		if !strings.Contains(got.stdout, "failed") || !strings.Contains(got.stdout, "asks something else") || strings.Contains(got.stdout, "cut off") {
			t.Errorf("%s: %s%s", verb, got.stdout, got.stderr)
		}
	}
	// With the code as it was, the run is resumed.
	parleyOf(t, world.Define(stranger(1, "Hello.")), "run", plan, "--budget", "9").want(t, exit.OK)
}

// TestCallsOfBots checks that the calls of a bot in a new run do not count as earlier ones.
func TestCallsOfBots(t *testing.T) {
	t.Parallel()
	plan, file := strangerPlan(t)
	kind := world.Define(stranger(1, "Hello."))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"complete: 20 of 20 episodes; 80 calls, 80 answers of bots; ", []string{"run", plan}},
		{"complete: 20 of 20 episodes; 80 calls, 0 of them new, 80 answers of bots; ", []string{"run", file}},
		{"complete: 21 of 21 episodes; 84 calls, 4 of them new, 84 answers of bots; ", []string{"run", plan, "--set", "episodes=21"}},
	} {
		if got := parleyOf(t, kind, c.args...).want(t, exit.OK).stdout; !strings.Contains(got, c.want) {
			t.Errorf("%q is not in\n%s", c.want, got)
		}
	}
}

// telling is a kind whose stories and reports have every exhibit except a replay.
type telling struct{ worldtest.Simple[struct{}] }

func (telling) Story(world.Played, []world.TranscriptEntry) []exhibit.Exhibit {
	return []exhibit.Exhibit{
		{Name: "moves", Title: "The moves", Caption: "One row each.", Show: exhibit.Grid{Columns: []string{"who", "points"}, Rows: [][]any{{"anna", 3}, {"\x1b[2Jbert", 4}}}},
		{Name: "map", Title: "The map", Show: exhibit.Text{Body: "#..\n.##", Pre: true}},
		{Name: "sums", Title: "The sums", Show: exhibit.Bars{X: "day", Y: "sum", Labels: []string{"monday"}, Series: []exhibit.BarSeries{{Values: []float64{17}}}}},
		{Name: "board", Title: "The board", Show: exhibit.Figure{SVG: "<svg xmlns='http://www.w3.org/2000/svg'/>", Alt: "An empty board."}},
		{Name: "lines", Title: "The lines", Show: curve()},
		{Name: "steps", Title: "The steps", Show: exhibit.Replay{Frames: []exhibit.Frame{{Title: "Step 1", Lines: []exhibit.FrameLine{{Who: "anna", Text: "Hi."}}}}}},
	}
}

func curve() exhibit.Curves {
	return exhibit.Curves{X: "turn", Y: "trust", Curves: []exhibit.Curve{{Name: "anna", Points: []exhibit.CurvePoint{{X: 1, Sample: &world.Sample{}}}}}}
}

func (telling) Exhibitor() exhibit.Exhibitor { return teller{} }

type teller struct{}

func (teller) Add(world.Played) {}
func (teller) Exhibits() []exhibit.Exhibit {
	return []exhibit.Exhibit{{Name: "lines", Title: "The lines", Show: curve()}, {Name: "none", Title: "Nothing", Show: exhibit.Curves{}}}
}

// TestStoryOfAnyExhibit checks that every exhibit of a story is printed in order, and that a report names what
// it leaves to the page.
func TestStoryOfAnyExhibit(t *testing.T) {
	t.Parallel()
	plan, file := strangerPlan(t)
	kind := world.Define(telling{stranger(1, "Hello.")})
	parleyOf(t, kind, "run", plan, "--quiet", "--set", "episodes=1").want(t, exit.OK)
	got := parleyOf(t, kind, "show", file, "--episode", "0", "--story").want(t, exit.OK).stdout
	rest := got
	for _, want := range []string{
		"episode 0 of ", "\nThe moves\nOne row each.\n", "WHO", "POINTS", "anna", "3\n", "bert", "\nThe map\n", "| #..\n", "| .##\n", "\nThe sums\n", "monday", "17",
		"\nThe board\nAn empty board.\n", "\nThe lines\n", "TURN", "anna", "\nStep 1\n  anna: Hi.\n",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is missing or out of order:\n%s", want, got)
		}
		rest = after
	}
	got = parleyOf(t, kind, "show", file, "--episode", "0", "--story", "--json").want(t, exit.OK).stdout
	var story struct {
		Frames   []exhibit.Frame
		Exhibits []struct {
			Name, Text string
			Table      struct{ Rows []map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(got), &story); err != nil || len(story.Frames) != 1 || len(story.Exhibits) != 6 || story.Exhibits[0].Table.Rows[0]["who"] != "anna" || story.Exhibits[1].Text != "#..\n.##" {
		t.Errorf("%v: %s", err, got)
	}
	if got := parleyOf(t, kind, "report", file).want(t, exit.OK).stdout; !strings.Contains(got, "\nStranger\n(shown on the page only, with --html: The lines; --json and --csv have the numbers)\n") {
		t.Error(got)
	}
}

// TestPanicSaysWhere checks that the closing lines say where in the kind's code a world panicked.
func TestPanicSaysWhere(t *testing.T) {
	t.Parallel()
	plan, _ := strangerPlan(t)
	kind := stranger(1, "Hello.")
	kind.Play = func(*struct{}, *world.Table) world.Outcome { panic("oh") }
	if got := parleyOf(t, world.Define(kind), "run", plan).want(t, exit.Failed).stdout; !strings.Contains(got, "failed most often (20): panic: oh (stranger_test.go:") {
		t.Error(got)
	}
}
