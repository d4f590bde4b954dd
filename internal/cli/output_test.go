package cli

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/cli/output"
)

// TestNobodysFile checks that no command overwrites a file that parley did not write, except with --force.
func TestNobodysFile(t *testing.T) {
	t.Parallel()
	sequential(t)
	run := duel(t, "run.parley")
	const mine = "<!DOCTYPE html>\nmy own notes, on which I worked for a week\n"
	dir := t.TempDir()
	out := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(mine), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for verb, c := range map[string]struct {
		file string
		args []string
	}{
		"report":      {"report.html", []string{"report", run, "--html", "OUT"}},
		"report csv":  {"scores.csv", []string{"report", run, "--csv", dir}},
		"compare":     {"compare.html", []string{"compare", run, "--html", "OUT"}},
		"compare csv": {"comparisons.csv", []string{"compare", run, "--csv", dir}},
		"export":      {"calls.jsonl", []string{"export", run, "--out", "OUT"}},
		"export all":  {"calls.parquet", []string{"export", run, "--table", "all", "--out", dir}},
	} {
		path := out(c.file)
		args := make([]string, len(c.args))
		for i, a := range c.args {
			args[i] = strings.ReplaceAll(a, "OUT", path)
		}
		parley(t, State{}, args...).want(t, exit.Misuse).wantErr(t, path+" already exists", "--force")
		if read(t, path) != mine {
			t.Fatalf("%s wrote over it", verb)
		}
		parley(t, State{}, slices.Concat(args, []string{"--force"})...).want(t, exit.OK)
		if read(t, path) == mine {
			t.Errorf("%s --force wrote nothing", verb)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
			t.Errorf("%s: others can read it now: %v, %v", verb, info.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".parley-*")); len(left) > 0 {
		t.Errorf("%s is left behind", left)
	}
	for verb, args := range map[string][]string{
		"run":     {"run", write(t, "plan.yaml", duelPlan), "--out"},
		"fork":    {"fork", run, "--episode", "0", "--turn", "0", "--out"},
		"gateway": {"gateway", "--upstream", "lab=http://127.0.0.1:1", "--addr", "127.0.0.1:0", "--out"},
		"trainer": {"trainer", write(t, "plan.yaml", rolloutPlan), "--addr", "127.0.0.1:0", "--out"},
		"ask":     {"ask", write(t, "in.jsonl", `{"prompt":"x"}`), "--out"},
	} {
		path := out("x.parley")
		parley(t, State{}, append(args, path)...).want(t, exit.Misuse).wantErr(t, path)
		if read(t, path) != mine {
			t.Errorf("%s wrote over it", verb)
		}
	}
}

// TestOwnFile checks that parley overwrites its own files without a question.
func TestOwnFile(t *testing.T) {
	t.Parallel()
	sequential(t)
	run, dir := duel(t, "run.parley"), t.TempDir()
	page := filepath.Join(dir, "x.html")
	for range 2 {
		parley(t, State{}, "report", run, "--html", page, "--csv", dir).want(t, exit.OK)
	}
	parley(t, State{}, "compare", run, "--html", page).want(t, exit.OK)
	if !output.IsPage([]byte(read(t, page))) {
		t.Error("the page does not say who wrote it")
	}
}

// TestInputsStay checks that inputs are never overwritten, under any name and even with --force.
func TestInputsStay(t *testing.T) {
	t.Parallel()
	sequential(t)
	run := duel(t, "run.parley")
	before := read(t, run)
	dir := t.TempDir()
	link, hard := filepath.Join(dir, "link.html"), filepath.Join(dir, "hard.html")
	if os.Symlink(run, link) != nil || os.Link(run, hard) != nil {
		t.Skip("there are no links here")
	}
	for _, out := range []string{run, link, hard} {
		for _, args := range [][]string{{"report", run, "--html", out}, {"compare", run, "--html", out}, {"export", run, "--format", "csv", "--out", out}} {
			parley(t, State{}, slices.Concat(args, []string{"--force"})...).want(t, exit.Misuse).wantErr(t, "part of a run file")
		}
	}
	if read(t, run) != before {
		t.Error("the run was written over")
	}
	requests := write(t, "in.jsonl", `{"prompt":"x"}`+"\n")
	parley(t, echo().state(), "ask", requests, "--out", requests).want(t, exit.Misuse)
}

// TestLinksInFolders checks that links in a folder that the user named are not followed.
func TestLinksInFolders(t *testing.T) {
	t.Parallel()
	sequential(t)
	run, dir := duel(t, "run.parley"), t.TempDir()
	mine := write(t, "mine.txt", "mine")
	link := filepath.Join(dir, "calls.parquet")
	if err := os.Symlink(mine, link); err != nil {
		t.Skip(err)
	}
	args := []string{"export", run, "--table", "all", "--out", dir}
	parley(t, State{}, args...).want(t, exit.Misuse).wantErr(t, "not a regular file")
	parley(t, State{}, slices.Concat(args, []string{"--force"})...).want(t, exit.OK)
	if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() || read(t, mine) != "mine" {
		t.Errorf("%v, %v: %q", info.Mode(), err, read(t, mine))
	}
	nothing := filepath.Join(dir, "nothing.html")
	if err := os.Symlink(filepath.Join(dir, "gone"), nothing); err != nil {
		t.Fatal(err)
	}
	parley(t, State{}, "report", run, "--html", nothing).want(t, exit.Misuse).wantErr(t, "link to nothing")
}

// TestFolderLinks checks the same for the files of episodes and their tables.
func TestFolderLinks(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	plan := filepath.Join(dir, "scenario.yaml")
	parley(t, State{}, "init", "scenario", "--out", plan).want(t, exit.OK)
	file := filepath.Join(dir, "scenario.parley")
	parley(t, State{}, "run", plan, "--out", file, "--quiet", "--set", "episodes=1").want(t, exit.OK)
	out := filepath.Join(dir, "read")
	args := []string{"export", file, "--format", "folder", "--out", out}
	parley(t, State{}, args...).want(t, exit.OK)
	mine := write(t, "mine.txt", "mine")
	replaced := 0
	err := filepath.WalkDir(out, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		replaced++
		if err := os.Remove(path); err != nil {
			return err
		}
		return os.Symlink(mine, path)
	})
	if err != nil || replaced < 2 {
		t.Skip(err, replaced)
	}
	parley(t, State{}, slices.Concat(args, []string{"--force"})...).want(t, exit.OK)
	if read(t, mine) != "mine" {
		t.Error("a link in the folder was followed")
	}
	// A link to a folder is not followed either.
	elsewhere, episode := t.TempDir(), filepath.Join(out, "episode-0000")
	if err := os.RemoveAll(episode); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, episode); err != nil {
		t.Fatal(err)
	}
	parley(t, State{}, slices.Concat(args, []string{"--force"})...).want(t, exit.Misuse).wantErr(t, "is not a folder")
	if names := folderOf(t, elsewhere); names != "" {
		t.Errorf("%s was written elsewhere", names)
	}
}

