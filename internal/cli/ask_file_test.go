package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/answer"
	"parley/internal/cli/app"
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
	if got.wantErr(t, in+":5: ", in+":7: "); !strings.Contains(got.stderr, "parley: and 15 more: the records have the reasons\n"+simulatedNotice+"5 answered, 18 lines rejected; 15 tokens in, 10 out; $0.000005 spent; ") {
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
		return answered("ok"), nil
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

// prompts returns requests with ids from 0 on, one for each text.
func prompts(texts ...string) string {
	var b strings.Builder
	for i, p := range texts {
		fmt.Fprintf(&b, `{"id":%d,"prompt":%q}`+"\n", i, p)
	}
	return b.String()
}

// texts returns the ids and texts of records.
func texts(t *testing.T, path string) []string {
	t.Helper()
	var out []string
	for _, r := range records(t, read(t, path)) {
		out = append(out, string(r.ID)+" "+r.Response.Text)
	}
	return out
}

// TestStoppedBesideOtherAnswers: a stop moves no answer for which nothing new was asked, as one to the same questions with another flag. None is
// taken for an answer to a question of the input, none is paid for again, and what all of them cost counts.
func TestStoppedBesideOtherAnswers(t *testing.T) {
	t.Parallel()
	const n = 60 // more than are asked at once: the stop comes before the last ones are read
	var before, after []string
	for i := range n {
		before, after = append(before, fmt.Sprint(i)), append(after, fmt.Sprint(i))
		if i%3 != 2 {
			after[i] = "new"
		}
	}
	for name, want := range map[string]int{"budget": exit.Budget, "signal": exit.Interrupted} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out.jsonl")
			old := write(t, "old.jsonl", prompts(before...))
			parley(t, echo().state(), "ask", old, "--out", out).want(t, exit.OK)
			in := write(t, "new.jsonl", prompts(after...))
			all := texts(t, out)
			f, s := stopped(name)
			got := parley(t, s, "ask", in, "--out", out, "--budget", "1").want(t, want).wantErr(t, "0 answered, 20 kept from before", "parley: 40 not asked: run the same command again")
			if got := slices.Sorted(slices.Values(texts(t, out))); !slices.Equal(got, slices.Sorted(slices.Values(all))) {
				t.Errorf("the file has %q, want %q", got, all)
			}
			if _, err := os.Stat(out + ".stale"); err == nil || strings.Contains(got.stderr, "moved") {
				t.Errorf("something was moved: %s", got.stderr)
			}
			if spent := f.settings.Budget.Sums().Spent; spent != n*1000 {
				t.Errorf("spent %v", spent)
			}
			parley(t, echo().state(), "ask", old, "--out", out).want(t, exit.OK).wantErr(t, "0 answered, 60 kept from before")
			if got := texts(t, out); !slices.Equal(got, all) {
				t.Errorf("the file has %q, want %q", got, all)
			}
			if _, s = stopped(name); name == "signal" {
				parley(t, s, "ask", in).want(t, want).wantErr(t, "parley: 60 not asked: with --out FILE, a stopped command")
			}
			f = echo()
			parley(t, f.state(), "ask", in, "--out", out, "--budget", "1").want(t, exit.OK).wantErr(t, "40 answered, 20 kept from before", "40 answers to requests that are gone or changed were moved to")
			f = echo()
			parley(t, f.state(), "ask", in, "--out", out, "--budget", "1").want(t, exit.OK).wantErr(t, "60 kept from before")
			if f.settings.Budget.Sums().Spent != (n+40)*1000 {
				t.Errorf("spent %v, want what the answers in both files cost", f.settings.Budget.Sums().Spent)
			}
		})
	}
}

