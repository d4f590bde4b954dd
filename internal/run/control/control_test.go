package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/kit/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m, serveUntilKilled) }

// serveUntilKilled takes the requests of a run.
func serveUntilKilled(run string) error {
	end, err := Serve(context.Background(), run, map[string]Handler{"echo": echo})
	if err != nil {
		return err
	}
	defer end()
	fmt.Println("serves")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func echo(_ context.Context, args json.RawMessage) (any, error) { return args, nil }

// serve serves handlers for a new run file.
func serve(t *testing.T, run string, handlers map[string]Handler) (end func()) {
	t.Helper()
	end, err := Serve(t.Context(), run, handlers)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func newRun(t *testing.T) string {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run.parley")
	if err := os.WriteFile(run, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return run
}

// TestSend: a sender gets the value or the error of its request, and nothing is left of either.
func TestSend(t *testing.T) {
	t.Parallel()
	run := newRun(t)
	synctest.Test(t, func(t *testing.T) {
		if err := Send(t.Context(), run, "echo", nil, nil); !errors.Is(err, ErrNotPlayed) || Played(t.Context(), run) {
			t.Error("before it is played:", err)
		}
		end := serve(t, run, map[string]Handler{
			"echo":   echo,
			"refuse": func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("not now") },
			"chat":   func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", maxSize), nil },
		})
		for _, c := range []struct{ verb, args, want, fails string }{
			{"echo", "hello", "hello", ""},
			{"refuse", "", "", "not now"},
			{"chat", "", "", "the answer is too large"},
			{"dance", "", "", `unknown verb "dance"; want one of chat, echo, refuse`},
			{"echo", strings.Repeat("x", maxSize), "", "is larger than 1 MiB"},
		} {
			var got string
			err := Send(t.Context(), run, c.verb, c.args, &got)
			if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %q, %v; want %q, %q", c.verb, got, err, c.want, c.fails)
			}
		}
		if left := listNames(run + Suffix); len(left) != 2 || !Played(t.Context(), run) {
			t.Error("it has", left)
		}
		end()
		if err := Send(t.Context(), run, "echo", nil, nil); !errors.Is(err, ErrNotPlayed) {
			t.Error("after the end:", err)
		}
	})
	if _, err := os.Lstat(run + Suffix); !errors.Is(err, os.ErrNotExist) {
		t.Error("the folder is left:", err)
	}
}

// TestManySenders: each request of senders at once is carried out once, and no two at once.
func TestManySenders(t *testing.T) {
	t.Parallel()
	run := newRun(t)
	synctest.Test(t, func(t *testing.T) {
		done := map[string]int{}
		end := serve(t, run, map[string]Handler{"count": func(_ context.Context, args json.RawMessage) (any, error) {
			done[string(args)]++ // without a lock, for the race detector
			return len(done), nil
		}})
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if err := Send(t.Context(), run, "count", i, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		end()
		for args, n := range done {
			if n != 1 {
				t.Errorf("request %s was carried out %d times", args, n)
			}
		}
		if len(done) != 50 {
			t.Errorf("%d requests were carried out", len(done))
		}
	})
}

// TestLastAnswer: a process that ends because of a request still answers it, and does not wait for a sender that is
// gone.
func TestLastAnswer(t *testing.T) {
	t.Parallel()
	run := newRun(t)
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		end := serve(t, run, map[string]Handler{"stop": func(context.Context, json.RawMessage) (any, error) {
			close(over)
			return "stopping", nil
		}})
		var wg sync.WaitGroup
		wg.Go(func() {
			<-over
			end()
		})
		var got string
		if err := Send(t.Context(), run, "stop", nil, &got); got != "stopping" {
			t.Error(got, err)
		}
		wg.Wait()
	})
}

