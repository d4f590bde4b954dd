package cli

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/cli/output"
	"parley/internal/cli/terminal"
	"parley/internal/run/runfile/runfiletest"
)

// folderOf lists the files of a folder.
func folderOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestExportToStdout(t *testing.T) {
	t.Parallel()
	file := runfiletest.File(t, cliSample()...)
	lines := strings.Split(strings.TrimSuffix(parley(t, State{}, "export", file).want(t, exit.OK).stdout, "\n"), "\n")
	var first struct {
		Run, Text string
		Dollars   float64
	}
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != 8 || first.Run != "00ff" || !strings.HasPrefix(first.Text, "First line.") || first.Dollars != 0.012 {
		t.Errorf("%v: %d lines, %+v", err, len(lines), first)
	}
	csv := parley(t, State{}, "export", file, "--table", "scores", "--format", "csv").want(t, exit.OK).stdout
	golden(t, "export-scores-csv", csv)
	if got := parley(t, State{}, "export", file, "--format", "parquet").want(t, exit.OK).stdout; !strings.HasPrefix(got, "PAR1") {
		t.Errorf("%.20q", got)
	}
	parley(t, State{Stdout: closedPipe{}}, "export", file).want(t, exit.OK)
}

// TestExportHostile checks that text from models is harmless on a terminal, and that a pipe gets it unchanged as
// JSON.
func TestExportHostile(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := runfiletest.File(t, hostileRun()...)
	for _, table := range []string{"calls", "episodes", "messages", "scores"} {
		for _, format := range []string{"jsonl", "csv"} {
			got := parley(t, atTerminal(nil), "export", file, "--table", table, "--format", format).want(t, exit.OK).stdout
			if terminal.Safe(got) != got || !strings.Contains(got, `owned`) {
				t.Errorf("%s as %s: a terminal gets %q", table, format, got)
			}
		}
	}
	parley(t, atTerminal(nil), "export", file, "--format", "parquet").want(t, exit.Misuse).wantErr(t, "cannot be shown on a terminal")
	var row struct{ Text string }
	got, _, _ := strings.Cut(parley(t, State{}, "export", file).want(t, exit.OK).stdout, "\n")
	if err := json.Unmarshal([]byte(got), &row); err != nil || row.Text != strings.ToValidUTF8(hostileText, "\ufffd") {
		t.Errorf("%v: %q", err, row.Text)
	}
}

func TestExportToFile(t *testing.T) {
	t.Parallel()
	file := runfiletest.File(t, cliSample()...)
	dir := t.TempDir()
	out := filepath.Join(dir, "calls.csv")
	got := parley(t, State{}, "export", file, "--out", out).want(t, exit.OK)
	if got.stdout != "wrote "+out+": 8 rows of calls\n" || got.stderr != "" {
		t.Errorf("%q %q", got.stdout, got.stderr)
	}
	if whole := read(t, out); whole != parley(t, State{}, "export", file, "--format", "csv").stdout {
		t.Errorf("the file is %q", whole)
	}
	parley(t, State{}, "export", file, "--out", out, "--table", "scores").want(t, exit.Misuse).wantErr(t, "already exists", "--force")
	if !strings.HasPrefix(read(t, out), "run,call,") {
		t.Error("it was written over")
	}
	link := filepath.Join(dir, "link.csv")
	if err := os.Symlink(out, link); err == nil {
		parley(t, State{}, "export", file, "--out", link, "--table", "scores", "--force").want(t, exit.OK)
		if !strings.HasPrefix(read(t, out), "run,episode,") {
			t.Error("the file that a link names was not written")
		}
		if err := os.Remove(link); err != nil {
			t.Error(err)
		}
	}
	parley(t, State{}, "export", file, "--out", out, "--force").want(t, exit.OK)
	if names := folderOf(t, dir); names != "calls.csv" {
		t.Errorf("there are %s", names)
	}
}

