package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/trust"
	"parley/internal/run/runfile"
	"parley/journal"
)

// beAgent is the argument that makes the test binary the agent of TestKilledPrograms.
const beAgent = "be-the-agent"

// stepsOfAgent is how many calls it makes.
const stepsOfAgent = 5

// agent is a program that knows nothing of Parley: it asks a model, and writes what it said to a file.
func agent() error {
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	talk := []message{}
	for i := range stepsOfAgent {
		talk = append(talk, message{"user", fmt.Sprintf("%s step %d", bytes.TrimSpace(prompt), i)})
		body, _ := json.Marshal(map[string]any{"model": "any", "messages": talk})
		res, err := http.Post(os.Getenv("PARLEY_URL")+"/v1/chat/completions", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		var answer struct {
			Choices []struct{ Message message }
		}
		err = json.NewDecoder(res.Body).Decode(&answer)
		res.Body.Close()
		if err != nil || len(answer.Choices) == 0 {
			return fmt.Errorf("step %d: %s: %w", i, res.Status, err)
		}
		talk = append(talk, answer.Choices[0].Message)
	}
	return os.WriteFile("said.txt", fmt.Append(nil, talk), 0o600)
}

// paid is a server that counts what it is asked. A call that is recorded must not be asked again.
type paid struct {
	t *testing.T

	mu       sync.Mutex
	all      int
	recorded map[string]bool
}

func (p *paid) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	p.all++
	if p.recorded[question(p.t, raw)] {
		p.t.Errorf("a recorded call is paid again: %s", raw)
	}
	p.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"1","object":"chat.completion","model":"small","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"said %d"}}],"usage":{"prompt_tokens":9,"completion_tokens":9}}`, len(raw))
}

// question returns the messages of a body.
func question(t *testing.T, raw []byte) string {
	t.Helper()
	var body struct{ Messages []struct{ Content string } }
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Errorf("%v: %s", err, raw)
	}
	return fmt.Sprint(body.Messages)
}

// learn reads what is recorded.
func (p *paid) learn(file string) (calls int) {
	store, err := runfile.OpenRead(file)
	if err != nil {
		return 0 // it was killed before it had begun
	}
	defer store.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	err = store.Read(p.t.Context(), journal.Whole(), func(e journal.Entry) error {
		r, ok := e.(*journal.Replied)
		if !ok || !journal.OfProgram(r.Strand) || r.Response == nil {
			return nil
		}
		calls++
		var said []struct{ Content string }
		for _, m := range r.Request.Messages {
			said = append(said, struct{ Content string }{m.Text()})
		}
		p.recorded[fmt.Sprint(said)] = true
		return nil
	})
	if err != nil {
		p.t.Error(err)
	}
	return calls
}

