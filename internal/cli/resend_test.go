package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/cli/exit"
	"parley/internal/run/runfile"
	"parley/journal"
)

// hangup is a server of chat completions that ends connections before it answers, and counts on its own.
type hangup struct {
	url    string
	seen   atomic.Int64 // requests
	worked atomic.Int64 // requests that it read to their end, and bills
}

// used counts the requests of a connection.
type used struct {
	net.Conn
	requests atomic.Int64
}

type usedKey struct{}

// hangingUp starts a server that ends a connection at its third request: before it reads the body, after that, or later.
func hangingUp(t *testing.T, when string) *hangup {
	t.Helper()
	h := &hangup{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.seen.Add(1)
		c := r.Context().Value(usedKey{}).(*used)
		hangs := c.requests.Add(1) == 3
		if hangs && when == "before the body" {
			_ = c.Close()
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // the connection has ended: it does not work on half a request
		}
		h.worked.Add(1)
		if hangs {
			if when == "later" {
				time.Sleep(100 * time.Millisecond)
			}
			_ = c.Close()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"model":"any","choices":[{"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":50}}`)
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, usedKey{}, &used{Conn: c})
	}
	s.Start()
	t.Cleanup(s.Close)
	h.url = s.URL + "/v1"
	return h
}

// checkSent checks that the server saw as many requests as attempts were counted, and that it bills no more than is spent.
func (h *hangup) checkSent(t *testing.T, attempts int64, spent float64) {
	t.Helper()
	const bill = 50 * 1000e-6 // what it bills for an answer
	if seen := h.seen.Load(); seen != attempts || float64(h.worked.Load())*bill > spent+1e-9 || h.worked.Load() == 0 {
		t.Errorf("the server saw %d requests and bills $%.2f for %d; %d attempts were counted, and $%.2f", seen, float64(h.worked.Load())*bill, h.worked.Load(), attempts, spent)
	}
}

func dearPrices(t *testing.T) string {
	t.Helper()
	return write(t, "prices.json", `{"models": {"lab/any": {"input": 1, "output": 1000}}}`)
}

// TestNothingIsSentBehindTheUsersBack: whatever a server sees is an attempt that is counted and charged, when and however
// it ends connections. A connection that it has closed meanwhile makes no call fail, even without retries.
func TestNothingIsSentBehindTheUsersBack(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before the body", "after the body", "later"} {
		for _, version := range []string{"HTTP/1.1", "HTTP/2"} {
			t.Run(when+", "+version, func(t *testing.T) {
				t.Parallel()
				http2 := fmt.Sprint(version == "HTTP/2")
				t.Run("run", func(t *testing.T) {
					t.Parallel()
					h, prices := hangingUp(t, when), dearPrices(t)
					plan := write(t, "plan.yaml", fmt.Sprintf("kind: ending\nepisodes: 10\nprices: %s\nproviders: {lab: {dialect: openai, base_url: %s, http2: %s}}\n"+
						"agents: {x: {model: lab/any, max_tokens: 50}}\nlineup: {a: x, b: x}\nlimits: {concurrency: 4}\n", prices, h.url, http2))
					var sum struct {
						State    string
						Attempts int64
						Cost     float64 `json:"cost_usd"`
						Risked   float64 `json:"at_risk_usd"`
					}
					got := parleyOf(t, ending("And?", good), "run", plan, "--json", "--quiet", "--budget", "100", "--allow-files", filepath.Dir(prices))
					if err := json.Unmarshal([]byte(got.stdout), &sum); err != nil || sum.State != "complete" {
						t.Fatalf("%v: %s%s", err, got.stdout, got.stderr)
					}
					h.checkSent(t, sum.Attempts, sum.Cost)
				})
				t.Run("budget", func(t *testing.T) {
					t.Parallel()
					h, prices := hangingUp(t, when), dearPrices(t)
					plan := write(t, "plan.yaml", fmt.Sprintf("kind: ending\nepisodes: 40\nprices: %s\nproviders: {lab: {dialect: openai, base_url: %s, http2: %s}}\n"+
						"agents: {x: {model: lab/any, max_tokens: 50}}\nlineup: {a: x, b: x}\nlimits: {concurrency: 8}\n", prices, h.url, http2))
					parleyOf(t, ending("And?", good), "run", plan, "--quiet", "--budget", "2", "--allow-files", filepath.Dir(prices)).want(t, exit.Budget)
					h.checkSent(t, h.seen.Load(), 2)
				})
				if version == "HTTP/2" {
					return // ask and the gateway have no flag for it
				}
				t.Run("ask", func(t *testing.T) {
					t.Parallel()
					h := hangingUp(t, when)
					got := parley(t, State{}, "ask", requests(t, 20), "--model", "lab/any", "--base-url", h.url, "--max-tokens", "50", "--retries", "0",
						"--prices", dearPrices(t), "--concurrency", "2", "--quiet").want(t, exit.OK)
					attempts, spent := int64(0), 0.0
					for _, r := range records(t, got.stdout) {
						attempts += int64(r.Response.Metadata.Attempts)
						spent += r.Response.Metadata.Cost.Dollars()
					}
					h.checkSent(t, attempts, spent)
				})
				t.Run("gateway", func(t *testing.T) {
					t.Parallel()
					h, file, prices := hangingUp(t, when), filepath.Join(t.TempDir(), "run.parley"), dearPrices(t)
					plan := write(t, "plan.yaml", fmt.Sprintf("kind: secrets\nprices: %s\nproviders: {lab: {dialect: openai, base_url: %s}}\nagents: {bold: {model: lab/any, max_tokens: 50}}\nlineup: {first: bold, second: bold}\n", prices, h.url))
					url, stop := serves(t, nil, "gateway", plan, "--out", file, "--retries", "0", "--allow-files", filepath.Dir(prices))
					var wg sync.WaitGroup
					for range 2 {
						wg.Go(func() {
							for range 10 {
								res, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"bold","max_tokens":50,"messages":[{"role":"user","content":"Hello."}]}`))
								if err != nil {
									t.Error(err)
									return
								}
								if _ = res.Body.Close(); res.StatusCode != http.StatusOK {
									t.Error(res.Status)
								}
							}
						})
					}
					wg.Wait()
					stop().want(t, exit.OK)
					store, err := runfile.OpenRead(file)
					if err != nil {
						t.Fatal(err)
					}
					defer store.Close()
					attempts, spent := int64(0), 0.0
					err = store.Brief(t.Context(), func(e journal.Entry) error {
						if r, ok := e.(*journal.Replied); ok && r.Response != nil {
							attempts += int64(r.Response.Metadata.Attempts)
							spent += r.Cost().Dollars()
						}
						return nil
					})
					if err != nil {
						t.Fatal(err)
					}
					h.checkSent(t, attempts, spent)
				})
			})
		}
	}
}

