package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/read/training"
	"parley/internal/run/runfile/runfiletest"
)

// rolloutPlan has six groups of two episodes, without a server.
const rolloutPlan = `kind: rollout
episodes: 6
agents: {policy: {model: sim/small, trainable: true}, other: {model: sim/small}}
lineup: {seller: policy, buyer: other}
params: {env: negotiation, seats: [seller, buyer], env_params: {rounds: 2}, group: 2, tokens: true}
`

// serves runs the server command verb on a free port. It returns the base URL, and a function that stops it with a
// signal and returns its outcome.
func serves(t *testing.T, env map[string]string, verb string, args ...string) (url string, stop func() outcome) {
	t.Helper()
	signals := make(chan os.Signal, 1)
	stdout := &firstLine{line: make(chan string, 1)}
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- mainWith(context.WithoutCancel(t.Context()), State{
			Args: slices.Concat([]string{verb, "--addr", "127.0.0.1:0"}, args), Stdout: stdout, Stderr: &stderr, Signals: signals,
			Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		})
	}()
	select {
	case line := <-stdout.line:
		_, url, _ = strings.Cut(strings.TrimSpace(line), "listening on ")
	case code := <-ended:
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	return url, func() outcome {
		http.DefaultClient.CloseIdleConnections()
		signals <- os.Interrupt
		return outcome{code: <-ended, stderr: stderr.String()}
	}
}

func fetch(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_, text := fetchAll(t, req)
	return text
}

// TestTrainer plays a plan for a client, with fewer episodes than it has. The export must write what the stream
// returned.
func TestTrainer(t *testing.T) {
	t.Parallel()
	plan := write(t, "plan.yaml", rolloutPlan)
	file := strings.TrimSuffix(plan, ".yaml") + ".parley"
	events := filepath.Join(t.TempDir(), "events.jsonl")
	url, stop := serves(t, nil, "trainer", plan, "--events", events)
	if got := fetch(t, "POST", url+"/v1/start", `{"params":{"max_steps":0}}`); !strings.Contains(got, "params.max_steps") {
		t.Error(got)
	}
	if got := fetch(t, "POST", url+"/v1/start", `{"episodes":3,"seed":5,"params":{"group":4}}`); !strings.Contains(got, `"state"`) {
		t.Error(got)
	}
	var streamed []string
	for line := range strings.Lines(fetch(t, "GET", url+"/v1/stream?trainable=true", "")) {
		var g struct{ Rows []json.RawMessage }
		if err := json.Unmarshal([]byte(line), &g); err != nil {
			t.Fatal(err)
		}
		for _, row := range g.Rows {
			streamed = append(streamed, string(row))
		}
	}
	stop().want(t, exit.OK).wantErr(t, "complete", "12 of 12 episodes")
	if counts, last := eventLines(t, events); counts["episode ended"] != 12 || last["msg"] != "run ended" {
		t.Errorf("%v, %v", counts, last)
	}
	exported := strings.Split(strings.TrimSpace(parley(t, State{}, "trajectories", file, "--trainable").want(t, exit.OK).stdout), "\n")
	slices.Sort(streamed)
	slices.Sort(exported)
	if !slices.Equal(streamed, exported) || len(exported) < 12 {
		t.Errorf("%d rows were streamed, %d exported", len(streamed), len(exported))
	}

	// The run is complete: a server on the same file returns the same, and plays nothing.
	url, stop = serves(t, map[string]string{"KEY": "a, b"}, "trainer", plan, "--key-env", "KEY")
	if got := fetch(t, "GET", url+"/v1/status", ""); !strings.Contains(got, "the key is missing") {
		t.Error(got)
	}
	if got := fetch(t, "GET", url+"/health", ""); !strings.Contains(got, `"state":"complete"`) {
		t.Error(got)
	}
	stop().want(t, exit.OK)
}

// TestTrainerClient runs the example client twice; the second time there is nothing new.
func TestTrainerClient(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	url, stop := serves(t, nil, "trainer", write(t, "plan.yaml", rolloutPlan))
	out := filepath.Join(t.TempDir(), "rows.jsonl")
	client := func() string {
		b, err := exec.CommandContext(t.Context(), python, "../../examples/trainer_client.py", "--url", url, "--out", out, "--episodes", "2").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		return string(b)
	}
	if got := client(); !strings.Contains(got, "negotiation:1: 2 rows") || !strings.Contains(got, "complete") {
		t.Error(got)
	}
	first := read(t, out)
	if got := client(); strings.Contains(got, "rows") || read(t, out) != first || strings.Count(first, "\n") != 4 {
		t.Errorf("%s\n%s", got, first)
	}
	stop().want(t, exit.OK)
}

func TestTrainerBadInput(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan := write(t, "plan.yaml", rolloutPlan)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "<plan>"},
		{[]string{"nowhere.yaml"}, "nowhere.yaml"},
		{[]string{plan, "--out", runfiletest.File(t, cliSample()...)}, "is a run of"},
		{[]string{plan, "--out", write(t, "x", "words")}, "not a run file"},
		{[]string{plan, "--addr", "0.0.0.0:0"}, "would serve other machines without a key"},
		{[]string{plan, "--addr", "here"}, "--addr"},
		{[]string{plan, "--key-env", "NOT_SET"}, "--key-env: no environment variable"},
		{[]string{plan, "--grace", "-1s"}, "--grace"},
	} {
		parley(t, State{}, append([]string{"trainer"}, c.args...)...).want(t, exit.Misuse).wantErr(t, c.want)
	}
}

