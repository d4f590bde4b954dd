package gateway

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/journal"
	"parley/llm"
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
	l := to(t, up, func(c *Config) { c.Settings = limited(0, 0) })
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
		c.Events = heard.add
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

// TestTriesAgainBeforeTheFirstByte checks that the client sees only the answer if a provider fails first in a
// way that may pass.
func TestTriesAgainBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	hangUp := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		fails http.HandlerFunc
		body  string
	}{
		"status":      {answering(500, `{"error":{"message":"oops"}}`), chatOf("m", "hi")},
		"busy":        {answering(429, `{"error":{"message":"slow down"}}`, "Retry-After-Ms", "5"), chatOf("m", "hi")},
		"page":        {answering(200, "<html>"), chatOf("m", "hi")},
		"hang up":     {hangUp, chatOf("m", "hi")},
		"error event": {events(`{"error":{"message":"overloaded","code":"overloaded"}}`), chatOf("m", "hi", streamed)},
		"empty":       {events(), chatOf("m", "hi", streamed)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ok := saying("fine")
			if strings.Contains(c.body, "stream") {
				ok = events(append([]string{chunk("fine")}, ends()...)...)
			}
			up := script(c.fails, ok)
			l := to(t, up)
			l.post(chatPath, c.body).want(t, 200, "fine")
			calls := l.calls("s")
			if len(calls) != 1 || calls[0].Response == nil || calls[0].Response.Text != "fine" || calls[0].Response.Metadata.Attempts < 2 {
				t.Errorf("%+v", calls)
			}
			if up.count() < 2 {
				t.Errorf("%d calls", up.count())
			}
		})
	}
}

// TestStreamsThatFail checks streams that end badly after their first byte: the client gets the error, nothing
// is retried, and the error is recorded.
func TestStreamsThatFail(t *testing.T) {
	t.Parallel()
	stall := func(w http.ResponseWriter, r *http.Request) {
		events(chunk("so"))(w, r)
		<-r.Context().Done()
	}
	die := func(w http.ResponseWriter, r *http.Request) {
		events(chunk("so"))(w, r)
		panic(http.ErrAbortHandler)
	}
	for name, c := range map[string]struct {
		up   http.HandlerFunc
		kind llm.Kind
		says string // to the client
		why  string // in the record
	}{
		"dies":        {die, llm.KindTransport, `"code":"transport"`, "in the middle of the answer"},
		"stalls":      {stall, llm.KindTimeout, `"code":"timeout"`, "nothing complete arrived for"},
		"stops":       {events(chunk("so")), llm.KindMalformed, `"code":"malformed"`, "without [DONE]"},
		"fails":       {events(chunk("so"), `{"error":{"message":"out of luck","code":"server_error"}}`), llm.KindServer, `data: {"error":{"message":"out of luck","code":"server_error"}}`, "out of luck"},
		"no JSON":     {events(chunk("so"), `{"choices":[`, "[DONE]"), llm.KindMalformed, `"code":"malformed"`, "not a chat completion chunk"},
		"half an end": {events(chunk("so"), ends()[0]), llm.KindMalformed, `"code":"malformed"`, "without [DONE]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := script(c.up)
			l := to(t, up, func(cfg *Config) {
				if c.kind == llm.KindTimeout {
					cfg.Upstreams[0].Timeout = 2 * time.Second // in which the first event comes, also on a busy machine
				}
			})
			got := l.post(chatPath, chatOf("m", "hi", streamed)).want(t, 200, chunk("so"), c.says)
			if strings.Contains(got.body, "data: [DONE]") || strings.Contains(got.body, `"finish_reason":"stop"`) {
				t.Errorf("it looks whole: %s", got.body)
			}
			calls := l.calls("s")
			e := calls[0].Error
			if len(calls) != 1 || up.count() != 1 || e == nil || e.Kind != c.kind || !strings.Contains(e.Message, c.why) || !e.Uncertain {
				t.Fatalf("%d calls, asked %d times: %+v", len(calls), up.count(), e)
			}
			if string(calls[0].Wire.Body) != got.body {
				t.Errorf("recorded %q, sent %q", calls[0].Wire.Body, got.body)
			}
		})
	}
}

// TestClientGoesAway checks that a call ends at the provider too when its client goes away, and that this is
// recorded.
func TestClientGoesAway(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	l := to(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		events(chunk("so"))(w, r)
		<-r.Context().Done()
		close(ended)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, l.url+chatPath, strings.NewReader(chatOf("m", "hi", streamed)))
	res, err := l.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	readThis(t, res.Body, "data: "+chunk("so")+"\n\n")
	cancel()
	res.Body.Close()
	<-ended
	calls := l.calls("s")
	if e := calls[0].Error; len(calls) != 1 || e == nil || e.Kind != llm.KindCanceled || !strings.Contains(e.Message, "went away after") || !calls[0].Wire.Cut {
		t.Errorf("%+v %+v", calls, calls[0].Error)
	}
}

// TestUnrecorded checks that no client gets the end of an answer that cannot be recorded, and that the gateway
// stops.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"", streamed} {
		ok := saying("fine")
		if stream != "" {
			ok = events(append([]string{chunk("fine")}, ends()...)...)
		}
		l := to(t, script(ok), func(c *Config) { c.Journal = &broken{} })
		got, err := l.try(t.Context(), chatPath, chatOf("m", "hi", stream))
		if stream == "" || err == nil && got.status == 500 { // the begin of the session had failed before the stream began
			got.want(t, 500, "record_failed", "the disk is full")
		} else if err == nil || strings.Contains(got.body, "[DONE]") { // the connection is closed or reset
			t.Errorf("%v: %s", err, got.body)
		}
		if err := <-l.ended; err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("Run: %v", err)
		}
		l.ended <- nil
	}
}

// broken is a journal that accepts only the first entries.
type broken struct{ journal.Memory }

func (b *broken) Append(ctx context.Context, entries ...journal.Entry) error {
	if _, ok := entries[0].(*journal.Begun); !ok {
		return errFull
	}
	return b.Memory.Append(ctx, entries...)
}
