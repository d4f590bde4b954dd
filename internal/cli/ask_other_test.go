package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/app"
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

// TestStoppedBesideOtherAnswers: whatever stops it, the file has only answers to the questions of the input. Those of the input that
// were not reached are among them, and what the others cost still counts.
func TestStoppedBesideOtherAnswers(t *testing.T) {
	t.Parallel()
	const n = 60 // more than are asked at once: the stop comes before the last ones are read
	var before, after, kept, moved []string
	for i := range n {
		before, after = append(before, fmt.Sprint(i)), append(after, fmt.Sprint(i))
		if i%3 == 2 {
			kept = append(kept, fmt.Sprintf("%d echo: %d", i, i))
			continue
		}
		after[i] = "new"
		moved = append(moved, fmt.Sprintf("%d echo: %d", i, i))
	}
	for name, want := range map[string]int{"budget": exit.Budget, "signal": exit.Interrupted} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out.jsonl")
			parley(t, echo().state(), "ask", write(t, "old.jsonl", prompts(before...)), "--out", out).want(t, exit.OK)
			in := write(t, "new.jsonl", prompts(after...))
			f, s := stopped(name)
			got := parley(t, s, "ask", in, "--out", out, "--budget", "1").want(t, want)
			if got := texts(t, out); !slices.Equal(got, kept) {
				t.Errorf("the file has %q, want %q", got, kept)
			}
			if got := texts(t, out+".stale"); !slices.Equal(got, moved) {
				t.Errorf("moved were %q, want %q", got, moved)
			}
			got.wantErr(t, "0 answered, 20 kept from before", "40 answers to requests that are gone or changed were moved to")
			if f.settings.Spent != n*1000 {
				t.Errorf("spent %v", f.settings.Spent)
			}
			f = echo()
			parley(t, f.state(), "ask", in, "--out", out, "--budget", "1").want(t, exit.OK).wantErr(t, "40 answered, 20 kept from before")
			if f.settings.Spent != n*1000 {
				t.Errorf("spent %v, want what the answers in both files cost", f.settings.Spent)
			}
		})
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

// TestFailedBesideOtherAnswers: if it fails before it reads the input, the file is as it was.
func TestFailedBesideOtherAnswers(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	parley(t, echo().state(), "ask", write(t, "old.jsonl", prompts("1", "2")), "--out", out).want(t, exit.OK)
	before := read(t, out)
	s := State{open: func(app.Config) (bulk.Asker, error) { return nil, errors.New("broken") }}
	in := write(t, "new.jsonl", prompts("new 1", "new 2"))
	parley(t, s, "ask", in, "--out", out).want(t, exit.Broken).wantErr(t, "broken")
	if read(t, out) != before {
		t.Errorf("the file has changed: %s", read(t, out))
	}
	if err := os.WriteFile(out+".stale", []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	parley(t, echo().state(), "ask", in, "--out", out, "--budget", "1").want(t, exit.Misuse).wantErr(t, "out.jsonl.stale", "not a record", "move it away")
	if read(t, out) != before {
		t.Errorf("the file has changed: %s", read(t, out))
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
	parley(t, f.state(), "ask", write(t, "in.jsonl", prompts("1")), "--digests").want(t, exit.OK)
}
