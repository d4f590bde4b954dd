package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/llm"
	"parley/llm/llmtest"
)

func TestPrompt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stdin string
		args        []string
		want        string
	}{
		{"words", "", []string{"ask", "how", "are", "you?"}, "echo: how are you?\n"},
		{"a sentence", "", []string{"ask", "what is in a.jsonl"}, "echo: what is in a.jsonl\n"},
		{"stdin", "from a pipe\n", []string{"ask"}, "echo: from a pipe\n"},
		{"dash", "typed\r\n", []string{"ask", "-"}, "echo: typed\n"},
		{"samples", "", []string{"ask", "x", "--samples", "2"}, "echo: x\necho: x\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := echo().state()
			s.Stdin = strings.NewReader(c.stdin)
			got := parley(t, s, c.args...).want(t, exit.OK)
			if got.stdout != c.want || got.stderr != simulatedNotice {
				t.Errorf("stdout %q, want %q; stderr %q", got.stdout, c.want, got.stderr)
			}
		})
	}
}

const simulatedNotice = "parley: answered by sim/small, which is simulated; name a model with --model\n"

// TestSimulatedNotice: who names no model is told that a simulated one answered, if it did.
func TestSimulatedNotice(t *testing.T) {
	t.Parallel()
	own := write(t, "own.jsonl", `{"prompt":"x","model":"ollama/m"}`)
	some := write(t, "some.jsonl", `{"prompt":"x","model":"ollama/m"}`+"\n"+`{"prompt":"y"}`)
	for _, c := range []struct {
		notice bool
		args   []string
	}{
		{true, []string{"x"}},
		{true, []string{some}},
		{true, []string{some, "--out", filepath.Join(t.TempDir(), "out.jsonl"), "--samples", "2"}},
		{false, []string{own}},
		{false, []string{"x", "--model", "sim/small"}},
		{false, []string{"x", "--quiet"}},
		{false, []string{some, "--json"}}, // the summary alone is on standard error
		{false, []string{"x", "--base-url", "http://127.0.0.1:1/v1", "--dialect", "openai"}},
	} {
		got := parley(t, echo().state(), append([]string{"ask"}, c.args...)...).want(t, exit.OK)
		if n := strings.Count(got.stderr, simulatedNotice); n != map[bool]int{true: 1}[c.notice] {
			t.Errorf("%q: told %d times: %s", c.args, n, got.stderr)
		}
	}
}

// TestFilesAreNoPrompts: the name of a file is not asked as a prompt.
func TestFilesAreNoPrompts(t *testing.T) {
	t.Parallel()
	notes := write(t, "my notes.txt", "hello")
	for want, args := range map[string][]string{
		"one file of requests; the records go to the file of --out": {"a.jsonl", "b.jsonl"},
		"put it in quotes":   {"what", "is", "in", "a.jsonl"},
		"ask takes one fil":  {"--jsonl", "a", "b"},
		`model "": write it`: {"--model", "", "hello"},
		"is a file, and not a prompt: ask the requests in it with --jsonl " + terminal.ShellWord(notes): {notes},
	} {
		f := echo()
		parley(t, f.state(), append([]string{"ask"}, args...)...).want(t, exit.Misuse).wantErr(t, want)
		if len(f.asked) > 0 {
			t.Errorf("%q: something was asked", args)
		}
	}
	parley(t, echo().state(), "ask", filepath.Dir(notes)).want(t, exit.OK) // a folder may be a word
}

// TestCommonFailure: the summary says why most requests failed.
func TestCommonFailure(t *testing.T) {
	t.Parallel()
	f := echo()
	f.answer = func(_ context.Context, r *llm.Request) (*llm.Response, error) {
		if r.Messages[0].Text() == "other" {
			return nil, &llm.Error{Kind: llm.KindServer, Message: "oh"}
		}
		return nil, &llm.Error{Kind: llm.KindAuth, Status: 401, Message: "no such key\x1b[2J"}
	}
	in := write(t, "in.jsonl", prompts("1", "other", "2", "3"))
	got := parley(t, f.state(), "ask", in).want(t, exit.Failed).wantErr(t, "parley: failed most often (3): auth (401): no such key")
	if strings.Contains(got.stderr, "\x1b") {
		t.Errorf("%q", got.stderr)
	}
}

