package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"parley/internal/ask/answer"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/world"
)

func model(t testing.TB, cfg Config) *Model {
	t.Helper()
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(t testing.TB, m *Model, req *llm.Request) *llm.Response {
	t.Helper()
	r, err := m.Ask(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func question(text string) *llm.Request {
	return &llm.Request{Model: "sim/small", Messages: []llm.Message{llm.System("You are terse."), llm.User(text)}}
}

const orderSchema = `{"type":"object","properties":{"why":{"type":"string"},"order":{"enum":["hold","move","support"]},"n":{"type":"integer","minimum":1,"maximum":9}},"required":["why","order","n"],"additionalProperties":false}`

func structured(text string) *llm.Request {
	r := question(text)
	r.Schema = &llm.Schema{Name: "order", JSON: json.RawMessage(orderSchema)}
	return r
}

func TestAnswersDependOnTheQuestionOnly(t *testing.T) {
	t.Parallel()
	const n = 400
	answers := func(width int) []string {
		m := model(t, Config{Seed: 7})
		out := make([]string, n)
		var wg sync.WaitGroup
		for w := range width {
			wg.Go(func() {
				for i := w; i < n; i += width {
					req := question(fmt.Sprint("question ", i/2)) // each twice
					if i%2 == 0 {
						req = structured(fmt.Sprint("question ", i))
					}
					r, err := m.Ask(context.Background(), req)
					if err != nil {
						t.Error(err)
						return
					}
					out[i] = r.Text + r.ID
				}
			})
		}
		wg.Wait()
		return out
	}
	if one, many := answers(1), answers(64); !reflect.DeepEqual(one, many) {
		t.Error("answers at 1 and 64 in flight differ")
	}
}

func TestWhatChangesAnAnswer(t *testing.T) {
	t.Parallel()
	m := model(t, Config{})
	base := ask(t, m, question("hello there"))
	warm, seed := 0.7, int64(3)
	changes := map[string]func(*llm.Request){
		"message":     func(r *llm.Request) { r.Messages[1] = llm.User("hello where") },
		"system":      func(r *llm.Request) { r.Messages[0] = llm.System("You are not.") },
		"model":       func(r *llm.Request) { r.Model = "sim/other" },
		"temperature": func(r *llm.Request) { r.Temperature = &warm },
		"seed":        func(r *llm.Request) { r.Seed = &seed },
		"sample":      func(r *llm.Request) { r.Sample = 1 },
	}
	for name, change := range changes {
		req := question("hello there")
		change(req)
		if got := ask(t, m, req); got.ID == base.ID || got.Text == base.Text {
			t.Errorf("%s: the answer is the same", name)
		}
	}
	same := map[string]func(*llm.Request){
		"provider":  func(r *llm.Request) { r.Model = "lab/small" },
		"max":       func(r *llm.Request) { r.MaxTokens = 4000 },
		"order":     func(r *llm.Request) { r.Order = 5 },
		"logprobs":  func(r *llm.Request) { r.Logprobs = true },
		"token ids": func(r *llm.Request) { r.TokenIDs = true },
	}
	for name, change := range same {
		req := question("hello there")
		change(req)
		if got := ask(t, m, req); got.Text != base.Text {
			t.Errorf("%s: the answer is another", name)
		}
	}
	if got := ask(t, model(t, Config{Seed: 1}), question("hello there")); got.Text == base.Text {
		t.Error("another seed gives the same answer")
	}
}

func TestMaxTokensAndStopCut(t *testing.T) {
	t.Parallel()
	m := model(t, Config{MinTokens: 60, MaxTokens: 80})
	whole := ask(t, m, question("tell me"))
	if whole.Finish != llm.FinishStop || whole.Usage.Output != CountTokens(whole.Text)+1 || whole.Usage.Output < 50 {
		t.Fatalf("%+v", whole)
	}
	req := question("tell me")
	req.MaxTokens = 10
	cut := ask(t, m, req)
	if cut.Finish != llm.FinishLength || cut.Usage.Output != 10 || !strings.HasPrefix(whole.Text, cut.Text) {
		t.Errorf("%+v", cut)
	}
	req = question("tell me")
	req.Stop = []string{"never in there", whole.Text[20:24]}
	stopped := ask(t, m, req)
	if stopped.Finish != llm.FinishStop || strings.Contains(stopped.Text, whole.Text[20:24]) || !strings.HasPrefix(whole.Text, stopped.Text) {
		t.Errorf("%+v", stopped)
	}
}

func TestToolsAreCalled(t *testing.T) {
	t.Parallel()
	m := model(t, Config{})
	called := 0
	for i := range 100 {
		req := question(fmt.Sprint("weather in ", i))
		req.Tools = []llm.Tool{{Name: "weather", Parameters: json.RawMessage(orderSchema)}, {Name: "nothing"}}
		if i%2 == 0 {
			req.ToolChoice = "weather"
		}
		r := ask(t, m, req)
		if len(r.ToolCalls) == 0 {
			if i%2 == 0 {
				t.Fatal("a forced tool was not called")
			}
			continue
		}
		called++
		for _, c := range r.ToolCalls {
			var v map[string]any
			if err := json.Unmarshal([]byte(c.Arguments), &v); err != nil || r.Finish != llm.FinishTools {
				t.Errorf("%v %+v", err, r)
			}
			if i%2 == 0 && (c.Name != "weather" || v["order"] == nil) {
				t.Errorf("%+v", c)
			}
		}
		req.ToolChoice = "none"
		if r := ask(t, m, req); len(r.ToolCalls) > 0 {
			t.Error("a tool was called against tool_choice none")
		}
	}
	if called < 60 || called > 90 {
		t.Errorf("tools called %d times of 100, 50 of them forced", called)
	}
}

// answers is a kind that only has a stand-in.
type answers struct{}

func (answers) About() world.About                { return world.About{Name: "answers", Version: 1} }
func (answers) Defaults() *struct{}               { return &struct{}{} }
func (answers) Seats(*struct{}) ([]string, error) { return []string{"a"}, nil }
func (answers) World(*struct{}, world.Lineup) (world.World, error) {
	return world.Func(func(*world.Table) world.Outcome { return world.Outcome{} }), nil
}

func (answers) StandIn(model string, _ *llm.Request, _ uint64) (string, bool) {
	return "42", model == "solver"
}

// TestStandInAnswers checks that a stand-in answers the prompts it knows, and that echo repeats the last
// message.
func TestStandInAnswers(t *testing.T) {
	t.Parallel()
	m := model(t, Config{StandIns: StandIns(world.Kind{}, world.Define[struct{}](answers{}))})
	req := question("what is it?")
	req.Model = "sim/solver"
	if r := ask(t, m, req); r.Text != "42" || r.Model != "solver" || r.Provider != "sim" {
		t.Errorf("%+v", r)
	}
	req.Model = "echo"
	if r := ask(t, m, req); r.Text != "what is it?" {
		t.Errorf("%+v", r)
	}
}

func TestTokenIDsGoOn(t *testing.T) {
	t.Parallel()
	m := model(t, Config{})
	req := question("begin, s'il vous plaît\n\n  now: 1234567")
	req.TokenIDs, req.Logprobs, req.TopLogprobs = true, true, 2
	r := ask(t, m, req)
	if len(r.PromptTokenIDs) != r.Usage.Input || len(r.TokenIDs) != r.Usage.Output {
		t.Errorf("%d prompt ids for %+v, %d ids", len(r.PromptTokenIDs), r.Usage, len(r.TokenIDs))
	}
	if len(r.Logprobs) != len(r.TokenIDs) || len(r.Logprobs[0].Top) != 2 || r.Logprobs[0].Logprob > 0 {
		t.Fatalf("%d logprobs for %d tokens, %+v", len(r.Logprobs), len(r.TokenIDs), r.Logprobs[0])
	}
	for i, l := range r.Logprobs {
		if l.ID != r.TokenIDs[i] {
			t.Errorf("token %d is %d, and its log probability is of %d", i, r.TokenIDs[i], l.ID)
		}
	}
	req.Messages = append(req.Messages, llm.Assistant(r.Text), llm.User("go on"))
	next := ask(t, m, req)
	want := append(append([]int{}, r.PromptTokenIDs...), r.TokenIDs...)
	if got := next.PromptTokenIDs; len(got) < len(want) || !reflect.DeepEqual(got[:len(want)], want) {
		t.Error("the next prompt does not begin with this prompt and its answer")
	}
}

func TestEffortCostsReasoning(t *testing.T) {
	t.Parallel()
	m := model(t, Config{})
	for _, e := range llm.Efforts() {
		req := question("think")
		req.Effort = e
		r := ask(t, m, req)
		if (r.Usage.Reasoning > 0) != (e != llm.EffortNone) || r.Usage.Output <= r.Usage.Reasoning || (len(r.Thoughts) > 0) != (e != llm.EffortNone) {
			t.Errorf("%s: %+v", e, r)
		}
	}
}

func TestPromptCache(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a long story about harbours and treaties, told again. ", 200) // about 2,200 tokens
	synctest.Test(t, func(t *testing.T) {
		m := model(t, Config{})
		req := func(q string) *llm.Request {
			return &llm.Request{Model: "sim/m", Messages: []llm.Message{llm.System(long), llm.User(q)}, Prefix: 1}
		}
		if u := ask(t, m, req("one")).Usage; u.Cached != 0 {
			t.Errorf("the first: %+v", u)
		}
		if u := ask(t, m, req("another")).Usage; u.Cached < 1024 || u.Cached >= u.Input || u.Cached%128 != 0 {
			t.Errorf("later: %+v", u)
		}
		time.Sleep(6 * time.Minute)
		if u := ask(t, m, req("much later")).Usage; u.Cached != 0 {
			t.Errorf("much later: %+v", u)
		}
	})
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	began, why := false, errors.New("enough")
	m := model(t, Config{})
	if _, err := m.Ask(llm.OnBegan(t.Context(), func() { began = true }), question("x")); err != nil || !began {
		t.Error(err, began)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	if _, err := m.Ask(ctx, question("y")); llm.KindOf(err) != llm.KindCanceled || !errors.Is(err, why) {
		t.Error(err)
	}
}

// TestSchemaInPrompt checks that a schema at the end of a prompt counts as one that is sent natively, and that one that is
// invalid is text.
func TestSchemaInPrompt(t *testing.T) {
	t.Parallel()
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(text string, schema *llm.Schema) string {
		t.Helper()
		r, err := m.Ask(t.Context(), &llm.Request{Model: "sim/m", Messages: []llm.Message{llm.User(text)}, Schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		return r.Text
	}
	form := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":3,"maximum":5}},"required":["n"],"additionalProperties":false}`)
	loose := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	native := ask("How many?", &llm.Schema{Name: "count", JSON: form})
	for name, got := range map[string]string{
		"in the prompt": ask("How many?\n\n"+answer.Instruct(form), nil), "in both": ask("How many?\n\n"+answer.Instruct(form), &llm.Schema{JSON: loose}),
	} {
		if got != native || !json.Valid([]byte(got)) {
			t.Errorf("%s: %s, natively %s", name, got, native)
		}
	}
	if text := ask("How many?\n\n"+answer.Instruct(json.RawMessage(`{"type":"nothing"}`)), nil); json.Valid([]byte(text)) {
		t.Errorf("an invalid schema in a prompt is answered with %s", text)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConformance runs the suite that every llm.Model passes.
func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Exercise(t, llmtest.Harness{Model: model(t, Config{MinTokens: 40}), Name: "sim/small"})
}
