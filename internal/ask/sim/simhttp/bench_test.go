package simhttp

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkHandler measures the server's share of a small chat request.
func BenchmarkHandler(b *testing.B) {
	s := newServer(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		if a := call(b, s, http.MethodPost, chatPath, chatBody); a.status != http.StatusOK {
			b.Fatal(a)
		}
	}
}

// BenchmarkLoopback measures a small chat request with client and network.
func BenchmarkLoopback(b *testing.B) {
	url, _ := serve(b, Config{})
	c := client(b)
	b.ReportAllocs()
	for b.Loop() {
		resp, err := c.Post(url+chatPath, "application/json", strings.NewReader(chatBody))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}
