package training

import (
	"fmt"
	"testing"
)

// TestPauseAndWeights: a trainer pauses the run, and tells which weights it has.
func TestPauseAndWeights(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	s := l.serve(t, nil)
	s.want("POST", "/v1/pause", "", 409, "no run is being played")
	s.want("POST", "/v1/start", "", 202, `"state":"playing"`)
	s.want("POST", "/v1/pause", "", 200, `"paused":true`)
	if !l.paused.Load() {
		t.Error("the run goes on")
	}
	s.want("POST", "/v1/resume", "", 200, `"read":0`)
	if l.paused.Load() {
		t.Error("the run is still paused")
	}
	l.end(0, 1)
	s.want("GET", "/v1/groups?max_lag=2", "", 400, "POST /v1/weights before")
	for body, want := range map[string]string{`{"version":-1}`: "from 0", `{}`: "from 0", `{"version":"x"}`: "from 0", `{"version":1,"more":2}`: "from 0"} {
		s.want("POST", "/v1/weights", body, 400, want)
	}
	s.want("POST", "/v1/weights", `{"version":9}`, 200, `"weight_version":9`)
	s.want("GET", "/v1/groups?max_lag=2", "", 200, `"group_id":"maze:1"`)
	s.want("GET", "/v1/groups?max_lag=1", "", 200, `"left":{"weight lag":1}`)
}

// TestPauseFinishes: a pause may wait for the calls in flight, but not forever.
func TestPauseFinishes(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	s := l.serve(t, nil)
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	for body, want := range map[string]string{`{"calls":"drop"}`: "hold", `{"wait":-1}`: "SECONDS", `{"now":true}`: "unknown field"} {
		s.want("POST", "/v1/pause", body, 400, want)
	}
	l.busy.Store(true)
	s.want("POST", "/v1/pause", `{"calls":"hold"}`, 200, `"paused":true`)
	s.want("POST", "/v1/resume", "", 200, `"playing"`)
	s.want("POST", "/v1/pause", `{"calls":"finish","wait":0.001}`, 504, "still in flight")
	s.want("GET", "/v1/status", "", 200, `"paused":true`)
	s.want("POST", "/v1/pause", `{"calls":"cut"}`, 200, `"paused":true`)
	s.want("POST", "/v1/pause", `{"calls":"finish"}`, 200, `"paused":true`) // there are none any more
	l.end(0, 1)
}

// TestStaleness: once a trainer says which weights it has, groups with older answers than the run allows are left out.
func TestStaleness(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	one := 1
	s := l.serve(t, func(c *Config) { c.Staleness = &one })
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	l.end(0, 1)
	for _, c := range []struct{ weights, query, want string }{
		{"", "", "maze:1/2"},
		{"8", "", "maze:1/2"}, // the answers have version 7
		{"9", "", ""},
		{"9", "max_lag=2", "maze:1/2"},
	} {
		if c.weights != "" {
			s.want("POST", "/v1/weights", `{"version":`+c.weights+`}`, 200, c.weights)
		}
		if got := s.poll(c.query); got.ids() != c.want || (c.want == "") != (got.Left["weight lag"] == 1) {
			t.Errorf("weights %s, %q: %q, left out: %v", c.weights, c.query, got.ids(), got.Left)
		}
	}
	if got := s.batch(""); got.Success || fmt.Sprint(got.Data.Meta["left_groups"]) != "map[weight lag:1]" {
		t.Errorf("%+v", got)
	}
}

// TestWeightsSurvive: the next server of a run knows which weights the trainer has. A server of another run does not.
func TestWeightsSurvive(t *testing.T) {
	t.Parallel()
	l, one := newLab(t, 2), 1
	stale := func(c *Config) { c.Staleness = &one }
	s := l.serve(t, stale)
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	l.end(0)
	s.want("POST", "/v1/weights", `{"version":9}`, 200, `"weight_version":9`)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = l.serve(t, func(c *Config) { stale(c); c.Begun, c.Resume = true, true })
	l.end(1)
	s.want("GET", "/v1/status", "", 200, `"weight_version":9`)
	if got := s.poll("wait=5"); got.ids() != "" || got.Left["weight lag"] != 1 {
		t.Errorf("%q, left out: %v", got.ids(), got.Left)
	}
	other := newLab(t, 2)
	s = other.serve(t, func(c *Config) { stale(c); c.Position = l.file + "-position" })
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	other.end(0, 1)
	if got := s.poll("wait=5"); got.ids() != "maze:1/2" {
		t.Errorf("the weights of another run count: %q, left out: %v", got.ids(), got.Left)
	}
}

// TestTasks: a trainer changes the tasks of the run, and learns why a change is refused.
func TestTasks(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	s := l.serve(t, nil)
	s.want("POST", "/v1/tasks", `{"remove":["maze:1"]}`, 409, "no run is being played")
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	s.want("POST", "/v1/tasks", `{"remove":3}`, 400, "cannot be read")
	s.want("POST", "/v1/tasks", `{"add":[{"name":"x"}]}`, 400, "add[0].env_name")
	s.want("POST", "/v1/tasks", `{"remove":["maze:1"]}`, 409, "there is no task")
	s.want("POST", "/v1/tasks", `{"add":[{"name":"x","env_name":"maze"}],"weights":{"maze":0}}`, 200, `"playing"`)
	if got := l.changed.Load(); got == nil || *got != "tasks: 1 added, 1 weighted" {
		t.Errorf("the plan was told %v", got)
	}
	l.end(0, 1)
}