func TestEnv(t *testing.T) {
	t.Parallel()
	list := parley(t, State{}, "env").want(t, exit.OK).stdout
	if !strings.Contains(list, "negotiation  seller, buyer  ") || !strings.Contains(list, "parley env arithmetic") {
		t.Error(list)
	}
	var known []struct{ Name string }
	if err := json.Unmarshal([]byte(parley(t, State{}, "env", "--json").want(t, exit.OK).stdout), &known); err != nil || len(known) < 5 || known[1].Name != "maze" {
		t.Errorf("%v: %+v", err, known)
	}
	url, stop := serves(t, nil, "env", "maze", "word")
	if got := fetch(t, "POST", url+"/arithmetic/1/reset", "{}"); !strings.Contains(got, "want one of maze, word") {
		t.Error(got)
	}
	plan := write(t, "plan.yaml", "kind: rollout\nepisodes: 3\nagents: {p: sim/small}\nlineup: {agent: p}\nparams: {env: maze, max_steps: 3, servers: [\""+url+"\"]}\n")
	parley(t, State{}, "run", plan, "--quiet").want(t, exit.OK)
	stop().want(t, exit.OK)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"chess"}, `unknown environment "chess"; want one of arithmetic, maze`},
		{[]string{"all", "--addr", "0.0.0.0:0"}, "say --open"},
		{[]string{"all", "--sessions", "0"}, "--sessions"},
	} {
		parley(t, State{}, append([]string{"env"}, c.args...)...).want(t, exit.Misuse).wantErr(t, c.want)
	}
}

func TestTrajectories(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan := write(t, "plan.yaml", rolloutPlan)
	file := filepath.Join(t.TempDir(), "run.parley")
	parley(t, State{}, "run", plan, "--out", file, "--quiet").want(t, exit.OK)
	// The episodes of a group share a deal: they are one observation wherever scores are shown.
	var sum app.Summary
	again := parley(t, State{}, "run", plan, "--out", file, "--json").want(t, exit.OK)
	if err := json.Unmarshal([]byte(again.stdout), &sum); err != nil || len(sum.Agents) == 0 {
		t.Fatal(err, again.stdout)
	}
	reported := strings.Join(strings.Fields(parley(t, State{}, "report", file).want(t, exit.OK).stdout), " ")
	for _, s := range sum.Agents {
		if s.N >= s.Episodes || !strings.Contains(reported, fmt.Sprintf("] %d %d", s.Episodes, s.N)) {
			t.Errorf("%+v: %s", s, reported)
		}
	}
	out := filepath.Join(t.TempDir(), "rows.parquet")
	got := parley(t, State{}, "trajectories", file, "--trainable", "--status", "completed,truncated", "--out", out).want(t, exit.OK)
	if !strings.Contains(got.stdout, " rows of trajectories\n") || !strings.HasPrefix(read(t, out), "PAR1") {
		t.Error(got.stdout)
	}
	var row training.Row
	line, _, _ := strings.Cut(parley(t, State{}, "trajectories", file).want(t, exit.OK).stdout, "\n")
	if err := json.Unmarshal([]byte(line), &row); err != nil || len(row.Tokens) == 0 || len(row.LossMask) != len(row.Tokens) || row.GroupSize != 2 || row.AgentID != "seller" {
		t.Errorf("%v: %+v", err, row)
	}
	parley(t, State{}, "trajectories", file, "--weight-version", "3").want(t, exit.OK).wantErr(t, "0 of 6 groups, left out: 6 no weight version")
	damaged := write(t, "damaged.parley", read(t, file))
	alter(t, damaged, `UPDATE outcomes SET scores = scores || ' ' WHERE episode = 3`)
	parley(t, State{}, "trajectories", damaged, "--out", filepath.Join(t.TempDir(), "rest.jsonl")).want(t, exit.Failed).
		wantErr(t, "is damaged and was read without episode 3").wantOut(t, "5 of 6 groups, left out: 1 ")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{file, "--format", "csv"}, "want jsonl or parquet"},
		{[]string{file, "--format", "xml"}, "--format xml: rows are written as jsonl or parquet"},
		{[]string{file, "--shape", "verl", "--format", "parquet"}, "--format parquet: verl is written as JSON lines; leave out --format"},
		{[]string{file, "--shape", "verl", "--out", "x"}, "--out x: verl is written as JSON lines; use a name that ends in .jsonl"},
		{[]string{file, "--out", "rows.csv"}, "add --format jsonl"},
		{[]string{file, "--out", file, "--format", "jsonl", "--force"}, "is part of a run file"},
		{[]string{file, "--out", out}, "overwrite it with --force"},
		{[]string{file, "--status", "great"}, "use completed, truncated or failed"},
		{[]string{file, "--max-lag", "2"}, "needs --weight-version"},
		{[]string{file, "--shape", "parquet"}, "want one of rows, sequences"},
		{[]string{file + "x"}, "no such run file"},
		{[]string{plan}, "is a plan, not a run file"},
	} {
		parley(t, State{}, append([]string{"trajectories"}, c.args...)...).want(t, exit.Misuse).wantErr(t, c.want)
	}
}

// TestTrajectoryColumnsAreDocumented compares the fields of a row with their document.
func TestTrajectoryColumnsAreDocumented(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(read(t, "../../docs/how-to/train.md"), "\n### Columns\n")
	at := 0
	for f := range reflect.TypeFor[training.Row]().Fields() {
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		i := strings.Index(text, "\n| `"+name+"` |")
		if i < at {
			t.Errorf("docs/how-to/train.md does not explain %s, or not in order", name)
		}
		at = max(at, i)
	}
}
