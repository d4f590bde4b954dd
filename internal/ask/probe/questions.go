package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/openai"
	"parley/internal/kit/sse"
	"parley/llm"
)

const (
	longQuestion  = "Count from one to one hundred in words, separated by commas."
	plainQuestion = "Write one sentence about the sea."
)

// features asks the model about everything that a plan can use.
func (p *prober) features(ctx context.Context) {
	p.limits(ctx)
	p.schema(ctx)
	p.tools(ctx)
	p.stream(ctx)
	p.system(ctx)
	p.sampling(ctx)
	p.logprobs(ctx)
	p.tokenIDs(ctx)
}

// limits finds out which limit on the tokens of an answer the server obeys. In the openai dialect
// it has two names.
func (p *prober) limits(ctx context.Context) {
	if p.dialect != "openai" {
		r, err := p.ask(ctx, p.dialect, p.caps, question(longQuestion, answerTokens))
		p.limit(featureLimit, r, err)
		return
	}
	obeyed := map[string]Verdict{}
	for _, f := range []struct{ feature, field string }{{featureMaxTokens, "max_tokens"}, {featureMaxNew, "max_completion_tokens"}} {
		req := question(longQuestion, 0)
		req.Extra = map[string]json.RawMessage{f.field: json.RawMessage(fmt.Sprint(answerTokens))}
		r, err := p.ask(ctx, p.dialect, p.caps, req)
		obeyed[f.field] = p.limit(f.feature, r, err)
	}
	p.caps.UseMaxTokens = obeyed["max_completion_tokens"] == no && obeyed["max_tokens"] != no
}

// limit checks whether an answer keeps to answerTokens.
func (p *prober) limit(feature string, r *llm.Response, err error) Verdict {
	if err != nil {
		p.failed(feature, err)
		return p.report.Findings[len(p.report.Findings)-1].Verdict
	}
	n := r.Usage.Output
	v := unknown
	switch {
	case n > answerTokens:
		v = no
		p.note(feature, v, "the answer has %d tokens, but the limit was %d: a budget cannot rely on it", n, answerTokens)
	case n == 0 && len(r.Text) > answerTokens*overrunMultiplier:
		v = no
		p.note(feature, v, "the answer has %d bytes, but the limit was %d tokens: a budget cannot rely on it", len(r.Text), answerTokens)
	case r.Finish == llm.FinishLength || n == answerTokens:
		v = yes
		p.note(feature, v, "")
	default:
		p.note(feature, v, "the answer ended below the limit, after %d tokens", n)
	}
	return v
}

// form is a schema that no plain answer matches by chance.
const form = `{"type":"object","properties":{"colour":{"type":"string","enum":["red","green","blue"]}},"required":["colour"],"additionalProperties":false}`

func follows(text string) bool {
	var v map[string]string
	return json.Unmarshal([]byte(text), &v) == nil && len(v) == 1 && slices.Contains([]string{"red", "green", "blue"}, v["colour"])
}

func (p *prober) schema(ctx context.Context) {
	req := question(plainQuestion, structuredTokens)
	req.Schema = &llm.Schema{Name: "colour", JSON: json.RawMessage(form)}
	r, err := p.ask(ctx, p.dialect, p.caps, req)
	switch {
	case err != nil:
		p.caps.NoSchema = refused(err)
		p.failed(featureSchema, err)
	case slices.Contains(r.Dropped, "schema"):
		p.note(featureSchema, unknown, "this dialect puts the schema into the prompt")
	case follows(r.Text):
		p.note(featureSchema, yes, "")
	case r.Finish == llm.FinishLength && len(r.Text) > 0 && r.Text[0] == '{':
		p.note(featureSchema, unknown, "the answer began as JSON and was cut off")
	default:
		p.caps.NoSchema = true
		p.note(featureSchema, no, "the server silently ignores the schema: the answer is %q", r.Text)
	}
}

