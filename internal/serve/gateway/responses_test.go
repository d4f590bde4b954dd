package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/kit/sse"
	"parley/llm"
)

// codexBody is what Codex sends in the middle of its work: instructions in two items, reasoning of OpenAI's and of the server's, calls of all kinds
// of tools, their results, and tools that only OpenAI runs.
const codexBody = `{"model":"m","stream":%v,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","client_metadata":{"a":"b"},
"reasoning":{"summary":"auto"},"tool_choice":"auto","parallel_tool_calls":true,"input":[
{"type":"message","id":"msg_1","role":"developer","content":[{"type":"input_text","text":"You are Codex."}]},
{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."}]},
{"type":"message","role":"user","content":[{"type":"input_text","text":"See "},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]},
{"type":"reasoning","id":"rs_0","summary":[],"encrypted_content":"gAAAA"},
{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":%s},
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\":\"it\"}"},
{"type":"function_call","call_id":"c2","namespace":"agents","name":"spawn","arguments":"{}"},
{"type":"custom_tool_call","call_id":"c3","name":"apply_patch","input":"*** Begin \"Patch\"\n"},
{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"A cat:"},{"type":"input_image","image_url":"data:image/png;base64,BBBB"}]},
{"type":"function_call_output","call_id":"c2","output":"started"},
{"type":"custom_tool_call_output","call_id":"c3","output":"Done."},
{"type":"message","role":"developer","content":[{"type":"input_text","text":"Mind the time."}]}],
"tools":[{"type":"function","name":"look","strict":false,"parameters":{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}},
{"type":"custom","name":"apply_patch","description":"Edits files.","format":{"type":"grammar","syntax":"lark","definition":"start: \"*** Begin\""}},
{"type":"namespace","name":"agents","description":"Others.","tools":[{"type":"function","name":"spawn","parameters":{"type":"object","properties":{}}},{"type":"function","name":"close","parameters":{"type":"object","properties":{}}}]},
{"type":"web_search","external_web_access":false},{"type":"tool_search"}]}`