func TestPromptJSON(t *testing.T) {
	t.Parallel()
	got := parley(t, echo().state(), "ask", "--json", "a <b> & c").want(t, exit.OK)
	golden(t, "prompt-json", got.stdout)
}

func TestPromptFails(t *testing.T) {
	t.Parallel()
	f := echo()
	f.answer = func(context.Context, *llm.Request) (*llm.Response, error) {
		return nil, &llm.Error{Kind: llm.KindServer, Status: 500, Message: "broken", Provider: "sim", Model: "small"}
	}
	got := parley(t, f.state(), "ask", "x").want(t, exit.Failed).wantErr(t, "sim/small: server (500): broken")
	if got.stdout != "" {
		t.Errorf("stdout %q: a failure is printed as an answer", got.stdout)
	}
}

func TestFlagsReachTheRequest(t *testing.T) {
	t.Parallel()
	f := echo()
	schema := write(t, "s.json", `{"type":"object","properties":{"a":{"type":"integer"}}}`)
	parley(t, f.state(), "ask", "x", "--system", "be kind", "--temperature", "0.5", "--max-tokens", "7", "--effort", "low",
		"--seed", "4", "--samples", "2", "--schema", schema, "--deadline", "30s", "--fallback", "sim/large,ollama/x",
		"--model", "lab/any", "--base-url", "http://127.0.0.1:1/v1", "--header", "X-A=b=c", "--concurrency", "3",
		"--rpm", "10", "--tpm", "20", "--itpm", "30", "--otpm", "40", "--timeout", "5s",
		"--budget", "1.5", "--prices", "p.json", "--cache", "dir", "--retries", "2").want(t, exit.OK)
	if len(f.asked) != 2 {
		t.Fatal("asked", len(f.asked), "times")
	}
	r := f.asked[1]
	if r.Model != "lab/any" || *r.Temperature != 0.5 || r.MaxTokens != 7 || r.Effort != "low" || *r.Seed != 5 || r.Sample != 1 ||
		r.Deadline.String() != "30s" || !slices.Equal(r.Fallbacks, []string{"sim/large", "ollama/x"}) || r.Schema == nil ||
		r.Messages[0].Text() != "be kind" {
		t.Errorf("request %+v", r)
	}
	cfg, set := f.settings, f.settings.Settings
	if set.Budget != llm.Dollars(1.5) || set.Prices != "p.json" || set.Cache != "dir" || set.Retry.Retries != 2 {
		t.Errorf("settings %+v", cfg)
	}
	p := cfg.Providers[0]
	if p.Name != "lab" || p.Dialect != "openai" || p.BaseURL != "http://127.0.0.1:1/v1" || p.KeyEnv != "" || p.Headers["X-A"] != "b=c" ||
		p.Limits.Concurrency != 3 || p.Limits.RPM != 10 || p.Limits.TPM != 20 || p.Limits.ITPM != 30 || p.Limits.OTPM != 40 || p.Timeout.String() != "5s" {
		t.Errorf("provider %+v", p)
	}
	if len(cfg.Providers) != 3 {
		t.Errorf("providers %+v: want those of the fallbacks too", cfg.Providers)
	}
}

func TestCacheComesFromTheEnvironment(t *testing.T) {
	t.Parallel()
	env := func(name string) (string, bool) { return "somewhere", name == "PARLEY_CACHE" }
	for want, args := range map[string][]string{"somewhere": {"ask", "x"}, "": {"ask", "x", "--no-cache"}, "here": {"ask", "x", "--cache", "here"}} {
		f := echo()
		s := f.state()
		s.Env = env
		parley(t, s, args...).want(t, exit.OK)
		if f.settings.Settings.Cache != want {
			t.Errorf("%v: cache %q, want %q", args, f.settings.Settings.Cache, want)
		}
	}
}

