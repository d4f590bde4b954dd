package envhttp

import (
	"bufio"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/journal"
	"parley/worlds/rollout/rules"
)

// TestPython plays against the environment server of examples/, unchanged.
func TestPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	serving := exec.CommandContext(t.Context(), python, filepath.Join("..", "..", "..", "examples", "env_count.py"), "--port", "0")
	out, err := serving.StdoutPipe()
	must(t, err)
	must(t, serving.Start())
	t.Cleanup(func() {
		_ = serving.Process.Kill()
		_ = serving.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	address = strings.TrimSpace(address)
	params := fmt.Sprintf(`{"env":"count","servers":[%q],"max_steps":10,"message_cut":2,"env_params":{"target":4},"pool":{"per_server":8}}`, address)
	res, ended := setup{params: params, episodes: 40}.play(t.Context(), t)
	if res.State != journal.Complete || len(ended) != 40 || res.Failed > 0 {
		t.Fatalf("%+v", res)
	}
	for _, e := range ended {
		d := data(t, e)
		if d.Stop != rules.StopTerminated || d.Steps != 4 || len(d.Rows) != 4 || !d.Rows[0].Trainable || d.Tries != 1 {
			t.Errorf("%+v", d)
		}
	}
	resp, err := http.Get(address + "/envs")
	must(t, err)
	defer resp.Body.Close()
	if line, _ := bufio.NewReader(resp.Body).ReadString('\n'); line != `{"envs": []}` {
		t.Errorf("left behind: %s", line)
	}
	// Invalid requests get an error.
	bad := fmt.Sprintf(`{"env":"count","servers":[%q],"env_params":{"target":0}}`, address)
	if _, ended := (setup{params: bad, episodes: 1}).play(t.Context(), t); ended[0].Outcome.Failed != "environment: open: bad_request" {
		t.Error(ended[0].Outcome.Failed)
	}
}
