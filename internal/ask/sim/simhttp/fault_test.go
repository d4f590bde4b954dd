package simhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/internal/ask/sim"
)

func faulty(f sim.Fault) Config {
	return Config{Sim: sim.Config{Faults: sim.Faults{f: 1}, StallFor: time.Millisecond}}
}

// TestFaultsOnTheWire injects every live fault, in each format, streamed and not.
func TestFaultsOnTheWire(t *testing.T) {
	t.Parallel()
	for _, f := range sim.AllFaults()[:9] {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			url, s := serve(t, faulty(f))
			for _, stream := range []bool{false, true} {
				for path, body := range map[string]string{chatPath: chatBody, responsesPath: responsesBody, messagesPath: messagesBody} {
					if stream {
						body = with(body, `"stream":true`)
					}
					a, err := post(t, client(t), url+path, body)
					if why := faultSeen(t, f, path, stream, a, err); why != "" {
						t.Errorf("%s, stream %t: %s: %v %d %v %.300s", path, stream, why, err, a.status, a.header, a.body)
					}
				}
			}
			if n := s.Stats().Faults[string(f)]; n != 6 {
				t.Errorf("%d faults counted, want 6", n)
			}
		})
	}
}

// faultSeen returns how a client's view of a fault is wrong, or "".
func faultSeen(t *testing.T, f sim.Fault, path string, stream bool, a answered, err error) string {
	t.Helper()
	anthropic := path == messagesPath
	ended := bytes.Contains(a.body, []byte("[DONE]")) || bytes.Contains(a.body, []byte("message_stop")) || bytes.Contains(a.body, []byte("response.completed"))
	type verdict struct {
		ok   bool
		want string
	}
	var v verdict
	switch f {
	case sim.FaultError500:
		v = verdict{err == nil && a.status == 500, "status 500"}
	case sim.FaultOverloaded:
		want := map[bool]int{true: 529, false: 503}[anthropic]
		v = verdict{err == nil && a.status == want && a.header.Get("Retry-After") == "", "overloaded without Retry-After"}
	case sim.FaultQuota:
		want := map[bool]int{true: 400, false: 429}[anthropic]
		v = verdict{err == nil && a.status == want && (anthropic || a.at(t, "error.code") == "insufficient_quota"), "out of credit"}
	case sim.FaultReset, sim.FaultCut, sim.FaultStall:
		v = verdict{err != nil, "a broken connection"}
		if f != sim.FaultReset && stream {
			v = verdict{err != nil && len(a.body) > 0 && !ended, "a stream broken in its middle"}
		}
	case sim.FaultTruncated:
		v = verdict{err == nil && a.status == 200 && !ended && (stream || !json.Valid(a.body)), "half an answer"}
	case sim.FaultHTML:
		v = verdict{err == nil && a.status == 200 && bytes.Contains(a.body, []byte("<html>")), "a web page"}
	case sim.FaultStreamErr:
		v = verdict{err == nil && a.status == 500, "status 500"}
		if stream {
			v = verdict{err == nil && a.status == 200 && !ended && bytes.Contains(a.body, []byte(`error"`)), "an error event"}
		}
	}
	if v.ok {
		return ""
	}
	return "want " + v.want
}

// TestRetriesSucceed checks that retries of a request fail for a while and then succeed.
func TestRetriesSucceed(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{Sim: sim.Config{Faults: sim.Faults{sim.FaultError500: 0.5}}})
	failed := 0
	for i := range 40 {
		for {
			a := call(t, s, http.MethodPost, chatPath, strings.Replace(chatBody, "river", fmt.Sprint(i), 1))
			if a.status == 200 {
				break
			}
			failed++
		}
	}
	if failed < 15 || failed > 90 {
		t.Errorf("%d failures on the way to 40 answers", failed)
	}
}

func TestFlexIsUnavailable(t *testing.T) {
	t.Parallel()
	s := newServer(t, faulty(sim.FaultOverloaded))
	a := call(t, s, http.MethodPost, chatPath, with(chatBody, `"service_tier":"flex"`))
	if a.status != 429 || a.at(t, "error.code") != "resource_unavailable" || a.header.Get("Retry-After") != "" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestRefusalsInEveryFormat(t *testing.T) {
	t.Parallel()
	s := newServer(t, faulty(sim.FaultRefuse))
	if a := call(t, s, http.MethodPost, chatPath, chatBody); a.at(t, "choices.0.message.refusal") == nil || a.at(t, "choices.0.message.content") != nil {
		t.Errorf("%s", a.body)
	}
	if a := call(t, s, http.MethodPost, responsesPath, responsesBody); a.at(t, "output.0.content.0.type") != "refusal" {
		t.Errorf("%s", a.body)
	}
	if a := call(t, s, http.MethodPost, messagesPath, messagesBody); a.at(t, "stop_reason") != "refusal" {
		t.Errorf("%s", a.body)
	}
	if a := call(t, s, http.MethodPost, responsesPath, with(responsesBody, `"stream":true`)); !bytes.Contains(a.body, []byte("response.refusal.delta")) {
		t.Errorf("%s", a.body)
	}
}

// TestVendorsFail checks that each vendor's endpoint fails in that vendor's form.
func TestVendorsFail(t *testing.T) {
	t.Parallel()
	const (
		vertex  = "/v1/projects/p/locations/r/publishers/"
		gemini  = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
		bedrock = `{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`
		claude  = `{"anthropic_version":"vertex-2023-10-16","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	)
	for _, c := range []struct {
		fault            sim.Fault
		path, body, want string
		status           int
	}{
		{sim.FaultError500, chatPath, chatBody, "The server had an error", 500},
		{sim.FaultError500, messagesPath, messagesBody, "api_error", 500},
		{sim.FaultError500, "/model/m/converse", bedrock, "The server had an error", 500},
		{sim.FaultError500, "/v1beta/models/m:generateContent", gemini, `"INTERNAL"`, 500},
		{sim.FaultError500, vertex + "anthropic/models/m:rawPredict", claude, `"INTERNAL"`, 500},
		{sim.FaultQuota, "/model/m/converse", bedrock, "service quota", 400},
		{sim.FaultQuota, messagesPath, messagesBody, "Anthropic API", 400},
		{sim.FaultQuota, vertex + "google/models/m:generateContent", gemini, "RESOURCE_EXHAUSTED", 429},
		{sim.FaultQuota, vertex + "anthropic/models/m:rawPredict", claude, "RESOURCE_EXHAUSTED", 429},
		{sim.FaultOverloaded, vertex + "anthropic/models/m:rawPredict", claude, "UNAVAILABLE", 503},
	} {
		a := call(t, newServer(t, faulty(c.fault)), http.MethodPost, c.path, c.body, "Authorization", "Bearer x")
		if a.status != c.status || !strings.Contains(string(a.body), c.want) {
			t.Errorf("%s at %s: %d %s", c.fault, c.path, a.status, a.body)
		}
	}
}
