// Package modellist asks an account which models it can use.
//
// It promises names as a plan writes them after the provider, sorted, each once. What a server says is hostile: names with
// characters that no model has are left out.
//
// It knows no prices: package price does.
package modellist

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/internal/dialect"
	"parley/internal/dialect/transport"
	"parley/internal/provider"
	"parley/internal/wire/fault"
)

// Model is a model that an account can use. Zero numbers are unknown.
type Model struct {
	Name      string
	Context   int // tokens
	MaxOutput int
}

// listed is a model as any of the vendors lists it.
type listed struct {
	ID               string `json:"id"`   // OpenAI, Anthropic and most others
	Name             string `json:"name"` // Gemini: models/NAME
	ContextLength    int    `json:"context_length"`
	ContextWindow    int    `json:"context_window"`
	MaxContextLength int    `json:"max_context_length"`
	MaxModelLen      int    `json:"max_model_len"`
	MaxInputTokens   int    `json:"max_input_tokens"`
	MaxTokens        int    `json:"max_tokens"`
	InputLimit       int    `json:"inputTokenLimit"`
	OutputLimit      int    `json:"outputTokenLimit"`
}

// page is a page of models.
type page struct {
	Data    []json.RawMessage `json:"data"`
	Models  []json.RawMessage `json:"models"`
	HasMore bool              `json:"has_more"`
	LastID  string            `json:"last_id"`
	Next    string            `json:"nextPageToken"`
}

const maxPages = 100

// List returns the models of an account. It reads the provider's key from the environment.
func List(ctx context.Context, p provider.Provider) ([]Model, error) {
	codec, ok := dialect.Codec(p.Dialect)
	if !ok {
		return nil, fmt.Errorf("modellist: provider %s: the dialect %q has no list of models", p.Name, p.Dialect)
	}
	c, err := transport.New(p, codec.Config)
	if err != nil {
		return nil, fmt.Errorf("modellist: %w", err)
	}
	defer func() { _ = c.Close() }()
	first := map[string]string{"anthropic": "?limit=1000", "gemini": "?pageSize=1000"}[p.Dialect]
	var all []Model
	for query, n := first, 0; n < maxPages; n++ {
		one, err := read(ctx, c, "/models"+query)
		if err != nil {
			return nil, err
		}
		for _, raw := range append(one.Data, one.Models...) {
			if m, ok := modelOf(raw); ok {
				all = append(all, m)
			}
		}
		switch {
		case one.Next != "":
			query = first + "&pageToken=" + url.QueryEscape(one.Next)
		case one.HasMore && one.LastID != "" && p.Dialect == "anthropic":
			query = first + "&after_id=" + url.QueryEscape(one.LastID)
		default:
			n = maxPages
		}
	}
	slices.SortFunc(all, func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b Model) bool { return a.Name == b.Name }), nil
}

// read reads a page. Together sends a list without an object around it.
func read(ctx context.Context, c *transport.Client, path string) (one page, err error) {
	a, err := c.Do(ctx, transport.Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return one, c.Fail(err, "", nil)
	}
	defer a.Close()
	b, err := a.Bytes(ctx)
	if err != nil {
		return one, c.Fail(err, "", a)
	}
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '[' {
		err = json.Unmarshal(b, &one.Data)
	} else {
		err = json.Unmarshal(b, &one)
	}
	if err != nil || one.Data == nil && one.Models == nil {
		return one, c.Fail(fault.Malformed("the answer is not a list of models: "+fault.Clean(string(b[:min(len(b), 100)]), 100), nil), "", a)
	}
	return one, nil
}

func modelOf(raw json.RawMessage) (Model, bool) {
	var l listed
	if json.Unmarshal(raw, &l) != nil {
		// Some servers have texts where others have numbers: the name is enough.
		var named struct{ ID, Name string }
		if json.Unmarshal(raw, &named) != nil {
			return Model{}, false
		}
		l = listed{ID: named.ID, Name: named.Name}
	}
	name := cmp.Or(l.ID, l.Name)
	name = strings.TrimPrefix(name, "models/")
	if name == "" || len(name) > 200 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Model{}, false
	}
	return Model{
		Name:      name,
		Context:   max(0, cmp.Or(l.ContextLength, l.ContextWindow, l.MaxContextLength, l.MaxModelLen, l.MaxInputTokens, l.InputLimit)),
		MaxOutput: max(0, cmp.Or(l.OutputLimit, l.MaxTokens)),
	}, true
}