// TestBatchesAreCountedOnce: a batch that a server created, and did not say so, is found again. Every line that it bills is an attempt that
// is counted, and the cost of all is spent or at risk.
func TestBatchesAreCountedOnce(t *testing.T) {
	t.Parallel()
	s, err := simhttp.New(simhttp.Config{Batch: simhttp.BatchConfig{Latency: sim.Fixed(5 * time.Millisecond)}})
	if err != nil {
		t.Fatal(err)
	}
	var lost atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/batches") && lost.Add(1) == 1 {
			s.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // it has created the batch, and hangs up
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	prices := write(t, "prices.json", `{"models": {"lab/any": {"input": 1000, "output": 1000}}}`)
	plan := write(t, "plan.yaml", fmt.Sprintf("kind: ending\nepisodes: 20\nprices: %s\nproviders: {lab: {dialect: openai, base_url: %s/v1, batch: {}}}\n"+
		"agents: {x: {model: lab/any, max_tokens: 50}}\nlineup: {a: x, b: x}\npace: wave\nbatch: {route: batch, poll: 10ms}\n", prices, front.URL))
	var sum struct {
		State    string
		Attempts int64
		Calls    struct{ Total int64 }
		Cost     float64 `json:"cost_usd"`
		AtRisk   float64 `json:"at_risk_usd"`
	}
	got := parleyOf(t, ending("And?", good), "run", plan, "--json", "--quiet", "--budget", "1000", "--allow-files", filepath.Dir(prices))
	if err := json.Unmarshal([]byte(got.stdout), &sum); err != nil || sum.State != "complete" {
		t.Fatalf("%v: %s%s", err, got.stdout, got.stderr)
	}
	st := s.Stats()
	bill := float64(st.Tokens.Input+st.Tokens.Output) * 1000e-6
	if st.Batches.Requests != sum.Attempts || sum.Attempts != sum.Calls.Total || lost.Load() < 2 || bill > sum.Cost+sum.AtRisk+1e-9 || bill == 0 {
		t.Errorf("the server has %d lines in %d batches and bills $%.4f; %d attempts at %d calls were counted, and $%.4f; at risk $%.4f",
			st.Batches.Requests, st.Batches.Created, bill, sum.Attempts, sum.Calls.Total, sum.Cost, sum.AtRisk)
	}
}