// TestTakenBack: the error of a sender that gives up says whether something can have happened.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	run := newRun(t)
	synctest.Test(t, func(t *testing.T) {
		var carriedOut atomic.Int64
		end := serve(t, run, map[string]Handler{"slow": func(context.Context, json.RawMessage) (any, error) {
			carriedOut.Add(1)
			time.Sleep(time.Minute)
			return nil, nil
		}})
		for _, c := range []struct {
			patience time.Duration
			want     string
			times    int64
		}{
			{pollEvery / 4, "nothing was changed", 0},
			{2 * pollEvery, "the request may have been carried out", 1},
		} {
			time.Sleep(pollEvery / 2)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), c.patience)
			err := Send(ctx, run, "slow", nil, nil)
			cancel()
			if err == nil || !strings.Contains(err.Error(), c.want) || carriedOut.Load() != c.times || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: %v, carried out %d times", c.patience, err, carriedOut.Load())
			}
		}
		end()
	})
}

// TestStale: requests to a process that was killed are refused, and the next process carries out none of them.
func TestStale(t *testing.T) {
	t.Parallel()
	run := newRun(t)
	child := testkit.Start(t, run)
	if line := child.Line(t); line != "serves" {
		t.Fatal(line)
	}
	var got int
	if err := Send(t.Context(), run, "echo", 7, &got); err != nil || got != 7 {
		t.Error(got, err)
	}
	var process string
	if err := readFile(t.Context(), filepath.Join(run+Suffix, processName), &process); err != nil {
		t.Fatal(err)
	}
	child.Kill()
	child.Wait()
	if err := Send(t.Context(), run, "echo", 7, nil); !errors.Is(err, ErrNotPlayed) {
		t.Error("it was killed:", err)
	}
	late := request{Process: process, Verb: "count"}
	if err := writeFile(filepath.Join(run+Suffix, "1"+requestExt), late); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		counted := 0
		end := serve(t, run, map[string]Handler{"count": func(context.Context, json.RawMessage) (any, error) { counted++; return nil, nil }})
		defer end()
		time.Sleep(3 * pollEvery)
		if err := writeFile(filepath.Join(run+Suffix, "2"+requestExt), late); err != nil { // a sender that was slow
			t.Fatal(err)
		}
		time.Sleep(3 * pollEvery)
		var a answer
		if err := readFile(t.Context(), filepath.Join(run+Suffix, "2"+answerExt), &a); err != nil || !strings.Contains(a.Error, "another process") || counted != 0 {
			t.Error(a, err, counted)
		}
		time.Sleep(2 * keepAnswer)
		if left := listNames(run + Suffix); len(left) != 2 {
			t.Error("answers that nobody reads are left:", left)
		}
	})
}

// TestHostileFiles: whatever lies in the folder, proper requests are carried out.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	run := newRun(t)
	end := serve(t, run, map[string]Handler{"echo": echo})
	defer end()
	in := func(name string) string { return filepath.Join(run+Suffix, name) }
	for name, text := range map[string]string{
		"0" + requestExt: "{", "1" + requestExt: "", "2" + requestExt: "[]", "3" + requestExt: strings.Repeat("[", maxSize),
		"4" + requestExt: strings.Repeat(" ", 4*maxSize), "5" + requestExt: `{"verb":"echo","args":"for nobody"}`, "other": "x", requestExt: "null",
	} {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(in("6"+requestExt+"/full"), 0o700), os.Mkdir(in("7"+answerExt), 0o700)); err != nil {
		t.Fatal(err)
	}
	for i, to := range []string{"/dev/zero", run, "nowhere", "."} {
		_ = os.Symlink(to, in(fmt.Sprint("link", i, requestExt))) // not on every system
	}
	var got string
	if err := Send(t.Context(), run, "echo", "hello", &got); err != nil || got != "hello" {
		t.Error(got, err)
	}
}

// TestNotOurs: a folder of others is left alone, and the run takes no requests.
func TestNotOurs(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(path string) error{
		"file":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"link":   func(path string) error { return os.Symlink(filepath.Dir(path), path) },
		"folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "photos"), 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := newRun(t)
			if err := make(run + Suffix); err != nil {
				t.Skip(err)
			}
			if end, err := Serve(t.Context(), run, nil); err == nil || !strings.Contains(err.Error(), "delete or rename it") {
				t.Error(err)
				end()
			}
			if err := Send(t.Context(), run, "echo", nil, nil); !errors.Is(err, ErrNotPlayed) {
				t.Error(err)
			}
			if _, err := os.Lstat(run + Suffix); err != nil {
				t.Error("it was deleted:", err)
			}
		})
	}
}
