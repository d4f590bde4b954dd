package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"parley/internal/ask/provider"
	"parley/internal/ask/transport"
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
		p.found(feature, v, "the answer has %d tokens, but the limit was %d: a budget cannot rely on it", n, answerTokens)
	case n == 0 && len(r.Text) > answerTokens*overrunMultiplier:
		v = no
		p.found(feature, v, "the answer has %d bytes, but the limit was %d tokens: a budget cannot rely on it", len(r.Text), answerTokens)
	case r.Finish == llm.FinishLength || n == answerTokens:
		v = yes
		p.found(feature, v, "")
	default:
		p.found(feature, v, "the answer ended below the limit, after %d tokens", n)
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
		p.found(featureSchema, unknown, "this dialect puts the schema into the prompt")
	case follows(r.Text):
		p.found(featureSchema, yes, "")
	case r.Finish == llm.FinishLength && len(r.Text) > 0 && r.Text[0] == '{':
		p.found(featureSchema, unknown, "the answer began as JSON and was cut off")
	default:
		p.caps.NoSchema = true
		p.found(featureSchema, no, "the server silently ignores the schema: the answer is %q", r.Text)
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
			p.found(featureTools, yes, "accepted, and the answer had %d tool calls; the server refuses to force a call: %s", len(r.ToolCalls), says(err))
			return
		}
	}
	switch {
	case err != nil:
		p.caps.NoTools = refused(err)
		p.failed(featureTools, err)
	case len(r.ToolCalls) > 0:
		p.found(featureTools, yes, "")
	default:
		p.caps.NoTools = true
		p.found(featureTools, no, "the server or the model's chat template silently ignores tools")
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
		p.found(featureStream, no, "the answer was not streamed")
		return
	case !seen.done:
		p.found(featureStream, yes, "without [DONE] at the end")
	default:
		p.found(featureStream, yes, "")
	}
	switch {
	case seen.usage && p.caps.NoStreamOptions:
		p.found(featureUsage, yes, "sent without stream_options, which the server refuses")
	case seen.usage:
		p.found(featureUsage, yes, "")
	default:
		p.found(featureUsage, no, "a stream does not report its tokens")
	}
}

// seen is the result of reading a stream.
type seen struct{ stream, usage, done bool }

func (p *prober) events(ctx context.Context, options bool) (seen, error) {
	req := question(plainQuestion, answerTokens)
	req.Model = Name + "/" + p.report.Model
	b, _, err := openai.AppendRequest(nil, req, provider.Capability{UseMaxTokens: p.caps.UseMaxTokens, NoStreamOptions: !options}, true)
	if err != nil {
		return seen{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	a, err := p.client.Do(ctx, transport.Request{Path: openai.Path, Body: b})
	if err != nil {
		return seen{}, err
	}
	defer a.Close()
	s := seen{stream: a.IsStream()}
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
	p.found(featureSystem, yes, "")
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
		p.found(featureSampling, yes, "")
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
	p.found(featureSampling, no, "refused: %v: %s", not, says(err))
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
		p.found(featureLogprobs, yes, "")
	default:
		p.caps.NoLogprobs = true
		p.found(featureLogprobs, no, "the answer has none")
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
			p.found(featureTokenIDs, yes, "")
			return
		}
	}
	if err != nil {
		p.failed(featureTokenIDs, err)
		return
	}
	p.found(featureTokenIDs, no, "the answer has none")
}
