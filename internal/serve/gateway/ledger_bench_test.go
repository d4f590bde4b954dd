package gateway

import (
	"sync"
	"testing"
	"time"

	"parley/journal"
	"parley/llm"
)

// BenchmarkKeep is what a call waits for its record when it is the only one, without the
// time of a disk.
func BenchmarkKeep(b *testing.B) {
	l, _, err := openGatewayLedger(b.Context(), &journal.Memory{}, Begin{Run: "r", Now: time.Now()})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(b.Context()) })
	n, err := l.Begin(Name{ID: "s"})
	if err != nil {
		b.Fatal(err)
	}
	req, resp := &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User("hello")}}, &llm.Response{Text: "hello"}
	b.ReportAllocs()
	turn := 0
	for b.Loop() {
		if err := l.Keep(&Call{Episode: n, Turn: turn, Request: req, Response: resp, Wire: Wire{Status: 200, Body: []byte("hello")}}); err != nil {
			b.Fatal(err)
		}
		turn++
	}
	l.Close("over", time.Now())
	wg.Wait()
}
