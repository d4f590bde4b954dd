package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/cli/exit"
	"parley/llm"
)

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
		return said("first"), nil
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
		return said("kept"), nil
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
