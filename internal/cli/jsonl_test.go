package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/internal/kit/files"
	"parley/llm"
)

// TestLines runs a file with all kinds of valid and invalid lines.
func TestLines(t *testing.T) {
	t.Parallel()
	in := write(t, "requests.jsonl", strings.Join([]string{
		"\xef\xbb\xbf" + `{"prompt":"no id"}`,
		`{"id":"a","prompt":"short form","system":"be brief"}`,
		``,
		`{"id":7,"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"long form"}]}],"temperature":0,"max_tokens":5}` + "\r",
		`{"id":"a","prompt":"same id again"}`,
		`{"id":"\u0061","prompt":"same id, spelled otherwise"}`,
		`{"prompt":"unfinished`,
		`not json`,
		`["a list"]`,
		`{"prompt":"x"} {"prompt":"y"}`,
		`{"prompt":"x","max_token":3}`,
		`{"prompt":"x","max_tokens":"many"}`,
		`{"prompt":"x","max_tokens":-1}`,
		`{"prompt":"x","messages":[{"role":"user","content":"y"}]}`,
		`{"id":"empty"}`,
		`{"messages":[{"role":"robot","content":"x"}]}`,
		`{"id":{"no":1},"prompt":"x"}`,
		`{"prompt":"x","model":"gpt"}`,
		`{"prompt":"x","effort":"lots"}`,
		`{"prompt":"x","schema":{"type":"strin"}}`,
		`{"prompt":"x","schema":"no"}`,
		`{"prompt":"` + "\xff" + `"}`,
		`{"id":"schema","prompt":"x","schema":{"name":"n","schema":{"type":"object"}}}`,
		`{"id":"last","prompt":"no newline","model":"ollama/m"}`,
	}, "\n"))
	got := parley(t, echo().state(), "ask", in, "--system", "from the flag").want(t, exit.Failed)
	golden(t, "lines", strings.ReplaceAll(got.stdout, filepath.ToSlash(filepath.Dir(in)), "DIR"))
	if got.wantErr(t, in+":5: ", in+":7: "); !strings.Contains(got.stderr, "parley: and 15 more: the records have the reasons\n"+simulatedNotice+"5 answered, 18 lines rejected; 15 tokens in, 10 out; $0.000005; ") {
		t.Errorf("summary: %s", got.stderr)
	}
}

func TestEmptyInput(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n\r\n  \n"} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		parley(t, echo().state(), "ask", write(t, "r.jsonl", text), "--out", out).want(t, exit.OK)
		if got := read(t, out); got != "" {
			t.Errorf("an empty input gave %q", got)
		}
	}
}

func TestLinesFromStdin(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"ask", "--jsonl", "-"}, {"ask", "--jsonl"}} {
		s := echo().state()
		s.Stdin = strings.NewReader(`{"prompt":"a"}` + "\n" + `{"prompt":"b"}`)
		got := parley(t, s, append(args, "--quiet")...).want(t, exit.OK)
		if all := records(t, got.stdout); len(all) != 2 || all[1].Response.Text != "echo: b" || got.stderr != "" {
			t.Errorf("stdout %s, stderr %s", got.stdout, got.stderr)
		}
	}
}

func TestHugeLine(t *testing.T) {
	t.Parallel()
	lines := files.NewLineReader(strings.NewReader("short\n"+strings.Repeat("x", 200_000)+"\nafter"), 100_000)
	for _, want := range []string{"short", "", "after"} {
		line, err := lines.Next()
		if string(line) != want || (err != nil) != (want == "") {
			t.Fatalf("line %d: %q, %v", lines.Number, line, err)
		}
	}
	j := &bulk.File{Name: "in", Lines: files.NewLineReader(strings.NewReader(strings.Repeat("x", 2<<20)), 1<<20)}
	if _, err := j.Next(); err == nil || err.Error() != "in:1: the line is too long: at most 1 MiB" {
		t.Error(err)
	}
}

// TestOrder answers in reverse order and expects records in the input's order.
func TestOrder(t *testing.T) {
	t.Parallel()
	const n = 8
	f := echo()
	var ready sync.WaitGroup
	ready.Add(n)
	turn := make([]chan struct{}, n+1)
	for i := range turn {
		turn[i] = make(chan struct{})
	}
	close(turn[n])
	f.answer = func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		i := int(req.Order)
		ready.Done()
		ready.Wait()
		<-turn[i+1]
		defer close(turn[i])
		return said("ok"), nil
	}
	got := parley(t, f.state(), "ask", requests(t, n)).want(t, exit.OK)
	wantAnswers(t, got.stdout, n)
}

func TestSamples(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	f := echo()
	parley(t, f.state(), "ask", requests(t, 3), "--samples", "2", "--out", out).want(t, exit.OK)
	var got []string
	for _, r := range records(t, read(t, out)) {
		got = append(got, fmt.Sprintf("%s/%d", r.ID, r.Sample))
	}
	if want := []string{`"r0"/0`, `"r0"/1`, `"r1"/0`, `"r1"/1`, `"r2"/0`, `"r2"/1`}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestOutIsNotOurs checks that a file with other content is left alone.
func TestOutIsNotOurs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"my notes", "my notes\n", `{"id":"a"` + "\n", `{"x":1}`, `{"id":"a","digest":"","response":{}}` + "\nmy notes\n"} {
		out := write(t, "out.jsonl", text)
		parley(t, echo().state(), "ask", requests(t, 2), "--out", out).want(t, exit.Misuse).wantErr(t, "not a record", out)
		if got := read(t, out); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestOutInUse(t *testing.T) {
	t.Parallel()
	out := write(t, "out.jsonl", "")
	o, err := bulk.OpenOut(t.Context(), out, bulk.NewKeyer())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	names := []string{out, filepath.Join(dir, "symbolic.jsonl"), filepath.Join(dir, "hard.jsonl")}
	if err := errors.Join(os.Symlink(out, names[1]), os.Link(out, names[2])); err != nil {
		t.Skip(err)
	}
	for _, name := range names { // the lock belongs to the file, not to its name
		parley(t, echo().state(), "ask", requests(t, 2), "--out", name).want(t, exit.Misuse).wantErr(t, "in use")
	}
	if _, err := o.Finish(true); err != nil {
		t.Fatal(err)
	}
}

// TestOutBehindALink checks that the target of a link is replaced, not the link.
func TestOutBehindALink(t *testing.T) {
	t.Parallel()
	target := write(t, "out.jsonl", "")
	link := filepath.Join(t.TempDir(), "link.jsonl")
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	in := requests(t, 30)
	parley(t, echo().state(), "ask", in, "--out", link).want(t, exit.OK)
	wantAnswers(t, read(t, target), 30)
}
