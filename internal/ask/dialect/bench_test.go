package dialect_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/llm"
)

// benchServer is set in the process that serves a benchmark, so that the benchmark measures only the
// client.
const benchServer = "PARLEY_BENCH_SERVER"

// serveBench answers every format after the delay that the variable names, in
// HTTP/1.1 and HTTP/2, and exits when its input ends.
func serveBench() {
	delay, err := time.ParseDuration(os.Getenv(benchServer))
	if err != nil {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	mux := http.NewServeMux()
	for _, f := range formats() {
		body := f.whole(answerTo(question{}))
		mux.HandleFunc(f.path, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			time.Sleep(delay)
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, body)
		})
	}
	srv := &http.Server{Handler: mux, Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	srv.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100}
	go srv.Serve(l)
	fmt.Println("http://" + l.Addr().String())
	io.Copy(io.Discard, os.Stdin)
}

func startBench(tb testing.TB, delay time.Duration) (url string) {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), benchServer+"="+delay.String())
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { in.Close(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// plain asks with net/http and encoding/json only, without a dialect.
type plain struct {
	c   http.Client
	url string
}

func (p *plain) ask(req *llm.Request) error {
	b, err := json.Marshal(map[string]any{"model": "m", "messages": req.Messages, "max_completion_tokens": req.MaxTokens})
	if err != nil {
		return err
	}
	res, err := p.c.Post(p.url+"/v1/chat/completions", "application/json", bytes.NewReader(b))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if b, err = io.ReadAll(res.Body); err != nil {
		return err
	}
	var v struct {
		Choices []struct {
			Message struct{ Content string }
		}
	}
	return json.Unmarshal(b, &v)
}

func benchRequest() *llm.Request {
	return &llm.Request{Model: "lab/m", MaxTokens: 100, Messages: []llm.Message{llm.System(strings.Repeat("You are a careful agent. ", 40)), llm.User("What now?")}}
}

// openBench returns the ways to ask: each dialect, and a plain loop for comparison.
func openBench(b *testing.B, url string) map[string]func(*llm.Request) error {
	ways := map[string]func(*llm.Request) error{}
	for _, f := range formats() {
		for _, h2 := range []bool{false, true} {
			m, err := dialect.Open(provider.Provider{Name: "lab", Dialect: f.name, BaseURL: url + "/v1", HTTP2: h2}, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { m.(io.Closer).Close() })
			name := f.name
			if h2 {
				name += " http2"
			}
			ways[name] = func(req *llm.Request) error { _, err := m.Ask(b.Context(), req); return err }
		}
	}
	p := &plain{url: url, c: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1 << 17}}}
	b.Cleanup(p.c.CloseIdleConnections)
	ways["plain"] = p.ask
	return ways
}

// BenchmarkAsk measures the cost of a call to a server that answers at once.
func BenchmarkAsk(b *testing.B) {
	ways := openBench(b, startBench(b, 0))
	for _, name := range []string{"plain", "openai", "responses", "anthropic", "openai http2"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(8)
			req := benchRequest()
			start := cpuTime()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := ways[name](req); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64((cpuTime()-start).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// BenchmarkInFlight makes 10,000 calls at once to a server that takes a second, and
// measures the memory of the process and the time of a warm round. Run it alone,
// one way per process, with -bench 'InFlight/openai$' -benchtime 2x.
func BenchmarkInFlight(b *testing.B) {
	const calls = 10_000
	url := startBench(b, time.Second)
	for _, name := range []string{"plain", "openai", "anthropic", "openai http2"} {
		b.Run(name, func(b *testing.B) {
			ask := openBench(b, url)[name]
			req := benchRequest()
			round := func() {
				var wg sync.WaitGroup
				for range calls {
					wg.Go(func() {
						if err := ask(req); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
			}
			round() // cold
			for b.Loop() {
				round()
			}
			b.ReportMetric(float64(peakRSS())/(1<<20), "peak-MB")
			runtime.KeepAlive(req)
		})
	}
}
