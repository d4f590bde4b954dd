package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ask/cache"
	"parley/internal/ask/provider"
	"parley/internal/kit/sse"
)

// sending answers with bytes of a type.
func sending(kind string, parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		for _, p := range parts {
			io.WriteString(w, p)
			w.(http.Flusher).Flush()
		}
	}
}

// chatTricks are streams of chat completions that split a key over two events.
func chatTricks(a, b string) map[string][]string {
	data := func(s string) string { return "data: " + s + "\n\n" }
	first, second := data(chunk(a)), data(chunk(b))
	last := `{"choices":[{"delta":{"content":"` + b + `"},"index":0}]}`
	return map[string][]string{
		"order of members": {first, data(last)},
		"another index":    {data(`{"xindex":1,` + strings.Replace(last, b, a, 1)[1:]), data(`{"xindex":2,` + last[1:])},
		"index of the top": {data(`{"index":1,` + chunk(a)[1:]), data(`{"index":2,` + chunk(b)[1:])},
		"escaped name":     {first, strings.Replace(second, "content", `c\u006fntent`, 1)},
		"name in capitals": {first, strings.Replace(second, "content", "Content", 1)},
		"large event":      {first, data(`{"pad":"` + strings.Repeat("z", 70000) + `","choices":[]}`), second},
		"comment":          {first, ": a \"content\": \"zzz\"\n\n", second},
		"quote in comment": {first, ": \"\n" + second},
		"quote in name":    {"event: \"\n" + first, "event: \"\n" + second},
		"two data lines":   {first, strings.Replace(second, `"content":`, "\"content\"\ndata: :", 1)},
		"carriage returns": {strings.ReplaceAll(first, "\n", "\r") + ": \"\r" + second},
		"another choice":   {first, data(strings.Replace(chunk("zzz"), `"index":0`, `"index":1`, 1)), second},
		"two reasonings":   {strings.Replace(first, "content", "reasoning", 1), strings.Replace(second, "content", "reasoning_content", 1)},
		"tool call": {data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":\"` + a + `"}}]}}]}`),
			data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"` + b + `\"}"}}]}}]}`)},
	}
}

// messageTricks do the same in Anthropic's format.
func messageTricks(a, b string) map[string][]string {
	event := func(kind, rest string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + `"` + rest + "}\n\n"
	}
	start := event("message_start", `,"message":{"id":"x","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
	out := map[string][]string{}
	for name, kind := range map[string][2]string{"two texts": {"text", "text_delta"}, "two thoughts": {"thinking", "thinking_delta"}, "two starts": {"text", ""}} {
		all := []string{start}
		for i, part := range []string{a, b} {
			index, begins := fmt.Sprintf(`,"index":%d`, i), ""
			if kind[1] == "" {
				begins = part
			}
			all = append(all, event("content_block_start", index+`,"content_block":{"type":"`+kind[0]+`","`+kind[0]+`":"`+begins+`"}`))
			if kind[1] != "" {
				all = append(all, event("content_block_delta", index+`,"delta":{"type":"`+kind[1]+`","`+kind[0]+`":"`+part+`"}`))
			}
			all = append(all, event("content_block_stop", index))
		}
		out[name] = append(all, event("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}`), event("message_stop", ""))
	}
	return out
}

// wholeTricks are whole answers, by the format of the provider.
func wholeTricks(dialect, a, b string) map[string]string {
	if dialect == "openai" {
		return map[string]string{
			"parts":    `{"choices":[{"index":0,"message":{"role":"assistant","content":[{"type":"text","text":"` + a + `"},{"type":"text","text":"` + b + `"}]},"finish_reason":"stop"}]}`,
			"logprobs": `{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"logprobs":{"content":[{"token":"` + a + `","logprob":-1},{"token":"` + b + `","logprob":-1}]},"finish_reason":"stop"}]}`,
		}
	}
	head := `{"id":"x","type":"message","role":"assistant","model":"m","stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1},"content":[`
	return map[string]string{
		"parts":    head + `{"type":"text","text":"` + a + `"},{"type":"text","text":"` + b + `"}]}`,
		"thoughts": head + `{"type":"thinking","thinking":"` + a + `","signature":"a"},{"type":"thinking","thinking":"` + b + `","signature":"b"},{"type":"text","text":"hi"}]}`,
	}
}

