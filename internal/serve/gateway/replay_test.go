package gateway

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
)

func copyTo(w io.Writer, r io.Reader) (int64, error) { return io.Copy(w, r) }

// TestReplay records a program and serves the same bytes again, without a provider.
func TestReplay(t *testing.T) {
	t.Parallel()
	live := start(t, Config{Upstreams: both(simulated(t, sim.Config{}))})
	type call struct{ path, body string }
	program := []call{
		{"/v1/sessions/a/chat/completions", chatOf("m", "one")},
		{"/v1/sessions/a/chat/completions", chatOf("m", "one")}, // the same again is another call
		{"/v1/sessions/a/chat/completions", chatOf("m", "two", streamed)},
		{"/v1/sessions/b/messages", messageOf("m", "three", streamed)},
		{"/v1/sessions/b/messages/count_tokens", chatOf("m", "three")},
		{"/v1/responses", `{"model":"m","input":"four","stream":true}`},
		{"/v1/models", ""},
		{"/v1/chat/completions", `{"model":"m","messages":[]}`}, // refused, which is recorded too
	}
	var want []reply
	for _, c := range program {
		want = append(want, live.post(c.path, c.body, anthropicVersion()...))
	}
	if err := live.stop(); err != nil {
		t.Fatal(err)
	}
	again := startAt(t, Config{Replay: true}, live.file)
	for i, c := range program {
		got := again.post(c.path, c.body)
		if got.status != want[i].status || got.body != want[i].body || got.header.Get("Content-Type") != want[i].header.Get("Content-Type") {
			t.Errorf("%s: %d %q, want %d %q", c.path, got.status, got.body, want[i].status, want[i].body)
		}
	}
	again.post(program[0].path, program[0].body).want(t, 409, "replay_diverged", "all 3 recorded calls of it were served")
	again.post("/v1/sessions/new/chat/completions", program[0].body).want(t, 404, "session new is not in the record")
	again.post("/v1/sessions/a", "").want(t, 200, `"requests":`)
	// Closing a session rewinds only that one: the program can run again.
	for range 2 {
		again.post("/v1/sessions/a/close", `{"reason":"again"}`).want(t, 200, `"status":"closed"`, `"close_reason":"again"`, `"found":3`)
		again.post("/v1/sessions/a", "").want(t, 200, `"status":"open"`, `"found":0`, `"missed":0`)
		for i, c := range program[:3] {
			if got := again.post(c.path, c.body); got.status != want[i].status || got.body != want[i].body {
				t.Errorf("again, %s: %d %q, want %d %q", c.path, got.status, got.body, want[i].status, want[i].body)
			}
		}
		again.post(program[3].path, program[3].body).want(t, 409, "replay_diverged")
	}
}

// TestReplayDiverges checks the description of a request that differs from the record.
func TestReplayDiverges(t *testing.T) {
	t.Parallel()
	live := start(t, Config{Upstreams: both(simulated(t, sim.Config{}))})
	const was = `{"model":"m","temperature":0.5,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is the capital of France?"}]}`
	live.post(chatPath, was).want(t, 200)
	if err := live.stop(); err != nil {
		t.Fatal(err)
	}
	again := startAt(t, Config{Replay: true}, live.file)
	for _, c := range []struct{ is, where string }{
		{strings.Replace(was, "France", "Spain", 1), `turn 0 differs from what was recorded: messages[1].content: from character 23 on it was \"t is the capital of France?\", and is \"t is the capital of Spain?\"`},
		{strings.Replace(was, "0.5", "0.7", 1), `temperature: from character 2 on it was \"0.5\", and is \"0.7\"`},
		{strings.Replace(was, `"system"`, `"assistant"`, 1), "messages[0].role: it was system, and is assistant"},
		{strings.Replace(was, `"messages"`, `"top_p":1,"messages"`, 1), "top_p"},
		{strings.Replace(was, `"messages"`, `"odd":1,"messages"`, 1), "odd"},
		{chatOf("m", "What?"), "messages[0].role"},
		{strings.Replace(was, `"m"`, `"n"`, 1), `model: it was openai/m, and is \"n\"`},
	} {
		again.post(chatPath, c.is).want(t, 409, "replay_diverged", c.where)
	}
	again.post("/v1/s/messages", messageOf("m", "hi")).want(t, 409, "it was a call of chat, and is one of messages", `"type":"error"`)
	again.post(chatPath, strings.Replace(was, `"model"`, `"user":"me","model"`, 1)).want(t, 200) // whose call it is does not matter
}

// TestResume runs a program again over its own record: only what was not answered is asked.
func TestResume(t *testing.T) {
	t.Parallel()
	up := script(saying("one"), answering(400, `{"error":{"message":"not now"}}`), saying("two"), saying("three"))
	file := filepath.Join(t.TempDir(), "run.parley")
	c := Config{Upstreams: []provider.Provider{upstream("openai", serving(t, up))}, Resume: true}
	program := func(l *lab, questions int) (out []string) {
		for i := range questions {
			out = append(out, fmt.Sprint(l.post(chatPath, chatOf("m", fmt.Sprint("question ", i))).body))
		}
		return out
	}
	first := startAt(t, c, file)
	one := program(first, 2)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	second := startAt(t, c, file)
	two := program(second, 3)
	if two[0] != one[0] || !strings.Contains(two[1], `"two"`) || !strings.Contains(two[2], `"three"`) || up.count() != 4 {
		t.Errorf("%q, then %q; asked %d times", one, two, up.count())
	}
	calls := second.calls("s")
	if len(calls) != 4 {
		t.Fatalf("%+v", calls)
	}
	for i, c := range calls { // what was served from the record took no turn
		if c.Turn != i {
			t.Errorf("call %d is turn %d", i, c.Turn)
		}
	}
}
