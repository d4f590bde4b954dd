package cli

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/cli/app"
	"parley/internal/cli/bulk"
	"parley/internal/kit/testkit"
	"parley/llm"
	"parley/worlds"
)

func TestMain(m *testing.M) {
	if os.Getenv(childSteps) != "" {
		os.Exit(child())
	}
	if os.Getenv("PARLEY_WORKER") != "" {
		os.Exit(workerMain())
	}
	if len(os.Args) > 1 && os.Args[1] == "worker" { // that run --workers started
		os.Exit(mainWith(context.Background(), State{Args: os.Args[1:], Env: os.LookupEnv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}))
	}
	goleak.VerifyTestMain(m)
}

// childSteps is the variable that makes the test binary act as the program, under conditions that a test cannot
// create in its own process: see disk_linux_test.go.
const childSteps = "PARLEY_TEST_CHILD"

// outcome is the result of running the whole program.
type outcome struct {
	code           int
	stdout, stderr string
}

// sequential skips tests that run commands one after the other and look only at what they print, if tests are to be short: the
// race detector finds nothing in them that it does not find in others, and makes them ten times slower.
func sequential(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("commands run one after the other")
	}
}

// parley runs the program in this process.
func parley(t *testing.T, s State, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	s.Args = args
	if s.Stdout == nil {
		s.Stdout = &stdout
	}
	s.Stderr = &stderr
	code := mainWith(t.Context(), s)
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// want fails the test unless the exit code is the one wanted.
func (o outcome) want(t *testing.T, code int) outcome {
	t.Helper()
	if o.code != code {
		t.Fatalf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", o.code, code, o.stdout, o.stderr)
	}
	return o
}

// wantErr fails the test unless standard error holds all of texts.
func (o outcome) wantErr(t *testing.T, texts ...string) outcome {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(o.stderr, text) {
			t.Fatalf("stderr does not say %q:\n%s", text, o.stderr)
		}
	}
	return o
}

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	testkit.Compare(t, filepath.Join("testdata", name+".golden"), got)
}

// write puts text into a new file of the test's own folder.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// mainWith is Main with the kinds that come with parley.
func mainWith(ctx context.Context, s State) int {
	if s.Kinds == nil {
		s.Kinds = standard()
	}
	return Main(ctx, s)
}

// standard makes the kinds that come with parley once for all tests.
var standard = sync.OnceValue(worlds.Standard)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// fake is an asker without providers: every request is answered by a function.
type fake struct {
	answer func(ctx context.Context, req *llm.Request) (*llm.Response, error)

	mu       sync.Mutex
	asked    []*llm.Request
	settings app.Config
	budget   *budget.Budget
	drained  chan struct{}
}

// echo returns a fake that repeats the last message.
func echo() *fake {
	f := &fake{drained: make(chan struct{})}
	f.answer = func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		return answered("echo: " + req.Messages[len(req.Messages)-1].Text()), nil
	}
	return f
}

func answered(text string) *llm.Response {
	return &llm.Response{
		Text: text, Finish: llm.FinishStop, Usage: llm.Usage{Input: 3, Output: 2},
		Metadata: llm.Metadata{Attempts: 1, Cost: 1000},
	}
}

// state is a State that asks f.
func (f *fake) state() State {
	return State{open: func(cfg app.Config) (bulk.Asker, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.settings, f.budget = cfg, cmp.Or(cfg.Budget, budget.New(cfg.Settings.Budget, 0))
		return f, nil
	}}
}

func (f *fake) Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) int {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		slots = make(chan struct{}, 8)
		i     = 0
	)
	for req := range reqs {
		f.mu.Lock()
		f.asked = append(f.asked, req)
		f.mu.Unlock()
		n := i
		i++
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			resp, err := f.answer(ctx, req)
			mu.Lock()
			defer mu.Unlock()
			if resp != nil {
				spent, _ := f.budget.Spent()
				f.budget.Mirror(spent.Plus(resp.Metadata.Cost), 0)
			}
			done(n, llm.Result{Response: resp, Err: err})
		})
	}
	wg.Wait()
	return i
}

func (f *fake) Drain()                   { close(f.drained) }
func (f *fake) Stats() dispatch.Snapshot { return dispatch.Snapshot{} }
func (f *fake) Budget() *budget.Budget   { return f.budget }
func (f *fake) Close() error             { return nil }

// prompts lists what was asked, in order.
func (f *fake) prompts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, r := range f.asked {
		all = append(all, r.Messages[len(r.Messages)-1].Text())
	}
	return all
}
