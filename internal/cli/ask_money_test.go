package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/cli/exit"
	"parley/llm"
)

// answering serves chat completions with this text and usage, and records the requests.
func answering(t *testing.T, text, usage string) (url string, bodies *[]string) {
	t.Helper()
	var mu sync.Mutex
	bodies = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		*bodies = append(*bodies, string(b))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"model":"any","choices":[{"message":{"content":%q},"finish_reason":"stop"}]%s}`, text, usage)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", bodies
}

// labPrices sets the price of lab/any to $1 and $4 per million tokens.
func labPrices(t *testing.T) string {
	t.Helper()
	return write(t, "prices.json", `{"models": {"lab/any": {"input": 1, "output": 4}}}`)
}

// TestAskWithoutUsage checks that a server without usage reports is not treated as free, and that one warning
// says so.
func TestAskWithoutUsage(t *testing.T) {
	t.Parallel()
	url, _ := answering(t, "yes", "")
	got := parley(t, State{}, "ask", requests(t, 5), "--model", "lab/any", "--base-url", url, "--max-tokens", "50",
		"--budget", "0.1", "--prices", labPrices(t), "--concurrency", "1", "--quiet").want(t, exit.OK)
	for _, r := range records(t, got.stdout) {
		if r.Response == nil || !r.Response.Metadata.Estimated || r.Response.Metadata.Cost < 50*4000 {
			t.Errorf("%+v", r.Response)
		}
	}
	if n := strings.Count(got.stderr, "parley: warning: lab/any reports no token usage"); n != 1 {
		t.Errorf("said %d times: %s", n, got.stderr)
	}
}

// TestAskBudgetOfFile checks that what the records of --out cost counts against the budget: the same command, again, spends
// no more.
func TestAskBudgetOfFile(t *testing.T) {
	t.Parallel()
	url, asked := answering(t, "yes", `,"usage":{"prompt_tokens":5,"completion_tokens":20}`)
	in, out := requests(t, 20), filepath.Join(t.TempDir(), "out.jsonl")
	ask := func(budget string) outcome {
		return parley(t, State{}, "ask", in, "--out", out, "--model", "lab/any", "--base-url", url, "--max-tokens", "20",
			"--budget", budget, "--prices", labPrices(t), "--concurrency", "1")
	}
	const budget = "0.001"
	ask(budget).want(t, exit.Budget)
	n := len(*asked)
	if n == 0 || n == 20 {
		t.Fatalf("asked %d times", n)
	}
	ask(budget).want(t, exit.Budget).wantErr(t, "0 answered", " left of $0.001 ($")
	if len(*asked) != n {
		t.Errorf("asked %d times, and %d times after the same command", n, len(*asked))
	}
	ask("1").want(t, exit.OK).wantErr(t, fmt.Sprintf("%d answered, %d kept from before", 20-n, n), "$0.0017 spent, $0.9983 left of $1.00") // 20 answers of $0.000085
	for _, line := range []string{`"response":{"metadata":{"cost":-1}}`, `"error":{"metadata":{"cost":-9e9}},"response":null`} {           // hostile
		if err := os.WriteFile(out, []byte(`{"id":1,`+line+"}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		before := len(*asked)
		ask(budget).want(t, exit.Budget)
		if len(*asked) == before {
			t.Errorf("%s: nothing was asked", line)
		}
	}
}

// TestAskAtAnotherAddress checks that a cached answer of one server is not used for another.
func TestAskAtAnotherAddress(t *testing.T) {
	t.Parallel()
	usage := `,"usage":{"prompt_tokens":5,"completion_tokens":2}`
	a, asked := answering(t, "I am A", usage)
	b, _ := answering(t, "I am B", usage)
	cache := t.TempDir()
	for _, c := range []struct{ url, want string }{{a, "I am A"}, {b, "I am B"}, {a, "I am A"}, {b, "I am B"}} {
		if got := parley(t, State{}, "ask", "--model", "lab/any", "--base-url", c.url, "--cache", cache, "Who are you?").want(t, exit.OK); got.stdout != c.want+"\n" {
			t.Errorf("%s answered %q, want %q", c.url, got.stdout, c.want)
		}
	}
	if len(*asked) != 1 {
		t.Errorf("asked %d times, so it was not cached", len(*asked))
	}
}

// TestAskServerIgnoresLimits checks that a server that ignores every limit exceeds the budget by at most one
// answer, and gets max_tokens, which most servers support.
func TestAskServerIgnoresLimits(t *testing.T) {
	t.Parallel()
	url, bodies := answering(t, strings.Repeat("word ", 5000), `,"usage":{"prompt_tokens":5,"completion_tokens":5000}`)
	got := parley(t, State{}, "ask", requests(t, 100), "--model", "lab/any", "--base-url", url, "--max-tokens", "50",
		"--budget", "0.05", "--prices", labPrices(t), "--json").want(t, exit.Budget)
	var spent llm.Money
	for _, r := range records(t, got.stdout) {
		if r.Response != nil {
			spent = spent.Plus(r.Response.Metadata.Cost)
		}
	}
	if one := llm.Dollars(0.020005); spent == 0 || spent > llm.Dollars(0.05)+one {
		t.Errorf("spent %v", spent)
	}
	if n := strings.Count(got.stderr, "lab/any answered with 5000 tokens when asked for at most 50"); n != 1 {
		t.Errorf("said %d times: %s", n, got.stderr)
	}
	var body struct {
		Max int `json:"max_tokens"`
	}
	if err := json.Unmarshal([]byte((*bodies)[0]), &body); err != nil || body.Max != 50 || strings.Contains((*bodies)[0], "max_completion_tokens") {
		t.Errorf("sent %s", (*bodies)[0])
	}
}

// TestAskImpossibleUsage checks that an impossible number of tokens makes the call fail, and that the cost stays
// within the budget.
func TestAskImpossibleUsage(t *testing.T) {
	t.Parallel()
	for _, usage := range []string{
		`"prompt_tokens":5,"completion_tokens":1000000000000000`,
		`"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807,"total_tokens":9223372036854775807`,
		`"prompt_tokens":5,"completion_tokens":3,"total_tokens":9223372036854775807`,
	} {
		url, bodies := answering(t, "yes", `,"usage":{`+usage+`}`)
		got := parley(t, State{}, "ask", "hello", "--json", "--model", "lab/any", "--base-url", url, "--max-tokens", "50",
			"--budget", "0.05", "--prices", labPrices(t)).want(t, exit.Failed)
		r := records(t, got.stdout)[0]
		if r.Error == nil || r.Error.Kind != llm.KindMalformed || r.Error.Metadata.Cost <= 0 || r.Error.Metadata.Cost > llm.Dollars(0.05) || len(*bodies) != 1 {
			t.Errorf("%d requests: %s", len(*bodies), got.stdout)
		}
	}
}

