// Package probe finds out what a model server can do, by asking it about twenty short
// questions, and writes the provider entry of a plan for it.
//
// It promises that every question is bounded in time and in what is read of its answer,
// that no text of a server reaches a report with a control character or in unbounded
// length, and that what could not be found out is reported as unknown, never as a guess.
//
// It is not for measuring how well a model answers or how fast a server is.
package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"parley/internal/dialect"
	"parley/internal/dialect/transport"
	"parley/internal/provider"
	"parley/internal/wire/fault"
	"parley/llm"
)

// Name is what the provider entry calls the server.
const Name = "lab"

// Config says whom to ask.
type Config struct {
	// BaseURL is everything before /chat/completions. Where nothing answers there, BaseURL/v1 is tried.
	BaseURL string
	// KeyEnv names the environment variable that holds the key. Default: no key is sent.
	KeyEnv string
	// Model is the model to ask. Default: the first that the server lists.
	Model string
	// Timeout bounds each question. Default: 30 seconds.
	Timeout time.Duration
}

// Verdict is the answer to a question about a server.
type Verdict string

// The verdicts.
const (
	Yes     Verdict = "yes"
	No      Verdict = "no"
	Unknown Verdict = "unknown"
)

// Finding is what was found out about one feature.
type Finding struct {
	Feature string  `json:"feature"`
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail,omitempty"` // why, or what the server said
}

// Report is what was found out about a server.
type Report struct {
	BaseURL  string    `json:"base_url"`
	Server   string    `json:"server,omitempty"` // what it says it is
	Model    string    `json:"model"`
	Models   []string  `json:"models"`            // the first that it lists
	Context  int       `json:"context,omitempty"` // tokens; 0 where it did not tell
	Findings []Finding `json:"findings"`
	// Provider is the entry for a plan, or nil where the server answers in no dialect.
	Provider *provider.Provider `json:"provider,omitempty"`
	// Entry is Provider as lines of a plan.
	Entry string `json:"entry,omitempty"`
}

// The features that are asked about, in the order of a report.
const (
	FeatureModels     = "model list"
	FeatureChat       = "chat completions"
	FeatureResponses  = "responses"
	FeatureMessages   = "messages"
	FeatureMaxTokens  = "max_tokens obeyed"
	FeatureMaxNew     = "max_completion_tokens obeyed"
	FeatureLimit      = "limit obeyed"
	FeatureSchema     = "JSON schema obeyed"
	FeatureTools      = "tools"
	FeatureStream     = "streaming"
	FeatureUsage      = "usage in streams"
	FeatureSystem     = "system message"
	FeatureSampling   = "sampling parameters"
	FeatureLogprobs   = "log probabilities"
	FeatureTokenIDs   = "token ids"
	FeatureBatch      = "batch API"
	FeatureMetrics    = "metrics"
	FeatureContext    = "context length"
	maxAnswer         = 4 << 20 // bytes of an answer that are read
	maxDetail         = 200     // bytes of a detail
	maxModels         = 100     // models that are listed
	maxModelName      = 200     // bytes of a model's name
	defaultTimeout    = 30 * time.Second
	answerTokens      = 16  // of most questions: the least that every API allows
	structuredTokens  = 200 // of questions that want JSON
	overrunMultiplier = 16  // bytes a token may have at most, where tokens are not counted
)

// prober is a probe under way.
type prober struct {
	cfg    Config
	client *transport.Client
	report Report

	dialect string              // the one that questions are asked in
	caps    provider.Capability // what has been found out so far
	metrics string
	batch   bool
}

// Run asks the server everything. An error means that there is no report: the address or
// the key is wrong, nothing answers, or no model is known.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	p := &prober{cfg: cfg, report: Report{Models: []string{}, Findings: []Finding{}}}
	if fault.Clean(cfg.Model, maxModelName) != cfg.Model {
		return nil, fmt.Errorf("probe: the model's name holds a control character or has more than %d bytes", maxModelName)
	}
	if err := p.open(strings.TrimRight(cfg.BaseURL, "/")); err != nil {
		return nil, err
	}
	defer func() { _ = p.client.Close() }() // idle connections
	if err := p.reach(ctx); err != nil {
		return nil, err
	}
	if p.report.Model == "" {
		return nil, errors.New("probe: the server lists no models: name one with --model")
	}
	if p.dialects(ctx); p.dialect != "" {
		p.features(ctx)
		p.surroundings(ctx)
		p.entry()
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("probe: %w", context.Cause(ctx))
	}
	return &p.report, nil
}

// open makes the client for everything that is not a question to a model.
func (p *prober) open(base string) error {
	c, err := transport.New(p.provider(base, "openai", provider.Capability{}), transport.Config{KeyPrefix: "Bearer ", MaxBody: maxAnswer})
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	p.client, p.report.BaseURL = c, base
	return nil
}

// provider is the server as an account, in a dialect.
func (p *prober) provider(base, dialect string, c provider.Capability) provider.Provider {
	c.Match = Name + "/*"
	return provider.Provider{
		Name: Name, Dialect: dialect, BaseURL: base, KeyEnv: p.cfg.KeyEnv, Timeout: p.cfg.Timeout,
		Stream: "never", Capabilities: []provider.Capability{c},
	}
}

// found notes a finding.
func (p *prober) found(feature string, v Verdict, format string, args ...any) {
	p.report.Findings = append(p.report.Findings, Finding{feature, v, fault.Clean(fmt.Sprintf(format, args...), maxDetail)})
}

// failed notes that a question failed: a request that is refused is a No, anything else says
// nothing about the feature.
func (p *prober) failed(feature string, err error) {
	v := Unknown
	if refused(err) {
		v = No
	}
	p.found(feature, v, "%s", says(err))
}

// refused says whether the server looked at a request and did not want it.
func refused(err error) bool {
	e := llm.AsError(err)
	return e.Kind == llm.KindBadRequest || e.Status == http.StatusNotImplemented
}

// says is an error in the server's words, without our own name for it.
func says(err error) string {
	e := *llm.AsError(err)
	e.Provider, e.Model = "", ""
	return e.Error()
}

// ask asks the model one question in a dialect.
func (p *prober) ask(ctx context.Context, dial string, c provider.Capability, req *llm.Request) (*llm.Response, error) {
	m, err := dialect.Open(p.provider(p.report.BaseURL, dial, c))
	if err != nil {
		return nil, err
	}
	if closer, ok := m.(io.Closer); ok {
		defer func() { _ = closer.Close() }() // idle connections
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	req.Model = Name + "/" + p.report.Model
	return m.Ask(ctx, req)
}

// question is a short request.
func question(text string, tokens int) *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.User(text)}, MaxTokens: tokens}
}

// dialects finds out in which formats the server answers.
func (p *prober) dialects(ctx context.Context) {
	for _, d := range []struct{ feature, dialect string }{
		{FeatureChat, "openai"}, {FeatureMessages, "anthropic"}, {FeatureResponses, "responses"},
	} {
		_, err := p.ask(ctx, d.dialect, provider.Capability{}, question("Say hello.", answerTokens))
		e := llm.AsError(err)
		switch {
		case err == nil:
			p.found(d.feature, Yes, "")
			if p.dialect == "" {
				p.dialect = d.dialect
			}
		case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented:
			p.found(d.feature, No, "%s", says(err))
		default:
			p.found(d.feature, Unknown, "%s", says(err))
		}
	}
}
