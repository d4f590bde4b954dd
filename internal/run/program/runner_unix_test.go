//go:build unix

package program_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/ask/redact"
	"parley/internal/kit/process"
	"parley/internal/run/engine"
	"parley/internal/run/program"
	"parley/llm"
	"parley/world"
)

// TestMain lets the test program be a supervisor.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(process.Supervise(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// sessions serves a model that answers with fixed texts, one after the other.
type sessions struct {
	answers []string
	used    []program.Used // by try; the last one stays

	mu    sync.Mutex
	asked []program.Ask
	seen  []string // the bodies of requests
	open  int
}

type session struct {
	*sessions
	server *httptest.Server
	try    int
}

func (s *sessions) Open(_ context.Context, a program.Ask) (program.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, a)
	s.open++
	n := atomic.Int32{}
	return &session{s, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&body)
		s.mu.Lock()
		s.seen = append(s.seen, r.Header.Get("Authorization")+" "+r.URL.Path+" "+string(body))
		s.mu.Unlock()
		i := min(int(n.Add(1)), len(s.answers)) - 1
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"content": s.answers[i]}}}})
	})), a.Try}, nil
}

const sessionKey = "parley-session-secret"

func (s *session) URL() string { return s.server.URL }
func (s *session) Key() string { return sessionKey }
func (s *session) Hide(b []byte) []byte {
	return redact.New(sessionKey, s.server.URL).Folded(b)
}
func (s *session) Close(context.Context) program.Used {
	s.server.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if len(s.used) == 0 {
		return program.Used{Calls: len(s.seen)}
	}
	return s.used[min(s.try, len(s.used)-1)]
}

// runs makes the names of runs differ.
var runs atomic.Int64 //nolint:gochecknoglobals // of tests

// newRunner returns a Runner that leaves nothing.
func newRunner(t *testing.T, s program.Sessions) *program.Runner {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := program.Config{Run: fmt.Sprintf("test%d-%d", os.Getpid(), runs.Add(1)), Sessions: s, Temp: t.TempDir(), Supervisor: []string{exe, "supervise"}}
	r, err := program.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(c.Temp); len(left) > 0 || process.Marked(c.Run) > 0 {
			t.Errorf("left behind: %v, %d processes", left, process.Marked(c.Run))
		}
	})
	return r
}

func question(p world.Program, texts ...string) engine.Question {
	req := &llm.Request{Model: "program/test"}
	for i, text := range texts {
		req.Messages = append(req.Messages, llm.Message{Role: []llm.Role{llm.RoleUser, llm.RoleAssistant}[i%2], Parts: []llm.Part{{Text: text}}})
	}
	return engine.Question{Seat: "first", Agent: "it", Label: "talk", Request: req, Program: &p}
}

func script(text string) world.Program { return world.Program{Command: []string{"sh", "-c", text}} }