// TestStaleFile checks that answers that are no longer asked for do not go into a file that parley did not
// write.
func TestStaleFile(t *testing.T) {
	t.Parallel()
	in, out := write(t, "in.jsonl", `{"prompt":"x"}`+"\n"), filepath.Join(t.TempDir(), "out.jsonl")
	parley(t, echo().state(), "ask", in, "--out", out).want(t, exit.OK)
	if err := os.WriteFile(out+".stale", []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in, []byte(`{"prompt":"y"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := parley(t, echo().state(), "ask", in, "--out", out)
	if got.code == exit.OK || read(t, out+".stale") != "mine\n" || strings.Count(read(t, out), "\n") != 2 {
		t.Errorf("%+v: %q", got, read(t, out+".stale"))
	}
}

// TestOutputMeanwhile checks that a file created during the write is not overwritten.
func TestOutputMeanwhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "x.html")
	err := output.File{Flag: "--html", Path: out, Ours: output.IsPage}.Write(func(w io.Writer) error {
		_, err := io.WriteString(w, "page")
		if err != nil {
			return err
		}
		return os.WriteFile(out, []byte("other"), 0o600)
	})
	if exit.CodeOf(err) != exit.Misuse || read(t, out) != "other" || folderOf(t, dir) != "x.html" {
		t.Errorf("%v: %q", err, read(t, out))
	}
}