// TestStoppedAfterNewAnswers: after a stop, an id has one record. The answer to another question is moved if there is a new one.
func TestStoppedAfterNewAnswers(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	parley(t, echo().state(), "ask", write(t, "old.jsonl", prompts("1", "2", "3")), "--out", out).want(t, exit.OK)
	f, answered := echo(), make(chan struct{})
	answer := f.answer
	f.answer = func(ctx context.Context, r *llm.Request) (*llm.Response, error) {
		if r.Messages[0].Text() == "new 2" {
			defer close(answered)
			return answer(ctx, r)
		}
		<-answered
		return nil, &llm.Error{Kind: llm.KindBudget, Message: "no room"}
	}
	in := write(t, "new.jsonl", prompts("new 1", "new 2", "3"))
	parley(t, f.state(), "ask", in, "--out", out).want(t, exit.Budget).wantErr(t, "1 answers to requests that are gone or changed were moved to")
	if got, want := slices.Sorted(slices.Values(texts(t, out))), []string{"0 echo: 1", "1 echo: new 2", "2 echo: 3"}; !slices.Equal(got, want) {
		t.Errorf("the file has %q, want %q", got, want)
	}
	if got := texts(t, out+".stale"); !slices.Equal(got, []string{"1 echo: 2"}) {
		t.Errorf("moved were %q", got)
	}
}

// stopped returns a State that answers nothing: the budget is used up, or a signal stops it.
func stopped(how string) (*fake, State) {
	f, signals := echo(), make(chan os.Signal, 100)
	f.answer = func(context.Context, *llm.Request) (*llm.Response, error) {
		if how == "budget" {
			return nil, &llm.Error{Kind: llm.KindBudget, Message: "no room"}
		}
		signals <- os.Interrupt
		<-f.drained
		return nil, &llm.Error{Kind: llm.KindCanceled, Message: "stopping"}
	}
	s := f.state()
	s.Signals = signals
	return f, s
}

// costlyFailure is a record of a failure that cost something, as a failed answer does.
const costlyFailure = `{"id":0,"digest":"00000000000000000000000000000000","error":{"kind":"malformed","message":"x","metadata":{"cost":0.0000005}}}` + "\n"

