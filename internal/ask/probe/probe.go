// Package probe finds out what a model server can do, by asking it about twenty short
// questions, and writes the provider entry of a plan for it.
//
// Every question has limits of time and of bytes read. A report has no control characters
// and no unlimited text of a server. What could not be found out is reported as unknown,
// never guessed.
//
// It does not measure how well a model answers or how fast a server is.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// Name is the name of the provider entry.
const Name = "lab"

// Config says which server to ask.
type Config struct {
	// BaseURL is everything before /chat/completions. If BaseURL/v1 lists models, it is used instead.
	BaseURL string
	// KeyEnv names the environment variable that holds the key. Default: no key is sent.
	KeyEnv string
	// Model is the model to ask. Default: the first that the server lists.
	Model string
	// Timeout limits each question. Default: 30 seconds.
	Timeout time.Duration
}

// Verdict is the answer to a question about a server.
type Verdict string

// The verdicts.
const (
	yes     Verdict = "yes"
	no      Verdict = "no"
	unknown Verdict = "unknown"
)

// Finding is the result for one feature.
type Finding struct {
	Feature string  `json:"feature"`
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail,omitempty"` // why, or what the server said
}

// Report holds the findings about a server.
type Report struct {
	BaseURL  string    `json:"base_url"`
	Server   string    `json:"server,omitempty"` // as it names itself
	Model    string    `json:"model"`
	Models   []string  `json:"models"`            // the first that it lists
	Context  int       `json:"context,omitempty"` // tokens; 0: unknown
	Findings []Finding `json:"findings"`
	// Provider is the entry for a plan. Nil: the server answers in no dialect.
	Provider *provider.Provider `json:"provider,omitempty"`
	// Entry is Provider as lines of a plan.
	Entry string `json:"entry,omitempty"`
}

// The features to ask about, in the order of a report.
const (
	featureModels     = "model list"
	featureChat       = "chat completions"
	featureResponses  = "responses"
	featureMessages   = "messages"
	featureMaxTokens  = "max_tokens obeyed"
	featureMaxNew     = "max_completion_tokens obeyed"
	featureLimit      = "limit obeyed"
	featureSchema     = "JSON schema obeyed"
	featureTools      = "tools"
	featureStream     = "streaming"
	featureUsage      = "usage in streams"
	featureSystem     = "system message"
	featureSampling   = "sampling parameters"
	featureLogprobs   = "log probabilities"
	featureTokenIDs   = "token ids"
	featureBatch      = "batch API"
	featureMetrics    = "metrics"
	featureContext    = "context length"
	maxAnswer         = 4 << 20 // bytes of an answer that are read
	maxDetail         = 200     // bytes of a detail
	maxModels         = 100     // models that are listed
	maxModelName      = 200     // bytes of a model's name
	defaultTimeout    = 30 * time.Second
	answerTokens      = 16  // of most questions: the least that every API allows
	structuredTokens  = 200 // of questions that want JSON
	overrunMultiplier = 16  // the most bytes of a token, if tokens are not counted
)

// prober is a probe in progress.
type prober struct {
	cfg    Config
	client *transport.Client
	report Report

	dialect string              // of the questions
	caps    provider.Capability // found so far
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
		return nil, fmt.Errorf("the model's name has a control character or more than %d bytes", maxModelName)
	}
	if err := p.open(strings.TrimRight(cfg.BaseURL, "/")); err != nil {
		return nil, err
	}
	defer func() { _ = p.client.Close() }() // idle connections
	if err := p.findServer(ctx); err != nil {
		return nil, err
	}
	if p.report.Model == "" {
		return nil, errors.New("the server lists no models: name one with --model")
	}
	if p.dialects(ctx); p.dialect != "" {
		p.features(ctx)
		p.surroundings(ctx)
		p.entry()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return &p.report, nil
}

// open makes the client for everything that is not a question to a model.
func (p *prober) open(base string) error {
	c, err := transport.New(p.provider(base, "openai", provider.Capability{}), transport.Config{KeyPrefix: "Bearer ", MaxBody: maxAnswer})
	if err != nil {
		return err
	}
	p.client, p.report.BaseURL = c, base
	return nil
}