// onTasks serves a model that counts what it is paid for, and returns the arguments with which Parley plays so many tasks with a program
// that asks it.
func onTasks(t *testing.T, tasks int, check, prices, plan string) (*paid, []string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("checks of tasks in rows are commands of sh")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := &paid{t: t, recorded: map[string]bool{}}
	serving := httptest.NewServer(server)
	t.Cleanup(serving.Close)
	dir := t.TempDir()
	var rows strings.Builder
	for i := range tasks {
		fmt.Fprintf(&rows, `{"id": "task-%d", "prompt": "Task %d.", "check": %q}`+"\n", i, i, check)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rowsFile := write("tasks.jsonl", rows.String())
	write("prices.json", prices)
	return server, []string{
		"run", write("plan.yaml", fmt.Sprintf(`kind: task
episodes: %d
providers:
  lab: {dialect: openai, base_url: %q}
agents:
  mine: {model: lab/small, program: {command: [%q, %s]}}
lineup: {solver: mine}
%s
`, tasks, serving.URL+"/v1", self, beAgent, plan)),
		"--out", filepath.Join(dir, "run.parley"), "--json", "--quiet",
		"--trust", trust.Grant{What: trust.Program, Name: self + " " + beAgent}.Flag(),
		"--trust", trust.Grant{What: trust.Code, Name: rowsFile}.Flag(),
	}
}

// TestKilledPrograms kills Parley with kill -9 at random moments while programs work. The next process starts them again and answers their calls from
// the run file: no recorded call is paid again.
func TestKilledPrograms(t *testing.T) {
	t.Parallel()
	wanted := enough(t, 6, 6)
	tasks := wanted // so that there is enough to do
	server, args := onTasks(t, tasks, "test -s said.txt", "", "params: {tasks: tasks.jsonl, at_once: 2}")
	file := args[3]
	kills := 0
	var repeated int
	for {
		kept := server.learn(file)
		after := time.Duration(0)
		if kills < wanted {
			after = 250*time.Millisecond + rand.N(450*time.Millisecond)
		}
		sum, killed := program(t, after, args...)
		if killed {
			kills++
			continue
		}
		repeated = sum.Calls.Programs
		if calls := server.learn(file); sum.State != "complete" || calls != tasks*stepsOfAgent || repeated > kept {
			t.Errorf("%+v with %d recorded calls, %d before", sum, calls, kept)
		}
		break
	}
	t.Logf("%d kills, %d calls paid for %d, %d answered from the run file by the last process", kills, server.all, tasks*stepsOfAgent, repeated)
}

// TestManyPrograms plays many agents at once, with a limit of calls that each of them reaches and a budget that is too small: the run stops
// below the budget. With more, it goes on: no recorded call is paid again, and each episode has one score. With PARLEY_SWEEP, which .ci/run kills
// sets, they are a hundred: each takes four starts of a program of 80 MB.
func TestManyPrograms(t *testing.T) {
	t.Parallel()
	agents := 25
	if os.Getenv("PARLEY_SWEEP") != "" {
		agents = 100
	}
	const limit = 3
	server, args := onTasks(t, agents, "test ! -e said.txt",
		`{"models": {"lab/small": {"input": 1000, "output": 1000, "context": 1000, "max_output": 10}}}`,
		fmt.Sprintf("prices: prices.json\nparams: {tasks: tasks.jsonl, at_once: %d, calls: %d}", agents, limit))
	file := args[3]
	const each = 0.018                             // 9 tokens in, 9 out
	budget := each * float64(agents*limit) * 5 / 9 // for a little more than half of them
	stopped := exec.CommandContext(t.Context(), os.Args[0], append(args, "--budget", fmt.Sprint(budget))...)
	stopped.Env = append(os.Environ(), beParley+"=1")
	out, _ := stopped.Output()
	if code := stopped.ProcessState.ExitCode(); code != 3 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	if kept := server.learn(file); kept == 0 || float64(server.all)*each > budget {
		t.Errorf("%d calls were paid, %d are recorded, and the budget is %g", server.all, kept, budget)
	}
	sum, _ := program(t, 0, append(args, "--budget", "100")...)
	if calls := server.learn(file); sum.State != "complete" || calls != agents*limit || server.all != agents*limit {
		t.Errorf("%+v: %d calls are recorded, and %d were paid", sum, calls, server.all)
	}
	store, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	head, err := store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for e := range head.Ended.All() {
		whole, err := head.Ended.Outcome(t.Context(), store, e.Episode)
		if err != nil {
			t.Fatal(err)
		}
		var data struct{ Limit string }
		raw, _ := whole.Outcome.Data.(json.RawMessage)
		if err := json.Unmarshal(raw, &data); err != nil || data.Limit != "calls" || len(e.Outcome.Scores) != 2 || e.Outcome.Scores[0].Value != 1 {
			t.Fatalf("episode %d: %+v %v", e.Episode, whole.Outcome, err)
		}
	}
	if head.Ended.Len() != agents {
		t.Errorf("%d episodes ended", head.Ended.Len())
	}
}
