package envhttp

import (
	"testing"

	"parley/worlds/rollout/env"
)

// FuzzServer resets and steps every environment with whatever a client sends: that is refused or
// answered, and no environment panics.
func FuzzServer(f *testing.F) {
	for _, k := range env.Standard() {
		f.Add(k.Name, `{"seed": 7}`, `{"action": "east"}`)
	}
	f.Add("maze", `{"env_param": {"size": 9223372036854775807}}`, `{"action": {"text": "north"}}`)
	f.Add("maze", `{"env_param": "{\"size\": -1}", "seed": -9223372036854775808}`, `{"action": null}`)
	f.Add("negotiation", `{"env_param": null}`, `{"action": {"seller": "1e999", "buyer": [[[[]]]]}}`)
	f.Add("number", `{"env_param": {"low": -9223372036854775808, "high": 9223372036854775807}}`, `{"action": "0"}`)
	f.Fuzz(func(t *testing.T, name, reset, step string) {
		s := NewEnvServer(EnvServerConfig{Kinds: env.Standard()})
		for _, k := range env.Standard() {
			if k.Name != name {
				continue
			}
			for _, r := range []struct{ method, path, body string }{
				{"POST", "/reset", reset}, {"GET", "/get_task_prompt", ""}, {"POST", "/step", step}, {"POST", "/step", step},
				{"GET", "/render", ""}, {"GET", "/describe", ""}, {"POST", "/close", step},
			} {
				if status, body := ask(s, r.method, "/"+name+"/1"+r.path, r.body); status >= 500 {
					t.Errorf("%s %s %q: %d %s", r.method, r.path, r.body, status, body)
				}
			}
		}
	})
}
