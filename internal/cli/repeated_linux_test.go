package cli

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/run/runfile"
	"parley/internal/run/runfile/runfiletest"
	"parley/journal"
	"parley/llm"
)

// repeated writes a run file of some megabytes whose calls repeat a text, so that it stands for terabytes. change gets the first
// reply of episode 0, and returns what to record instead.
func repeated(t *testing.T, change func(first *journal.Replied) []journal.Entry) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "small.parley")
	parley(t, State{}, "run", write(t, "plan.yaml", "kind: secrets\nepisodes: 1\nagents: {a: {model: sim/small}, b: {model: sim/small}}\nlineup: {first: a, second: b}\n"), "--out", file, "--quiet").want(t, exit.OK)
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var entries []journal.Entry
	err = s.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if r, ok := e.(*journal.Replied); ok && change != nil {
			entries = append(entries, change(r)...)
			change = nil
			return nil
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out := runfiletest.File(t, entries...)
	if info, err := os.Stat(out); err != nil || info.Size() > 8<<20 {
		t.Fatalf("%v, %v: want a small file", info.Size(), err)
	}
	return out
}

// bombs are changes for repeated.
func bombs() map[string]func(first *journal.Replied) []journal.Entry {
	long := `"` + strings.Repeat("all work and no play ", 110_000) + `"`
	many := func(n int, m llm.Message) []llm.Message {
		all := make([]llm.Message, n)
		for i := range all {
			all[i] = m
		}
		return all
	}
	return map[string]func(first *journal.Replied) []journal.Entry{
		"a prompt": func(r *journal.Replied) []journal.Entry {
			r.Request.Messages = many(1_200_000, llm.User(long))
			return []journal.Entry{r}
		},
		"calls": func(r *journal.Replied) (out []journal.Entry) {
			r.Request.Messages = many(20, llm.User(long))
			r.Response.Text, r.Response.JSON, r.Response.Refusal = long, []byte(long), "no"
			for i := range 5000 {
				again := *r
				again.Index = i
				out = append(out, &again)
			}
			return out
		},
		"parts": func(r *journal.Replied) []journal.Entry {
			m := llm.Message{Role: llm.RoleUser, Parts: make([]llm.Part, 100_000)}
			for i := range m.Parts {
				m.Parts[i] = llm.Part{Text: "x"}
			}
			r.Request.Messages = many(500, m)
			return []journal.Entry{r}
		},
		"a turn": func(r *journal.Replied) []journal.Entry {
			return []journal.Entry{&journal.Turned{Turn: r.Turn, Calls: 1 << 50}, r}
		},
	}
}

// peak runs the program in another process, and returns how much it printed and how much memory it took.
func peak(t *testing.T, args ...string) (got outcome, printed, memory int64) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = []string{childSteps + "=limit 1000000000\nparley " + strings.Join(args, " ")}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	printed, _ = io.Copy(io.Discard, out) // it ends with the process
	if err := cmd.Wait(); err != nil {
		if _, ran := errors.AsType[*exec.ExitError](err); !ran {
			t.Fatal(err)
		}
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return outcome{code: cmd.ProcessState.ExitCode(), stderr: stderr.String()}, printed, usage.Maxrss << 10
}

// TestRepeatedTexts: whatever reads a small file that stands for terabytes takes little memory, writes little, and says where it
// stops. Each command reads one of the files, or with PARLEY_SWEEP, which .ci/run kills sets, all.
func TestRepeatedTexts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	const (
		memoryLimit = 1500 << 20 // a read takes up to 512 MiB; without limits it is terabytes
		printLimit  = 800 << 20
	)
	all := bombs()
	for at, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			file := repeated(t, all[name])
			out := t.TempDir()
			in := func(name string) string { return filepath.Join(out, name) }
			for n, args := range [][]string{
				{"export", file}, {"export", file, "--table", "messages"}, {"export", file, "--table", "messages", "--out", in("m.parquet")},
				{"export", file, "--format", "inspect", "--out", in("log.eval")},
				{"show", file}, {"show", file, "--episode", "0"}, {"show", file, "--episode", "0", "--json"}, {"show", file, "--episode", "0", "--call", "0:0"},
				{"report", file, "--html", in("report.html")}, {"compare", file, "--by", "agent"}, {"view", file, "--export", in("site")},
				{"fork", file, "--episode", "0", "--turn", "1", "--out", in("fork.parley")},
			} {
				if os.Getenv("PARLEY_SWEEP") == "" && at != (n+n/len(all)+2)%len(all) {
					continue
				}
				got, printed, memory := peak(t, args...)
				words := strings.Join(append([]string{args[0]}, args[2:]...), " ")
				t.Logf("%s: exit code %d, %d MB printed, %d MB of memory; %.200s", words, got.code, printed>>20, memory>>20, got.stderr)
				if memory > memoryLimit || printed > printLimit || strings.Contains(got.stderr, "panic") {
					t.Errorf("%s: exit code %d, %d MB printed, %d MB of memory: %.2000s", words, got.code, printed>>20, memory>>20, got.stderr)
				}
				if got.code != exit.OK && !strings.Contains(got.stderr, file) {
					t.Errorf("%s does not name the file: %s", words, got.stderr)
				}
			}
		})
	}
}