// TestFailedBesideOtherAnswers: if it fails before it reads the input, the file is as it was, with its failures.
func TestFailedBesideOtherAnswers(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	parley(t, echo().state(), "ask", write(t, "old.jsonl", prompts("1", "2")), "--out", out).want(t, exit.OK)
	before := costlyFailure + read(t, out)
	put(t, out, before)
	s := State{open: func(app.Config) (bulk.Asker, error) { return nil, errors.New("broken") }}
	in := write(t, "new.jsonl", prompts("new 1", "new 2"))
	parley(t, s, "ask", in, "--out", out).want(t, exit.Broken).wantErr(t, "broken")
	if read(t, out) != before {
		t.Errorf("the file has changed: %s", read(t, out))
	}
	put(t, out+".stale", costlyFailure+"mine\n")
	parley(t, echo().state(), "ask", in, "--out", out, "--budget", "1").want(t, exit.Misuse).wantErr(t, "out.jsonl.stale:2:", "not a record", "move the file away", "forgets what its records cost")
	if read(t, out) != before {
		t.Errorf("the file has changed: %s", read(t, out))
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCostOfFailures: what failures cost counts in every later run.
func TestCostOfFailures(t *testing.T) {
	t.Parallel()
	in, out := write(t, "in.jsonl", prompts("1", "2")), write(t, "out.jsonl", costlyFailure)
	const want = llm.Money(2500) // of the failure that the file begins with, and of two answers
	for i := range 3 {
		f := echo()
		got := parley(t, f.state(), "ask", in, "--out", out, "--budget", "1").want(t, exit.OK)
		if f.settings.Budget.Sums().Spent != want {
			t.Errorf("run %d: spent %v, earlier runs included, want %v", i, f.settings.Budget.Sums().Spent, want)
		}
		if strings.Contains(got.stderr, "moved") {
			t.Errorf("run %d: a failure is called an answer: %s", i, got.stderr)
		}
	}
	if got := texts(t, out); !slices.Equal(got, []string{"0 echo: 1", "1 echo: 2"}) {
		t.Errorf("the file has %q", got)
	}
}

// TestCutOffStaleFile: a kill can leave a record behind that is cut off. It is removed, and the next one begins on its own line. The file
// is as private as the file of records.
func TestCutOffStaleFile(t *testing.T) {
	t.Parallel()
	whole := strings.TrimSuffix(costlyFailure, "\n")
	for end, want := range map[string]llm.Money{"": 500, "\n": 500, "\n" + whole[:40]: 500, "\n" + whole: 1000} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		put(t, out, parley(t, echo().state(), "ask", write(t, "old.jsonl", prompts("1", "2"))).want(t, exit.OK).stdout)
		put(t, out+".stale", whole+end)
		f := echo()
		parley(t, f.state(), "ask", write(t, "new.jsonl", prompts("1")), "--out", out, "--budget", "1").want(t, exit.OK).wantErr(t, "1 answers")
		if f.settings.Budget.Sums().Spent != want+2000 {
			t.Errorf("%q: spent %v, want %v", end, f.settings.Budget.Sums().Spent, want+2000)
		}
		if lines := strings.Split(read(t, out+".stale"), "\n"); len(lines) != int(want/500)+2 || lines[0] != whole || !strings.Contains(lines[len(lines)-2], "echo: 2") {
			t.Errorf("%q: the file has %q", end, lines)
		}
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	put(t, out, costlyFailure)
	parley(t, echo().state(), "ask", write(t, "in.jsonl", prompts("1")), "--out", out).want(t, exit.OK)
	if info, err := os.Stat(out + ".stale"); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("%v, %v", info, err)
	}
}

// TestFailedRewrite: if the file cannot be put in order, nothing is moved: the next run would move it, and count its cost, again.
func TestFailedRewrite(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed")
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	put(t, out, parley(t, echo().state(), "ask", write(t, "old.jsonl", prompts("1", "2"))).want(t, exit.OK).stdout)
	f := echo()
	answer := f.answer
	f.answer = func(ctx context.Context, r *llm.Request) (*llm.Response, error) {
		if err := errors.Join(os.Remove(out), os.Mkdir(out, 0o700)); err != nil { // no file replaces a folder
			t.Error(err)
		}
		return answer(ctx, r)
	}
	parley(t, f.state(), "ask", write(t, "new.jsonl", prompts("new")), "--out", out).want(t, exit.Broken).wantErr(t, "put in order")
	if left := read(t, out+".stale"); left != "" {
		t.Errorf("moved were %q", left)
	}
}

// TestAnswersToBothQuestions: a file may have an answer to each of two questions with the same id, as after a kill. Neither is paid
// for again.
func TestAnswersToBothQuestions(t *testing.T) {
	t.Parallel()
	old, changed := write(t, "old.jsonl", prompts("1", "2")), write(t, "new.jsonl", prompts("new 1", "2"))
	var parts []string
	for _, in := range []string{old, changed} {
		parts = append(parts, parley(t, echo().state(), "ask", in).want(t, exit.OK).stdout)
	}
	for in, want := range map[string]string{old: `0 echo: 1`, changed: `0 echo: new 1`} {
		for _, both := range []string{parts[0] + parts[1], parts[1] + parts[0]} {
			f, out := echo(), write(t, "out.jsonl", both)
			parley(t, f.state(), "ask", in, "--out", out).want(t, exit.OK).wantErr(t, "2 kept from before", "2 answers to requests that are gone or changed")
			if got := texts(t, out); !slices.Equal(got, []string{want, `1 echo: 2`}) || len(f.prompts()) != 0 {
				t.Errorf("the file has %q, want %q; asked again: %v", got, want, f.prompts())
			}
		}
	}
}

// TestDigests: the digest of a request is that of its record, and nothing is asked. A line that is not a request is a record.
func TestDigests(t *testing.T) {
	t.Parallel()
	in := write(t, "in.jsonl", prompts("1", "2")+"broken\n")
	flags := []string{"ask", in, "--samples", "2", "--seed", "4", "--system", "Be brief."}
	f := echo()
	listed := records(t, parley(t, f.state(), append(flags, "--digests")...).want(t, exit.Failed).stdout)
	if len(f.prompts()) != 0 || len(listed) != 5 {
		t.Fatalf("asked %v, listed %+v", f.prompts(), listed)
	}
	for i, r := range records(t, parley(t, f.state(), flags...).want(t, exit.Failed).stdout) {
		got := listed[i]
		if string(got.ID) != string(r.ID) || got.Sample != r.Sample || got.Digest != r.Digest || got.Line != r.Line || (got.Error != nil) != (r.Line == 3) || got.Response != nil {
			t.Errorf("listed %+v, and the record is %+v", got, r)
		}
	}
	parley(t, f.state(), "ask", in, "--digests", "--out", "x.jsonl").want(t, exit.Misuse).wantErr(t, "--digests writes nothing")
	parley(t, f.state(), "ask", "hello", "--digests").want(t, exit.Misuse).wantErr(t, "file of requests")
	parley(t, f.state(), "ask", write(t, "in.jsonl", prompts("1")), "--digests", "--model", "openai/gpt-5-mini").want(t, exit.OK) // without a key
}

// TestResumeAfterAKill truncates the output at many positions, as a kill does, and checks that the next run asks
// exactly what is missing.
func TestResumeAfterAKill(t *testing.T) {
	t.Parallel()
	in, out := requests(t, 20), write(t, "out.jsonl", "")
	parley(t, echo().state(), "ask", in, "--out", out).want(t, exit.OK)
	whole := read(t, out)
	wantAnswers(t, whole, 20)
	for _, cut := range []int{0, 1, 5, 6, 40, len(whole) / 2, len(whole) - 1, len(whole)} {
		torn := write(t, "torn.jsonl", whole[:cut])
		kept := strings.Count(whole[:cut], "\n")
		if cut == len(whole)-1 {
			kept = 20 // the record is complete: only its newline is missing
		}
		f := echo()
		parley(t, f.state(), "ask", in, "--out", torn).want(t, exit.OK)
		if asked := len(f.prompts()); asked != 20-kept {
			t.Errorf("cut at %d: asked %d, want %d", cut, asked, 20-kept)
		}
		if got := read(t, torn); got != whole {
			t.Errorf("cut at %d: differs from the uninterrupted run:\n%s", cut, got)
		}
	}
}

// TestRerun checks that only failed, changed and new requests are asked again, and that the output is in the
// input's order.
func TestRerun(t *testing.T) {
	t.Parallel()
	line := func(id, prompt string) string { return `{"id":"` + id + `","prompt":"` + prompt + `"}` + "\n" }
	in := write(t, "in.jsonl", line("a", "1")+line("b", "2")+"broken\n"+line("c", "3")+line("d", "4"))
	out := filepath.Join(t.TempDir(), "out.jsonl")
	f := echo()
	f.answer = func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		if req.Messages[0].Text() == "2" {
			return nil, &llm.Error{Kind: llm.KindTimeout, Message: "late"}
		}
		return answered("first"), nil
	}
	parley(t, f.state(), "ask", in, "--out", out).want(t, exit.Failed)

	if err := os.WriteFile(in, []byte(line("new", "0")+line("d", "4")+line("c", "changed")+line("b", "2")), 0o600); err != nil {
		t.Fatal(err)
	}
	f = echo()
	got := parley(t, f.state(), "ask", in, "--out", out).want(t, exit.OK)
	asked := f.prompts()
	slices.Sort(asked)
	if want := []string{"0", "2", "changed"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
	var order []string
	for _, r := range records(t, read(t, out)) {
		order = append(order, string(r.ID)+" "+r.Response.Text)
	}
	if want := []string{`"new" echo: 0`, `"d" first`, `"c" echo: changed`, `"b" echo: 2`}; !slices.Equal(order, want) {
		t.Errorf("out has %q, want %q", order, want)
	}
	got.wantErr(t, "2 answers to requests that are gone or changed were moved to", out+".stale")
	if stale := records(t, read(t, out+".stale")); len(stale) != 2 || string(stale[0].ID) != `"a"` || stale[1].Response.Text != "first" {
		t.Errorf("stale: %+v", stale)
	}
}

// TestRerunOfADoneFile checks that a complete file is left alone and nothing is asked.
func TestRerunOfADoneFile(t *testing.T) {
	t.Parallel()
	in, out := requests(t, 5), write(t, "out.jsonl", "")
	parley(t, echo().state(), "ask", in, "--out", out).want(t, exit.OK)
	before, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	f := echo()
	parley(t, f.state(), "ask", in, "--out", out).want(t, exit.OK).wantErr(t, "0 answered, 5 kept from before")
	after, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.prompts()) != 0 || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Error("the file was written again, or something was asked")
	}
}

