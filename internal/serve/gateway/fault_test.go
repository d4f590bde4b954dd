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