// calling is an answer of chat completions that thinks, speaks, and calls a tool of each kind; one argument at a time in a stream.
func calling(patch string) (whole string, stream []string) {
	calls := [][3]string{{"d1", "look", `{"at":`}, {"d2", "agents__spawn", ""}, {"d3", "apply_patch", patch}}
	var all []string
	stream = []string{`{"choices":[{"delta":{"role":"assistant","reasoning_content":"So"}}]}`, `{"choices":[{"delta":{"reasoning_content":"."}}]}`, chunk("I "), chunk("do.")}
	for i, c := range calls {
		all = append(all, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}`, c[0], c[1], c[2]))
		stream = append(stream, fmt.Sprintf(`{"choices":[{"delta":{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}}]}`, i, c[0], c[1]))
		for _, r := range c[2] {
			stream = append(stream, fmt.Sprintf(`{"choices":[{"delta":{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}}]}`, i, string(r)))
		}
	}
	whole = `{"id":"x","model":"m","choices":[{"message":{"role":"assistant","reasoning_content":"So.","content":"I do.","tool_calls":[` + strings.Join(all, ",") +
		`]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`
	stream = append(stream, `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, "[DONE]")
	return whole, stream
}

// chatOnly is a server that has chat completions alone.
func chatOnly(step http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" {
			answering(404, `{"detail":"Not Found"}`)(w, r)
			return
		}
		step(w, r)
	}
}

// TestResponsesToChat sends what Codex sends to a server with chat completions alone: the model reads the whole conversation, and Codex gets its own
// kinds of calls back.
func TestResponsesToChat(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		for patch, input := range map[string]string{`{"input":"*** \"x\"\n"}`: "*** \"x\"\n", `{"input":7}`: `{"input":7}`, "*** raw": "*** raw", "": ""} {
			whole, flow := calling(patch)
			step := answering(200, whole)
			if stream {
				step = events(flow...)
			}
			up := script(chatOnly(step))
			l := start(t, Config{Upstreams: []provider.Provider{{Name: "lab", Dialect: "openai", BaseURL: serving(t, up)}}})
			mine, _ := json.Marshal(`parley:{"thinker":"lab","thoughts":[{"text":"Hm."}]}`)
			body := fmt.Sprintf(codexBody, stream, mine)
			got := l.post("/v1/responses", body).want(t, 200)
			if d := got.header.Get("X-Parley-Dropped"); d != "client_metadata,prompt_cache_key,tools.tool_search,tools.web_search" {
				t.Errorf("dropped %q", d)
			}
			checkItems(t, stream, got.body, input)
			if stream {
				checkOrder(t, got.body)
			}
			if up.count() != 2 { // the first one is told that there are no responses
				t.Fatalf("%d calls", up.count())
			}
			checkChat(t, up.seen[1])
			l.post("/v1/responses", body).want(t, 200)
			if up.count() != 3 {
				t.Errorf("%d calls: it asked again whether there are responses", up.count())
			}
			c := l.calls(defaultSession)
			if len(c) != 2 || c[0].Label != "responses" || len(c[0].Response.ToolCalls) != 3 || c[0].Response.Usage.Input != 5 || c[0].Error != nil {
				t.Errorf("%+v", c)
			}
		}
	}
}

// checkChat checks what the server was asked.
func checkChat(t *testing.T, body string) {
	t.Helper()
	var asked struct {
		Messages []struct {
			Role      string          `json:"role"`
			Content   json.RawMessage `json:"content"`
			ID        string          `json:"tool_call_id"`
			ToolCalls []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Tools []struct {
			Type     string
			Function struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &asked); err != nil {
		t.Fatal(err)
	}
	var roles, names []string
	for _, m := range asked.Messages {
		roles = append(roles, m.Role+m.ID)
		for _, c := range m.ToolCalls {
			roles = append(roles, c.ID+c.Function.Name+c.Function.Arguments)
		}
	}
	for _, tool := range asked.Tools {
		names = append(names, tool.Type+" "+tool.Function.Name)
	}
	want := []string{
		"system", "user", "assistant", `c1look{"at":"it"}`, "c2agents__spawn{}", `c3apply_patch{"input":"*** Begin \"Patch\"\n"}`,
		"toolc1", "toolc2", "toolc3", "user", "user",
	}
	if !slices.Equal(roles, want) {
		t.Errorf("%q\nwant %q", roles, want)
	}
	if want := []string{"function look", "function apply_patch", "function agents__spawn", "function agents__close"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	for _, want := range []string{`You are Codex.\n\nBe brief.`, `start: \"*** Begin\"`, `data:image/png;base64,BBBB`, "File 1, a result of the tool call c1:", "Mind the time."} {
		if !strings.Contains(body, want) {
			t.Errorf("want %s in %s", want, body)
		}
	}
	for _, not := range []string{"gAAAA", "thinker", "web_search", "parley:"} {
		if strings.Contains(body, not) {
			t.Errorf("%s is in %s", not, body)
		}
	}
}

// outItem is an item as a client reads it.
type outItem struct {
	Type, ID, Name, Namespace, Arguments, Input string
	CallID                                      string `json:"call_id"`
	Encrypted                                   string `json:"encrypted_content"`
	Content, Summary                            []struct{ Type, Text string }
}

// checkItems checks the items of an answer to calling: those of the whole answer, and in a stream also those that were done.
func checkItems(t *testing.T, stream bool, body, input string) {
	t.Helper()
	var last struct{ Output []outItem }
	var done []outItem
	if stream {
		for raw := range sse.Split([]byte(body)) {
			var e struct {
				Type     string
				Item     outItem
				Response json.RawMessage
			}
			if err := json.Unmarshal(sse.Parse(raw).Data, &e); err != nil {
				t.Fatalf("%v: %s", err, raw)
			}
			switch e.Type {
			case "response.output_item.done":
				done = append(done, e.Item)
			case "response.completed":
				_ = json.Unmarshal(e.Response, &last)
			}
		}
		if fmt.Sprint(done) != fmt.Sprint(last.Output) {
			t.Errorf("%+v\nbut at the end %+v", done, last.Output)
		}
	} else if err := json.Unmarshal([]byte(body), &last); err != nil {
		t.Fatal(err)
	}
	o := last.Output
	if len(o) != 5 || o[0].Type != "reasoning" || o[0].Summary[0].Text != "So." || o[0].Encrypted != `parley:{"thinker":"lab","thoughts":[{"text":"So."}]}` ||
		o[1].Type != "message" || o[1].Content[0].Text != "I do." ||
		o[2].Type != "function_call" || o[2].Arguments != `{"at":` || o[2].CallID != "d1" || o[2].Name != "look" || o[2].Namespace != "" ||
		o[3].Type != "function_call" || o[3].Arguments != "{}" || o[3].Name != "spawn" || o[3].Namespace != "agents" ||
		o[4].Type != "custom_tool_call" || o[4].Input != input || o[4].Name != "apply_patch" || o[4].CallID != "d3" {
		t.Errorf("%+v", o)
	}
}

// checkOrder checks the order of the events: each item is added, written and done before the next, and the numbers count up.
func checkOrder(t *testing.T, body string) {
	t.Helper()
	var names []string
	var number, text int
	for raw := range sse.Split([]byte(body)) {
		e := sse.Parse(raw)
		var v struct {
			Type   string
			Number int `json:"sequence_number"`
			Delta  string
		}
		if err := json.Unmarshal(e.Data, &v); err != nil || v.Type != string(e.Name) || v.Number != number {
			t.Errorf("%v: %s", err, raw)
		}
		number, text = number+1, text+len(v.Delta)
		if name := strings.TrimPrefix(v.Type, "response."); len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	want := strings.Fields(`created in_progress
		output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done output_item.done
		output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done
		output_item.added function_call_arguments.delta function_call_arguments.done output_item.done
		output_item.added function_call_arguments.delta function_call_arguments.done output_item.done
		output_item.added custom_tool_call_input.delta custom_tool_call_input.done output_item.done completed`)
	if strings.Contains(body, `"input":"","call_id"`) && !slices.Contains(names, "custom_tool_call_input.delta") { // a tool without input has no piece
		want = slices.DeleteFunc(want, func(n string) bool { return n == "custom_tool_call_input.delta" })
	}
	if !slices.Equal(names, want) {
		t.Errorf("%q\nwant %q", names, want)
	}
}

// TestResponsesRefuse: what would change the meaning is refused with what to do, and an error of the server in a stream does not look like an end.
func TestResponsesRefuse(t *testing.T) {
	t.Parallel()
	up := script(events(chunk("so")))
	l := start(t, Config{Upstreams: []provider.Provider{upstream("openai", serving(t, up))}, ChatOnly: []string{"openai"}, Settings: limited(0, 0)})
	for body, why := range map[string]string{
		`{"model":"m","input":"hi","previous_response_id":"resp_1"}`:                                     "previous_response_id: openai does not keep what was said: send the whole input",
		`{"model":"m","input":"hi","conversation":"conv_1"}`:                                             "conversation: ",
		`{"model":"m","input":"hi","background":true}`:                                                   "background cannot be said",
		`{"model":"m","input":"hi","tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}}`: "tool_choice cannot be said",
		`{"model":"m","input":[{"type":"item_reference","id":"x"}]}`:                                     "input[0]",
		`{"model":"m","input":[{"type":"compaction","encrypted_content":"x"}]}`:                          "input[0]",
		`{"model":"m","input":5}`:                                                                        "input is 5: want a string or a list of items",
	} {
		l.post("/v1/responses", body).want(t, 400, why)
	}
	if up.count() != 0 {
		t.Errorf("%d calls", up.count())
	}
	got := l.post("/v1/responses", inputOf("m", "hi", streamed)).want(t, 200, "event: error", "response.output_text.delta", `"status":"failed","error":{"code":"malformed"`)
	if strings.Contains(got.body, "response.completed") {
		t.Errorf("it looks whole: %s", got.body)
	}
	up.steps = []http.HandlerFunc{events(chunk(""), `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":0}}`, "[DONE]")}
	if r := readAnswer(t, "responses", true, l.post("/v1/responses", inputOf("m", "hi", streamed)).want(t, 200).body); r.Text != "" || r.Finish != llm.FinishStop {
		t.Errorf("%+v", r)
	}
}

// TestResponsesBudget: what is left out costs nothing, so its price need not be known.
func TestResponsesBudget(t *testing.T) {
	t.Parallel()
	up, prices := hostile(t, `,"usage":{"prompt_tokens":5,"completion_tokens":1}`)
	hosted := inputOf("m", "hi", `,"max_output_tokens":9,"tools":[{"type":"web_search"}]`)
	c := Config{Upstreams: []provider.Provider{up}, Prices: prices, Settings: limited(llm.Dollars(1), 4), ChatOnly: []string{"openai"}}
	start(t, c).post("/v1/responses", hosted).want(t, 200, `"text":"yes"`)
	c.ChatOnly = nil
	start(t, c).post("/v1/responses", hosted).want(t, 400, "price_unknown")
}

// TestResponsesSwitch: reasoning that another server wrote is not sent to a provider that has responses itself.
func TestResponsesSwitch(t *testing.T) {
	t.Parallel()
	up := script(answering(400, `{"error":{"message":"no"}}`))
	l := start(t, Config{Upstreams: []provider.Provider{upstream("openai", serving(t, up))}, Settings: limited(0, 0)})
	mine := `{"type":"reasoning","id":"r","summary":[],"encrypted_content":"parley:{}"}`
	theirs := `{"type":"reasoning","id":"r","summary":[],"encrypted_content":"gAA"}`
	hi := `{"role":"user","content":"say \"parley: {\""}`
	for input, want := range map[string]string{
		mine: "", mine + "," + mine: "", hi + "," + mine + " , " + mine: hi, mine + ",\n" + hi + "," + mine + "," + theirs: hi + "," + theirs, theirs + "," + hi: theirs + "," + hi,
	} {
		l.post("/v1/responses", `{"model":"m", "input": [`+input+`], "x":1}`).want(t, 400)
		if got := up.seen[up.count()-1]; got != `{"model":"m", "input": [`+want+`], "x":1}` {
			t.Errorf("%s", got)
		}
	}
}
