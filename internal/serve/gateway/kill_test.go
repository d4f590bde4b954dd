package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/kit/testkit"
	"parley/internal/run/runfile"
	"parley/llm"
)

func TestMain(m *testing.M) { testkit.Main(m, serveAlone) }

// serveAlone runs a gateway in this process. arg is the run file and the address of the provider, and a word if there is a budget.
func serveAlone(arg string) error {
	file, url, _ := strings.Cut(arg, " ")
	url, _, paid := strings.Cut(url, " ")
	store, err := runfile.Open(context.Background(), file, runfile.Either)
	if err != nil {
		return err
	}
	p := provider.Provider{Name: "openai", Dialect: "openai", BaseURL: url, Limits: provider.Limits{Concurrency: 100}}
	c := Config{
		Upstreams: []provider.Provider{p}, Journal: store,
		Begin: Begin{Run: "kill", Tool: "test", Now: time.Now(), Plan: json.RawMessage(`{}`)},
	}
	if paid {
		c.Settings = limited(llm.Dollars(1), 4)
		if c.Prices, err = price.Read(strings.NewReader(pricesOfBatches), "test"); err != nil {
			return err
		}
	}
	g, err := Open(context.Background(), c)
	if err != nil {
		return err
	}
	ln, err := testkit.Listen()
	if err != nil {
		return err
	}
	return g.Run(context.Background(), context.Background(), ln)
}

// TestKilled kills gateways under load with kill -9: every call with a complete answer, whole or streamed, is
// in the run file.
func TestKilled(t *testing.T) {
	t.Parallel()
	latency, err := sim.ParseDelay("1ms..8ms")
	if err != nil {
		t.Fatal(err)
	}
	url := simulated(t, sim.Config{Latency: latency})
	file := filepath.Join(t.TempDir(), "run.parley")
	kills := 8
	if testing.Short() {
		kills = 2
	}
	answered := map[string]bool{}
	for kill := range kills {
		server := testkit.Start(t, file+" "+url)
		at := server.Line(t)
		last := 1 + rand.IntN(200) // it is killed once so many calls are answered
		var mu sync.Mutex
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				for i := 0; ; i++ {
					id := fmt.Sprintf("kill %d worker %d call %d", kill, w, i)
					if !askOnce(at, fmt.Sprintf("/v1/w%d/chat/completions", w), id, i%2 == 1) {
						return
					}
					mu.Lock()
					answered[id] = true
					if last--; last == 0 {
						server.Kill()
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		server.Kill()
		server.Wait()
	}
	found := map[string]bool{}
	for w := range 16 {
		for _, c := range recorded(t, file, fmt.Sprintf("w%d", w)) {
			if c.Response != nil {
				found[c.Request.Messages[0].Text()] = true
			}
		}
	}
	lost := 0
	for id := range answered {
		if !found[id] {
			lost++
		}
	}
	t.Logf("%d kills, %d calls answered, %d recorded, %d lost", kills, len(answered), len(found), lost)
	if lost > 0 || len(answered) < kills {
		t.Errorf("%d of %d answered calls are lost", lost, len(answered))
	}
}

// askOnce reports whether a call got its complete answer.
func askOnce(url, path, question string, stream bool) bool {
	more := ""
	if stream {
		more = streamed
	}
	res, err := http.Post(url+path, "application/json", strings.NewReader(chatOf("m", question, more)))
	if err != nil {
		return false
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return err == nil && res.StatusCode == 200 && (!stream || strings.Contains(string(b), "[DONE]"))
}
