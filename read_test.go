package parley_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/internal/cli"
	"parley/journal"
	"parley/llm"
	"parley/stats"
	"parley/world"
	"parley/worlds"
)

// recorded plays an example into a run file.
func recorded(t *testing.T, plan string, sets ...string) string {
	t.Helper()
	file := runFile(t)
	play(t, parley.Run{PlanFile: filepath.Join("examples", plan), Set: sets, File: file})
	return file
}

// open opens a run file for a test.
func open(t *testing.T, file string) *parley.Reader {
	t.Helper()
	r, err := parley.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestReadEstimates wants the numbers of parley report, whatever they are grouped by.
func TestReadEstimates(t *testing.T) {
	t.Parallel()
	file := recorded(t, "secrets-modes.yaml", "plan.matrix.repeat=4")
	var out bytes.Buffer
	if code := command(t, &out, "report", file, "--json"); code != 0 {
		t.Fatalf("report: %d", code)
	}
	var report struct {
		Tables []struct {
			Name string
			Rows []map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, table := range report.Tables {
		by, ok := map[string][]parley.Part{
			"scores": {parley.ByAgent, parley.ByModel}, "scores-by-model": {parley.ByModel},
			"scores-by-seat": {parley.ByAgent, parley.BySeat}, "scores-by-cell": {parley.ByCell, parley.ByAgent, parley.BySeat},
		}[table.Name]
		if !ok {
			continue
		}
		got := map[string]stats.Quantity{}
		estimates, err := open(t, file).Estimates(t.Context(), by...)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range estimates {
			got[strings.Join([]string{e.Score, e.Cell, e.Agent, e.Model, e.Seat}, "|")] = e.Mean
		}
		if table.Name == "scores" { // it also has a row for all agents
			all, err := open(t, file).Estimates(t.Context(), []parley.Part{}...)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range all {
				if key := e.Score + "||||"; got[key].Method == "" {
					got[key] = e.Mean
				}
			}
		}
		for _, row := range table.Rows {
			part := func(name string) (s string) {
				_ = json.Unmarshal(row[name], &s) // not every table has every part
				return strings.TrimPrefix(s, "(all)")
			}
			key := strings.Join([]string{part("score"), part("cell"), part("agent"), part("model"), part("seat")}, "|")
			b, err := json.Marshal(got[key])
			if _, there := got[key]; !there || err != nil || string(b) != string(row["mean"]) {
				t.Errorf("%s: %s: %s, want %s", table.Name, key, b, row["mean"])
			}
			compared++
		}
		if len(got) != len(table.Rows) {
			t.Errorf("%s: %d estimates, want %d", table.Name, len(got), len(table.Rows))
		}
	}
	if compared < 20 {
		t.Errorf("only %d numbers compared", compared)
	}
}

// TestReadAll reads episodes, transcripts and calls, and wants them to fit together and to be those that were played.
func TestReadAll(t *testing.T) {
	t.Parallel()
	hostile := "\x1b]0;owned\x07 <script>\u202e"
	r := duel(func(context.Context, *llm.Request) (*llm.Response, error) { return &llm.Response{Text: hostile}, nil }, 3)
	r.File = runFile(t)
	result := play(t, r)
	run := open(t, r.File)
	n, calls := 0, 0
	for episode, err := range run.Episodes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := episode.Outcome.Data.(json.RawMessage); !ok || !json.Valid(data) || episode.State != parley.Ended || len(episode.Outcome.Scores) == 0 || episode.Spec.Lineup["first"] != "one" {
			t.Errorf("%+v", episode)
		}
		entries, err := run.Transcript(t.Context(), episode.Number)
		if err != nil {
			t.Fatal(err)
		}
		replies := slices.DeleteFunc(entries, func(one world.TranscriptEntry) bool { return one.Note != nil })
		i := 0
		for call, err := range run.Calls(t.Context(), episode.Number) {
			if err != nil {
				t.Fatal(err)
			}
			if call.Episode != n || call.Request == nil || call.Response.Text != hostile || replies[i].Reply.Text != hostile || call.At.IsZero() {
				t.Errorf("%+v", call)
			}
			i++
		}
		calls += i
		n++
	}
	all := 0
	for _, err := range run.Calls(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all++
	}
	if n != 3 || calls != result.Calls || all != result.Calls {
		t.Errorf("%d episodes, %d and %d calls, want %+v", n, calls, all, result)
	}
	for range run.Calls(t.Context()) { // a loop may stop early
		break
	}
	for range run.Episodes(t.Context()) {
		break
	}
}

// TestReadMeanwhile reads a run while it is played.
func TestReadMeanwhile(t *testing.T) {
	t.Parallel()
	r := duel(words, 10)
	r.File, r.Set = runFile(t), []string{"limits.concurrency=1"}
	seen := map[parley.EpisodeState]bool{}
	read := false
	r.Progress = func(p parley.Progress) {
		if read || p.Ended < 3 {
			return
		}
		read = true
		run, err := parley.Open(r.File)
		if err != nil {
			t.Error(err)
			return
		}
		for episode, err := range run.Episodes(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			seen[episode.State] = true
		}
		if _, err := run.Estimates(t.Context(), parley.ByAgent); err != nil {
			t.Error(err)
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}
	play(t, r)
	if !seen[parley.Ended] || !seen[parley.Waiting] && !seen[parley.Playing] {
		t.Errorf("seen: %v", slices.Collect(maps.Keys(seen)))
	}
}

// TestReadSeveral reads runs as one, where they are parts of one experiment.
func TestReadSeveral(t *testing.T) {
	t.Parallel()
	one, two := recorded(t, "secrets.yaml", "plan.matrix.repeat=5"), recorded(t, "secrets.yaml", "plan.matrix.repeat=5", "seed=9")
	both, err := parley.OpenAll(t.Context(), []string{one, two, one})
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	estimates, err := both.Estimates(t.Context(), parley.ByAgent)
	if err != nil || len(estimates) == 0 || estimates[0].Episodes != 20 {
		t.Errorf("%+v, %v", estimates, err)
	}
	other := recorded(t, "secrets.yaml", "plan.matrix.repeat=1", "params.messages=1")
	for _, files := range [][]string{{one, other}, {one, filepath.Join(t.TempDir(), "none.parley")}, nil} {
		if _, err := parley.OpenAll(t.Context(), files); err == nil {
			t.Errorf("%d files: no error", len(files))
		}
	}
}

// TestReadBroken wants clear errors for what is not a whole run.
func TestReadBroken(t *testing.T) {
	t.Parallel()
	file := recorded(t, "secrets.yaml", "plan.matrix.repeat=10")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	damaged := bytes.Clone(whole)
	for i := len(damaged) / 4; i < len(damaged)/4*3; i++ {
		damaged[i] ^= 0x55
	}
	if err := readAll(t.Context(), write("damaged.parley", damaged)); !errors.Is(err, parley.ErrDamaged) {
		t.Errorf("damaged: %v", err)
	}
	if err := readAll(t.Context(), write("foreign.parley", []byte(strings.Repeat("x", 5000)))); !errors.Is(err, parley.ErrNotRunFile) {
		t.Errorf("foreign: %v", err)
	}
	if err := readAll(t.Context(), filepath.Join(dir, "none.parley")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not there: %v", err)
	}
	run := open(t, file)
	if _, err := run.Estimates(t.Context(), "mood"); err == nil || !strings.Contains(err.Error(), "want one of cell") {
		t.Errorf("a part that is not known: %v", err)
	}
	for _, n := range []int{-1, 20, int(^uint(0) >> 1), -int(^uint(0)>>1) - 1} {
		if _, err := run.Transcript(t.Context(), n); err == nil {
			t.Errorf("episode %d: no error", n)
		}
		for _, err := range run.Calls(t.Context(), n) {
			if err == nil {
				t.Errorf("episode %d has calls", n)
			}
		}
	}
	empty := parley.Read(&journal.Memory{})
	for _, err := range empty.Episodes(t.Context()) {
		if err == nil || !strings.Contains(err.Error(), "holds no run yet") {
			t.Errorf("empty: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := readAll(ctx, file); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// readAll reads everything of a file.
func readAll(ctx context.Context, file string) error {
	run, err := parley.Open(file)
	if err != nil {
		return err
	}
	defer run.Close()
	for _, err := range run.Episodes(ctx) {
		if err != nil {
			return err
		}
	}
	for _, err := range run.Calls(ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestReadCompare wants what parley compare says.
func TestReadCompare(t *testing.T) {
	t.Parallel()
	file := recorded(t, "secrets.yaml")
	var out bytes.Buffer
	if code := command(t, &out, "compare", file, "--by", "agent", "--json"); code != 0 {
		t.Fatalf("compare: %d", code)
	}
	run := open(t, file)
	all, err := run.Compare(t.Context(), parley.ByAgent)
	if err != nil || len(all) == 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, c := range all {
		p, err := json.Marshal(c.Adjusted)
		if err != nil || !c.Paired || c.A == c.B || !bytes.Contains(out.Bytes(), p) {
			t.Errorf("%+v, which is not what compare says: %s", c, out.String())
		}
	}
	if _, err := run.Compare(t.Context(), "mood"); err == nil {
		t.Error("by mood: no error")
	}
}

// command runs a command line.
func command(t *testing.T, out io.Writer, args ...string) int {
	t.Helper()
	return cli.Main(t.Context(), cli.State{
		Args: args, Kinds: worlds.Standard(), Env: func(string) (string, bool) { return "", false },
		Stdin: strings.NewReader(""), Stdout: out, Stderr: io.Discard, Terminal: func(any) int { return 0 },
	})
}