// provider returns the server as a provider with a dialect.
func (p *prober) provider(base, dialect string, c provider.Capability) provider.Provider {
	c.Match = Name + "/*"
	return provider.Provider{
		Name: Name, Dialect: dialect, BaseURL: base, KeyEnv: p.cfg.KeyEnv, Timeout: p.cfg.Timeout,
		Stream: "never", Capabilities: []provider.Capability{c},
	}
}

// note adds a finding.
func (p *prober) note(feature string, v Verdict, format string, args ...any) {
	p.report.Findings = append(p.report.Findings, Finding{feature, v, fault.Clean(fmt.Sprintf(format, args...), maxDetail)})
}

// failed adds the finding of a failed question: No for a refused request, and unknown for any
// other failure.
func (p *prober) failed(feature string, err error) {
	v := unknown
	if refused(err) {
		v = no
	}
	p.note(feature, v, "%s", errorText(err))
}

// refused reports whether the server read a request and rejected it.
func refused(err error) bool {
	e := llm.AsError(err)
	return e.Kind == llm.KindBadRequest || e.Status == http.StatusNotImplemented
}

// errorText returns the server's message of an error, without our prefix.
func errorText(err error) string {
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
		{featureChat, "openai"}, {featureMessages, "anthropic"}, {featureResponses, "responses"},
	} {
		_, err := p.ask(ctx, d.dialect, provider.Capability{}, question("Say hello.", answerTokens))
		e := llm.AsError(err)
		switch {
		case err == nil:
			p.note(d.feature, yes, "")
			if p.dialect == "" {
				p.dialect = d.dialect
			}
		case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented:
			p.note(d.feature, no, "%s", errorText(err))
		default:
			p.note(d.feature, unknown, "%s", errorText(err))
		}
	}
}

// entry writes the provider of a plan.
func (p *prober) entry() {
	e := provider.Provider{Name: Name, Dialect: p.dialect, BaseURL: p.report.BaseURL, KeyEnv: p.cfg.KeyEnv, Metrics: p.metrics}
	if c := p.caps; !isDefault(c) {
		c.Match = Name + "/*"
		e.Capabilities = []provider.Capability{c}
	}
	if p.batch {
		e.Batch = &provider.Batch{}
	}
	p.report.Provider = &e
	p.report.Entry = entryLines(e, p.report.Model)
}

// isDefault reports whether there is nothing to write about a server's models.
func isDefault(c provider.Capability) bool {
	b, err := json.Marshal(c)
	return err == nil && string(b) == `{"match":""}`
}

// entryLines returns a provider as YAML, with an agent that uses it.
func entryLines(e provider.Provider, model string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "providers:\n  %s:\n    dialect: %s\n    base_url: %s\n", e.Name, e.Dialect, strconv.Quote(e.BaseURL))
	if e.KeyEnv != "" {
		fmt.Fprintf(&b, "    key_env: %s\n", e.KeyEnv)
	}
	if e.Metrics != "" {
		fmt.Fprintf(&b, "    metrics: %s\n", e.Metrics)
	}
	if e.Batch != nil {
		fmt.Fprint(&b, "    batch: {}\n")
	}
	for _, c := range e.Capabilities {
		if raw, err := json.Marshal(c); err == nil {
			fmt.Fprintf(&b, "    capabilities: [%s]\n", spacedJSON(raw))
		}
	}
	name, err := json.Marshal(e.Name + "/" + model)
	if err != nil {
		return ""
	}
	fmt.Fprintf(&b, "agents:\n  player: {model: %s}\n", name)
	return b.String()
}

// spacedJSON writes a flat JSON object in the usual style of YAML: keys without quotes, spaces
// after commas and colons.
func spacedJSON(object []byte) string {
	var b strings.Builder
	text, key := false, true
	for _, c := range object {
		switch {
		case c == '"':
			text = !text
			if !key {
				b.WriteByte(c)
			}
		case text:
			b.WriteByte(c)
		case c == ',':
			b.WriteString(", ")
			key = true
		case c == ':':
			b.WriteString(": ")
			key = false
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