func (p *prober) tools(ctx context.Context) {
	req := question("Look at the sea.", structuredTokens)
	req.Tools = []llm.Tool{{Name: "look", Description: "Looks at something.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"at":{"type":"string"}},"required":["at"],"additionalProperties":false}`)}}
	req.ToolChoice = "required"
	r, err := p.ask(ctx, p.dialect, p.caps, req)
	if err != nil && refused(err) {
		req.ToolChoice = ""
		if r, free := p.ask(ctx, p.dialect, p.caps, req); free == nil {
			p.caps.NoForce = true
			p.note(featureTools, yes, "accepted, and the answer had %d tool calls; the server refuses to force a call: %s", len(r.ToolCalls), errorText(err))
			return
		}
	}
	switch {
	case err != nil:
		p.caps.NoTools = refused(err)
		p.failed(featureTools, err)
	case len(r.ToolCalls) > 0:
		p.note(featureTools, yes, "")
	default:
		p.caps.NoTools = true
		p.note(featureTools, no, "the server or the model's chat template silently ignores tools")
	}
}

// stream reads a stream as it comes, since a dialect also accepts an answer that is not a stream.
func (p *prober) stream(ctx context.Context) {
	if p.dialect != "openai" {
		return
	}
	seen, err := p.events(ctx, true)
	if err != nil && refused(err) {
		if bare, free := p.events(ctx, false); free == nil {
			seen, err, p.caps.NoStreamOptions = bare, nil, true
		}
	}
	switch {
	case err != nil:
		p.failed(featureStream, err)
		return
	case !seen.stream:
		p.note(featureStream, no, "the answer was not streamed")
		return
	case !seen.done:
		p.note(featureStream, yes, "without [DONE] at the end")
	default:
		p.note(featureStream, yes, "")
	}
	switch {
	case seen.usage && p.caps.NoStreamOptions:
		p.note(featureUsage, yes, "sent without stream_options, which the server refuses")
	case seen.usage:
		p.note(featureUsage, yes, "")
	default:
		p.note(featureUsage, no, "a stream does not report its tokens")
	}
}

// streamTraits is the result of reading a stream.
type streamTraits struct{ stream, usage, done bool }

func (p *prober) events(ctx context.Context, options bool) (streamTraits, error) {
	req := question(plainQuestion, answerTokens)
	req.Model = Name + "/" + p.report.Model
	b, _, err := openai.AppendRequest(nil, req, provider.Capability{UseMaxTokens: p.caps.UseMaxTokens, NoStreamOptions: !options}, true)
	if err != nil {
		return streamTraits{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	a, err := p.client.Do(ctx, transport.Request{Path: openai.Path, Body: b})
	if err != nil {
		return streamTraits{}, err
	}
	defer a.Close()
	s := streamTraits{stream: a.IsStream()}
	if !s.stream {
		return s, nil
	}
	err = a.Events(ctx, func(e sse.Event) (bool, error) {
		var chunk struct {
			Usage struct {
				Output int `json:"completion_tokens"`
			} `json:"usage"`
		}
		s.done = e.Done()
		s.usage = s.usage || json.Unmarshal(e.Data, &chunk) == nil && chunk.Usage.Output > 0
		return s.done, nil
	})
	return s, err
}

func (p *prober) system(ctx context.Context) {
	req := question("Say hello.", answerTokens)
	req.Messages = append([]llm.Message{llm.System("You are brief.")}, req.Messages...)
	if _, err := p.ask(ctx, p.dialect, p.caps, req); err != nil {
		p.caps.NoSystem = refused(err)
		p.failed(featureSystem, err)
		return
	}
	p.note(featureSystem, yes, "")
}

// sampling sends all parameters in one request and, if that is refused, each family alone.
func (p *prober) sampling(ctx context.Context) {
	half, seed := 0.5, int64(1)
	families := []struct {
		name    string
		put     func(*llm.Request)
		refuses *bool
	}{
		{"temperature and top_p", func(r *llm.Request) { r.Temperature, r.TopP = &half, &half }, &p.caps.NoSampling},
		{"penalties", func(r *llm.Request) { r.FrequencyPenalty, r.PresencePenalty = &half, &half }, &p.caps.NoPenalties},
		{"seed", func(r *llm.Request) { r.Seed = &seed }, &p.caps.NoSeed},
		{"stop", func(r *llm.Request) { r.Stop = []string{"###"} }, &p.caps.NoStop},
	}
	all := question("Say hello.", answerTokens)
	for _, f := range families {
		f.put(all)
	}
	_, err := p.ask(ctx, p.dialect, p.caps, all)
	switch {
	case err == nil:
		p.note(featureSampling, yes, "")
		return
	case !refused(err):
		p.failed(featureSampling, err)
		return
	}
	var not []string
	for _, f := range families {
		one := question("Say hello.", answerTokens)
		f.put(one)
		if _, err := p.ask(ctx, p.dialect, p.caps, one); err != nil && refused(err) {
			*f.refuses = true
			not = append(not, f.name)
		}
	}
	p.note(featureSampling, no, "refused: %v: %s", not, errorText(err))
}

func (p *prober) logprobs(ctx context.Context) {
	req := question(plainQuestion, answerTokens)
	req.Logprobs = true
	r, err := p.ask(ctx, p.dialect, p.caps, req)
	switch {
	case err != nil:
		p.caps.NoLogprobs = refused(err)
		p.failed(featureLogprobs, err)
	case len(r.Logprobs) > 0:
		p.note(featureLogprobs, yes, "")
	default:
		p.caps.NoLogprobs = true
		p.note(featureLogprobs, no, "the answer has none")
	}
}

// tokenIDs asks for token ids with the parameters of vLLM, then with those of SGLang.
func (p *prober) tokenIDs(ctx context.Context) {
	if p.dialect != "openai" {
		return
	}
	var err error
	for _, c := range []provider.Capability{{TokenIDs: true}, {TokenIDs: true, SGLangTokenIDs: true}} {
		try := p.caps
		try.TokenIDs, try.SGLangTokenIDs, try.NoLogprobs = c.TokenIDs, c.SGLangTokenIDs, false
		req := question(plainQuestion, answerTokens)
		req.TokenIDs = true
		var r *llm.Response
		if r, err = p.ask(ctx, p.dialect, try, req); err == nil && len(r.TokenIDs) > 0 && len(r.PromptTokenIDs) > 0 {
			p.caps.TokenIDs, p.caps.SGLangTokenIDs = try.TokenIDs, try.SGLangTokenIDs
			p.note(featureTokenIDs, yes, "")
			return
		}
	}
	if err != nil {
		p.failed(featureTokenIDs, err)
		return
	}
	p.note(featureTokenIDs, no, "the answer has none")
}

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

// findServer finds the server's base URL and the model to ask.
func (p *prober) findServer(ctx context.Context) error {
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
	p.note(featureModels, yes, "%d%s", len(list.Data), where)
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
		return fmt.Errorf("%s/models: %s", p.report.BaseURL, errorText(err))
	case llm.KindOf(err) == llm.KindAuth && p.cfg.KeyEnv != "":
		return fmt.Errorf("%s/models: %s; the key in the environment variable %s was refused: check it, and that it is for this server", p.report.BaseURL, errorText(err), p.cfg.KeyEnv)
	case llm.KindOf(err) == llm.KindAuth:
		return fmt.Errorf("%s/models: %s; name the variable that holds the key with --key-env", p.report.BaseURL, errorText(err))
	}
	for _, end := range []string{"/chat/completions", "/completions", "/responses", "/messages", "/models"} {
		if strings.HasSuffix(p.report.BaseURL, end) {
			return fmt.Errorf("%s/models: %s; leave out %s: the address is everything before it", p.report.BaseURL, errorText(err), end)
		}
	}
	if p.report.Model == "" && provider.Unversioned(p.report.BaseURL) {
		return fmt.Errorf("%s/models: %s; %s/v1/models has no list either: if this is the address of a model server, name a model with --model", p.report.BaseURL, errorText(err), p.report.BaseURL)
	}
	if p.report.Model == "" {
		return fmt.Errorf("%s/models: %s; if the address is right, name a model with --model", p.report.BaseURL, errorText(err))
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
		p.note(featureContext, unknown, "the server does not report it")
		return
	}
	p.note(featureContext, yes, "%d tokens", p.report.Context)
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
		p.note(featureBatch, yes, "")
	case err == nil:
		p.note(featureBatch, unknown, "the answer is not a list of batches")
	case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented:
		p.note(featureBatch, no, "plans cannot use waves")
	default:
		p.note(featureBatch, unknown, "%s", errorText(err))
	}
}

// lookMetrics looks for the page of metrics, which can steer the calls in flight.
func (p *prober) lookMetrics(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	a, err := p.client.Do(ctx, transport.Request{Method: http.MethodGet, Path: "/metrics", Root: true})
	if err != nil {
		p.note(featureMetrics, no, "")
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
		p.note(featureMetrics, yes, "")
	case err != nil && !errors.Is(err, errEnough):
		p.note(featureMetrics, unknown, "%s", errorText(err))
	default:
		p.note(featureMetrics, no, "the page has no metrics that can steer the calls in flight")
	}
}

// errEnough stops reading a page.
var errEnough = errors.New("read far enough")