// TestDrain sends a signal while calls are in flight: they are finished and kept, nothing else begins, and the
// next run asks the rest.
func TestDrain(t *testing.T) {
	t.Parallel()
	in, out := requests(t, 100), write(t, "out.jsonl", "")
	f := echo()
	signals := make(chan os.Signal, 2)
	f.answer = func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		if req.Messages[0].Text() == "q5" {
			signals <- os.Interrupt
		}
		if req.Order >= 5 {
			<-f.drained
		}
		return answered("kept"), nil
	}
	s := f.state()
	s.Signals = signals
	parley(t, s, "ask", in, "--out", out).want(t, exit.Interrupted).wantErr(t, "finishing the calls in flight")
	asked := len(f.prompts())
	if kept := len(records(t, read(t, out))); kept == 0 || kept != asked || asked == 100 {
		t.Fatalf("asked %d, kept %d", asked, kept)
	}
	f = echo()
	parley(t, f.state(), "ask", in, "--out", out).want(t, exit.OK)
	if len(f.prompts()) != 100-asked {
		t.Errorf("the next run asked %d, want %d", len(f.prompts()), 100-asked)
	}
	wantAnswers(t, read(t, out), 100)
}

// TestAbort sends two signals: the calls are canceled, and the cause says why. A second signal that follows at
// once, as from timeout(1), counts as the first.
func TestAbort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := echo()
		signals := make(chan os.Signal, 2)
		f.answer = func(ctx context.Context, _ *llm.Request) (*llm.Response, error) {
			signals <- syscall.SIGTERM
			<-f.drained
			time.Sleep(oneSignal / 20)
			signals <- syscall.SIGTERM
			synctest.Wait()
			if ctx.Err() != nil {
				t.Error("one signal, sent twice, aborts")
			}
			time.Sleep(oneSignal)
			signals <- os.Interrupt
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), exit.ErrAborted) {
				t.Error("cause:", context.Cause(ctx))
			}
			return nil, &llm.Error{Kind: llm.KindCanceled, Message: "gone"}
		}
		s := f.state()
		s.Signals = signals
		got := parley(t, s, "ask", "x").want(t, exit.Interrupted)
		if got.stdout != "" {
			t.Errorf("stdout %q", got.stdout)
		}
	})
}

