package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
	"parley/world/program"
	"parley/world/worldtest"
)

// broken is a kind with one part that panics or returns invalid values.
type broken struct {
	worldtest.Simple[struct{}]
	bad string
}

func newBroken(bad string) world.Kind {
	b := broken{bad: bad, Simple: worldtest.Simple[struct{}]{
		Kind: world.About{Name: "broken", Version: 1, Doc: "One part fails.", Example: "kind: broken\n"}, Sits: []string{"one"},
		Play: func(_ *struct{}, t *world.Table) world.Outcome {
			t.Note("said", "one", "x")
			t.Ask(world.Call{Seat: "one", Label: "talk", Ask: llm.Request{Messages: []llm.Message{llm.User("hi")}}})
			return world.Outcome{Scores: []world.Score{{Seat: "one", Name: "points", Value: 1}}}
		},
	}}
	if bad == "Hidden" || bad == "Closed" {
		return world.Define(brokenRecord{b})
	}
	return world.Define(b)
}

// brokenRecord is a broken kind for records.
type brokenRecord struct{ broken }

func (b brokenRecord) Hidden(world.Note) bool      { b.breaks("Hidden"); return false }
func (b brokenRecord) Closed(world.Outcome) string { b.breaks("Closed"); return "" }
func (b brokenRecord) Names() []string             { return nil }

func (b broken) breaks(part string) {
	if b.bad == part {
		panic("out of \x1b[2Jluck")
	}
}

func (b broken) Exhibitor() exhibit.Exhibitor {
	b.breaks("Exhibitor")
	if b.bad == "nil" {
		return nil
	}
	return brokenExhibitor{b}
}

type brokenExhibitor struct{ broken }

func (b brokenExhibitor) Add(world.Played) { b.breaks("Add") }
func (b brokenExhibitor) Exhibits() []exhibit.Exhibit {
	b.breaks("Exhibits")
	return []exhibit.Exhibit{{Name: "mine", Title: "Mine", Show: exhibit.Grid{Columns: []string{"what"}, Rows: [][]any{{"my own row"}}}}}
}
func (b broken) Story(world.Played, []world.TranscriptEntry) []exhibit.Exhibit {
	b.breaks("Story")
	return nil
}
func (b broken) Colours() map[string][2]string        { b.breaks("Colours"); return nil }
func (b broken) Mark(world.Note) (words, mark string) { b.breaks("Mark"); return "", "" }
func (b broken) Files(_ json.RawMessage, p world.Played, _ []world.Note) map[string]string {
	if p.Episode == 0 {
		b.breaks("Files")
	}
	return map[string]string{"a.md": "a", "1.svg": "<svg/>"}
}

func (b broken) Tables() []part.NoteTable {
	rows := func(p world.Played, _ []world.Note) [][]any {
		if p.Episode == 0 {
			b.breaks("Tables")
		}
		return [][]any{{-1.5, "=1+1"}}
	}
	return []part.NoteTable{{Name: "told", Doc: "a test", Columns: []part.NoteColumn{{Name: "n", Type: part.NoteDouble}, {Name: "text", Type: part.NoteText}}, Rows: rows}}
}
func (b broken) Commands() []program.Command {
	b.breaks("Commands")
	verbs := map[string]program.Verb{"ring": &ring{}, "tags": &badTags{}}
	if verbs[b.bad] == nil {
		return []program.Command{{Name: "break", Doc: "Break\x1b[31m.", Verb: &breaks{}}}
	}
	return []program.Command{{Name: "break", Doc: "Break.", Verb: verbs[b.bad]}}
}

// breaks is a command that panics, while it writes a file if one is named.
type breaks struct {
	Out string `placeholder:"FILE" help:"Write\x1b[31m this."`
}

func (v *breaks) Run(_ context.Context, p *program.Program) error {
	return p.Write(program.Output{Flag: "--out", Path: v.Out}, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		panic("out of luck")
	})
}

// ring embeds itself.
type ring struct {
	Next *ring `embed:""`
}

func (*ring) Run(context.Context, *program.Program) error { return nil }

// badTags has a default that is not a number.
type badTags struct {
	C chan int `default:"x"`
}

func (*badTags) Run(context.Context, *program.Program) error { return nil }

// brokenRun plays two episodes.
func brokenRun(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.parley")
	plan := write(t, "plan.yaml", "kind: broken\nepisodes: 2\nagents: {a: sim/small}\n")
	withBroken(t, "", "run", plan, "--out", file).want(t, exit.OK)
	return file
}

