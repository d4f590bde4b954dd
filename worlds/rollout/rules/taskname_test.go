package rules

import (
	"encoding/json"
	"testing"
)

// TestTaskName checks that environments and the tasks of files are distinguished, and that different env_params of
// one environment are not.
func TestTaskName(t *testing.T) {
	t.Parallel()
	seed := int64(5)
	small, large := json.RawMessage(`{"size":3}`), json.RawMessage(`{"size":9}`)
	for name, test := range map[string]struct {
		a, b Params
		same bool
	}{
		"other params":        {Params{Env: "maze", EnvParams: small}, Params{Env: "maze", EnvParams: large, MaxSteps: 9}, true},
		"another environment": {Params{Env: "maze"}, Params{Env: "count"}, false},
		"one task":            {Params{Env: "maze", EnvParams: small, Task: &Task{Group: "maze:1"}}, Params{Env: "maze", EnvParams: small, Task: &Task{Group: "maze:2"}}, true},
		"two tasks":           {Params{Env: "maze", EnvParams: small, Task: &Task{}}, Params{Env: "maze", EnvParams: large, Task: &Task{}}, false},
		"another seed":        {Params{Env: "maze"}, Params{Env: "maze", Seed: &seed}, false},
		"not JSON":            {Params{Env: "maze", EnvParams: json.RawMessage("{"), Task: &Task{}}, Params{Env: "maze"}, false},
	} {
		a, whole := Definition{}.TaskName(&test.a)
		b, _ := Definition{}.TaskName(&test.b)
		if a == "" || whole || (a == b) != test.same {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
}