// TestAskBudgetOfCallsInFlight: what a run had in flight when it was aborted or killed counts for the next run with its file,
// and for those after it.
func TestAskBudgetOfCallsInFlight(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		const budget, calls = "0.00099", 12 // calls of $0.00008, each billed when it arrives
		var billed atomic.Int64
		var quick atomic.Bool
		var once sync.Once
		dir := t.TempDir()
		out, asItWas := filepath.Join(dir, "out.jsonl"), filepath.Join(t.TempDir(), "out.jsonl")
		signals := make(chan os.Signal, 2)
		before := int64(0)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			billed.Add(1)
			once.Do(func() {
				before = billed.Load()
				copyFolder(t, dir, filepath.Dir(asItWas))
				signals <- os.Interrupt
				time.Sleep(2 * oneSignal)
				signals <- os.Interrupt
			})
			if !quick.Load() {
				<-r.Context().Done()
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"model":"any","choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":20}}`)
		}))
		defer server.Close()
		in, prices := requests(t, 40), write(t, "prices.json", `{"models": {"lab/any": {"input": 0.0001, "output": 4}}}`)
		ask := func(s State, out, budget string) outcome {
			return parley(t, s, "ask", in, "--out", out, "--model", "lab/any", "--base-url", server.URL+"/v1", "--max-tokens", "20", "--budget", budget, "--prices", prices, "--retries", "0")
		}
		ask(State{Signals: signals}, out, budget).want(t, exit.Interrupted)
		if _, err := os.Stat(out + ".open"); err == nil {
			t.Error("a run that ended itself left its stake behind")
		}
		if killed {
			out = asItWas
			billed.Store(before)
			if !strings.Contains(read(t, out+".open"), `"cost":0.00`) {
				t.Errorf("%s", read(t, out+".open"))
			}
		}
		quick.Store(true)
		for range 2 {
			ask(State{}, out, budget).want(t, exit.Budget)
			if n := billed.Load(); n > calls {
				t.Errorf("killed: %t: %d calls were billed, and the budget is for %d", killed, n, calls)
			}
		}
		ask(State{}, out, "1").want(t, exit.OK).wantErr(t, " left of $1.00")
		if _, err := os.Stat(out + ".open"); err == nil {
			t.Error("a complete run left its stake behind")
		}
	}
}

// copyFolder copies the files of a folder.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Error(err)
	}
}

// TestAskForeignStake: a file with the name of the stake that is something else is left alone.
func TestAskForeignStake(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	for _, text := range []string{"mine", `{"id":1,"error":{"trail":{"cost":1}}}` + "\nmine"} {
		if err := os.WriteFile(out+".open", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		parley(t, echo().state(), "ask", requests(t, 1), "--out", out).want(t, exit.Misuse).wantErr(t, "out.jsonl.open", "move the file away")
		if read(t, out+".open") != text {
			t.Error("it was changed")
		}
	}
}
