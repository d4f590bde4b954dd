package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/cli/exit"
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
				end := enforce(s)
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

// TestToolParametersAreBounded checks that the error names the tool whose parameters are nested too deeply.
func TestToolParametersAreBounded(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"not":`, 100) + "{}" + strings.Repeat("}", 100)
	in := write(t, "in.jsonl", `{"prompt":"x","tools":[{"name":"look","parameters":`+deep+"}]}\n"+`{"prompt":"x","schema":`+deep+"}\n")
	got := parley(t, echo().state(), "ask", in)
	for _, want := range []string{
		`tools[0] \"look\": parameters: line 1, byte 449: nested more than 64 levels deep`,
		"answer: schema: line 1, byte 449: nested more than 64 levels deep",
	} {
		if !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("no %q in %s%s", want, got.stdout, got.stderr)
		}
	}
}
