package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"

	parley "parley/internal/serve/gateway"

	"parley/internal/ask/provider"
	"parley/journal"
)

// proxyMain serves a plain reverse proxy, to measure what any proxy in Go adds.
func proxyMain(address string) error { return proxy(address, (*http.Protocols).SetHTTP1) }

// proxy2Main does so over HTTP/2, where many streams share a connection.
func proxy2Main(address string) error { return proxy(address, (*http.Protocols).SetUnencryptedHTTP2) }

func proxy(address string, speak func(*http.Protocols, bool)) error {
	to, err := url.Parse(address)
	if err != nil {
		return err
	}
	many := &http.Transport{MaxIdleConnsPerHost: 10_000, Protocols: new(http.Protocols)} // by default it dials for every second call
	speak(many.Protocols, true)
	return serve(&httputil.ReverseProxy{Transport: many, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
}

// nowhere is a journal that keeps nothing.
type nowhere struct{}

func (nowhere) Append(context.Context, ...journal.Entry) error { return nil }
func (nowhere) Head(context.Context) (*journal.Head, error)    { return &journal.Head{}, nil }
func (nowhere) Read(context.Context, journal.Span, func(journal.Entry) error) error {
	return nil
}
func (nowhere) Outcomes(context.Context, []int, func(*journal.Ended) error) error { return nil }

// unrecordedMain serves a gateway that records nothing: the difference is the cost of the record.
func unrecordedMain(address string) error {
	g, err := parley.Open(context.Background(), parley.Config{
		Upstreams: []provider.Provider{{Name: "lab", Dialect: "openai", BaseURL: address + "/v1", Limits: provider.Limits{Concurrency: 1000}}},
		Journal:   nowhere{}, Begin: parley.Begin{Run: "bench", Now: time.Now()},
	})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("listening on http://" + ln.Addr().String())
	drain, stop := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop() }()
	return g.Run(context.Background(), drain, ln)
}
