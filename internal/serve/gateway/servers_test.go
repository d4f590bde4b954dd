package gateway

import (
	"strings"
	"testing"
)

// TestTimings checks that other members of a usage event that we asked for reach the client, in the event that
// ends the answer.
func TestTimings(t *testing.T) {
	t.Parallel()
	const finish = `{"id":"1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	const timings = `"timings":{"prompt_n": 5,"x":[1.50, null]}`
	usage := `{"id":"1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2},"model":"m",` + timings + `}`
	for _, c := range []struct {
		name, more string
		sent, want []string
	}{
		{"hidden", "", []string{chunk("a"), finish, usage, "[DONE]"}, []string{chunk("a"), strings.TrimSuffix(finish, "}") + "," + timings + "}", "[DONE]"}},
		{"asked for", `,"stream_options":{"include_usage":true}`, []string{chunk("a"), finish, usage, "[DONE]"}, []string{chunk("a"), finish, usage, "[DONE]"}},
		{"no end", "", []string{chunk("a"), finish, usage}, []string{chunk("a"), strings.TrimSuffix(finish, "}") + "," + timings + "}"}},
		{"several", `,"n":2`, []string{chunk("a"), finish, finish, usage, "[DONE]"}, []string{chunk("a"), finish, strings.TrimSuffix(finish, "}") + "," + timings + "}", "[DONE]"}},
		{"nothing else", "", append([]string{chunk("a")}, ends()...), []string{chunk("a"), ends()[0], ends()[2]}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := to(t, script(events(c.sent...)))
			got := l.post(chatPath, chatOf("m", "hi", streamed, c.more)).want(t, 200).body
			if want := "data: " + strings.Join(c.want, "\n\ndata: ") + "\n\n"; got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			calls := l.calls("s")
			if len(calls) != 1 || calls[0].Response == nil || calls[0].Response.Usage.Output != 2 || string(calls[0].Wire.Body) != got {
				t.Errorf("%+v", calls)
			}
		})
	}
}

// TestNoDone checks that a stream without [DONE], with the usage in its last event, is read to the end and
// passed on unchanged.
func TestNoDone(t *testing.T) {
	t.Parallel()
	last := `{"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`
	l := to(t, script(events(chunk("a"), last)))
	if got := l.post(chatPath, chatOf("m", "hi", streamed)).want(t, 200).body; got != "data: "+chunk("a")+"\n\ndata: "+last+"\n\n" {
		t.Error(got)
	}
	calls := l.calls("s")
	if len(calls) != 1 || calls[0].Response == nil || calls[0].Response.Text != "ab" || calls[0].Response.Usage.Output != 2 {
		t.Errorf("%+v", calls)
	}
}

// TestStreamUnasked uses a server that always answers responses with a stream.
func TestStreamUnasked(t *testing.T) {
	t.Parallel()
	whole := `{"id":"r1","object":"response","status":"completed","model":"m","odd": 1,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"fine"}]}],"usage":{"input_tokens":5,"output_tokens":2}}`
	up := script(events(`{"type":"response.created","response":{"id":"r1"}}`, `{"type":"response.completed","response":`+whole+`}`), events(chunk("a"), "[DONE]"))
	l := to(t, up, func(c *Config) { c.Retries = NoRetries })
	r := l.post("/v1/sessions/s/responses", `{"model":"m","input":"hi"}`).want(t, 200)
	if r.body != whole || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: %s", r.header.Get("Content-Type"), r.body)
	}
	l.post(chatPath, chatOf("m", "hi")).want(t, 502, "a stream of events, which was not asked for")
	if calls := l.calls("s"); len(calls) != 2 || calls[0].Response == nil || calls[0].Response.Text != "fine" {
		t.Errorf("%+v", calls)
	}
}

// TestMisplaced checks that an address that the server does not know is reported once and recorded; the client
// gets the server's own words.
func TestMisplaced(t *testing.T) {
	t.Parallel()
	const said = `{"error":{"message":"File Not Found","type":"not_found_error","code":404}}`
	var heard messages
	l := to(t, script(answering(404, said)), func(c *Config) {
		c.Upstreams[0].BaseURL += "/v1/"
		c.Tell = heard.tell
	})
	for range 2 {
		if r := l.post(chatPath, chatOf("m", "hi")); r.status != 404 || r.body != said {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	where := "404 from " + strings.TrimSuffix(l.g.cfg.Upstreams[0].BaseURL, "/") + "/chat/completions: File Not Found; base_url should end in one /v1"
	heard.want(t, 1, "upstream openai: "+where)
	if calls := l.calls("s"); len(calls) != 2 || calls[0].Error == nil || calls[0].Error.Message != where {
		t.Errorf("%+v", calls)
	}
}
