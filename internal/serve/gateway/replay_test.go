package gateway

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/serve/gateway/format"
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
		got := again.post(c.path, c.body, anthropicVersion()...) // it says in which form models are listed
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
		{strings.Replace(was, "France", "Spain", 1), `turn 0 differs from what was recorded: messages[1].content: around byte 23 it was \"t is the capital of France?\", and is \"t is the capital of Spain?\"`},
		{strings.Replace(was, "0.5", "0.7", 1), `temperature: around byte 2 it was \"0.5\", and is \"0.7\"`},
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
		if c.Turn.Turn != i {
			t.Errorf("call %d is turn %d", i, c.Turn.Turn)
		}
	}
}

// messages collects the messages for the person who runs the gateway.
type messages struct {
	mu    sync.Mutex
	lines []string
}

func (h *messages) add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Text != "" {
		h.lines = append(h.lines, e.Text)
	}
}

func (h *messages) want(t *testing.T, n int, words ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	all := strings.Join(h.lines, "\n")
	if len(h.lines) != n {
		t.Errorf("%d lines, want %d: %s", len(h.lines), n, all)
	}
	for _, w := range words {
		if !strings.Contains(all, w) {
			t.Errorf("want %q in %s", w, all)
		}
	}
}

func ignoring(t *testing.T, rules ...string) *format.Rules {
	t.Helper()
	r, err := format.ParseRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// counting answers each call with its number.
func counting() (*scripted, func() int) {
	n := 0
	s := script(func(w http.ResponseWriter, r *http.Request) {
		n++ // one call at a time
		saying(fmt.Sprint("answer ", n))(w, r)
	})
	return s, s.count
}

// game is a program whose prompts differ every time.
func game(l *lab, session, salt string, turns int) (out []reply) {
	for i := range turns {
		body := chatOf("m", fmt.Sprintf("You are power %d of the game. Salt: %s.\nWhat are your orders for the spring of this year?", i, strings.Repeat(salt, 40)))
		out = append(out, l.post("/v1/sessions/"+session+"/chat/completions", body))
	}
	return out
}

// TestIgnore replays and resumes a program whose prompts differ every time.
func TestIgnore(t *testing.T) {
	t.Parallel()
	up, asked := counting()
	file := filepath.Join(t.TempDir(), "run.parley")
	live := Config{Upstreams: []provider.Provider{upstream("openai", serving(t, up))}}
	first := startAt(t, live, file)
	want := game(first, "s", "abc", 3)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	rules := ignoring(t, `re:Salt: \w+\.`)
	same := func(got []reply, n int) {
		t.Helper()
		for i := range n {
			if got[i].body != want[i].body || got[i].header.Get("X-Parley-Replayed") != "rules" || got[i].header.Get("X-Parley-Turn") != fmt.Sprint("0:", i) {
				t.Errorf("call %d: %d %s, want %s; %v", i, got[i].status, got[i].body, want[i].body, got[i].header)
			}
		}
	}
	plain := startAt(t, Config{Replay: true}, file)
	game(plain, "s", "xyz", 1)[0].want(t, 409, "replay_diverged", "--ignore")
	plain.stop()

	replay := startAt(t, Config{Replay: true, Rules: rules}, file)
	same(game(replay, "s", "xyz", 3), 3)
	if sum := replay.g.Summary(); sum.Replayed != 3 || sum.Loose != 3 || sum.Missed != 0 {
		t.Errorf("%+v", sum)
	}
	replay.stop()

	live.Resume, live.Rules = true, rules
	resumed := startAt(t, live, file)
	got := game(resumed, "s", "uvw", 4)
	same(got, 3)
	got[3].want(t, 200, "answer 4")
	resumed.post("/v1/sessions/s", "").want(t, 200, `"record":{"calls":3,"found":3,"missed":1}`, `"episode":0`)
	if sum := resumed.g.Summary(); sum.Replayed != 3 || sum.Missed != 1 || asked() != 4 {
		t.Errorf("%+v, asked %d times", sum, asked())
	}
}

// agent makes the calls of a coding agent that names its session itself, and reports what changes each time it runs.
func agent(l *lab, session, task string) (out []reply) {
	const body = `{"model":"m","client_metadata":{"turn_id":%q},"input":[{"role":"user","content":%q},{"type":"function_call","call_id":"c","name":"sh","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c","output":%q}]}`
	for _, result := range []string{"one", "two"} {
		output := "Chunk ID: " + fmt.Sprintf("%x", session) + "\nWall time: 0.0" + fmt.Sprint(len(session)) + " seconds\nOutput:\n" + result
		out = append(out, l.post("/v1/responses", fmt.Sprintf(body, session, task, output), "Session-Id", session))
	}
	return out
}

// TestReplayAgents replays programs that name their sessions, differently each time, and have ids in what they ask.
func TestReplayAgents(t *testing.T) {
	t.Parallel()
	live := start(t, Config{Upstreams: both(simulated(t, sim.Config{}))})
	north, south := agent(live, "a1", "go north"), agent(live, "a2", "go south")
	if err := live.stop(); err != nil {
		t.Fatal(err)
	}
	again := startAt(t, Config{Replay: true, Rules: ignoring(t)}, live.file)
	for i, want := range [][]reply{south, north, south, south} {
		task := map[bool]string{true: "go north", false: "go south"}[i == 1]
		for k, got := range agent(again, fmt.Sprint("run-", i), task) {
			if got.body != want[k].body || got.status != 200 || got.header.Get("X-Parley-Replayed") != "rules" {
				t.Errorf("run %d, call %d: %d %s, want %s", i, k, got.status, got.body, want[k].body)
			}
		}
	}
	again.post("/v1/sessions/run-3", "").want(t, 200, `"found":2`)
	again.post("/v1/sessions/run-2", "").want(t, 404) // it had everything, and was forgotten
	again.post("/v1/sessions/a2", "").want(t, 200, `"found":0`)
	if got := agent(again, "lost", "go west")[0].want(t, 409, "replay_diverged", "session lost: no recorded session begins with this call: session a1, turn 0 differs", "messages[0].content: around byte 3"); strings.Contains(got.body, "client_metadata") || strings.Contains(got.body, "Chunk") {
		t.Errorf("what is ignored is named: %s", got.body)
	}
	again.post("/v1/sessions/lost/responses", `{"model":"m","input":"hi"}`).want(t, 404, "session lost is not in the record")
	if sum := again.g.Summary(); sum.Replayed != 8 || sum.Missed != 2 || sum.Sessions != 5 { // a2 was looked at
		t.Errorf("%+v", sum)
	}
	again.stop()
	near := startAt(t, Config{Replay: true, Rules: ignoring(t), Nearest: 0.5}, live.file)
	agent(near, "lost", "go west")[0].want(t, 200)
}

// TestIgnoreFits checks that no answer of another form or model is served.
func TestIgnoreFits(t *testing.T) {
	t.Parallel()
	up, _ := counting()
	live := start(t, Config{Upstreams: []provider.Provider{upstream("openai", serving(t, up))}, Aliases: map[string]string{"small": "openai/m"}})
	live.post(chatPath, chatOf("small", "one 1")).want(t, 200)
	if err := live.stop(); err != nil {
		t.Fatal(err)
	}
	again := startAt(t, Config{Replay: true, Rules: ignoring(t, "re:[0-9]+")}, live.file)
	again.post(chatPath, chatOf("m", "one 2", streamed)).want(t, 409)
	again.post(chatPath, chatOf("other", "one 2")).want(t, 409, "model")
	again.post(chatPath, chatOf("m", "one 2", `,"n":2`)).want(t, 409, "n: ")
	again.post("/v1/sessions/s/messages", messageOf("m", "one 2")).want(t, 409)
	again.post(chatPath, chatOf("m", "one 2")).want(t, 200, "answer 1")
}

// TestNearest replays the most similar call and reports the difference.
func TestNearest(t *testing.T) {
	t.Parallel()
	up, _ := counting()
	live := start(t, Config{Upstreams: []provider.Provider{upstream("openai", serving(t, up))}})
	want := game(live, "s", "abc", 3)
	if err := live.stop(); err != nil {
		t.Fatal(err)
	}
	var heard messages
	again := startAt(t, Config{Replay: true, Nearest: 0.6, Events: heard.add}, live.file)
	again.post(chatPath, chatOf("m", "Something else altogether.")).want(t, 409, "--nearest")
	for _, i := range []int{2, 0, 1} { // calls made at the same time may come in any order
		body := chatOf("m", fmt.Sprintf("You are power %d of the game. Salt: \x1b[31mq.\nWhat are your orders for the spring of this year?", i))
		r := again.post(chatPath, body).want(t, 200)
		if r.body != want[i].body || r.header.Get("X-Parley-Replayed") != "nearest" || !strings.HasPrefix(r.header.Get("X-Parley-Similarity"), "0.9") {
			t.Errorf("call %d: %s, want %s; %v", i, r.body, want[i].body, r.header)
		}
	}
	heard.want(t, 3, "episode 0, turn 2 is replayed for a call that differs", "similarity 0.9", "messages[0].content: around byte", `\x1b[31m`)
	if sum := again.g.Summary(); sum.Nearest != 3 || sum.Missed != 1 {
		t.Errorf("%+v", sum)
	}
}

// TestNameIsReused runs several programs under one name, in several processes of the gateway: one name is one episode.
func TestNameIsReused(t *testing.T) {
	t.Parallel()
	up, asked := counting()
	file := filepath.Join(t.TempDir(), "run.parley")
	for i, c := range []struct {
		resume bool
		asked  int
		games  []string
	}{
		{false, 3, []string{"one", "two", "one"}},
		{false, 4, []string{"three"}},
		{true, 5, []string{"one", "one", "four", "three"}},
	} {
		l := startAt(t, Config{Upstreams: []provider.Provider{upstream("openai", serving(t, up))}, Resume: c.resume}, file)
		for _, g := range c.games {
			r := l.post(chatPath, chatOf("m", g)).want(t, 200)
			if got := r.header.Get("X-Parley-Episode"); got != "0" {
				t.Errorf("process %d, %s: episode %s", i, g, got)
			}
			l.client.CloseIdleConnections()
		}
		if err := l.stop(); err != nil || asked() != c.asked {
			t.Errorf("process %d: asked %d times, want %d; %v", i, asked(), c.asked, err)
		}
	}
	calls := recorded(t, file, "s")
	for i, c := range calls {
		if c.Turn.Turn != i || c.Episode != 0 {
			t.Errorf("call %d is turn %d of episode %d", i, c.Turn.Turn, c.Episode)
		}
	}
	if len(calls) != 5 {
		t.Errorf("%d calls", len(calls))
	}
}
