//go:build unix

package worker_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/run/engine"
	"parley/internal/run/worker"
	"parley/journal"
	"parley/world"
)

// foreignWorker is a worker in another language, which answers every step with the text of a file.
const foreignWorker = `#!/bin/sh
read -r hello <&3
echo '{"parley":1,"language":"sh","version":1,"doc":"Repeats itself.","durable":"turn","params":[],"stand_in":false}' >&3
while read -r line <&3; do
	id=${line#*\"id\":}
	id=${id%%[!0-9]*}
	case $line in
	*'"op":"leave"'*) ;;
	*'"op":"seats"'*) echo "{\"id\":$id,\"seats\":[\"a\"]}" >&3 ;;
	*) { printf '{"id":%s,' "$id"; cat "$(dirname "$0")/step"; echo '}'; } >&3 ;;
	esac
done
`

// TestForeignWorkerLimits: a worker that breaks a rule of the protocol, whatever it is written in, fails its episode, and the error
// names the step and the rule.
func TestForeignWorkerLimits(t *testing.T) {
	t.Parallel()
	call := `{"seat":"a","label":"x","messages":[{"role":"user","content":"?"}]}`
	long := `{"seat":"a","label":"x","talk":1,"keep":0,"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"?"},`, 120_000), ",") + `]}`
	list := func(n int, of string) string {
		return `"ask":[` + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + `]`
	}
	for _, c := range []struct{ name, step, want string }{
		{"two verbs", `"fork":1,"end":{}`, "step 0 of the worker: it has fork and end: a step has only one of ask, fork, end and error"},
		{"two verbs, one of them wrong", `"ask":[{"seat":"a","temperature":"hot"}],"fork":1`, "step 0 of the worker: it has ask and fork: a step has only one of"},
		{"error and end", `"error":{"text":"no"},"end":{}`, "it has end and error"},
		{"no verb", `"notes":[]`, "step 0 of the worker: it has no ask, fork, end or error"},
		{"no calls", `"ask":[]`, "step 0 of the worker: its ask has no calls"},
		{"a negative fork", `"fork":-1`, "step 0 of the worker: its fork is -1: want 1 or more"},
		{"a wide fork", `"fork":1000000000`, "step 0 of the worker: its fork is 1000000000, and the episode has 1 strands that have not ended: at most 10000 may be open"},
		{"forks of forks", `"fork":5000`, "step 0.0/0 of the worker: its fork is 5000, and the episode has 5001 strands"},
		{"deep forks", `"fork":1`, "of the worker: it forks inside of 100 forks: at most 100"},
		{"calls", list(10_001, call), "step 0 of the worker: its ask has 10001 calls, and with it 10001 calls of the episode would wait for replies: at most 10000 may"},
		{"messages", list(9, long), "step 0 of the worker: with its ask, the calls of the episode that wait for replies would have more than 1000000 messages"},
		{"bytes", `"notes":[{"kind":"n","data":"` + strings.Repeat("x", 50<<20) + `"}],` + list(1, call), "step 5 of the worker: its steps, with what they were answered, have more than 256 MiB together"},
		{"a line", `"notes":[{"kind":"n","data":"` + strings.Repeat("x", 65<<20) + `"}],` + list(1, call), "a line has more than 64 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			program := filepath.Join(folder, "worker")
			for path, text := range map[string]string{program: foreignWorker, filepath.Join(folder, "step"): c.step} {
				if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			p, k, err := worker.Open(worker.Config{Name: "worker", Class: "Game", Start: worker.Python{Program: program, Output: os.Stderr}.Start, Max: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			j := &journal.Memory{}
			run := of(k, j, 1)
			run.Plan = world.Repeat(world.Spec{Kind: k.Name, Params: json.RawMessage("{}"), Lineup: map[string]string{"a": "me"}}, 1)
			if _, err := engine.Run(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			head, err := j.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if e, _ := head.Ended.Of(0); !strings.Contains(e.Outcome.Failed, c.want) {
				t.Errorf("failed with %q, want %q", fmt.Sprintf("%.500s", e.Outcome.Failed), c.want)
			}
		})
	}
}
