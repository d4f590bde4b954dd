package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// get reads a page of the server into v.
func (p *prober) get(ctx context.Context, call transport.Request, v any) error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	call.Method = http.MethodGet
	a, err := p.client.Do(ctx, call)
	if err != nil {
		return err
	}
	defer a.Close()
	if server := a.Header.Get("Server"); p.report.Server == "" && server != "" {
		p.report.Server = fault.Clean(server, maxModelName)
	}
	b, err := a.Bytes(ctx)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fault.Malformed("the answer is not the expected JSON", nil)
	}
	return nil
}

// modelList is OpenAI's list of models, with the additions of other servers.
type modelList struct {
	Data []listedModel `json:"data"`
}

type listedModel struct {
	ID      string `json:"id"`
	OwnedBy any    `json:"owned_by"`

	MaxModelLen      any `json:"max_model_len"`      // vLLM, SGLang
	ContextLength    any `json:"context_length"`     // OpenRouter, Together
	ContextWindow    any `json:"context_window"`     // Groq
	MaxContextLength any `json:"max_context_length"` // LM Studio
	Meta             struct {
		Context any `json:"n_ctx"`
	} `json:"meta"` // llama.cpp
}

// context returns the limit of tokens for a prompt and its answer, as the server states it.
func (m *listedModel) context() int {
	for _, v := range []any{m.MaxModelLen, m.Meta.Context, m.ContextLength, m.ContextWindow, m.MaxContextLength} {
		if n := tokens(v); n > 0 {
			return n
		}
	}
	return 0
}

// tokens returns a JSON value as a number of tokens, and 0 if it cannot be one.
func tokens(v any) int {
	n, ok := v.(float64)
	if !ok || !(n >= 1 && n <= 1e9) {
		return 0
	}
	return int(n)
}

// reach finds the server's base URL and the model to ask.
func (p *prober) reach(ctx context.Context) error {
	list, err := p.list(ctx)
	if given := p.report.BaseURL; path.Base(given) != "v1" && answered(err) {
		// Some servers answer part of the API at their root too: prefer /v1.
		was := p.client
		if oerr := p.open(given + "/v1"); oerr != nil {
			return oerr
		}
		if deeper, derr := p.list(ctx); derr == nil {
			list, err = deeper, nil
			_ = was.Close() // idle connections
		} else {
			_ = p.client.Close() // idle connections
			p.client, p.report.BaseURL = was, given
		}
	}
	p.report.Model = p.cfg.Model
	if err != nil {
		return p.unlisted(err)
	}
	where := ""
	if p.report.BaseURL != strings.TrimRight(p.cfg.BaseURL, "/") {
		where = "; base_url has to end in /v1"
	}
	p.found(featureModels, yes, "%d%s", len(list.Data), where)
	for i := range list.Data {
		m := &list.Data[i]
		if p.report.Model == "" && fault.Clean(m.ID, maxModelName) == m.ID {
			p.report.Model = m.ID // a name that can be sent and shown
		}
		if m.ID == p.report.Model {
			p.report.Context = m.context()
			if owner, ok := m.OwnedBy.(string); ok && owner != "" {
				p.report.Server = fault.Clean(owner, maxModelName)
			}
		}
		if len(p.report.Models) < maxModels {
			p.report.Models = append(p.report.Models, fault.Clean(m.ID, maxModelName))
		}
	}
	return nil
}

func (p *prober) list(ctx context.Context) (modelList, error) {
	var list modelList
	err := p.get(ctx, transport.Request{Path: "/models"}, &list)
	return list, err
}

// answered reports whether a server answered.
func answered(err error) bool {
	switch llm.KindOf(err) {
	case llm.KindTransport, llm.KindTimeout, llm.KindCanceled:
		return false
	}
	return true
}

