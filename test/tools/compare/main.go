// Command compare runs the benchmarks of the hot paths at another commit and in the working tree, in turn on the same
// machine, and prints the ratios:
//
//	go run ./test/tools/compare [COMMIT]
//
// The default commit is the parent of HEAD. A ratio above 1 is slower, or more. A slowdown of more than a tenth is marked.
// A mark is never an error, because other programs on the machine make noise. Where there is no such commit, it says so.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// rounds is how often each side of a benchmark is run. The best of each counts: noise only adds.
const rounds = 4

// suspect is the ratio from which a slowdown is marked. confirmed is how much more CPU time makes a longer time credible:
// a busy machine changes the time much more than the CPU time.
const (
	suspect   = 1.10
	confirmed = 1.03
)

// benchmark is a hot path.
type benchmark struct {
	name, dir, regexp string
	ops               int // such that a run takes about half a second
}

func benchmarks() []benchmark {
	return []benchmark{
		{"dispatch, with a budget", "internal/ask/dispatch", "^BenchmarkAll$/^budget$", 100_000},
		{"engine and run file", "internal/run/runfile", "^BenchmarkEngine$", 16_000},
		{"refold, with its recording", "internal/run/runfile", "^BenchmarkRefold$", 16_000},
		{"dialect openai over HTTP", "internal/ask/dialect", "^BenchmarkAsk$/^openai$", 5_000},
		{"simulated model", "internal/ask/sim", "^BenchmarkAsk$", 20_000},
		{"gateway with its record", "internal/serve/gateway", "^BenchmarkCall$", 1_000},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := compare(ctx, os.Stdout, append(os.Args[1:], "HEAD^")[0])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// compare prints the ratios of the working tree to a commit.
func compare(ctx context.Context, w io.Writer, commit string) (err error) {
	hash, err := output(ctx, "", "git", "rev-parse", "--verify", "--quiet", commit+"^{commit}")
	if err != nil {
		_, err = fmt.Fprintf(w, "compare: skipped: there is no commit %s here\n", commit)
		return err
	}
	dir, err := os.MkdirTemp("", "parley-compare")
	if err != nil {
		return err
	}
	old := filepath.Join(dir, "old")
	defer func() {
		// The context may be over.
		_, removing := output(context.WithoutCancel(ctx), "", "git", "worktree", "remove", "--force", old)
		err = errors.Join(err, removing, os.RemoveAll(dir))
	}()
	if _, err := output(ctx, "", "git", "worktree", "add", "--detach", old, strings.TrimSpace(hash)); err != nil {
		return err
	}
	began := time.Now()
	fmt.Fprintf(w, "the working tree compared with %s (%.8s): the best of %d rounds, run in turn\n\n", commit, hash, rounds)
	fmt.Fprintf(w, "%-28s %12s %8s %8s %8s\n", "path", "ns a call", "time", "CPU", "bytes")
	for _, b := range benchmarks() {
		if err := b.compare(ctx, w, old, dir); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	_, err = fmt.Fprintf(w, "\n1.00 is equal, above is slower or more; SLOWER marks more than %.0f%%. %.0fs\n", 100*(suspect-1), time.Since(began).Seconds())
	return err
}

// compare prints the row of a benchmark.
func (b benchmark) compare(ctx context.Context, w io.Writer, old, dir string) error {
	trees := []string{old, "."}
	best := []sample{worst(), worst()}
	tests := make([]string, len(trees))
	for i, tree := range trees {
		tests[i] = filepath.Join(dir, fmt.Sprint(strings.ReplaceAll(b.dir, "/", "-"), i))
		if _, err := os.Stat(tests[i]); err == nil {
			continue // another benchmark of the package
		}
		if _, err := output(ctx, tree, "go", "test", "-trimpath", "-c", "-o", tests[i], "./"+b.dir); err != nil {
			return fmt.Errorf("build: %w", err)
		}
	}
	for range rounds {
		for i, test := range tests {
			s, err := b.run(ctx, test, filepath.Join(trees[i], b.dir))
			if errors.Is(err, errNone) && i == 0 {
				_, err := fmt.Fprintf(w, "%-28s is new\n", b.name)
				return err
			}
			if err != nil {
				return err
			}
			best[i] = best[i].least(s)
		}
	}
	time, cpu, bytes := best[1].time/best[0].time, best[1].cpu/best[0].cpu, best[1].bytes/best[0].bytes
	mark := ""
	if cpu > suspect || time > suspect && cpu > confirmed {
		mark = "  SLOWER"
	}
	_, err := fmt.Fprintf(w, "%-28s %12.0f %8.2f %8.2f %8.2f%s\n", b.name, best[1].time, time, cpu, bytes, mark)
	return err
}

// sample is what one run of a benchmark took.
type sample struct {
	time  float64 // nanoseconds an operation
	cpu   float64 // nanoseconds of the whole process
	bytes float64 // allocated an operation
}

func worst() sample { return sample{math.Inf(1), math.Inf(1), math.Inf(1)} }

// least returns the lesser of each figure.
func (s sample) least(o sample) sample {
	return sample{min(s.time, o.time), min(s.cpu, o.cpu), min(s.bytes, o.bytes)}
}

// errNone means that a test binary does not have the benchmark.
var errNone = errors.New("it printed no result of the benchmark")

// run runs the benchmark once.
func (b benchmark) run(ctx context.Context, test, dir string) (sample, error) {
	path, err := filepath.Abs(test)
	if err != nil {
		return sample{}, err
	}
	cmd := exec.CommandContext(ctx, path, "-test.run=^$", "-test.bench="+b.regexp, fmt.Sprintf("-test.benchtime=%dx", b.ops), "-test.benchmem") //nolint:gosec // our own tests
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("%w\n%s", err, text)
	}
	s, err := parse(string(text))
	s.cpu = float64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
	return s, err
}

// parse reads the line of a benchmark's result.
func parse(text string) (s sample, err error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			to := map[string]*float64{"ns/op": &s.time, "B/op": &s.bytes}[fields[i+1]]
			if to == nil {
				continue
			}
			if _, err := fmt.Sscan(fields[i], to); err != nil {
				return s, fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
			}
		}
		if s.time > 0 && s.bytes > 0 {
			return s, nil
		}
	}
	return s, errNone
}

// output runs a program in a folder and returns what it prints.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // go and git
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}
