package dispatch

import (
	"context"
	"errors"
	"testing"

	"parley/internal/ask/cache"
	"parley/internal/ask/provider"
	"parley/llm"
)

func TestCacheAnswersEqualQuestionsOnly(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := &script{}
	d := dispatcher(t, s, provider.Provider{}, func(c *Config) { c.Cache = store })
	one := asked(2, 10, 1)
	for range 3 {
		for _, r := range one {
			if _, err := d.Ask(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
	resp, _ := d.Ask(t.Context(), one[0])
	if s.calls != 2 || !resp.Metadata.Cached || resp.Metadata.Cost != 0 || resp.Text != "yes" {
		t.Errorf("asked %d times for two samples; %+v", s.calls, resp)
	}
	if got := d.Stats(); got.Cached != 5 || got.Calls != 7 {
		t.Errorf("%d of %d from the cache", got.Cached, got.Calls)
	}
}

// TestRelayIsNotCached wants a call that is passed on to be sent each time: what a cache has of it lacks what its client got.
func TestRelayIsNotCached(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := &script{}
	d := dispatcher(t, s, provider.Provider{}, func(c *Config) { c.Cache = store })
	one := asked(1, 10, 1)[0]
	for range 3 {
		if resp, err := d.Relay(t.Context(), one); err != nil || resp.Metadata.Cached {
			t.Fatal(resp, err)
		}
	}
	if s.calls != 3 {
		t.Errorf("it was sent %d times", s.calls)
	}
}

// TestCacheKnowsWhoAnswered asks the same of a provider at two addresses, and of one with a
// fallback at two addresses: an answer from one address is not used for the other.
func TestCacheKnowsWhoAnswered(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	from := func(url, fallback string) *Dispatcher {
		d, err := New(Config{Cache: store, Settings: retries(never), Lanes: []Lane{
			{Provider: provider.Provider{Name: "lab", Dialect: "openai", BaseURL: url}, Model: llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
				if fallback != "" {
					return nil, &llm.Error{Kind: llm.KindServer}
				}
				return &llm.Response{Text: "from " + url}, nil
			})},
			{Provider: provider.Provider{Name: "spare", Dialect: "openai", BaseURL: fallback}, Model: llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
				return &llm.Response{Text: "from " + fallback}, nil
			})},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, tt := range []struct {
		url, fallback, want string
		cached              bool
	}{
		{"http://a/v1", "", "from http://a/v1", false},
		{"http://b/v1", "", "from http://b/v1", false},
		{"http://a/v1/", "", "from http://a/v1", true},
		{"http://b/v1", "", "from http://b/v1", true},
		{"http://c/v1", "http://d/v1", "from http://d/v1", false},
		{"http://c/v1", "http://e/v1", "from http://e/v1", false},
		{"http://c/v1", "http://d/v1", "from http://d/v1", true},
	} {
		req := &llm.Request{Model: "lab/any", Messages: []llm.Message{llm.User("Who are you?")}}
		if tt.fallback != "" {
			req.Fallbacks = []string{"spare/any"}
		}
		resp, err := from(tt.url, tt.fallback).Ask(t.Context(), req)
		if err != nil || resp.Text != tt.want || resp.Metadata.Cached != tt.cached {
			t.Errorf("%s, %s: %+v, %v", tt.url, tt.fallback, resp, err)
		}
	}
}

// TestCacheNeedsNoKey: cached answers are returned even if the provider cannot be opened.
func TestCacheNeedsNoKey(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	lab := provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "http://a/v1"}
	ask := func(open func(string) (Lane, error)) (*llm.Response, error) {
		d, err := New(Config{Cache: store, Open: open, Find: func(string) (provider.Provider, error) { return lab, nil }})
		if err != nil {
			t.Fatal(err)
		}
		return d.Ask(t.Context(), &llm.Request{Model: "lab/any", Messages: []llm.Message{llm.User("Hello.")}})
	}
	if _, err := ask(func(string) (Lane, error) { return Lane{Provider: lab, Model: &script{}}, nil }); err != nil {
		t.Fatal(err)
	}
	resp, err := ask(func(string) (Lane, error) { return Lane{}, errors.New("no key") })
	if err != nil || !resp.Metadata.Cached {
		t.Errorf("%+v, %v", resp, err)
	}
}
