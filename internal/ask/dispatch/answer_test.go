package dispatch

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/llm"
)

// form is a schema that can be found in a prompt.
const form = `{"type":"object","properties":{"zebra":{"type":"integer"}},"required":["zebra"]}`

func shaped(model, text string) *llm.Request {
	return &llm.Request{Model: model, Messages: []llm.Message{llm.User(text)}, Schema: &llm.Schema{Name: "z", JSON: json.RawMessage(form)}, MaxTokens: 10}
}

// TestSchemaInThePrompt distinguishes servers that are known to follow native schemas from those
// that are not.
func TestSchemaInThePrompt(t *testing.T) {
	t.Parallel()
	lab := func(c provider.Capability) provider.Provider {
		c.Match = "*"
		return provider.Provider{Dialect: "openai", BaseURL: "http://127.0.0.1:1/v1", Capabilities: []provider.Capability{c}}
	}
	preset := func(name, url string) provider.Provider {
		p, _ := provider.Lookup(name)
		if url != "" {
			p.BaseURL = url
		}
		return p
	}
	for name, c := range map[string]struct {
		p     provider.Provider
		shown bool
	}{
		"a server of one's own":              {lab(provider.Capability{}), true},
		"one without":                        {lab(provider.Capability{NoSchema: true}), true},
		"one that is configured to follow":   {lab(provider.Capability{Schema: true}), false},
		"openai":                             {preset("openai", ""), false},
		"openai in a region":                 {preset("openai", "https://eu.api.openai.com/v1"), false},
		"something else in openai's place":   {preset("openai", "http://127.0.0.1:1/v1"), true},
		"something that ends like openai":    {preset("openai", "https://fakeapi.openai.com/v1"), true},
		"anthropic":                          {preset("anthropic", ""), false},
		"vllm, wherever it runs":             {preset("vllm", "http://gpu7:8000/v1"), false},
		"the simulated one under other name": {provider.Provider{Dialect: "sim"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.p.Name == "" {
				c.p.Name = "lab"
			}
			var got []*llm.Request
			m := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
				got = append(got, req)
				return &llm.Response{Text: `{"zebra":1}`, Finish: llm.FinishStop, Usage: llm.Usage{Input: 1, Output: 1}}, nil
			})
			d, err := New(Config{Lanes: []Lane{{Provider: c.p, Model: m}}})
			if err != nil {
				t.Fatal(err)
			}
			req := shaped(c.p.Name+"/any", "How many?")
			if _, err := d.Ask(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			sent := got[0]
			if len(sent.Messages) != 1 || sent.Schema == nil || !strings.HasPrefix(sent.Messages[0].Text(), "How many?") {
				t.Errorf("sent %+v", sent)
			}
			if shown := strings.Contains(sent.Messages[0].Text(), form); shown != c.shown {
				t.Errorf("the schema is in the prompt: %v", shown)
			}
			if req.Messages[0].Text() != "How many?" {
				t.Error("the caller's request was changed")
			}
		})
	}
}