// TestUsage checks that invalid input makes no call, ends with code 2, and says what to do.
func TestUsage(t *testing.T) {
	t.Parallel()
	sequential(t)
	noSchema, badSchema := write(t, "s.json", `[1]`), write(t, "s.json", `{"type":"strin"}`)
	requests := write(t, "r.jsonl", `{"prompt":"x"}`+"\n")
	for _, c := range []struct {
		name string
		args []string
		says []string
	}{
		{"unknown verb", []string{"aks"}, []string{"aks"}},
		{"unknown flag", []string{"ask", "x", "--mode", "y"}, []string{"unknown flag --mode"}},
		{"unknown provider", []string{"ask", "x", "--model", "opnai/gpt"}, []string{"opnai", "did you mean openai?", "--base-url"}},
		{"no provider", []string{"ask", "x", "--model", "gpt"}, []string{"provider/model"}},
		{"missing key", []string{"ask", "x", "--model", "openai/gpt"}, []string{"OPENAI_API_KEY"}},
		{"bad base URL", []string{"ask", "x", "--model", "lab/a", "--base-url", "ftp://h"}, []string{"http://"}},
		{"no schema", []string{"ask", "x", "--schema", noSchema}, []string{"--schema", noSchema, "JSON Schema"}},
		{"bad schema", []string{"ask", "x", "--schema", badSchema}, []string{"--schema", badSchema, "type"}},
		{"missing schema", []string{"ask", "x", "--schema", "nowhere.json"}, []string{"--schema", "nowhere.json"}},
		{"effort", []string{"ask", "x", "--effort", "lots"}, []string{"lots", "minimal"}},
		{"temperature", []string{"ask", "x", "--temperature", "9"}, []string{"temperature 9: use 0 to 2"}},
		{"samples", []string{"ask", "x", "--samples", "0"}, []string{"--samples"}},
		{"header", []string{"ask", "x", "--header", "hush"}, []string{"--header", "NAME=VALUE"}},
		{"fallback", []string{"ask", "x", "--fallback", "gpt"}, []string{"--fallback", "provider/model"}},
		{"empty prompt", []string{"ask", " "}, []string{"empty"}},
		{"no prompt", []string{"ask"}, []string{"empty"}},
		{"out with a prompt", []string{"ask", "x", "--out", "y"}, []string{"--out"}},
		{"missing file", []string{"ask", "nowhere.jsonl"}, []string{"nowhere.jsonl"}},
		{"folder", []string{"ask", "--jsonl", "testdata"}, []string{"folder"}},
		{"out is in", []string{"ask", requests, "--out", requests}, []string{"--out names the file of requests"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := echo()
			parley(t, f.state(), c.args...).want(t, exit.Misuse).wantErr(t, c.says...)
			if len(f.asked) > 0 {
				t.Error("a call was made")
			}
		})
	}
}

// TestSecretsStaySecret puts keys in right and wrong places and searches the output for them.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	const secret = "sk_hush_5f3a9c"
	env := func(name string) (string, bool) {
		return secret, name == "OPENAI_API_KEY" || name == "LAB_KEY"
	}
	for _, args := range [][]string{
		{"models"},
		{"models", "--json"},
		{"ask", "x", "--model", "openai/gpt", "--json"},
		{"ask", "x", "--model", "lab/a", "--base-url", "http://h/v1", "--key-env", "LAB_KEY"},
		{"ask", "x", "--model", "openai/gpt", "--key-env", secret},
		{"ask", "x", "--model", "openai/gpt", "--key-env", secret + "!"},
		{"ask", "x", "--header", secret},
		{"ask", "x", "--header", "Authorization=" + secret},
		{"ask", "x", "--model", "lab/a", "--base-url", "http://me:" + secret + "@h/v1"},
	} {
		s := echo().state()
		s.Env = env
		got := parley(t, s, args...)
		if strings.Contains(got.stdout+got.stderr, secret) {
			t.Errorf("%v prints the key:\n%s%s", args, got.stdout, got.stderr)
		}
	}
}

