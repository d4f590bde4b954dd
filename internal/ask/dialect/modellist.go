package dialect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/fault"
)

// Model is a model that an account can use. Zero numbers are unknown.
type Model struct {
	Name      string
	Context   int // tokens
	MaxOutput int
}

// listedModel is a model as any of the vendors lists it.
type listedModel struct {
	ID               string `json:"id"`                 // OpenAI, Anthropic and most others
	Name             string `json:"name"`               // Gemini: models/NAME
	ModelID          string `json:"modelId"`            // Bedrock
	ProfileID        string `json:"inferenceProfileId"` // Bedrock
	ContextLength    int    `json:"context_length"`
	ContextWindow    int    `json:"context_window"`
	MaxContextLength int    `json:"max_context_length"`
	MaxModelLen      int    `json:"max_model_len"`
	MaxInputTokens   int    `json:"max_input_tokens"`
	MaxTokens        int    `json:"max_tokens"`
	InputLimit       int    `json:"inputTokenLimit"`
	OutputLimit      int    `json:"outputTokenLimit"`
}

// modelPage is a page of models.
type modelPage struct {
	Data      []json.RawMessage `json:"data"`
	Models    []json.RawMessage `json:"models"`
	Summaries []json.RawMessage `json:"modelSummaries"`            // Bedrock
	Profiles  []json.RawMessage `json:"inferenceProfileSummaries"` // Bedrock
	HasMore   bool              `json:"has_more"`
	LastID    string            `json:"last_id"`
	Next      string            `json:"nextPageToken"` // Gemini
	NextToken string            `json:"nextToken"`     // Bedrock
}

// Bounds of a list. OpenRouter's, the longest known, has some hundred models and less than a megabyte.
const (
	maxListPages = 100
	maxModels    = 50_000
	maxListBytes = 16 << 20 // of all pages
)

// ListModels returns the models that an account can use: names as a plan writes them after the provider, sorted, each once.
// It reads the provider's key from the environment. What a server sends is not trusted: names with characters that no model
// has are left out, and a list that does not end, or is too large to be one, is an error.
func ListModels(ctx context.Context, p provider.Provider) ([]Model, error) {
	codec, ok := CodecOf(p)
	if !ok {
		return nil, fmt.Errorf("provider %s: the dialect %q has no list of models", p.Name, p.Dialect)
	}
	address, paths, err := listPaths(p)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", p.Name, err)
	}
	codec.Config.Address, codec.Config.MaxBody = address, maxListBytes
	c, err := transport.New(p, codec.Config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	r := listReader{Client: c, left: maxListBytes}
	for _, path := range paths {
		if err := r.readList(ctx, p.Dialect, path); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(r.all, func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(r.all, func(a, b Model) bool { return a.Name == b.Name }), nil
}

// listPaths returns the paths of the lists of p, below an address. AWS has them at another host.
func listPaths(p provider.Provider) (address string, paths []string, _ error) {
	switch {
	case p.OnVertex() || p.APIVersion == provider.VertexVersion:
		return "", nil, errors.New("on Vertex AI there is no list of the models that a project can use: see Model Garden in the console of Google Cloud")
	case p.Dialect == "bedrock" && strings.Contains(p.BaseURL, "//vpce-"):
		return "", nil, errors.New("a private endpoint lists no models: give https://bedrock-runtime.REGION.amazonaws.com as the address")
	case p.Dialect == "bedrock":
		address = strings.Replace(p.BaseURL, "//bedrock-runtime", "//bedrock", 1)
		return address, []string{"/foundation-models?byInferenceType=ON_DEMAND&byOutputModality=TEXT", "/inference-profiles?maxResults=1000"}, nil
	}
	if p.APIVersion != "" { // Azure's older paths
		return p.BaseURL, []string{"/models?api-version=" + p.APIVersion}, nil
	}
	return p.BaseURL, []string{"/models" + map[string]string{"anthropic": "?limit=1000", "gemini": "?pageSize=1000"}[p.Dialect]}, nil
}

// listReader is the lists of an account, as far as they are read.
type listReader struct {
	*transport.Client
	all  []Model
	left int // bytes
}

// readList reads all pages of a list.
func (r *listReader) readList(ctx context.Context, dialect, first string) error {
	path := first
	for range maxListPages {
		one, size, err := readListPage(ctx, r.Client, path)
		if err != nil {
			return err
		}
		r.all = append(r.all, one.models()...)
		next := one.nextQuery(dialect)
		switch r.left -= size; {
		case r.left < 0 || len(r.all) > maxModels:
			return r.Fail(fault.Malformed(fmt.Sprintf("the list of models is too long: at most %d models in %d MB are read", maxModels, maxListBytes>>20), nil), "", nil)
		case next == "":
			return nil
		}
		path = first + next
	}
	return r.Fail(fault.Malformed(fmt.Sprintf("the list of models does not end: it has more than %d pages", maxListPages), nil), "", nil)
}

// models returns the models of a page.
func (p *modelPage) models() (out []Model) {
	for _, list := range [][]json.RawMessage{p.Data, p.Models, p.Summaries, p.Profiles} {
		for _, raw := range list {
			if m, ok := modelOf(raw); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// nextQuery returns what to add to the query for the next page, or "".
func (p *modelPage) nextQuery(dialect string) string {
	switch {
	case p.Next != "":
		return "&pageToken=" + url.QueryEscape(p.Next)
	case p.NextToken != "" && dialect == "bedrock":
		return "&nextToken=" + url.QueryEscape(p.NextToken)
	case p.HasMore && p.LastID != "" && dialect == "anthropic":
		return "&after_id=" + url.QueryEscape(p.LastID)
	}
	return ""
}

// readListPage reads a page. Together sends a list without an object around it.
func readListPage(ctx context.Context, c *transport.Client, path string) (one modelPage, size int, err error) {
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
	if err != nil || one.Data == nil && one.Models == nil && one.Summaries == nil && one.Profiles == nil {
		return one, 0, c.Fail(fault.Malformed("the answer is not a list of models: "+fault.Clean(string(b[:min(len(b), 100)]), 100), nil), "", a)
	}
	return one, len(b), nil
}

func modelOf(raw json.RawMessage) (Model, bool) {
	var l listedModel
	if json.Unmarshal(raw, &l) != nil {
		// Some servers have texts where others have numbers: the name is enough.
		var named struct{ ID, Name, ModelID string }
		if json.Unmarshal(raw, &named) != nil {
			return Model{}, false
		}
		l = listedModel{ID: named.ID, Name: named.Name, ModelID: named.ModelID}
	}
	name := cmp.Or(l.ID, l.ModelID, l.ProfileID, l.Name)
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
