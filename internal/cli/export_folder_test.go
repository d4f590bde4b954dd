package cli

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/run/runfile/runfiletest"
	"parley/world"
	"parley/world/exhibit"
)

// droughtRun plays the example scenario twice, three turns each.
func droughtRun(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	plan := filepath.Join(dir, "mine.yaml")
	parley(t, State{}, "init", "scenario", "--out", plan).want(t, exit.OK)
	parley(t, State{}, "run", plan, "--set", "episodes=2", "--set", "params.turns=3").want(t, exit.OK)
	return filepath.Join(dir, "mine.parley")
}

// TestExportFolder checks that every episode gets a folder of files, and that the tables of the kind have them all.
func TestExportFolder(t *testing.T) {
	t.Parallel()
	file := droughtRun(t)
	out := filepath.Join(t.TempDir(), "read")
	got := parley(t, State{}, "export", file, "--format", "folder", "--out", out).want(t, exit.OK)
	if !strings.Contains(got.stdout, "rows of metrics\n") || !strings.HasSuffix(got.stdout, " files of 2 episodes\n") || folderOf(t, out) != "episode-0000 episode-0001 events.csv metrics.csv statements.csv" {
		t.Errorf("%s: %s", got.stdout, folderOf(t, out))
	}
	if text := read(t, filepath.Join(out, "episode-0001", "world-state-003.md")); !strings.HasPrefix(text, "# The situation after turn 3\n\n> ") {
		t.Error(text)
	}
	rows, err := csv.NewReader(strings.NewReader(read(t, filepath.Join(out, "metrics.csv")))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range rows[1:] {
		seen[r[1]]++
	}
	if head := strings.Join(rows[0], " "); !strings.HasPrefix(head, "run episode cell deal turn metric actor value") || len(seen) != 2 || seen["0"] != seen["1"] || seen["0"] == 0 {
		t.Errorf("%s: %v", head, seen)
	}
	parley(t, State{}, "export", file, "--format", "folder", "--out", out).want(t, exit.Misuse).wantErr(t, "not empty", "--force")
	parley(t, State{}, "export", file, "--format", "folder", "--out", out, "--force").want(t, exit.OK)
	for want, args := range map[string][]string{
		"--out":                {file},
		"leave out --table":    {file, "--out", filepath.Join(out, "x"), "--table", "scores"},
		"has no files to read": {runfiletest.File(t, cliSample()...), "--out", filepath.Join(out, "x")},
		"no such file":         {file, "--out", filepath.Join(out, "no", "such")},
		"not a directory":      {file, "--out", filepath.Join(out, "metrics.csv")},
	} {
		parley(t, State{}, append([]string{"export", "--format", "folder"}, args...)...).want(t, exit.Misuse).wantErr(t, want)
	}
	if _, err := os.Stat(filepath.Join(out, "x")); err == nil {
		t.Error("a folder was made for nothing")
	}
}

// TestShowStory shows an episode as its kind presents it.
func TestShowStory(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := droughtRun(t)
	got := parley(t, State{}, "show", file, "--episode", "1", "--story").want(t, exit.OK).stdout
	for _, want := range []string{"episode 1 of ", "The start\n", "Turn 3 of 3\n", "  narrator: ", "Town Waterworks: Does: ", "    | Why: ", "It is over: its last turn was played."} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	if json := parley(t, State{}, "show", file, "--episode", "1", "--story", "--json").want(t, exit.OK).stdout; !strings.Contains(json, `{"title":"Turn 3 of 3"`) || !strings.Contains(json, `"lines":[{"who":"`) || strings.Contains(json, "<svg") {
		t.Error(json)
	}
	parley(t, State{}, "show", file, "--story").want(t, exit.Misuse).wantErr(t, "--episode")
	parley(t, State{}, "show", file, "--story", "--episode", "9").want(t, exit.Misuse).wantErr(t, "no episode 9")
}

// TestInitLooksFirst checks that init creates no folder if a file blocks it, and that it names the files it
// writes.
func TestInitLooksFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plan := filepath.Join(dir, "mine.yaml")
	blocked := write(t, "drought", "a file")
	parley(t, State{}, "init", "scenario", "--out", filepath.Join(filepath.Dir(blocked), "mine.yaml")).want(t, exit.Misuse).wantErr(t, "drought exists and is not a folder")
	if err := os.MkdirAll(filepath.Join(dir, "drought"), 0o755); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, "drought", "scenario.yaml")
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	parley(t, State{}, "init", "scenario", "--out", plan).want(t, exit.Misuse).wantErr(t, mine, "--force")
	if got := folderOf(t, dir) + ": " + folderOf(t, filepath.Join(dir, "drought")); got != "drought: scenario.yaml" || read(t, mine) != "mine" {
		t.Errorf("something was made: %s", got)
	}
	got := parley(t, State{}, "init", "scenario", "--out", plan, "--force").want(t, exit.OK).stdout
	if !strings.Contains(got, mine+"\n") || !strings.Contains(got, filepath.Join(dir, "drought", "actors", "hydro.yaml")+"\n") {
		t.Errorf("it does not name what it wrote:\n%s", got)
	}
}

// TestFolderNamesAndTexts checks that files of a hostile run get valid names inside their folder, Markdown
// in which nothing is hidden.
func TestFolderNamesAndTexts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	w := &folderWriter{export: &exportCmd{}, dir: filepath.Join(dir, "out")}
	err := w.episode(world.Played{}, map[string]string{
		"../../up.md": "\x1b[31mred\u202e\r", "con.md": "a", strings.Repeat("long-", 100) + ".md": "b", "/abs.txt": "\x1b",
	})
	if err != nil {
		t.Fatal(err)
	}
	there, err := os.ReadDir(filepath.Join(dir, "out", "episode-0000"))
	if err != nil || len(there) != 4 {
		t.Fatal(there, err)
	}
	for _, e := range there {
		if e.Name() != exhibit.FileName(e.Name()) {
			t.Errorf("%q", e.Name())
		}
	}
	if got := read(t, filepath.Join(dir, "out", "episode-0000", "_.._.._up.md")); got != `\u001b[31mred\u202e\u000d` {
		t.Errorf("%q", got)
	}
	if above, err := os.ReadDir(dir); err != nil || len(above) != 1 {
		t.Error(above, err)
	}
}