// TestKeysStayAtHome checks that a preset's key is not sent to another address.
func TestKeysStayAtHome(t *testing.T) {
	t.Parallel()
	f := echo()
	s := f.state()
	s.Env = func(name string) (string, bool) { return "k", strings.HasSuffix(name, "_API_KEY") }
	parley(t, s, "ask", "x", "--model", "openai/gpt", "--base-url", "http://elsewhere/v1").want(t, exit.OK)
	if p := f.settings.Providers[0]; p.KeyEnv != "" {
		t.Errorf("the key of %s goes to %s", p.KeyEnv, p.BaseURL)
	}
}

func TestBudgetStops(t *testing.T) {
	t.Parallel()
	f := echo()
	f.answer = func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		if req.Messages[0].Text() >= "q3" {
			return nil, &llm.Error{Kind: llm.KindBudget, Message: "no room"}
		}
		return answered("yes"), nil
	}
	in, out := requests(t, 100), write(t, "out.jsonl", "")
	got := parley(t, f.state(), "ask", in, "--out", out).want(t, exit.Budget).wantErr(t, "budget", "no room")
	if n := len(records(t, read(t, out))); n == 0 || n == 100 || len(f.prompts()) == 100 {
		t.Errorf("%d records, %d asked\n%s", n, len(f.prompts()), got.stderr)
	}
	parley(t, echo().state(), "ask", in, "--out", out).want(t, exit.OK)
	wantAnswers(t, read(t, out), 100)
}

func TestPromptOverBudget(t *testing.T) {
	t.Parallel()
	f := echo()
	f.answer = func(context.Context, *llm.Request) (*llm.Response, error) {
		return nil, &llm.Error{Kind: llm.KindBudget, Message: "no room"}
	}
	parley(t, f.state(), "ask", "x").want(t, exit.Budget).wantErr(t, "no room")
}

// TestTerminalIsSafe checks that text from a model cannot control a terminal, and that a pipe gets it unchanged.
func TestTerminalIsSafe(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b]0;owned\x07 \u009b31m \u202etxt.exe \r\xff done"
	f := echo()
	f.answer = func(context.Context, *llm.Request) (*llm.Response, error) { return answered(hostile), nil }
	if got := parley(t, f.state(), "ask", "x").want(t, exit.OK); got.stdout != hostile+"\n" {
		t.Errorf("a pipe got %q", got.stdout)
	}
	s := f.state()
	s.Terminal = func(any) int { return 80 }
	got := parley(t, s, "ask", "x").want(t, exit.OK)
	if want := `\u001b]0;owned\u0007 \u009b31m \u202etxt.exe \u000d\xff done` + "\n"; got.stdout != want {
		t.Errorf("a terminal got %q", got.stdout)
	}
}

func TestBrokenOutput(t *testing.T) {
	t.Parallel()
	s := echo().state()
	s.Stdout = brokenWriter{}
	parley(t, s, "ask", requests(t, 20)).want(t, exit.Broken).wantErr(t, "standard output: gone")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("gone") }

// requests writes a file of n requests.
func requests(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		line, err := json.Marshal(map[string]any{"id": "r" + terminal.Number(i), "prompt": "q" + terminal.Number(i)})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line)
		b.WriteString("\n")
	}
	return write(t, "requests.jsonl", b.String())
}