// TestSchemaThatWasIgnored: a server that is trusted with schemas ignores one. The repair shows it,
// and so does every later prompt of that model, but of no other.
func TestSchemaThatWasIgnored(t *testing.T) {
	t.Parallel()
	var got []*llm.Request
	m := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		got = append(got, req)
		text := "Certainly!"
		for _, msg := range req.Messages {
			if strings.Contains(msg.Text(), form) {
				text = `{"zebra":1}`
			}
		}
		return &llm.Response{Text: text, Finish: llm.FinishStop, Usage: llm.Usage{Input: 1, Output: 1}}, nil
	})
	p, _ := provider.Lookup("vllm")
	d, err := New(Config{Lanes: []Lane{{Provider: p, Model: m}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := d.Ask(t.Context(), shaped("vllm/any", "How many?")); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 3 {
		t.Fatalf("%d attempts, want 2 and 1", len(got))
	}
	if strings.Contains(got[0].Messages[0].Text(), form) || !strings.Contains(got[1].Messages[2].Text(), form) || !strings.Contains(got[2].Messages[0].Text(), form) {
		t.Errorf("sent %+v", got)
	}
	s := d.Stats().Models["vllm/any"]
	if s.Repaired != 1 || s.Native != 1 || s.Malformed != 0 {
		t.Errorf("counted %+v", s)
	}
	if _, err := d.Ask(t.Context(), shaped("vllm/other", "How many?")); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got[3].Messages[0].Text(), form) {
		t.Error("another model was not trusted either")
	}
}

// TestSchemaNotAskedNatively: unknown servers that ignore a schema get it only in the prompt, in
// the repair and from then on. One that follows it in part gets it both ways.
func TestSchemaNotAskedNatively(t *testing.T) {
	t.Parallel()
	for first, native := range map[string]bool{"Certainly!": false, `{"horse":1}`: false, "```json\n{}\n```": false, `{"zebra":"many"}`: true} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			var got []*llm.Request
			m := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
				got = append(got, req)
				text := first
				if len(got) > 1 {
					text = `{"zebra":1}`
				}
				return &llm.Response{Text: text, Finish: llm.FinishStop, Usage: llm.Usage{Input: 1, Output: 1}}, nil
			})
			d, err := New(Config{Lanes: []Lane{{Provider: provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "http://127.0.0.1:1/v1"}, Model: m}}})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if resp, err := d.Ask(t.Context(), shaped("lab/any", "How many?")); err != nil || string(resp.JSON) != `{"zebra":1}` {
					t.Fatal(resp, err)
				}
			}
			if _, err := d.Ask(t.Context(), shaped("lab/other", "How many?")); err != nil {
				t.Fatal(err)
			}
			for i, want := range []bool{true, native, native, true} {
				if len(got) != 4 || (got[i].Schema != nil) != want || !strings.Contains(got[i].Messages[0].Text(), form) {
					t.Errorf("request %d of %d: sent natively should be %v: %+v", i, len(got), want, got[i])
				}
			}
		})
	}
}

// TestSchemaCutOff: an answer that was cut off at its limit, or refused, does not mean that the
// server ignores schemas.
func TestSchemaCutOff(t *testing.T) {
	t.Parallel()
	schema := &llm.Schema{JSON: json.RawMessage(form)}
	for _, follows := range []bool{true, false} {
		s := newSchemas(func(string) bool { return follows })
		first := s.wayOf("p/m")
		s.judge("p/m", schema, &llm.Response{Provider: "p", Finish: llm.FinishLength})
		s.judge("p/m", schema, &llm.Response{Provider: "p", Finish: llm.FinishRefused})
		s.judge("p/m", schema, &llm.Response{Provider: "fallback", Finish: llm.FinishStop})
		if s.wayOf("p/m") != first {
			t.Error("the model is not trusted any more")
		}
		s.judge("p/m", schema, &llm.Response{Provider: "p", Finish: llm.FinishStop})
		if want := map[bool]schemaWay{true: byBoth, false: byPrompt}[follows]; s.wayOf("p/m") != want {
			t.Errorf("reported %v, want %v", s.wayOf("p/m"), want)
		}
	}
}

// TestSchemaIsReserved: a budget that holds exactly one call with its schema must not refuse the
// call for what was added to it.
func TestSchemaIsReserved(t *testing.T) {
	t.Parallel()
	prices, err := price.Read(strings.NewReader(`{"models":{"lab/*":{"input":1000,"output":1000}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	var sent *llm.Request
	m := llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		sent = req
		return &llm.Response{Text: `{"zebra":1}`, Finish: llm.FinishStop, Usage: llm.Usage{Input: 1, Output: 1}}, nil
	})
	p := provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "http://127.0.0.1:1/v1"}
	open := func(limit llm.Money) *Dispatcher {
		d, err := New(Config{Lanes: []Lane{{Provider: p, Model: m}}, Prices: prices, Budget: budget.New(limit, 0)})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	req := shaped("lab/any", "How many?")
	worst, err := open(0).Worst(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(worst).Ask(t.Context(), req); err != nil {
		t.Error(err)
	}
	found, _ := prices.Find("lab/any")
	if real := budget.Worst(found, sent, false); real > worst {
		t.Errorf("%v may be spent, and %v was set aside", real, worst)
	}
	if _, err := open(worst-1).Ask(t.Context(), req); llm.KindOf(err) != llm.KindBudget || !strings.Contains(err.Error(), " sets aside ") {
		t.Errorf("one less is refused only when it was begun: %v", err)
	}
}