// TestAnswers: a program in a seat gets the question, and its standard output is the answer.
func TestAnswers(t *testing.T) {
	t.Parallel()
	t.Run("one message", func(t *testing.T) {
		t.Parallel()
		resp, err := newRunner(t, nil).Ask(t.Context(), question(script("tr a-z A-Z"), "hello"))
		if err != nil || resp.Text != "HELLO" || resp.Finish != llm.FinishStop {
			t.Errorf("%+v %v", resp, err)
		}
	})
	t.Run("a conversation", func(t *testing.T) {
		t.Parallel()
		resp, err := newRunner(t, nil).Ask(t.Context(), question(script("cat"), "hello", "yes?", "go on"))
		if err != nil || resp.Text != "# You are told\n\nhello\n\n# You wrote\n\nyes?\n\n# You are told\n\ngo on\n\nWrite your next message, and nothing else." {
			t.Errorf("%+v %v", resp, err)
		}
	})
	t.Run("as an argument, without a shell", func(t *testing.T) {
		t.Parallel()
		resp, err := newRunner(t, nil).Ask(t.Context(), question(world.Program{Command: []string{"printf", "%s", "{prompt}"}, Input: "argument"}, "$(id) {home}"))
		if err != nil || resp.Text != "$(id) {home}" {
			t.Errorf("%+v %v", resp, err)
		}
	})
	t.Run("in a file", func(t *testing.T) {
		t.Parallel()
		p := script("cat PROMPT.md; cat")
		p.Input = "file"
		resp, err := newRunner(t, nil).Ask(t.Context(), question(p, "hello"))
		if err != nil || resp.Text != "hello" {
			t.Errorf("%+v %v", resp, err)
		}
	})
	t.Run("its environment", func(t *testing.T) {
		t.Parallel()
		p := script(`cat "$HOME/.tool/conf"; ls -A; env | cut -d= -f1 | sort | tr '\n' ' '`)
		p.Files, p.Env = map[string]string{".tool/conf": "at {home} for {model}\n"}, map[string]string{"OWN": "x"}
		resp, err := newRunner(t, nil).Ask(t.Context(), question(p, "hello"))
		if err != nil || !strings.HasSuffix(resp.Text, "/home for \nHOME LANG NO_COLOR OLDPWD OWN PARLEY_PROGRAM PATH PWD TMPDIR _") && !strings.Contains(resp.Text, "/home for \nHOME LANG NO_COLOR OWN PARLEY_PROGRAM PATH PWD") {
			t.Errorf("%+v %v", resp, err)
		}
	})
	t.Run("not the HOME of the task's container", func(t *testing.T) {
		t.Parallel()
		w := harbor()
		w.Env = map[string]string{"HOME": "/task", "TMPDIR": "/task/tmp", "PATH": "/nowhere", "LANG": "xx", "OF": "both"}
		w.Check = &world.Script{Command: []string{"sh", "-c", `grep -qx "mine both xx" said && test "$HOME" != /task && test "$PATH" != /nowhere`}}
		p := script(`test -d "$TMPDIR" && cat "$HOME/here" > said; echo "$OF $LANG" >> said`)
		p.Files = map[string]string{"here": "mine "}
		if got := works(t, newRunner(t, nil), p, w).Check; fmt.Sprint(got.Rewards) != "map[reward:1]" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a model", func(t *testing.T) {
		t.Parallel()
		s := &sessions{answers: []string{"```sh\necho 42 > n; cat n; echo " + sessionKey + "\n```", "the answer is 42"}}
		q := question(world.Program{Preset: "shell"}, "what is it?")
		q.Model = "sim/large"
		resp, err := newRunner(t, s).Ask(t.Context(), q)
		if err != nil || resp.Text != "the answer is 42" || len(s.seen) != 2 || s.open != 0 {
			t.Fatalf("%+v %v %q", resp, err, s.seen)
		}
		if !strings.HasPrefix(s.seen[1], "Bearer "+sessionKey+" /v1/chat/completions ") || !strings.Contains(s.seen[1], `exit code 0\n42`) || s.asked[0].Agent.Model != "sim/large" {
			t.Errorf("%q", s.seen[1])
		}
	})
	t.Run("a schema, with a repair", func(t *testing.T) {
		t.Parallel()
		q := question(script(`if grep -q "You wrote"; then echo '{"n": 3}'; else echo 'three'; fi`), "how many?")
		q.Request.Schema = &llm.Schema{Name: "n", JSON: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}
		resp, err := newRunner(t, nil).Ask(t.Context(), q)
		if err != nil || string(resp.JSON) != `{"n":3}` && string(resp.JSON) != `{"n": 3}` || resp.Metadata.Attempts != 2 {
			t.Errorf("%+v %v", resp, err)
		}
	})
	t.Run("another try after one that diverged", func(t *testing.T) {
		t.Parallel()
		s := &sessions{answers: []string{"fine"}, used: []program.Used{{Diverged: "message 2"}, {}}}
		q := question(world.Program{Preset: "shell"}, "x")
		q.Model = "sim/large"
		if resp, err := newRunner(t, s).Ask(t.Context(), q); err != nil || resp.Text != "fine" || len(s.asked) != 2 || s.asked[1].Try != 1 {
			t.Errorf("%+v %v %+v", resp, err, s.asked)
		}
	})
}

