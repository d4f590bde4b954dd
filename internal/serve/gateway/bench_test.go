package gateway

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/ask/provider"
)

// provided serves answers of a usual length at once.
func provided(b *testing.B) string {
	body := `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("A sentence. ", 30) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":90,"total_tokens":190}}`
	return serving(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
	}))
}

var question = strings.Repeat("What is to be done now? ", 20)

// BenchmarkCall is a whole call through the gateway with its record, client and provider
// included, many at once. The command `go -C test/oracle run ./bench gateway` measures the
// gateway from outside.
func BenchmarkCall(b *testing.B) {
	p := upstream("openai", provided(b))
	p.Limits.Concurrency = 1000
	l := start(b, Config{Upstreams: []provider.Provider{p}})
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := l.try(b.Context(), "/v1/chat/completions", chatOf("m", strconv.FormatInt(n.Add(1), 10)+question))
			if err != nil || r.status != 200 {
				b.Error(r, err)
				return
			}
		}
	})
}