// unlisted returns an error if a server without a list of models cannot be asked more.
func (p *prober) unlisted(err error) error {
	switch {
	case !answered(err):
		return fmt.Errorf("probe: %s/models: %s", p.report.BaseURL, says(err))
	case llm.KindOf(err) == llm.KindAuth && p.cfg.KeyEnv != "":
		return fmt.Errorf("probe: %s/models: %s; the key in the environment variable %s was refused: check it, and that it is for this server", p.report.BaseURL, says(err), p.cfg.KeyEnv)
	case llm.KindOf(err) == llm.KindAuth:
		return fmt.Errorf("probe: %s/models: %s; name the variable that holds the key with --key-env", p.report.BaseURL, says(err))
	}
	for _, end := range []string{"/chat/completions", "/completions", "/responses", "/messages", "/models"} {
		if strings.HasSuffix(p.report.BaseURL, end) {
			return fmt.Errorf("probe: %s/models: %s; leave out %s: the address is everything before it", p.report.BaseURL, says(err), end)
		}
	}
	if p.report.Model == "" && provider.Unversioned(p.report.BaseURL) {
		return fmt.Errorf("probe: %s/models: %s; %s/v1/models has no list either: if this is the address of a model server, name a model with --model", p.report.BaseURL, says(err), p.report.BaseURL)
	}
	if p.report.Model == "" {
		return fmt.Errorf("probe: %s/models: %s; if the address is right, name a model with --model", p.report.BaseURL, says(err))
	}
	p.failed(featureModels, err)
	return nil
}

// surroundings looks for the server's other pages.
func (p *prober) surroundings(ctx context.Context) {
	p.batches(ctx)
	p.lookMetrics(ctx)
	if p.report.Context == 0 {
		var props struct {
			Settings struct {
				Context any `json:"n_ctx"`
			} `json:"default_generation_settings"`
		}
		if p.get(ctx, transport.Request{Path: "/props", Root: true}, &props) == nil {
			p.report.Context = tokens(props.Settings.Context)
		}
	}
	if p.report.Context == 0 {
		p.found(featureContext, unknown, "the server does not report it")
		return
	}
	p.found(featureContext, yes, "%d tokens", p.report.Context)
}

func (p *prober) batches(ctx context.Context) {
	at := "/batches?limit=1"
	if p.dialect == "anthropic" {
		at = "/messages/batches?limit=1"
	}
	var list struct {
		Data *[]json.RawMessage `json:"data"`
	}
	err := p.get(ctx, transport.Request{Path: at}, &list)
	switch e := llm.AsError(err); {
	case err == nil && list.Data != nil:
		p.batch = true
		p.found(featureBatch, yes, "")
	case err == nil:
		p.found(featureBatch, unknown, "the answer is not a list of batches")
	case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented:
		p.found(featureBatch, no, "plans cannot use waves")
	default:
		p.found(featureBatch, unknown, "%s", says(err))
	}
}

// lookMetrics looks for the page of metrics, which can steer the calls in flight.
func (p *prober) lookMetrics(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	a, err := p.client.Do(ctx, transport.Request{Method: http.MethodGet, Path: "/metrics", Root: true})
	if err != nil {
		p.found(featureMetrics, no, "")
		return
	}
	defer a.Close()
	known := false
	read := 0
	err = a.Lines(ctx, func(line []byte) error {
		read += len(line)
		known = known || strings.HasPrefix(string(line), "vllm:num_requests") || strings.HasPrefix(string(line), "sglang:num_")
		if known || read > maxAnswer {
			return errEnough
		}
		return nil
	})
	switch {
	case known:
		p.metrics = "/metrics"
		p.found(featureMetrics, yes, "")
	case err != nil && !errors.Is(err, errEnough):
		p.found(featureMetrics, unknown, "%s", says(err))
	default:
		p.found(featureMetrics, no, "the page has no metrics that can steer the calls in flight")
	}
}

// errEnough stops reading a page.
var errEnough = errors.New("read far enough")