func withBroken(t *testing.T, bad string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Main(t.Context(), State{Args: args, Kinds: []world.Kind{newBroken(bad)}, Stdout: &stdout, Stderr: &stderr})
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// TestReportWithoutAPart checks that a report leaves out a failing part of a kind, and names it.
func TestReportWithoutAPart(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := brokenRun(t)
	for _, c := range []struct {
		bad, says string
		mine      bool // the kind's own table is shown
	}{
		{"", "", true},
		{"nil", "the kind broken: Exhibitor: returned nil", false},
		{"Exhibitor", "the kind broken: Exhibitor panicked: out of ", false},
		{"Add", "the kind broken: Add panicked: out of ", false},
		{"Exhibits", "the kind broken: Exhibits panicked: out of ", false},
		{"Story", "the kind broken: Story panicked: out of ", true},
		{"Colours", "the kind broken: Colours panicked: out of ", true},
		{"Mark", "the kind broken: Mark panicked: out of ", true},
		{"Hidden", "the kind broken: Hidden panicked: out of ", false}, // a record has a table of sessions instead
		{"Closed", "the kind broken: Closed panicked: out of ", false},
	} {
		page := filepath.Join(t.TempDir(), "page.html")
		text := withBroken(t, c.bad, "report", file).want(t, exit.OK).stdout
		withBroken(t, c.bad, "report", file, "--html", page).want(t, exit.OK)
		json := withBroken(t, c.bad, "report", file, "--json").want(t, exit.OK).stdout
		for form, got := range map[string]string{"text": text, "json": json, "page": read(t, page)} {
			if c.says != "" && strings.Count(got, c.says) != 1 || strings.Contains(got, "my own row") != c.mine || !strings.Contains(got, "points") || strings.Contains(got, "\x1b") {
				t.Errorf("%s, %s: %s", c.bad, form, got)
			}
		}
	}
}

// TestShowWithoutAPart checks that show names a part that fails. Without the story of a kind, an episode is told turn by turn.
func TestShowWithoutAPart(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := brokenRun(t)
	for _, part := range []string{"Mark", "Hidden"} {
		withBroken(t, part, "show", file, "--episode", "0").want(t, exit.OK).wantErr(t, "the kind broken: "+part+" panicked: out of ")
	}
	story := withBroken(t, "Story", "show", file, "--episode", "0", "--story").want(t, exit.OK).wantErr(t, "the kind broken: Story panicked: out of ")
	if !strings.Contains(story.stdout, "Turn 0\n") || !strings.Contains(story.stdout, "The end\n") {
		t.Errorf("it is not told: %s", story.stdout)
	}
	plan := write(t, "plan.yaml", "kind: broken\nagents: {a: sim/small}\n")
	for _, part := range []string{"Mark", "Story"} {
		checked := withBroken(t, part, "check", plan, "--act").want(t, exit.OK).wantErr(t, "the kind broken: "+part+" panicked: out of ")
		if !strings.Contains(checked.stdout, "Turn 0\n") {
			t.Errorf("%s: it is not told: %s", part, checked.stdout)
		}
	}
}

// TestExportWithoutAPart checks that export reports the faults of one episode's files and writes the others, and the table of the
// kind if it can be made. No cell may be a formula.
func TestExportWithoutAPart(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := brokenRun(t)
	for _, c := range []struct {
		bad  string
		code int
		says []string
		has  string
	}{
		{"", exit.OK, nil, "episode-0000 episode-0001 told.csv"},
		{"Files", exit.Failed, []string{"episode 0 has no files: the kind broken: Files panicked: out of "}, "episode-0001 told.csv"},
		{"Tables", exit.Broken, []string{"the table told of episode 0: the kind broken: Tables panicked: out of "}, "episode-0000 episode-0001"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		withBroken(t, c.bad, "export", file, "--format", "folder", "--out", out).want(t, c.code).wantErr(t, c.says...)
		if got := folderOf(t, out); got != c.has {
			t.Errorf("%s: %s", c.bad, got)
		}
		if c.bad == "Tables" {
			continue
		}
		if rows := strings.Split(read(t, filepath.Join(out, "told.csv")), "\n"); rows[0] != "run,episode,cell,deal,n,text" || !strings.HasSuffix(rows[1], `,0,,0,-1.5,"'=1+1"`) || !strings.HasSuffix(rows[2], `,1,,1,-1.5,"'=1+1"`) {
			t.Errorf("%s: %q", c.bad, rows)
		}
	}
}

// TestCommandsThatFail checks that a kind with failing commands does not affect other commands.
func TestCommandsThatFail(t *testing.T) {
	t.Parallel()
	sequential(t)
	for bad, says := range map[string]string{
		"Commands": "the kind broken: Commands panicked: out of \\u001b[2Jluck: its commands are left out",
		"ring":     `the kind broken: the command "break": cli.ring embeds itself: its commands are left out`,
		"tags":     `the kind broken: the command "break": `,
	} {
		withBroken(t, bad, "--version").want(t, exit.OK).wantErr(t, says, "its commands are left out")
		withBroken(t, bad, "break").want(t, exit.Misuse)
	}
	out := filepath.Join(t.TempDir(), "out.txt")
	withBroken(t, "", "break", "--out", out).want(t, exit.Broken).wantErr(t, "the kind broken: the command panicked: out of luck")
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestManualOfHostileText checks that escape codes in the texts of a command do not reach a terminal.
func TestManualOfHostileText(t *testing.T) {
	t.Parallel()
	sequential(t)
	for _, args := range [][]string{{"--help"}, {"--complete", "br"}} {
		if got := withBroken(t, "", args...).want(t, exit.OK).stdout; strings.Contains(got, "\x1b") || !strings.Contains(got, "break") {
			t.Errorf("%v: an escape code is in it, or the command is not", args)
		}
	}
}

// TestKindsThatCannotBe checks that kinds with invalid names are refused at the start, by name.
func TestKindsThatCannotBe(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{
		"two kinds are called a":           {"a", "b", "a"},
		`kind 2 of 2: the name ""`:         {"a", ""},
		`kind 1 of 1: the name "My Game":`: {"My Game"},
		`kind 2 of 2: the name "2x":`:      {"a", "2x"},
	} {
		var kinds []world.Kind
		for _, n := range names {
			kinds = append(kinds, world.Kind{About: world.About{Name: n, Version: 1}})
		}
		var stderr bytes.Buffer
		if code := Main(t.Context(), State{Args: []string{"--version"}, Kinds: kinds, Stderr: &stderr}); code != exit.Broken || !strings.Contains(stderr.String(), want) {
			t.Errorf("exit code %d: %s, want %s", code, stderr.String(), want)
		}
	}
}
