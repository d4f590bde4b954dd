package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// answerOf is a chat completion of usual length.
func answerOf(words string) string {
	return `{"id":"chatcmpl-1","object":"chat.completion","created":1800000000,"model":"any","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		words + `","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":120,"completion_tokens":100,"total_tokens":220,` +
		`"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},"service_tier":"default"}`
}

// upstreamMain serves chat completions at the lowest cost: each after a delay, and streams that send one event
// and then wait. It exits when its input ends.
func upstreamMain(delay string) error {
	wait, err := time.ParseDuration(delay)
	if err != nil {
		return err
	}
	body := []byte(answerOf(strings.Repeat("A plain sentence of an answer. ", 13)))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		in, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if strings.Contains(string(in), `"stream":true`) {
			hang(w, r)
			return
		}
		time.Sleep(wait)
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
		_, _ = w.Write(body)
	})
	return serve(mux)
}

// serve says where it listens, and serves h until its input ends.
func serve(h http.Handler) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: h, Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 250}}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	fmt.Println("listening on http://" + ln.Addr().String())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); _ = srv.Close() }()
	if err := srv.Serve(ln); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// hang sends an event of a stream and then nothing, until the client goes.
func hang(w http.ResponseWriter, r *http.Request) {
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	_, _ = io.WriteString(w, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1800000000,"model":"any","choices":[{"index":0,"delta":{"role":"assistant","content":"Well"},"finish_reason":null}]}`+"\n\n")
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}
