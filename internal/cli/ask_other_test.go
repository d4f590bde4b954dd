package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/llm"
)

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
			if f.settings.Spent != n*1000 {
				t.Errorf("spent %v", f.settings.Spent)
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
			if f.settings.Spent != (n+40)*1000 {
				t.Errorf("spent %v, want what the answers in both files cost", f.settings.Spent)
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
	for i, want := range []llm.Money{500, 2500, 2500} {
		f := echo()
		got := parley(t, f.state(), "ask", in, "--out", out, "--budget", "1").want(t, exit.OK)
		if f.settings.Spent != want {
			t.Errorf("run %d: spent %v before, want %v", i, f.settings.Spent, want)
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
		if f.settings.Spent != want+2000 {
			t.Errorf("%q: spent %v, want %v", end, f.settings.Spent, want+2000)
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
