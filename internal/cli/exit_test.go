package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
)

var exampleRE = regexp.MustCompile("(?m)^\\| `parley ([^`]+)` \\| (\\d) \\|")

// TestExitCodeExamples runs the examples of the document in order.
func TestExitCodeExamples(t *testing.T) {
	sequential(t)
	text := read(t, "../../docs/reference/exit-codes.md")
	provider, _ := refusing(t, http.StatusUnauthorized, "")
	failing, _ := refusing(t, http.StatusBadRequest, "")
	const plan = "kind: secrets\nepisodes: 20\nagents: {a: {model: sim/small, max_tokens: 60}}\n"
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"plan.yaml":       plan,
		"refused.yaml":    strings.Replace(plan, "sim/", "lab/", 1) + "providers: {lab: {dialect: openai, base_url: \"" + provider + "/v1\"}}\n",
		"failing.yaml":    strings.Replace(plan, "sim/", "lab/", 1) + "providers: {lab: {dialect: openai, base_url: \"" + failing + "/v1\"}}\n",
		"questions.jsonl": `{"prompt":"What?"}` + "\nWhy?\n" + `{"prompt":"Who?"}` + "\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, m := range exampleRE.FindAllStringSubmatch(text, -1) {
		got := parley(t, State{}, strings.Fields(m[1])...)
		if terminal.Number(got.code) != m[2] {
			t.Errorf("parley %s: code %d, and the document says %s\n%s%s", m[1], got.code, m[2], got.stdout, got.stderr)
		}
		seen[m[2]] = true
	}
	for _, code := range []int{exit.OK, exit.Failed, exit.Misuse, exit.Budget} {
		if !seen[terminal.Number(code)] {
			t.Errorf("no example of %d", code)
		}
	}
}

// TestRunInterrupted stops a run with a signal and resumes it.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 40\nagents: {a: sim/small}\n")
	file := filepath.Join(t.TempDir(), "run.parley")
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	got := parley(t, State{Signals: signals}, "run", plan, "--out", file).want(t, exit.Interrupted).wantErr(t, "finishing the calls in flight")
	if !strings.Contains(got.stdout, "why: stopped by a signal") || !strings.Contains(got.stdout, "parley resume "+file) {
		t.Error(got.stdout)
	}
	if sum, _ := summed(t, exit.OK, "resume", file); sum.Episodes.Complete != 40 {
		t.Errorf("%+v", sum)
	}
}