// joined joins the texts of an answer by member name.
func joined(body string) string {
	texts := map[string]string{}
	var walk func(name string, v any)
	walk = func(name string, v any) {
		switch v := v.(type) {
		case string:
			texts[name] += v
		case []any:
			for _, e := range v {
				walk(name, e)
			}
		case map[string]any:
			if n, ok := v["index"].(float64); ok && n == 1 && v["delta"] != nil && v["type"] == nil {
				return // another choice
			}
			for k, e := range v {
				walk(strings.ToLower(k), e)
			}
		}
	}
	read := func(b []byte) {
		var v any
		if json.Unmarshal(b, &v) == nil {
			walk("", v)
		}
	}
	read([]byte(body))
	all := sse.Splitter{}
	all.Add([]byte(strings.ReplaceAll(body, "\r", "\n") + "\n\n"))
	for raw, ok := all.Next(); ok; raw, ok = all.Next() {
		read(sse.Parse(raw).Data)
	}
	return fmt.Sprint(texts)
}

// TestSplitKey checks that no long part of a key that a provider returns in two pieces reaches a client, the
// run file or the cache.
func TestSplitKey(t *testing.T) {
	const key = "sk-UPSTREAMSECRET-0123456789abcdef"
	t.Setenv("GATEWAY_SPLIT_KEY", key)
	for _, at := range []int{11, 17} {
		a, b := key[:at], key[at:]
		for _, dialect := range []string{"openai", "anthropic"} {
			streams := messageTricks(a, b)
			if dialect == "openai" {
				streams = chatTricks(a, b)
				for name := range streams {
					for _, e := range ends() {
						streams[name] = append(streams[name], "data: "+e+"\n\n")
					}
				}
			}
			for name, parts := range streams {
				splitKey(t, key, fmt.Sprint(dialect, " ", name, " ", at), dialect, streamed, sending("text/event-stream", parts...))
			}
			for name, body := range wholeTricks(dialect, a, b) {
				splitKey(t, key, fmt.Sprint(dialect, " whole ", name, " ", at), dialect, "", sending("application/json", body))
			}
		}
	}
}

// splitKey asks a provider that answers with step, in both formats.
func splitKey(t *testing.T, key, name, dialect, more string, step http.HandlerFunc) {
	t.Helper()
	folder := t.TempDir()
	store, err := cache.Open(folder, cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := upstream(dialect, serving(t, script(step)))
	p.KeyEnv = "GATEWAY_SPLIT_KEY"
	l := start(t, Config{Upstreams: []provider.Provider{p}, Cache: store, Retries: NoRetries})
	sent := ""
	for path, body := range map[string]string{chatPath: chatOf("m", "hi", more), "/v1/sessions/s/messages": messageOf("m", "hi", more), "/v1/sessions/s/models": ""} {
		r := l.post(path, body)
		sent += r.body + "\n" + joined(r.body) + "\n"
	}
	for _, c := range l.calls("s") {
		b, err := json.Marshal(c.Response)
		if err != nil {
			t.Fatal(err)
		}
		sent += string(b) + "\n" + string(c.Wire.Body) + "\n" + joined(string(c.Wire.Body))
	}
	store.Close()
	for i := 0; i+12 <= len(key); i++ {
		if part := key[i : i+12]; strings.Contains(sent, part) {
			t.Errorf("%s: %s was sent: %.3000s", name, part, sent)
			return
		}
	}
	for _, in := range []string{filepath.Dir(l.file), folder} {
		inFiles(t, in, key[17:])
	}
}

// TestKeyHeaders checks every header in which clients send keys: sessions are separate, and no key comes back.
func TestKeyHeaders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		l := to(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			saying("It is "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+r.Header.Get("X-Api-Key")+r.Header.Get("Api-Key")+r.Header.Get("X-Goog-Api-Key"))(w, r)
		}))
		key := func(who string) []string {
			if name == "Authorization" {
				who = "Bearer " + who
			}
			return []string{name, who}
		}
		l.post(chatPath, chatOf("m", "hi"), key("key-of-alice")...).want(t, 200, "It is [key]")
		l.post("/v1/sessions/s", "", key("key-of-bob")...).want(t, 404, "session_unknown")
		l.post("/v1/sessions/s", "").want(t, 404, "session_unknown")
		l.post("/v1/sessions/s", "", key("key-of-alice")...).want(t, 200, `"requests":1`)
		l.calls("s")
		inFiles(t, filepath.Dir(l.file), "key-of-")
	}
	// A gateway accepts its own key in each of them, and sends it to no provider.
	up := script(saying("fine"))
	l := to(t, up, func(c *Config) { c.Keys = []string{"key-of-alice"} })
	l.post(chatPath, chatOf("m", "hi"), "Api-Key", "key-of-alice").want(t, 200, "fine")
	l.post(chatPath, chatOf("m", "hi"), "Api-Key", "key-of-bob").want(t, 401)
	if got := up.heads[0]["Api-Key"]; got != nil {
		t.Errorf("%v was sent to the provider", got)
	}
}
