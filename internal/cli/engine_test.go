package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// These tests run the whole program on the built-in simulated provider: no fake asker, no key, no network.

func TestBuiltIn(t *testing.T) {
	t.Parallel()
	first := parley(t, State{}, "ask", "What is a parley?").want(t, exit.OK)
	if strings.TrimSpace(first.stdout) == "" {
		t.Fatal("no answer")
	}
	if again := parley(t, State{}, "ask", "What is a parley?").want(t, exit.OK); again.stdout != first.stdout {
		t.Errorf("different answers to the same question: %q, %q", first.stdout, again.stdout)
	}
}

func TestBuiltInSchema(t *testing.T) {
	t.Parallel()
	schema := write(t, "s.json", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	got := parley(t, State{}, "ask", "A number?", "--schema", schema).want(t, exit.OK)
	if !strings.HasPrefix(got.stdout, `{"n":`) {
		t.Errorf("%q", got.stdout)
	}
}

func TestBuiltInFile(t *testing.T) {
	t.Parallel()
	in, out := requests(t, 500), filepath.Join(t.TempDir(), "out.jsonl")
	parley(t, State{}, "ask", in, "--out", out).want(t, exit.OK).wantErr(t, "500 answered")
	wantAnswers(t, read(t, out), 500)
	parley(t, State{}, "ask", in, "--out", out).want(t, exit.OK).wantErr(t, "500 kept from before")
}

// TestOtherProviders names providers in request lines: an unknown one or one without a key fails only its own
// line.
func TestOtherProviders(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	in := write(t, "in.jsonl", `{"prompt":"a"}`+"\n"+`{"prompt":"b","model":"nobody/x"}`+"\n"+`{"prompt":"c","model":"anthropic/x"}`+"\n")
	got := parley(t, State{}, "ask", in).want(t, exit.Failed)
	all := records(t, got.stdout)
	if len(all) != 3 || all[0].Response == nil || all[1].Error == nil || all[2].Error == nil {
		t.Fatal(got.stdout)
	}
	if !strings.Contains(all[1].Error.Message, "nobody") || !strings.Contains(all[2].Error.Message, "ANTHROPIC_API_KEY") {
		t.Errorf("%v\n%v", all[1].Error, all[2].Error)
	}
}

// TestBuiltInBudget sets a price for the simulated model and a budget that is too small.
func TestBuiltInBudget(t *testing.T) {
	t.Parallel()
	prices := write(t, "prices.json", `{"as_of":"2026-11-15","models":{"sim/small":{"input":10,"output":10}}}`)
	in, out := requests(t, 200), filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{"ask", in, "--out", out, "--prices", prices, "--max-tokens", "100", "--json", "--quiet"}
	parley(t, State{}, append(args, "--budget", "0.02")...).want(t, exit.Budget).wantErr(t, "budget")
	some := len(records(t, read(t, out)))
	if some == 0 || some == 200 {
		t.Fatalf("%d answered", some)
	}
	var spent float64
	for _, r := range records(t, read(t, out)) {
		spent += r.Response.Metadata.Cost.Dollars()
	}
	if spent > 0.02 {
		t.Errorf("spent %f", spent)
	}
	parley(t, State{}, append(args, "--budget", "100")...).want(t, exit.OK)
	wantAnswers(t, read(t, out), 200)
}

func TestBuiltInCache(t *testing.T) {
	t.Parallel()
	cache, in := t.TempDir(), requests(t, 20)
	first := parley(t, State{}, "ask", in, "--cache", cache).want(t, exit.OK)
	again := parley(t, State{}, "ask", in, "--cache", cache).want(t, exit.OK).wantErr(t, "20 of them from the cache", "0 tokens in")
	for i, r := range records(t, again.stdout) {
		if want := records(t, first.stdout)[i].Response.Text; r.Response.Text != want || !r.Response.Metadata.Cached {
			t.Errorf("record %d: %+v, want %q", i, r.Response, want)
		}
	}
	bad := write(t, "file", "")
	parley(t, State{}, "ask", "x", "--cache", filepath.Join(bad, "sub")).want(t, exit.Misuse)
}
