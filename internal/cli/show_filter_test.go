package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/run/runfile/runfiletest"
	"parley/journal"
	"parley/world"
)

// crowds returns a run of n episodes in two cells; every seventh failed.
func crowds(n int) []journal.Entry {
	specs := make([]world.Spec, n)
	for i := range specs {
		specs[i] = world.Spec{Kind: "k", Lineup: map[string]string{"a": "x"}, Deal: i, Cell: []string{"short: a=x", "long: a=x"}[i%2]}
	}
	entries := []journal.Entry{&journal.Begun{Version: 1, Run: "m", Kind: "k", Plan: json.RawMessage(`{}`)}, &journal.Opened{}, &journal.Staged{Specs: world.List(specs...)}}
	for i := range n {
		e := &journal.Ended{Episode: i, Outcome: world.Outcome{Scores: []world.Score{{Name: "n", Value: float64(i)}}}}
		if i%7 == 0 {
			e.Outcome = world.Outcome{Failed: "bad luck"}
		}
		entries = append(entries, &journal.Turned{Turn: journal.Turn{Episode: i}}, e)
	}
	return entries
}

// listedBy returns the episodes that show lists.
func listedBy(t *testing.T, args ...string) string {
	t.Helper()
	got := parley(t, State{}, append(append([]string{"show"}, args...), "--json")...).want(t, exit.OK)
	var run struct{ List []struct{ Episode int } }
	if err := json.Unmarshal([]byte(got.stdout), &run); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range run.List {
		out = append(out, fmt.Sprint(e.Episode))
	}
	return strings.Join(out, " ")
}

func TestShowChooses(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := runfiletest.File(t, crowds(60)...)
	for _, c := range []struct{ args, want string }{
		{"--limit 3", "0 1 2"},
		{"--from 57", "57 58 59"},
		{"--failed", "0 7 14 21 28 35 42 49 56"},
		{"--failed --limit 2", "0 7"},
		{"--failed --from 8 --limit 2", "14 21"},
		{"--cell long --limit 3", "1 3 5"},
		{"--cell long --failed", "7 21 35 49"},
		{"--cell nowhere", ""},
	} {
		if got := listedBy(t, append([]string{file}, strings.Fields(c.args)...)...); got != c.want {
			t.Errorf("%s: %s, want %s", c.args, got, c.want)
		}
	}
	for args, want := range map[string]string{
		"":                                 "\n0 to 49 of 60 episodes; --from 50 shows more\n",
		"--from 50":                        "\n50 to 59 of 60 episodes\n",
		"--failed --limit 2":               "\n2 of 60 episodes; --from 8 shows more\n",
		"--failed --cell long":             "\n4 of 60 episodes\n",
		"--cell nowhere --from 3 --failed": "\nno episode from number 3 on matches the filter\n",
	} {
		if got := parley(t, State{}, append([]string{"show", file}, strings.Fields(args)...)...).want(t, exit.OK).stdout; !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", args, got)
		}
	}
	if got := parley(t, State{}, "show", file, "--limit", "0").stdout; strings.Contains(got, "shows more") || !strings.Contains(got, "\n     59  ended ") {
		t.Error(got)
	}
}

func TestShowChoosesInEpisode(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := runfiletest.File(t, cliSample()...)
	for name, args := range map[string][]string{
		"show-episode-failed":      {"--failed"},
		"show-episode-seat":        {"--seat", "b"},
		"show-episode-seat-failed": {"--seat", "b", "--failed"},
	} {
		got := parley(t, State{}, append([]string{"show", file, "--episode", "0"}, args...)...).want(t, exit.OK)
		golden(t, name, strings.ReplaceAll(got.stdout, file, "run.parley"))
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"--seat a", "--seat needs --episode"},
		{"--episode 0 --seat z", `--seat "z": no such seat; the seats are a, b`},
		{"--episode 0 --cell z", "choose among episodes"},
		{"--episode 0 --from 0", "choose among episodes"},
		{"--episode 0 --limit 50", "choose among episodes"},
		{"--episode 0 --call 0:0 --failed", "leave out --failed and --seat"},
	} {
		parley(t, State{}, append([]string{"show", file}, strings.Fields(c.args)...)...).want(t, exit.Misuse).wantErr(t, c.want)
	}
}

// TestShowHuge checks that an answer of a megabyte is shown in full, and that a cell of a table is cut.
func TestShowHuge(t *testing.T) {
	t.Parallel()
	entries := cliSample()
	words := strings.Repeat("long \u4e16 ", 1<<17)
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok && r.Response != nil && r.Response.Text == "in the second strand" {
			r.Response.Text = words
		}
		if end, ok := e.(*journal.Ended); ok && end.Outcome.Failed != "" {
			end.Outcome.Failed = words
		}
	}
	file := runfiletest.File(t, entries...)
	if got := parley(t, State{}, "show", file, "--episode", "0").want(t, exit.OK).stdout; !strings.Contains(got, "| "+words+"\n") {
		t.Errorf("%d bytes", len(got))
	}
	s := atTerminal(map[string]string{"TERM": "dumb"})
	s.Terminal = func(any) int { return 100 }
	if got := parley(t, s, "show", file).want(t, exit.OK).stdout; len(got) > 5000 {
		t.Errorf("%d bytes", len(got))
	}
}

// closedPipe is a standard output whose reader is gone.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, &pathError{} }

type pathError struct{}

func (*pathError) Error() string { return "write |1: broken pipe" }
func (*pathError) Unwrap() error { return syscall.EPIPE }

func TestShowIntoClosedPipe(t *testing.T) {
	t.Parallel()
	file := runfiletest.File(t, cliSample()...)
	if got := parley(t, State{Stdout: closedPipe{}}, "show", file).want(t, exit.OK); got.stderr != "" {
		t.Error(got.stderr)
	}
}

// TestScoresText checks that a sum of tenths is rounded, and that a whole number keeps all its digits.
func TestScoresText(t *testing.T) {
	t.Parallel()
	tenth := 0.1
	got := scoresText(scoresOf([]world.Score{{Name: "reward", Value: -2*tenth - tenth/1e15}, {Name: "steps", Value: 123456}, {Name: "third", Value: 1.0 / 3}, {Name: "none", Value: math.NaN()}}))
	if got != "reward -0.2, steps 123456, third 0.333333, none NaN" {
		t.Error(got)
	}
}