func TestExportAll(t *testing.T) {
	t.Parallel()
	file := runfiletest.File(t, cliSample()...)
	dir := filepath.Join(t.TempDir(), "tables")
	parley(t, State{}, "export", file, "--table", "all", "--out", dir).want(t, exit.OK)
	if names := folderOf(t, dir); names != "calls.parquet episodes.parquet labels.parquet messages.parquet scores.parquet" {
		t.Error(names)
	}
	parley(t, State{}, "export", file, "--table", "all", "--out", dir).want(t, exit.Misuse).wantErr(t, "calls.parquet already exists")
	got := parley(t, State{}, "export", file, "--table", "all", "--out", dir, "--format", "jsonl").want(t, exit.OK)
	if n := strings.Count(got.stdout, "wrote "); n != 5 || len(strings.Fields(folderOf(t, dir))) != 10 {
		t.Errorf("%s: %s", got.stdout, folderOf(t, dir))
	}
}

// TestExportInterrupted checks that an interrupted export leaves nothing behind.
func TestExportInterrupted(t *testing.T) {
	t.Parallel()
	file := runfiletest.File(t, crowds(20_000)...)
	dir := t.TempDir()
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	got := parley(t, State{Signals: signals}, "export", file, "--table", "episodes", "--out", filepath.Join(dir, "x.csv"))
	got.want(t, exit.Interrupted).wantErr(t, "interrupted")
	if names := folderOf(t, dir); names != "" {
		t.Errorf("%s is left behind", names)
	}
}

// TestReportInterrupted checks that a signal ends a report and a comparison.
func TestReportInterrupted(t *testing.T) {
	t.Parallel()
	file := runfiletest.File(t, crowds(20_000)...)
	for _, verb := range []string{"report", "compare"} {
		signals := make(chan os.Signal, 1)
		signals <- os.Interrupt
		parley(t, State{Signals: signals}, verb, file).want(t, exit.Interrupted).wantErr(t, "interrupted")
	}
}

// TestExportFails checks that a failed export leaves nothing behind.
func TestExportFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "x.csv")
	full := errors.New("the disk is full")
	err := output.File{Flag: "--out", Path: out}.Write(func(w io.Writer) error {
		_, err := w.Write([]byte("half"))
		return errors.Join(err, full)
	})
	if _, none := os.Stat(out); !errors.Is(err, full) || !errors.Is(none, fs.ErrNotExist) || folderOf(t, dir) != "" {
		t.Errorf("%v: %s", err, folderOf(t, dir))
	}
	err = output.File{Flag: "--out", Path: out}.Write(func(io.Writer) error { return os.WriteFile(out, []byte("other"), 0o600) })
	if err == nil || exit.CodeOf(err) != exit.Misuse || read(t, out) != "other" || folderOf(t, dir) != "x.csv" {
		t.Errorf("%v: the file created in the meantime: %q", err, read(t, out))
	}
}

func TestExportBadInput(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := runfiletest.File(t, cliSample()...)
	dir := t.TempDir()
	there := write(t, "there.csv", "old")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "<files>"},
		{[]string{"nowhere.parley"}, "there is no such run file"},
		{[]string{write(t, "notes.txt", "not a run, only some words")}, "not a run file"},
		{[]string{runfiletest.File(t)}, "holds no run yet"},
		{[]string{file, "--table", "notes"}, `--table: unknown table "notes"; want one of`},
		{[]string{file, "--columns", "seat,txt"}, `--columns: the table calls has no column "txt"; did you mean text? want one of run, call,`},
		{[]string{file, "--columns", "seat", "--table", "all", "--out", dir}, "--columns: only one table"},
		{[]string{file, "--columns", "seat", "--out", filepath.Join(dir, "x.eval")}, "--columns: only one table"},
		{[]string{file, "--format", "xml"}, "want one of jsonl, csv, parquet"},
		{[]string{file, "--out", filepath.Join(dir, "x.txt")}, "unknown format"},
		{[]string{file, "--out", filepath.Join(dir, "x")}, "unknown format"},
		{[]string{file, "--table", "all"}, "name the folder"},
		{[]string{file, "--out", dir, "--format", "csv"}, "is a folder"},
		{[]string{file, "--out", filepath.Join(dir, "no", "x.csv")}, "does not exist"},
		{[]string{file, "--out", os.DevNull, "--format", "csv"}, "not a regular file"},
		{[]string{file, "--out", there}, "already exists"},
		{[]string{file, "--out", there, "--table", "all"}, "--out: "},
		{[]string{file, "--out", file, "--format", "csv", "--force"}, "part of a run file"},
	} {
		got := parley(t, State{}, append([]string{"export"}, c.args...)...).want(t, exit.Misuse).wantErr(t, c.want)
		if got.stdout != "" {
			t.Errorf("%v: stdout %q", c.args, got.stdout)
		}
	}
	if read(t, there) != "old" || folderOf(t, dir) != "" {
		t.Error("something was written")
	}
	parley(t, State{}, "show", file).want(t, exit.OK)
}