// TestFailures: what goes wrong is a failure of the call, or stops the run.
func TestFailures(t *testing.T) {
	t.Parallel()
	schema := question(script("echo no"), "x")
	schema.Request.Schema = &llm.Schema{Name: "n", JSON: json.RawMessage(`{"type":"integer"}`)}
	model := question(script("echo x"), "x")
	model.Model = "sim/x"
	for name, c := range map[string]struct {
		q    engine.Question
		kind llm.Kind
		says string
	}{
		"exit code":    {question(script("echo why >&2; exit 4"), "x"), llm.KindServer, "exited with 4: why"},
		"nothing":      {question(script("exit 0"), "x"), llm.KindMalformed, "no answer"},
		"too much":     {question(script("yes | head -c 3000000"), "x"), llm.KindInvalid, "1048576 bytes"},
		"schema":       {schema, llm.KindInvalid, "after 2 repairs"},
		"no program":   {question(world.Program{Command: []string{"no-such-program"}}, "x"), llm.KindBadRequest, "cannot be started"},
		"no sessions":  {model, llm.KindBadRequest, "does not serve"},
		"only work":    {question(world.Program{Preset: "nop"}, "x"), llm.KindBadRequest, "work on files"},
		"no preset":    {question(world.Program{Preset: "other"}, "x"), llm.KindBadRequest, "no program"},
		"not in $HOME": {question(world.Program{Command: []string{"true"}, Files: map[string]string{"../x": ""}}, "x"), llm.KindServer, "leads out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newRunner(t, nil).Ask(t.Context(), c.q)
			if llm.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestDrain ends what runs and what waits.
func TestDrain(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	var wg sync.WaitGroup
	var canceled atomic.Int32
	for i := range 20 {
		wg.Go(func() {
			q := question(script("sleep 1000"), "x")
			q.Turn.Episode = i
			if _, err := r.Ask(t.Context(), q); llm.KindOf(err) == llm.KindCanceled {
				canceled.Add(1)
			}
		})
	}
	r.Drain()
	wg.Wait()
	if canceled.Load() != 20 {
		t.Errorf("%d", canceled.Load())
	}
}

// TestLeftovers: what a killed process of the same run left is removed at the next start, and nothing of another run.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	for _, run := range []string{"mine", "other"} {
		if err := os.MkdirAll(filepath.Join(temp, "parley-"+run, "0.0.0.0", "folder"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := program.New(t.Context(), program.Config{Run: "mine", Temp: temp}); err != nil {
		t.Fatal(err)
	}
	for run, want := range map[string]bool{"mine": false, "other": true} {
		if _, err := os.Stat(filepath.Join(temp, "parley-"+run)); (err == nil) != want {
			t.Errorf("%s: %v", run, err)
		}
	}
}

// works runs a script on files, with a check, and returns what it did.
func works(t *testing.T, r *program.Runner, p world.Program, w *world.Work) world.Done {
	t.Helper()
	q := question(p, "work in /app")
	q.Work = w
	resp, err := r.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var done world.Done
	if err := json.Unmarshal(resp.JSON, &done); err != nil {
		t.Fatal(err)
	}
	return done
}

func file(path, text string) world.File {
	return world.File{Path: path, Data: []byte(text), Exec: strings.HasPrefix(text, "#!")}
}

// harbor is work whose check gives 1 if /app/answer holds right, and 0 otherwise.
func harbor() *world.Work {
	return &world.Work{
		Name: "task t", Files: []world.File{file("given", "x\n"), file("old", "y\n")},
		Check: &world.Script{
			Files:   []world.File{file("test.sh", "#!/bin/sh\ncat /tests/words >&2\necho checked\nif [ \"$(cat /app/answer)\" = right ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\nexit 3\n"), file("words", "of the test\n")},
			Command: []string{"/tests/test.sh"}, Reward: true,
		},
		Solution: &world.Script{Files: []world.File{file("solve.sh", "#!/bin/sh\necho right > /app/answer\n")}, Command: []string{"/solution/solve.sh"}},
	}
}

// TestWork: what a program did is told, and its result is checked.
func TestWork(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	done := works(t, r, script("cat; echo told; echo err >&2; echo right > answer; rm old; mkdir d; echo new > d/f; ln -s /etc/passwd out; mkfifo pipe; exit 7"), harbor())
	var names []string
	for _, c := range done.Changed {
		names = append(names, c.What+" "+c.Path+" "+strings.TrimSpace(c.Text))
	}
	if got := strings.Join(names, "|"); got != "added answer right|added d/f new|removed old |left out out |left out pipe " {
		t.Error(got)
	}
	if done.Exit != 7 || !strings.HasPrefix(done.Stdout, "work in /") || strings.Contains(done.Stdout, "/app") || !strings.HasSuffix(done.Stdout, "told\n") || done.Stderr != "err\n" {
		t.Errorf("%+v", done)
	}
	if c := done.Check; c == nil || c.Rewards["reward"] != 1 || c.Failed != "" || c.Exit != 3 || c.Stdout != "checked\n" || c.Stderr != "of the test\n" {
		t.Errorf("%+v", c)
	}
	if d := works(t, r, world.Program{Preset: "oracle"}, harbor()); d.Check.Rewards["reward"] != 1 {
		t.Errorf("oracle: %+v", d.Check)
	}
	if d := works(t, r, world.Program{Preset: "nop"}, harbor()); d.Check.Rewards["reward"] != 0 || len(d.Changed) != 0 {
		t.Errorf("nop: %+v", d.Check)
	}
}

// TestForgedRewards: whatever a program does, it does not get the reward of work that it has not done. With PARLEY_SWEEP, which
// .ci/run kills sets, one writes very many files.
func TestForgedRewards(t *testing.T) {
	t.Parallel()
	everywhere := `for d in . "$HOME" "$TMPDIR" .. ../.. ../logs/verifier ../../logs/verifier /logs/verifier logs/verifier tests; do mkdir -p $d 2>/dev/null && echo 1 > $d/reward.txt && echo '{"reward": 1}' > $d/reward.json; done; `
	for name, text := range map[string]string{
		"files everywhere":           everywhere,
		"a process that writes on":   "setsid sh -c 'while :; do for d in ../../check-*/logs/verifier ../check-*/logs/verifier; do echo 1 > $d/reward.txt; done; done' >/dev/null 2>&1 & exit 0",
		"an unmarked one":            "env -i PATH=\"$PATH\" setsid sh -c 'while :; do for d in ../../check-*/logs/verifier; do echo 1 > $d/reward.txt; echo \"{\\\"reward\\\":1}\" > $d/reward.json; done; done' >/dev/null 2>&1 & exit 0",
		"its own test":               "mkdir -p tests ../tests; printf '#!/bin/sh\\necho 1 > /logs/verifier/reward.txt\\n' | tee tests/test.sh test.sh ../tests/test.sh; chmod +x tests/test.sh test.sh",
		"a link to the reward":       "ln -s ../logs/verifier/reward.txt answer; ln -s ../logs logs; ln -s ../files tests; ln -s /logs/verifier/reward.json r",
		"a link out, through a link": "ln -s . here; ln -s here/../logs/verifier/reward.json answer; ln -s here/../files/test.sh test.sh",
		"a link to itself":           "ln -s answer answer; ln -s .. up",
		"a pipe":                     "mkfifo answer given2; rm given; mkfifo given",
		"dotfiles":                   `for f in .profile .bashrc .shrc .bash_profile .env; do echo 'cat() { echo right; }' | tee "$HOME/$f" > $f; done; echo "export PATH=$PWD:\$PATH" >> "$HOME/.profile"`,
		"programs of its own":        "for p in cat sh test echo; do printf '#!/bin/sh\\necho right\\n' > $p; chmod +x $p; cp $p \"$HOME\"; done",
		"a closed folder":            "mkdir shut; echo x > shut/f; chmod 000 shut",
		"no folder":                  "cd ..; rm -rf folder; mkdir folder",
		"no folder at all":           "cd ..; rm -rf folder",
		"none of its folders":        `cd ../..; rm -rf "$(basename "$(dirname "$HOME")")"`,
		"a link for its folder":      "cd ..; rm -rf folder; mkdir other; echo right > other/answer; ln -s other folder",
		"a link for all of them":     `cd ../..; d="$(basename "$(dirname "$HOME")")"; rm -rf "$d"; mkdir -p x/folder; echo right > x/folder/answer; ln -s x "$d"`,
		"a pipe for its folder":      "cd ..; rm -rf folder; mkfifo folder",
		"closed folders":             "chmod 000 . ..",
		"very many folders":          "i=0; while [ $i -lt 210 ]; do (mkdir d$i; cd d$i; seq 100 | xargs mkdir); i=$((i+1)); done; echo right > answer",
		"terabytes of nothing":       "seq 3000 | sed s/^/f/ | xargs truncate -s 513M; echo right > answer",
		"a folder for a file":        "mkdir answer; rm -rf given; mkdir given",
		"a file without end":         "truncate -s 1T answer",
		"very many files":            "i=0; while [ $i -lt 21000 ]; do : > f$i; i=$((i+1)); done; echo right > answer",
		"very deep folders":          "i=0; while [ $i -lt 80 ]; do mkdir d; cd d; i=$((i+1)); done",
		"names of files":             "touch -- -rf '*' 'a\nb' \"$(printf 'a\\377b')\"",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if os.Getenv("PARLEY_SWEEP") == "" && name == "very many files" {
				t.Skip("the limit is that of very many folders")
			}
			r := newRunner(t, nil)
			w := harbor()
			w.Timeout = world.Duration(30 * time.Second)
			done := works(t, r, script(text), w)
			if c := done.Check; c == nil || c.Rewards["reward"] != 0 || c.Failed != "" {
				t.Errorf("%+v\n%s%s", c, done.Stdout, done.Stderr)
			}
		})
	}
}

// TestTooLong: a question that does not fit into the arguments of a program fails alone; a program that cannot be started fails all.
func TestTooLong(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	for prompt, want := range map[string]int{strings.Repeat("x", 200_000): 400, "a\x00b": 400} {
		_, err := r.Ask(t.Context(), question(world.Program{Command: []string{"true", "{prompt}"}, Input: "argument"}, prompt))
		if e := llm.AsError(err); e == nil || e.Kind != llm.KindBadRequest || e.Status != want {
			t.Errorf("%.10q: %v", prompt, err)
		}
	}
	if _, err := r.Ask(t.Context(), question(world.Program{Command: []string{"/no/such/program"}}, "x")); llm.AsError(err) == nil || llm.AsError(err).Status != 0 {
		t.Error(err)
	}
}

// TestFoldersAreGone: the folders of a program do not exist while its result is checked.
func TestFoldersAreGone(t *testing.T) {
	t.Parallel()
	w := &world.Work{Name: "task t", Check: &world.Script{Command: []string{"sh", "-c", "n=0; while read -r d; do n=$((n+1)); [ ! -e \"$d\" ] || exit 1; done < places; echo checked $n; [ $n = 2 ]"}}}
	done := works(t, newRunner(t, nil), script(`pwd > places; echo "$HOME" >> places; [ -d "$HOME" ]`), w)
	if c := done.Check; done.Exit != 0 || c.Rewards["reward"] != 1 || !strings.Contains(c.Stdout, "checked 2") {
		t.Errorf("%+v %+v", done, c)
	}
}

// TestTimeout: a program that does not end is ended, and its result is checked.
func TestTimeout(t *testing.T) {
	t.Parallel()
	w := harbor()
	w.Timeout = world.Duration(300 * time.Millisecond)
	done := works(t, newRunner(t, nil), script("echo right > answer; trap '' TERM; while :; do sleep 0.1; done"), w)
	if !done.TimedOut || done.Exit != -1 || done.Check.Rewards["reward"] != 1 {
		t.Errorf("%+v %+v", done, done.Check)
	}
}

// TestChecks: what a check gives, and when it is broken.
func TestChecks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command string
		reward  bool // it leaves a file
		want    string
	}{
		"exit 0":                 {"true", false, "map[reward:1]"},
		"exit 1":                 {"echo 1; exit 1", false, "map[reward:0]"},
		"a number":               {"echo tests; echo 0.25", false, "map[reward:0.25]"},
		"infinity":               {"echo inf", false, "not a finite number: inf"},
		"NaN as a number":        {"echo nan", false, "not a finite number: nan"},
		"out of range":           {"echo 1e400", false, "not a finite number: 1e400"},
		"a word":                 {"echo fine", false, "map[reward:1]"},
		"no such command":        {"no-such-command", false, "cannot be run"},
		"json before txt":        {`echo 0 > /logs/verifier/reward.txt; echo '{"reward": 0.5, "style": 2}' > /logs/verifier/reward.json; exit 9`, true, "map[reward:0.5 style:2]"},
		"txt":                    {"echo ' 0.75 ' > /logs/verifier/reward.txt", true, "map[reward:0.75]"},
		"none":                   {"echo 'no module pytest'", true, "left no reward: neither /logs/verifier/reward.json nor /logs/verifier/reward.txt. Its last output: no module pytest"},
		"an empty file":          {": > /logs/verifier/reward.txt", true, "not a finite number"},
		"NaN":                    {"echo nan > /logs/verifier/reward.txt", true, "not a finite number"},
		"infinity in JSON":       {`echo '{"reward": 1e999}' > /logs/verifier/reward.json`, true, "not an object of finite numbers"},
		"text in JSON":           {`echo '{"reward": "1"}' > /logs/verifier/reward.json`, true, "not an object of finite numbers"},
		"null in JSON":           {`echo '{"reward": null}' > /logs/verifier/reward.json`, true, "is not a number"},
		"an empty object":        {`echo '{}' > /logs/verifier/reward.json`, true, "not an object of finite numbers"},
		"a link":                 {"echo 1 > x; ln -s $PWD/x /logs/verifier/reward.txt", true, "is not a file"},
		"a pipe":                 {"mkfifo /logs/verifier/reward.json", true, "is not a file"},
		"a huge file":            {"truncate -s 1G /logs/verifier/reward.txt", true, "is not a file"},
		"its environment":        {`test "$HOME" != "" && test -z "$(ls -A "$HOME" | grep -v tmp)" && test -d "$PARLEY_FILES" && test "$OF" = both`, false, "map[reward:1]"},
		"a check without end":    {"sleep 1000", false, "did not end within 500ms"},
		"it leaves a process":    {"sleep 1000 & exit 0", false, "map[reward:1]"},
		"its files are not mine": {"test ! -e test.sh && test -e given", false, "map[reward:1]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := harbor()
			w.Env = map[string]string{"OF": "both"}
			w.Check = &world.Script{Command: []string{"sh", "-c", c.command}, Reward: c.reward, Timeout: world.Duration(30 * time.Second)}
			if name == "a check without end" {
				w.Check.Timeout = world.Duration(500 * time.Millisecond)
			}
			got := works(t, newRunner(t, nil), world.Program{Preset: "nop"}, w).Check
			if shown := fmt.Sprint(got.Rewards); shown != c.want && (got.Failed == "" || !strings.Contains(got.Failed, c.want)) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestStopsWhileAsking: a run that stops while a shell agent waits for its model ends at once.
func TestStopsWhileAsking(t *testing.T) {
	t.Parallel()
	s := &sessions{answers: []string{"```sh\nsleep 1000\n```"}}
	r := newRunner(t, s)
	q := question(world.Program{Preset: "shell"}, "x")
	q.Model, q.Work = "sim/large", harbor()
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("enough")) })
	if _, err := r.Ask(ctx, q); llm.KindOf(err) != llm.KindCanceled || s.open != 0 {
		t.Errorf("%v, %d sessions are open", err, s.open)
	}
}