// TestDrainAtAQuietInput stops while standard input is silent.
func TestDrainAtAQuietInput(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"ask", "-"}, {"ask", "--jsonl", "-"}} {
		r, w := io.Pipe()
		signals := make(chan os.Signal, 1)
		signals <- os.Interrupt
		s := echo().state()
		s.Stdin, s.Signals = r, signals
		parley(t, s, args...).want(t, exit.Interrupted)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// endless returns n request lines.
type endless struct {
	n, at int
	buf   bytes.Buffer
}

func (e *endless) Read(p []byte) (int, error) {
	for e.buf.Len() < len(p) && e.at < e.n {
		fmt.Fprintf(&e.buf, `{"id":"r%d","prompt":"%s"}`+"\n", e.at, strings.Repeat("why? ", 200))
		e.at++
	}
	return e.buf.Read(p)
}

// instant answers every request at once, one at a time.
type instant struct{ fake }

func (*instant) Each(_ context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) int {
	i := 0
	for range reqs {
		done(i, llm.Result{Response: answered(strings.Repeat("because ", 100))})
		i++
	}
	return i
}

// TestMemoryStaysFlat asks many requests with long prompts and answers, and checks that only a few bytes per
// request stay in memory.
func TestMemoryStaysFlat(t *testing.T) {
	n := 15_000
	if testing.Short() {
		n = 5_000
	}
	ids := bulk.NewKeyer()
	out, err := bulk.OpenOut(t.Context(), filepath.Join(t.TempDir(), "out.jsonl"), ids)
	if err != nil {
		t.Fatal(err)
	}
	for name, sink := range map[string]bulk.Sink{"file": out, "stream": bulk.NewOrdered(io.Discard, bulk.Window)} {
		before := heap()
		m := &bulk.Asking{
			Source: &bulk.File{Name: "in", Lines: files.NewLineReader(&endless{n: n}, bulk.MaxLine), Defs: bulk.Defaults{
				Req: llm.Request{Model: "sim/small"}, Schemas: &answer.Compiler{},
			}},
			Sink: sink, Samples: 1, Keys: ids, Gate: exit.NewGate(), Tally: &bulk.Tally{},
		}
		m.Run(t.Context(), &instant{fake: fake{drained: make(chan struct{})}})
		used := heap() - before
		if got := m.Tally.Now().Answered; got != n {
			t.Fatal(name, "answered", got)
		}
		const perRequest, fixed = 64, 1 << 20
		if limit := int64(n*perRequest + fixed); used > limit {
			t.Errorf("%s: %d bytes are left of %d requests, at most %d", name, used, n, limit)
		}
		runtime.KeepAlive(m)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
