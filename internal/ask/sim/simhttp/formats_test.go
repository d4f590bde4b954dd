package simhttp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"parley/internal/ask/sim"
	"parley/llm"
)

const orderSchema = `{"type":"object","properties":{"why":{"type":"string"},"order":{"enum":["hold","move"]}},"required":["why","order"],"additionalProperties":false}`

func TestChat(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	a := call(t, s, http.MethodPost, chatPath, chatBody)
	if a.status != http.StatusOK || a.header.Get("X-Request-Id") == "" || a.header.Get("Openai-Processing-Ms") == "" {
		t.Fatalf("%+v %s", a, a.body)
	}
	for path, want := range map[string]any{
		"object": "chat.completion", "model": "small", "choices.0.index": 0.0, "choices.0.finish_reason": "stop",
		"choices.0.message.role": "assistant", "choices.0.message.refusal": nil, "choices.0.logprobs": nil,
		"usage.prompt_tokens_details.cached_tokens": 0.0, "usage.completion_tokens_details.reasoning_tokens": 0.0,
		"service_tier": "default",
	} {
		if got := a.at(t, path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if a.at(t, "usage.total_tokens") != a.at(t, "usage.prompt_tokens").(float64)+a.at(t, "usage.completion_tokens").(float64) {
		t.Errorf("%s", a.body)
	}
}

// TestFormatsSayTheSame asks in process and in every format, streamed and not.
func TestFormatsSayTheSame(t *testing.T) {
	t.Parallel()
	m, err := sim.New(sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.Ask(t.Context(), &llm.Request{Model: "sim/small", Messages: []llm.Message{llm.User("How do we cross the river?")}})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, Config{})
	got := map[string]string{
		"chat":      call(t, s, http.MethodPost, chatPath, chatBody).at(t, "choices.0.message.content").(string),
		"responses": call(t, s, http.MethodPost, responsesPath, responsesBody).at(t, "output.0.content.0.text").(string),
		"messages":  call(t, s, http.MethodPost, messagesPath, messagesBody).at(t, "content.0.text").(string),
	}
	for name, body := range map[string]string{"chat stream": chatBody, "responses stream": responsesBody, "messages stream": messagesBody} {
		path := map[string]string{"chat stream": chatPath, "responses stream": responsesPath, "messages stream": messagesPath}[name]
		a := call(t, s, http.MethodPost, path, with(body, `"stream":true`))
		if !strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
			t.Errorf("%s: %v", name, a.header)
		}
		for _, e := range events(a.body) {
			got[name] += deltaText(t, e)
		}
	}
	for name, text := range got {
		if text != want.Text {
			t.Errorf("%s: %q, want %q", name, text, want.Text)
		}
	}
}

// deltaText returns the text an event of any format adds.
func deltaText(t *testing.T, event []byte) string {
	t.Helper()
	if string(event) == "[DONE]" {
		return ""
	}
	var e struct {
		Type    string
		Delta   json.RawMessage
		Choices []struct{ Delta struct{ Content string } }
	}
	if err := json.Unmarshal(event, &e); err != nil {
		t.Fatalf("%v: %s", err, event)
	}
	switch {
	case e.Type == "response.output_text.delta":
		var s string
		_ = json.Unmarshal(e.Delta, &s)
		return s
	case e.Type == "content_block_delta":
		var d struct{ Text string }
		_ = json.Unmarshal(e.Delta, &d)
		return d.Text
	case len(e.Choices) > 0:
		return e.Choices[0].Delta.Content
	}
	return ""
}

func TestChatStreamEvents(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	body := with(chatBody, `"stream":true,"stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":2,"return_token_ids":true`)
	a := call(t, s, http.MethodPost, chatPath, body)
	ev := events(a.body)
	n := len(ev)
	if string(ev[n-1]) != "[DONE]" {
		t.Fatalf("the last event is %s", ev[n-1])
	}
	whole := call(t, s, http.MethodPost, chatPath, with(chatBody, `"logprobs":true,"top_logprobs":2,"return_token_ids":true`))
	if got, want := dig(t, ev[n-2], "usage.total_tokens"), whole.at(t, "usage.total_tokens"); got != want {
		t.Errorf("usage %v, want %v", got, want)
	}
	if c := dig(t, ev[n-2], "choices").([]any); len(c) != 0 {
		t.Errorf("%s", ev[n-2])
	}
	if dig(t, ev[n-3], "choices.0.finish_reason") != "stop" || dig(t, ev[0], "choices.0.delta.role") != "assistant" {
		t.Errorf("%s / %s", ev[0], ev[n-3])
	}
	if got, want := dig(t, ev[0], "prompt_token_ids").([]any), whole.at(t, "prompt_token_ids").([]any); len(got) != len(want) || len(got) == 0 {
		t.Errorf("%d prompt token ids, want %d", len(got), len(want))
	}
	ids, logprobs := 0, 0
	for _, e := range ev[1 : n-3] {
		ids += len(dig(t, e, "choices.0.token_ids").([]any))
		logprobs += len(dig(t, e, "choices.0.logprobs.content").([]any))
	}
	if want := len(whole.at(t, "choices.0.token_ids").([]any)); ids != want-1 || logprobs != ids { // the end token is not in a delta
		t.Errorf("%d token ids and %d logprobs, want %d", ids, logprobs, want-1)
	}
	if got := whole.at(t, "choices.0.logprobs.content.0.top_logprobs").([]any); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

func TestResponsesStreamEvents(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	a := call(t, s, http.MethodPost, responsesPath, with(responsesBody, `"stream":true,"reasoning":{"effort":"low"}`))
	var kinds []string
	for i, e := range events(a.body) {
		if dig(t, e, "sequence_number") != float64(i) {
			t.Errorf("event %d: %s", i, e)
		}
		if k := dig(t, e, "type").(string); len(kinds) == 0 || kinds[len(kinds)-1] != k {
			kinds = append(kinds, k)
		}
	}
	want := "response.created response.in_progress response.output_item.added response.output_item.done " +
		"response.output_item.added response.content_part.added response.output_text.delta response.output_text.done " +
		"response.content_part.done response.output_item.done response.completed"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	ev := events(a.body)
	last := ev[len(ev)-1]
	if dig(t, last, "response.status") != "completed" || dig(t, last, "response.usage.output_tokens_details.reasoning_tokens") == 0.0 {
		t.Errorf("%s", last)
	}
	cut := call(t, s, http.MethodPost, responsesPath, with(responsesBody, `"max_output_tokens":16`))
	if status := cut.at(t, "status"); status != "incomplete" && cut.at(t, "usage.output_tokens").(float64) >= 16 {
		t.Errorf("%s", cut.body)
	}
}

func TestMessagesStreamEvents(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	a := call(t, s, http.MethodPost, messagesPath, with(messagesBody, `"stream":true,"thinking":{"type":"adaptive"}`))
	var kinds []string
	for _, e := range events(a.body) {
		k := dig(t, e, "type").(string)
		if k == "content_block_delta" {
			k = dig(t, e, "delta.type").(string)
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != k {
			kinds = append(kinds, k)
		}
	}
	want := "message_start content_block_start ping thinking_delta signature_delta content_block_stop " +
		"content_block_start text_delta content_block_stop message_delta message_stop"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if a.header.Get("Request-Id") == "" || bytes.Count(a.body, []byte("event: ")) != len(events(a.body)) {
		t.Errorf("%v", a.header)
	}
}

func TestToolsAndSchemasInEveryFormat(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	chatTools := `"tools":[{"type":"function","function":{"name":"order","parameters":` + orderSchema + `,"strict":true}}],"tool_choice":{"type":"function","function":{"name":"order"}}`
	responsesTools := `"tools":[{"type":"function","name":"order","parameters":` + orderSchema + `}],"tool_choice":{"type":"function","name":"order"}`
	messagesTools := `"tools":[{"name":"order","input_schema":` + orderSchema + `}],"tool_choice":{"type":"tool","name":"order"}`

	a := call(t, s, http.MethodPost, chatPath, with(chatBody, chatTools))
	if a.at(t, "choices.0.finish_reason") != "tool_calls" || a.at(t, "choices.0.message.content") != nil {
		t.Errorf("%s", a.body)
	}
	args := a.at(t, "choices.0.message.tool_calls.0.function.arguments").(string)
	if !json.Valid([]byte(args)) || !strings.Contains(args, `"order"`) {
		t.Errorf("%s", args)
	}
	a = call(t, s, http.MethodPost, responsesPath, with(responsesBody, responsesTools))
	if a.at(t, "output.0.type") != "function_call" || a.at(t, "output.0.arguments") != args {
		t.Errorf("%s", a.body)
	}
	a = call(t, s, http.MethodPost, messagesPath, with(messagesBody, messagesTools))
	if a.at(t, "stop_reason") != "tool_use" || a.at(t, "content.0.input.order") == nil {
		t.Errorf("%s", a.body)
	}
	streamed := ""
	for _, e := range events(call(t, s, http.MethodPost, messagesPath, with(messagesBody, messagesTools+`,"stream":true`)).body) {
		if dig(t, e, "type") == "content_block_delta" {
			streamed += dig(t, e, "delta.partial_json").(string)
		}
	}
	if streamed != args {
		t.Errorf("%q, want %q", streamed, args)
	}

	chat := call(t, s, http.MethodPost, chatPath, with(chatBody, `"response_format":{"type":"json_schema","json_schema":{"name":"order","strict":true,"schema":`+orderSchema+`}}`))
	messages := call(t, s, http.MethodPost, messagesPath, with(messagesBody, `"output_config":{"format":{"type":"json_schema","schema":`+orderSchema+`}}`))
	responses := call(t, s, http.MethodPost, responsesPath, with(responsesBody, `"text":{"format":{"type":"json_schema","name":"order","strict":true,"schema":`+orderSchema+`}}`))
	text := chat.at(t, "choices.0.message.content").(string)
	if dig(t, []byte(text), "order") == nil || messages.at(t, "content.0.text") != text || responses.at(t, "output.0.content.0.text") != text {
		t.Errorf("%s\n%s\n%s", text, messages.body, responses.body)
	}
}

func TestToolConversationsGoOn(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	bodies := map[string]string{
		chatPath: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"done"}]}`,
		responsesPath: `{"model":"m","input":[{"role":"user","content":"x"},{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"c1","output":"done"}]}`,
		messagesPath: `{"model":"m","max_tokens":500,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"done"}]}]}]}`,
	}
	texts := map[string]bool{}
	for path, body := range bodies {
		a := call(t, s, http.MethodPost, path, body)
		if a.status != http.StatusOK {
			t.Fatalf("%s: %s", path, a.body)
		}
		at := map[string]string{chatPath: "choices.0.message.content", responsesPath: "output.0.content.0.text", messagesPath: "content.0.text"}[path]
		texts[a.at(t, at).(string)] = true
	}
	if len(texts) != 1 {
		t.Errorf("the formats give different answers: %v", texts)
	}
}

func TestCountTokensModelsEmbeddings(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	count := call(t, s, http.MethodPost, "/v1/messages/count_tokens", `{"model":"small","messages":[{"role":"user","content":"How do we cross the river?"}]}`)
	if got, want := count.at(t, "input_tokens"), call(t, s, http.MethodPost, messagesPath, messagesBody).at(t, "usage.input_tokens"); got != want {
		t.Errorf("counted %v, used %v", got, want)
	}
	if a := call(t, s, http.MethodGet, "/v1/models", ""); a.at(t, "data.0.id") != "sim/small" {
		t.Errorf("%s", a.body)
	}
	a := call(t, s, http.MethodPost, "/v1/embeddings", `{"model":"e","input":["one","two"],"dimensions":8}`)
	one, two := a.at(t, "data.0.embedding").([]any), a.at(t, "data.1.embedding").([]any)
	if len(one) != 8 || one[0] == two[0] {
		t.Errorf("%s", a.body)
	}
	if b := call(t, s, http.MethodPost, "/v1/embeddings", `{"model":"e","input":"one","encoding_format":"base64"}`); b.at(t, "data.0.embedding").(string) == "" {
		t.Errorf("%s", b.body)
	}
}
