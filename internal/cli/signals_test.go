package cli

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/control"
	"parley/world"
	"parley/world/program"
)

// TestSecondSignalEndsTheProcess has a command that ignores its context.
func TestSecondSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after []time.Duration // pauses before each signal
		want  time.Duration   // time until the exit; 0 if the process must not exit
	}{
		"one":               {[]time.Duration{0}, 0},
		"one, sent twice":   {[]time.Duration{0, oneSignal / 2}, 0},
		"two":               {[]time.Duration{0, time.Second}, time.Second + abortGrace},
		"three":             {[]time.Duration{0, time.Second, time.Second}, 2 * time.Second},
		"three, in a burst": {[]time.Duration{0, 1, 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				signals, began := make(chan os.Signal), time.Now()
				var exited time.Duration
				s := &State{Signals: signals, Exit: func(code int) {
					if exited = time.Since(began); code != exit.Interrupted {
						t.Error("exit code", code)
					}
				}}
				end := enforceSignals(s)
				for _, d := range tc.after {
					time.Sleep(d)
					signals <- syscall.SIGTERM
				}
				time.Sleep(time.Minute)
				end()
				if exited != tc.want {
					t.Errorf("ended after %v, want %v", exited, tc.want)
				}
			})
		})
	}
}

// deaf is a command that ignores its context.
type deaf struct{ until <-chan struct{} }

// Run waits for the end of the process.
func (d *deaf) Run(context.Context, *program.Program) error { <-d.until; return nil }

// TestSecondSignalSaysWhatHappens checks that a command that never returns is cut off, and that the message says
// when.
func TestSecondSignalSaysWhatHappens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		signals, exited, done := make(chan os.Signal), make(chan struct{}), make(chan struct{})
		var stderr bytes.Buffer
		s := State{Args: []string{"listen"}, Stderr: &stderr, Signals: signals, Exit: func(int) { close(exited) },
			Kinds: []world.Kind{brings("echo", program.Command{Name: "listen", Doc: "Do not listen.", Verb: &deaf{until: exited}})}}
		go func() { Main(t.Context(), s); close(done) }()
		signals <- syscall.SIGINT
		time.Sleep(time.Second)
		signals <- syscall.SIGINT
		<-done
		if want := "parley: aborting: the process ends within 3s, or at once if you press again"; strings.Count(stderr.String(), want) != 1 {
			t.Errorf("%s", stderr.String())
		}
	})
}

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
	if !strings.Contains(got.stdout, "why: stopped by a signal") || !strings.Contains(got.stdout, "parley run "+file) {
		t.Error(got.stdout)
	}
	if sum, _ := summed(t, exit.OK, "run", file); sum.Episodes.Complete != 40 {
		t.Errorf("%+v", sum)
	}
}

// TestStoppedWhileWaiting: a run that is stopped while its provider cannot be reached says so, and nothing else in its file does.
func TestStoppedWhileWaiting(t *testing.T) {
	t.Parallel()
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 2\nagents: {a: {model: lab/m}}\nproviders: {lab: {dialect: openai, base_url: 'http://127.0.0.1:9/v1'}}\n")
	file := filepath.Join(t.TempDir(), "run.parley")
	signals := make(chan os.Signal, 1)
	done := make(chan struct{})
	defer close(done)
	go func() {
		for { // until calls wait
			if s, ok := control.ReadLive(context.Background(), file); ok && len(s.Waits) > 0 {
				signals <- os.Interrupt
				return
			}
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	got := parley(t, State{Signals: signals}, "run", plan, "--out", file).want(t, exit.Interrupted)
	if !strings.Contains(got.stdout, "why: stopped by a signal while calls waited: lab is unreachable") {
		t.Error(got.stdout)
	}
	if shown := parley(t, State{}, "show", file); !strings.Contains(shown.stdout, "lab is unreachable") {
		t.Error(shown.stdout)
	}
}
