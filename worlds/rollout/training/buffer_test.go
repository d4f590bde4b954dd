package training

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// batch is an answer of /get_rollout_data.
type batch struct {
	Success bool
	Message string
	Data    struct {
		Data []bufferItem
		Meta map[string]any `json:"meta_info"`
	}
}

func (s *served) batch(body string) (b batch) {
	s.t.Helper()
	code, text := s.ask("POST", "/get_rollout_data", body)
	if err := json.Unmarshal([]byte(text), &b); err != nil || code != 200 {
		s.t.Fatalf("%d: %v: %s", code, err, text)
	}
	return b
}

func (b batch) uids() string {
	var all []string
	for _, i := range b.Data.Data {
		all = append(all, i.UID)
	}
	return strings.Join(all, " ")
}

// TestBuffer checks every field of the answers that trainers expect.
func TestBuffer(t *testing.T) {
	t.Parallel()
	l := newLab(t, 8)
	s := l.serve(t, nil)
	if b := s.batch(""); b.Success || b.Message != "No data available to read" || b.Data.Data == nil {
		t.Errorf("%+v", b)
	}
	s.want("POST", "/start_rollout", `{"num_repeat_per_sample":"2","task_type":"maze","sampling_params":{}}`, 200, `"message":"Rollout started"`)
	s.want("POST", "/start_rollout", `{"num_repeat_per_sample":2}`, 200, `already running`)
	l.end(1, 0, 2)
	_, raw := s.ask("POST", "/get_rollout_data", `{"max_groups":"x"}`)
	const want = `{"data":{"data":[` +
		`{"uid":"r1-0-0-1-agent","instance_id":"maze:1/agent","messages":[{"role":"user","content":"episode 0?"},{"role":"assistant","content":"\u003canswer 0\u003e"}],"reward":0,` +
		`"extra_info":{"timestamp":1,"steps":1,"finish_reason":"stop","session_id":"r1-0-0","env_id":"r1-0-0","group_id":"maze:1","weight_version":7,"truncated":false,` +
		`"is_session_completed":true,"step_reward":0,"agent_id":"agent","policy_id":"x","advantage":-0.7071057811879616},"tokens":[1,2,3],"loss_mask":[0,0,1]},` +
		`{"uid":"r1-1-0-1-agent","instance_id":"maze:1/agent","messages":[{"role":"user","content":"episode 1?"},{"role":"assistant","content":"\u003canswer 1\u003e"}],"reward":1,` +
		`"extra_info":{"timestamp":1,"steps":1,"finish_reason":"stop","session_id":"r1-1-0","env_id":"r1-1-0","group_id":"maze:1","weight_version":7,"truncated":false,` +
		`"is_session_completed":true,"step_reward":1,"agent_id":"agent","policy_id":"x","advantage":0.7071057811879616},"tokens":[1,2,3],"loss_mask":[0,0,1]}` +
		`],"meta_info":{"total_samples":2,"avg_reward":0.5,"finished_groups":["maze:1/agent"],"avg_weight_version":7,"max_weight_version":7,"cursor":"r1.9"}},` +
		`"success":true,"message":"Successfully read 2 items"}`
	if raw != want {
		t.Errorf("%s\nwant\n%s", raw, want)
	}
	if b := s.batch("{}"); b.Success {
		t.Errorf("handed out twice: %+v", b)
	}
	// A group that is short is not for such a client; the place is kept over a restart.
	l.end(-4, 4, 5)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	next := l.serve(t, func(c *Config) { c.Begun, c.Resume = true, true })
	b := next.batch("{}")
	if b.uids() != "r1-4-0-1-agent r1-5-0-1-agent" || b.Data.Meta["left_groups"].(map[string]any)["short"] != 1.0 {
		t.Errorf("%+v", b)
	}
	if again := next.batch(`{"cursor":"r1.9","max_groups":1}`); again.uids() != b.uids() {
		t.Errorf("%+v", again)
	}
	l.end(6, 7)
	next.want("POST", "/start_rollout", `{"num_repeat_per_sample":2,"restart_training":true}`, 200, "")
	if b := next.batch(""); b.Success {
		t.Errorf("training began again: %+v", b)
	}
}

// TestPositionOfAnotherRun: a position in another run is not used for this one, and a file that
// is something else is not overwritten.
func TestPositionOfAnotherRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	if err := os.WriteFile(l.file+"-position", []byte(`{"cursor":"r0.9"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := l.serve(t, nil)
	s.want("POST", "/start_rollout", `{"num_repeat_per_sample":2}`, 200, "")
	l.end(0, 1)
	if b := s.batch(""); len(b.Data.Data) != 2 {
		t.Errorf("%+v", b)
	}
	c := newLab(t, 2).config() // nobody else writes there
	if err := os.WriteFile(c.Position, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), c.Position) {
		t.Error(err)
	}
}

// TestPositionOfSomebodyElse checks that a file that is not a position is not overwritten.
func TestPositionOfSomebodyElse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.parley-position")
	for text, ok := range map[string]bool{`{"cursor":"7"}` + "\n": true, `{"mine":1}`: false, `notes`: false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openPosition(path); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
