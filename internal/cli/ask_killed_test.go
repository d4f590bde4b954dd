package cli

import (
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
)

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
		ask(State{}, out, "1").want(t, exit.OK).wantErr(t, "of $1.00")
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
