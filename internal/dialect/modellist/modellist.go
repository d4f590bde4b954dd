// Package modellist asks an account which models it can use.
//
// It promises names as a plan writes them after the provider, sorted, each once. What a server says is hostile: names with
// characters that no model has are left out, and a list that does not end, or is too large to be one, is an error.
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

// Bounds of a list. OpenRouter's, the longest known, has some hundred models and less than a megabyte.
const (
	maxPages  = 100
	maxModels = 50_000
	maxBytes  = 16 << 20 // of all pages
)

// List returns the models of an account. It reads the provider's key from the environment.
func List(ctx context.Context, p provider.Provider) ([]Model, error) {
	codec, ok := dialect.Codec(p.Dialect)
	if !ok {
		return nil, fmt.Errorf("modellist: provider %s: the dialect %q has no list of models", p.Name, p.Dialect)
	}
	codec.Config.MaxBody = maxBytes
	c, err := transport.New(p, codec.Config)
	if err != nil {
		return nil, fmt.Errorf("modellist: %w", err)
	}
	defer func() { _ = c.Close() }()
	first := map[string]string{"anthropic": "?limit=1000", "gemini": "?pageSize=1000"}[p.Dialect]
	var all []Model
	left, query := maxBytes, first
	for range maxPages {
		one, size, err := read(ctx, c, "/models"+query)
		if err != nil {
			return nil, err
		}
		all = append(all, one.all()...)
		next := one.next(p.Dialect)
		switch left -= size; {
		case left < 0 || len(all) > maxModels:
			return nil, c.Fail(fault.Malformed(fmt.Sprintf("the list of models is too long: at most %d models in %d MB are read", maxModels, maxBytes>>20), nil), "", nil)
		case next == "":
			slices.SortFunc(all, func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
			return slices.CompactFunc(all, func(a, b Model) bool { return a.Name == b.Name }), nil
		}
		query = first + next
	}
	return nil, c.Fail(fault.Malformed(fmt.Sprintf("the list of models does not end: it has more than %d pages", maxPages), nil), "", nil)
}

// all returns the models of a page.
func (p *page) all() (out []Model) {
	for _, list := range [][]json.RawMessage{p.Data, p.Models} {
		for _, raw := range list {
			if m, ok := modelOf(raw); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// next returns what to add to the query for the next page, or "".
func (p *page) next(dialect string) string {
	switch {
	case p.Next != "":
		return "&pageToken=" + url.QueryEscape(p.Next)
	case p.HasMore && p.LastID != "" && dialect == "anthropic":
		return "&after_id=" + url.QueryEscape(p.LastID)
	}
	return ""
}

// read reads a page. Together sends a list without an object around it.
func read(ctx context.Context, c *transport.Client, path string) (one page, size int, err error) {
	a, err := c.Do(ctx, transport.Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return one, 0, c.Fail(err, "", nil)
	}
	defer a.Close()
	b, err := a.Bytes(ctx)
	if err != nil {
		return one, 0, c.Fail(err, "", a)
	}
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '[' {
		err = json.Unmarshal(b, &one.Data)
	} else {
		err = json.Unmarshal(b, &one)
	}
	if err != nil || one.Data == nil && one.Models == nil {
		return one, 0, c.Fail(fault.Malformed("the answer is not a list of models: "+fault.Clean(string(b[:min(len(b), 100)]), 100), nil), "", a)
	}
	return one, len(b), nil
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