// TestExportInspect checks that --format inspect, or the file name alone, writes a zip archive.
func TestExportInspect(t *testing.T) {
	t.Parallel()
	sequential(t)
	file, dir := runfiletest.File(t, cliSample()...), t.TempDir()
	for _, args := range [][]string{{"--format", "inspect", "--out", "a.eval"}, {"--out", "c.eval"}} {
		out := filepath.Join(dir, args[len(args)-1])
		args[len(args)-1] = out
		got := parley(t, State{}, append([]string{"export", file}, args...)...).want(t, exit.OK).stdout
		if got != "wrote "+out+": 2 samples; 2 episodes that have not ended are left out\n" || !strings.HasPrefix(read(t, out), "PK") {
			t.Errorf("%v: %s", args, got)
		}
		parley(t, State{}, append([]string{"export", file}, args...)...).want(t, exit.Misuse) // the file already exists
	}
	if got := parley(t, State{}, "export", file, "--format", "inspect").want(t, exit.OK).wantErr(t, "2 episodes that have not ended are left out").stdout; !strings.HasPrefix(got, "PK") {
		t.Errorf("%.20q", got)
	}
	for _, args := range [][]string{{"--format", "inspect", "--out", filepath.Join(dir, "x.json")}, {"--format", "inspect", "--table", "scores"}, {"--format", "nothing"}} {
		parley(t, State{}, append([]string{"export", file}, args...)...).want(t, exit.Misuse)
	}
}

// TestExportKindTables exports the tables that a kind makes, and lists them in the error about another.
func TestExportKindTables(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	plan, run := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "plan.parley")
	if err := os.WriteFile(plan, []byte("kind: secrets\nagents: {teller: {bot: teller}, keeper: {bot: keeper}}\nlineup: {first: teller, second: keeper}\nepisodes: 2\nparams: {messages: 1, secrets: {first: tiger}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	parley(t, State{}, "run", plan, "--out", run).want(t, exit.OK)
	got := parley(t, State{}, "export", run, "--table", "reveals", "--columns", "episode,agent,whose,secret,form,message", "--format", "csv").want(t, exit.OK)
	if want := "episode,message,agent,whose,secret,form\n0,1,teller,own,tiger,said\n1,1,teller,own,tiger,said\n"; got.stdout != want {
		t.Errorf("got\n%swant\n%s", got.stdout, want)
	}
	parley(t, State{}, "export", run, "--table", "revels").want(t, exit.Misuse).wantErr(t, `unknown table "revels"`, "did you mean reveals?")
	parley(t, State{}, "export", run, "--table", "orders").want(t, exit.Misuse).wantErr(t, "labels, reveals, all")
	parley(t, State{}, "export", run, "--table", "all", "--format", "jsonl", "--out", filepath.Join(dir, "all")).want(t, exit.OK)
	if names := folderOf(t, filepath.Join(dir, "all")); names != "calls.jsonl episodes.jsonl labels.jsonl messages.jsonl reveals.jsonl scores.jsonl" {
		t.Error(names)
	}
}