// records parses the lines of an output.
func records(t *testing.T, text string) []bulk.Record {
	t.Helper()
	var all []bulk.Record
	for line := range strings.Lines(text) {
		var r bulk.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// wantAnswers checks that an output answers n requests in order.
func wantAnswers(t *testing.T, text string, n int) {
	t.Helper()
	all := records(t, text)
	if len(all) != n {
		t.Fatalf("%d records, want %d", len(all), n)
	}
	for i, r := range all {
		if want := `"r` + terminal.Number(i) + `"`; string(r.ID) != want || r.Response == nil {
			t.Fatalf("record %d has id %s, want %s; response %v", i, r.ID, want, r.Response)
		}
	}
	if _, err := os.Stat("out.jsonl"); err == nil {
		t.Error("a file was left behind")
	}
}

// TestAttach: files are sent with a prompt, and with the lines of a file; what a model cannot take is an error before
// anything is sent.
func TestAttach(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pdf, wav, text := file("a.pdf", llmtest.PDF), file("b.wav", llmtest.WAV), file("c.pdf", "text")
	var s State
	got := parley(t, s, "ask", "--attach", pdf, "--attach", wav, "--attach", pdf, "What is this?").want(t, exit.OK)
	if !strings.HasPrefix(got.stdout, "I was given 2 documents and 1 recording. ") {
		t.Errorf("stdout %q", got.stdout)
	}
	parley(t, s, "ask", "--attach", text, "x").want(t, exit.Misuse).wantErr(t, "c.pdf: its content is no PDF, no picture")
	parley(t, s, "ask", "--attach", folder, "x").want(t, exit.Misuse)
	parley(t, s, "ask", "--attach", filepath.Join(folder, "none.pdf"), "x").want(t, exit.Misuse).wantErr(t, "none.pdf")
	lines := file("in.jsonl", `{"prompt":"x","files":["a.pdf"]}`+"\n"+`{"prompt":"x","files":["c.pdf"]}`+"\n")
	parley(t, s, "ask", "--attach", pdf, lines).want(t, exit.Misuse).wantErr(t, `a line has its own "files"`)
	got = parley(t, s, "ask", lines).want(t, exit.Failed)
	if !strings.Contains(got.stdout, "I was given 1 document and 0 recordings.") || !strings.Contains(got.stdout, "in.jsonl:2: files[0]: ") {
		t.Errorf("stdout %q", got.stdout)
	}
	parley(t, s, "ask", "--model", "lab/m", "--base-url", "http://127.0.0.1:1/v1", "--dialect", "anthropic", "--attach", wav, "x").
		want(t, exit.Failed).wantErr(t, "messages[0].content[1], audio (audio/wav, 46 bytes), cannot be sent to lab/m: the model takes no audio")
}

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

// trigger is a standard error that calls a function when a text is first written to it.
type trigger struct {
	text string
	then func()

	mu   sync.Mutex
	buf  bytes.Buffer
	done bool
}

func (w *trigger) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if !w.done && strings.Contains(w.buf.String(), w.text) {
		w.done = true
		w.then()
	}
	return len(p), nil
}

// deadURL is an address at which no server listens: systems give that port to nobody.
const deadURL = "http://127.0.0.1:1/v1"

// TestAskWaits checks that ask reports at once that a server is missing, and that a signal ends the wait.
func TestAskWaits(t *testing.T) {
	t.Parallel()
	const url = deadURL
	signals := make(chan os.Signal, 1)
	stderr := &trigger{text: "lab is unreachable: connection refused at " + url + "; waits up to 2m0s", then: func() { signals <- os.Interrupt }}
	code := mainWith(t.Context(), State{
		Args:   []string{"ask", "hello", "--model", "lab/any", "--base-url", url},
		Stdout: &bytes.Buffer{}, Stderr: stderr, Signals: signals,
	})
	if code != exit.Interrupted || !stderr.done {
		t.Errorf("exit code %d:\n%s", code, stderr.buf.String())
	}
}

// TestAskDoesNotWait checks that with 0 there are only the usual attempts, and then an error.
func TestAskDoesNotWait(t *testing.T) {
	t.Parallel()
	got := parley(t, State{}, "ask", "hello", "--model", "lab/any", "--base-url", deadURL, "--unreachable", "0", "--retries", "0")
	got.want(t, exit.Failed).wantErr(t, "connection refused")
	if strings.Contains(got.stderr, "waits up to") {
		t.Errorf("it waits:\n%s", got.stderr)
	}
	parley(t, State{}, "ask", "hello", "--unreachable", "-1s").want(t, exit.Misuse).wantErr(t, "--unreachable")
}

// slow returns a fake that takes three seconds for each answer.
func slow() *fake {
	f := echo()
	f.answer = func(context.Context, *llm.Request) (*llm.Response, error) {
		time.Sleep(3 * time.Second)
		return answered("at last"), nil
	}
	return f
}

// TestProgress runs 40 slow requests, eight at a time, in synthetic time.
func TestProgress(t *testing.T) {
	t.Parallel()
	in := requests(t, 40)
	synctest.Test(t, func(t *testing.T) {
		got := parley(t, slow().state(), "ask", "--model", "sim/small", in, "--budget", "2").want(t, exit.OK)
		golden(t, "progress-lines", got.stderr)
	})
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		s := slow().state()
		s.Args, s.Stderr, s.Stdout = []string{"ask", "--model", "sim/small", in}, &stderr, &bytes.Buffer{}
		s.Terminal = func(stream any) int {
			if stream == any(&stderr) {
				return 60
			}
			return 0
		}
		if code := mainWith(t.Context(), s); code != exit.OK {
			t.Fatal(code, stderr.String())
		}
		rows := strings.Split(stderr.String(), terminal.Wipe)
		if len(rows) < 70 || !strings.HasPrefix(rows[len(rows)-1], "40 answered; 120 tokens in, 80 out; ") {
			t.Errorf("%d rows: %q", len(rows), rows[len(rows)-1])
		}
		for _, row := range rows[:len(rows)-1] {
			if len([]rune(row)) >= 60 {
				t.Errorf("row does not fit: %q", row)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if got := parley(t, slow().state(), "ask", "--model", "sim/small", in, "--quiet").want(t, exit.OK); got.stderr != "" {
			t.Errorf("not quiet: %s", got.stderr)
		}
		got := parley(t, slow().state(), "ask", "--model", "sim/small", in, "--quiet", "--json").want(t, exit.OK)
		golden(t, "summary-json", got.stderr)
	})
}

// TestProgressWithoutEscapes checks that a terminal without escapes gets as few plain lines as a file.
func TestProgressWithoutEscapes(t *testing.T) {
	t.Parallel()
	in := requests(t, 40)
	for _, env := range []map[string]string{{"TERM": "dumb"}, {"NO_COLOR": "1"}} {
		synctest.Test(t, func(t *testing.T) {
			s := atTerminal(env)
			s.open = slow().state().open
			got := parley(t, s, "ask", "--model", "sim/small", in).want(t, exit.OK).stderr
			if strings.ContainsAny(got, "\x1b\r") || strings.Count(got, "\n") != 2 || !strings.HasPrefix(got, "24 answered, 82% of the input") {
				t.Errorf("%v: %q", env, got)
			}
		})
	}
}

// TestToolParametersAreBounded checks that the error names the tool whose parameters are nested too deeply.
func TestToolParametersAreBounded(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"not":`, 100) + "{}" + strings.Repeat("}", 100)
	in := write(t, "in.jsonl", `{"prompt":"x","tools":[{"name":"look","parameters":`+deep+"}]}\n"+`{"prompt":"x","schema":`+deep+"}\n")
	got := parley(t, echo().state(), "ask", in)
	for _, want := range []string{
		`tools[0] \"look\": parameters: line 1, byte 449: nested more than 64 levels deep`,
		"schema: line 1, byte 449: nested more than 64 levels deep",
	} {
		if !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("no %q in %s%s", want, got.stdout, got.stderr)
		}
	}
}
