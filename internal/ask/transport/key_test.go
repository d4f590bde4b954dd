package transport

import (
	"context"
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

	"parley/internal/ask/provider"
	"parley/llm"
)

// printer is a program that prints the content of a file as the key.
func printer(t *testing.T) (command []string, set func(key string)) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	set = func(key string) {
		if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{self, printsFile, file}, set
}

// TestKeyCommand: the key of a program is sent, replaced once when the server refuses it, and shown nowhere.
func TestKeyCommand(t *testing.T) {
	t.Parallel()
	var good atomic.Value
	var refused atomic.Int32
	good.Store("first-hunter2")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if key := r.Header.Get("Api-Key"); key != good.Load() {
			refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"the key %s is not valid"}}`, key)
			return
		}
		fmt.Fprintf(w, `{"body":%q}`, b)
	}))
	t.Cleanup(srv.Close)
	command, set := printer(t)
	set("first-hunter2")
	c, err := New(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL + "/v1", KeyCommand: command, KeyHeader: "api-key"}, Config{KeyPrefix: "Bearer "}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context) (string, error) {
		a, err := c.Do(ctx, Request{Path: "/x", Body: []byte("hello")})
		if err != nil {
			return "", c.Fail(err, "m", nil)
		}
		defer a.Close()
		b, err := a.Bytes(ctx)
		return string(b), err
	}
	all := func() {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if got, err := ask(t.Context()); err != nil || got != `{"body":"hello"}` {
					t.Errorf("%s, %v", got, err)
				}
			})
		}
		wg.Wait()
	}
	all()
	set("second-hunter2")
	good.Store("second-hunter2")
	all()
	if n := refused.Load(); n == 0 || n > 20 {
		t.Errorf("%d refusals", n)
	}
	good.Store("another")
	_, err = ask(t.Context())
	if e := llm.AsError(err); e.Kind != llm.KindAuth || e.Status != http.StatusUnauthorized || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

// TestKeyCommandFails: nothing is sent without a key.
func TestKeyCommandFails(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }))
	t.Cleanup(srv.Close)
	c, err := New(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL + "/v1", KeyCommand: []string{"parley-no-such-program"}}, Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), Request{Path: "/x", Body: []byte("hello")})
	if e := llm.AsError(err); e.Kind != llm.KindAuth || e.Uncertain || !strings.Contains(e.Message, "parley-no-such-program") {
		t.Errorf("%+v", e)
	}
}
