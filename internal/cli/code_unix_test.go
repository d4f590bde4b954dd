//go:build unix

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/run/results"
	"parley/internal/run/worker"
)

// workerMain is a worker that a plan starts instead of Python: each episode asks one question. What it prints must not
// disturb anything.
func workerMain() int {
	var conn net.Conn
	var err error
	if address, ok := strings.CutPrefix(os.Getenv("PARLEY_WORKER"), "tcp:"); ok {
		conn, err = worker.Dial(context.Background(), address)
	} else {
		conn, err = net.FileConn(os.NewFile(3, "engine"))
	}
	if err != nil {
		return 1
	}
	fmt.Println("printed by the world; key:", os.Getenv("LAB_KEY"))
	playAlong(conn)
	return 0
}

// playAlong plays the episodes of an engine. An episode has 2 points, and more by its deal if the param n is more than 1.
func playAlong(conn net.Conn) {
	in, points := bufio.NewScanner(conn), map[string]int{}
	for first := true; in.Scan(); first = false {
		var r struct {
			ID                int
			Op, File, Episode string
			Deal              int
			Params            struct{ N int }
		}
		switch _ = json.Unmarshal(in.Bytes(), &r); {
		case first:
			code, _ := os.ReadFile(r.File)
			fmt.Fprintf(conn, `{"parley":1,"language":"test","version":1,"files":{"game.py":"%x"},"doc":"One question.","durable":"turn","params":[{"name":"n","type":"int","default":1}]}`+"\n", code)
		case r.Op == "check":
			fmt.Fprintf(conn, "{\"id\":%d,\"error\":{\"text\":\"want 1 to 20\",\"param\":\"n\"}}\n", r.ID)
		case r.Op == "seats":
			fmt.Fprintf(conn, "{\"id\":%d,\"seats\":[\"a\"],\"measures\":[{\"name\":\"points\",\"low\":0,\"high\":4}]}\n", r.ID)
		case r.Op == "begin":
			points[r.Episode] = 2 + r.Deal%max(1, r.Params.N)
			fmt.Fprintf(conn, "{\"id\":%d,\"ask\":[{\"seat\":\"a\",\"label\":\"question\",\"messages\":[{\"role\":\"user\",\"content\":\"How many?\"}]}]}\n", r.ID)
		case r.Op == "replies":
			fmt.Fprintf(conn, "{\"id\":%d,\"end\":{\"scores\":[{\"name\":\"points\",\"value\":%d}]}}\n", r.ID, points[r.Episode])
		}
	}
}

// codePlan writes a plan whose kind is code.
func codePlan(t *testing.T, kind string) string {
	t.Helper()
	plan := write(t, "plan.yaml", "kind: "+kind+"\nproviders: {lab: {dialect: openai, base_url: http://127.0.0.1:1/v1, key_env: LAB_KEY}}\nagents: {me: {model: sim/small}}\nlineup: {a: me}\nepisodes: 5\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(plan), "game.py"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return plan
}

// self returns an environment in which this test is the interpreter of Python, with more variables that are set.
func self(t *testing.T, more ...string) State {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return State{Env: func(name string) (string, bool) {
		return program, name == "PARLEY_PYTHON" || slices.Contains(more, name)
	}}
}

// TestCodeOfPlan: a plan names code, which is played, resumed, and named to the user. It does not get the keys of the
// plan.
func TestCodeOfPlan(t *testing.T) {
	sequential(t)
	t.Setenv("LAB_KEY", "sk-secret")
	plan := codePlan(t, "game.py:Game")
	file := strings.TrimSuffix(plan, ".yaml") + ".parley"
	code := "code=" + filepath.Join(filepath.Dir(plan), "game.py")
	for _, args := range [][]string{{"check", plan}, {"run", plan}} { // nobody allowed it
		parley(t, self(t), args...).want(t, 2).wantErr(t, "plan.yaml:1:7: kind: would run the code of", "--trust code=")
	}
	parley(t, self(t), "check", plan, "--trust", code).want(t, 0).wantErr(t, "runs the code of", "game.py")
	parley(t, self(t, "PARLEY_LOOPBACK"), "run", plan, "--trust", code, "--out", file+"2").want(t, 0)
	out := parley(t, self(t), "run", plan, "--trust", code).want(t, 0).wantErr(t, "runs the code of", "game.py", "printed by the world; key: \n")
	if !strings.Contains(out.stdout, "points") || strings.Contains(out.stderr, "secret") {
		t.Errorf("%s\n%s", out.stdout, out.stderr)
	}
	parley(t, self(t), "run", file).want(t, 2).wantErr(t, "would run the code of")
	parley(t, self(t), "run", file, "--trust", code).want(t, 0)
	for _, args := range [][]string{{"show", file}, {"report", file}} { // they read, and run nothing
		if out := parley(t, State{}, args...).want(t, 0); strings.Contains(out.stderr, "runs the code") {
			t.Errorf("%v: %s", args, out.stderr)
		}
	}
}

// TestMeasuresOfCode: readers do not start the code of a world, and keep to the bounds that it declares.
func TestMeasuresOfCode(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan := codePlan(t, "game.py:Game")
	file := strings.TrimSuffix(plan, ".yaml") + ".parley"
	var played struct{ Scores []results.Estimate }
	out := parley(t, self(t), "run", plan, "--trust", "code="+filepath.Join(filepath.Dir(plan), "game.py"), "--json", "--set", "params.n=2").want(t, 0)
	if err := json.Unmarshal([]byte(out.stdout), &played); err != nil || len(played.Scores) != 1 || played.Scores[0].Method != "scaled wilson" {
		t.Fatalf("%v, %s", err, out.stdout)
	}
	var report tables
	report.read(t, parley(t, State{}, "report", file, "--json").want(t, 0).stdout)
	report.same(t, "report", "scores", played.Scores)
}

// TestChangedCode: a run is not continued with other code, unless the user says so. A run that is complete can be read.
func TestChangedCode(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan := codePlan(t, "game.py:Game")
	game, file := filepath.Join(filepath.Dir(plan), "game.py"), strings.TrimSuffix(plan, ".yaml")+".parley"
	with := func(verb string, more ...string) outcome {
		return parley(t, self(t), append([]string{verb, plan, "--trust", "code=" + game}, more...)...)
	}
	with("run").want(t, 0)
	if err := os.WriteFile(game, []byte("# edited"), 0o644); err != nil {
		t.Fatal(err)
	}
	with("run").want(t, 0).wantErr(t, "nothing is left to play")
	with("run", "--set", "episodes=7").want(t, 2).wantErr(t, "game.py has changed since the run was played", "--changed-code")
	with("check", "--set", "episodes=7").want(t, 0).wantOut(t, "game.py has changed since the run was played")
	with("run", "--set", "episodes=7", "--changed-code").want(t, 0)
	parley(t, State{}, "show", file).want(t, 0).wantOut(t, "code      game.py:Game, test, 1 file", "when 5 episodes had begun")
	parley(t, State{}, "report", file).want(t, 0).wantOut(t, "The code of this run was changed while it was played: when 5 episodes had begun")
	with("run", "--set", "episodes=9").want(t, 0) // the new code is recorded
	with("run", "--out", file+"2").want(t, 0)
	parley(t, State{}, "report", file, file+"2").want(t, 0)
}

// TestNumbersOfWorkers: what is set in the environment is checked.
func TestNumbersOfWorkers(t *testing.T) {
	t.Parallel()
	plan := codePlan(t, "game.py:Game")
	for name, want := range map[string]string{"PARLEY_WORKERS": "want a whole number from 1 to 1000", "PARLEY_WORKER_MEMORY": "want a whole number of MiB from 1 to 1048576"} {
		parley(t, self(t, name), "run", plan, "--trust", "code="+filepath.Join(filepath.Dir(plan), "game.py")).want(t, 2).wantErr(t, name+" is ", want)
	}
}

// TestBrought: another program brings the world, over a port of this machine, and a wrong name of it is refused.
func TestBrought(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan := codePlan(t, "python:Game")
	env := func(value string) State {
		return State{Env: func(name string) (string, bool) { return value, name == "PARLEY_BROUGHT" }}
	}
	for value, want := range map[string]string{
		"nonsense": "want fd:N or tcp:HOST:PORT:TOKEN", "fd:x": "want the number of an open descriptor", "tcp:127.0.0.1": "want HOST:PORT:TOKEN",
	} {
		parley(t, env(value), "run", plan).want(t, 2).wantErr(t, "PARLEY_BROUGHT: ", want)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		token := make([]byte, len("token\n"))
		if _, err := io.ReadFull(conn, token); err == nil && string(token) == "token\n" {
			playAlong(conn)
		}
	}()
	parley(t, env("tcp:"+l.Addr().String()+":token"), "run", plan).want(t, 0)
	<-done
}

// TestCodeRefused: errors about code name the line of the plan.
func TestCodeRefused(t *testing.T) {
	t.Parallel()
	outside := write(t, "other.py", "")
	for _, c := range []struct{ kind, python, want string }{
		{"nothing.py:Game", "", "plan.yaml:1:7: kind: there is no file nothing.py in the folder of"},
		{"game.txt:Game", "", "is not a file of Python"},
		{outside + ":Game", "", "outside the folder of"},
		{"game.py:Game", filepath.Join(t.TempDir(), "python"), "PARLEY_PYTHON is"},
		{"game:py:Game", "", "is not a file of Python"},
	} {
		s := State{Env: func(name string) (string, bool) { return c.python, name == "PARLEY_PYTHON" && c.python != "" }}
		plan := codePlan(t, c.kind)
		parley(t, s, "run", plan, "--trust", "code="+filepath.Join(filepath.Dir(plan), "game.py")).want(t, 2).wantErr(t, c.want)
	}
}

// TestParamsOfEnvironment: what the code of an environment says about its params is at their line of the plan.
func TestParamsOfEnvironment(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan := write(t, "plan.yaml", "kind: rollout\nagents: {me: {model: sim/small}}\nlineup: {agent: me}\nparams:\n  env: game.py:Game\n  env_params:\n    n: 30\n")
	game := filepath.Join(filepath.Dir(plan), "game.py")
	if err := os.WriteFile(game, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"check", "run"} {
		parley(t, self(t), verb, plan, "--trust", "code="+game).want(t, 2).wantErr(t, "plan.yaml:7:8: params.env_params.n: want 1 to 20\n", "7 |     n: 30")
		parley(t, self(t), verb, plan, "--trust", "code="+game, "--set", "params.env_params.n=40").want(t, 2).wantErr(t, "--set params.env_params.n=40: params.env_params.n: want 1 to 20")
	}
	maze := write(t, "maze.yaml", "kind: rollout\nagents: {me: {model: sim/small}}\nlineup: {agent: me}\nparams:\n  env: maze\n  env_params: {size: 1}\n")
	parley(t, State{}, "run", maze).want(t, 2).wantErr(t, "maze.yaml:6:22: params.env_params.size: 1: want 2 to 30")
	const matrix = "kind: rollout\nagents: {me: {model: sim/small}}\nlineup: {agent: me}\nparams: {env: maze}\nplan:\n  matrix:\n"
	for end, want := range map[string]string{
		"    variations:\n      small: {params: {env_params: {size: 3}}}\n      tiny: {params: {env_params: {size: 1}}}\n": "9:42: plan.matrix.variations.tiny.params.env_params.size: 1: want 2 to 30",
		"    params:\n      env_params:\n        - {size: 3}\n        - {size: 1}\n":                                       "10:18: plan.matrix.params.env_params[1].size: 1: want 2 to 30",
		"    params: {env: [maze, mase]}\n": `7:26: plan.matrix.params.env[1]: env: unknown environment "mase"`,
		"    variations: {a: {params: {env_params: {size: 3}}}, b: {params: {env: \"missing.py:X\"}}}\n":                          "7:74: plan.matrix.variations.b.params.env: there is no file missing.py in the folder of ",
		"    params: {env: [maze, \"missing.py:X\"]}\n":                                                                           "7:26: plan.matrix.params.env[1]: there is no file missing.py in the folder of ",
		"    params: {env: [maze, word]}\n    variations: {a: {params: {max_steps: 4}}, b: {params: {env_params: {size: 99}}}}\n": "8:79: plan.matrix.variations.b.params.env_params.size: 99: want 2 to 30",
	} {
		plan := write(t, "plan.yaml", matrix+end)
		for _, verb := range []string{"check", "run"} {
			parley(t, State{}, verb, plan).want(t, 2).wantErr(t, "plan.yaml:"+want)
		}
	}
}

// TestCodeQuestion: the command that is suggested allows what was asked for and nothing else, whatever the file is called.
func TestCodeQuestion(t *testing.T) {
	t.Parallel()
	plan := codePlan(t, `"a --trust OPENAI_API_KEY=evil.example b.py:Game"`)
	name := filepath.Join(filepath.Dir(plan), "a --trust OPENAI_API_KEY=evil.example b.py")
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	parley(t, self(t), "run", plan).want(t, 2).wantErr(t, "--trust 'code="+name+"'")
}

// TestScoreEdited: scores of a scorer that was edited have a name of their own, and are not mixed with the earlier ones. They grow
// with the run.
func TestScoreEdited(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan := codePlan(t, "game.py:Game")
	game, file := filepath.Join(filepath.Dir(plan), "game.py"), strings.TrimSuffix(plan, ".yaml")+".parley"
	parley(t, self(t), "run", plan, "--trust", "code="+game).want(t, 0)
	score := []string{"score", file, "--with", game + ":Game", "--judge", "a=sim/small"}
	edit := func(text string) {
		t.Helper()
		if err := os.WriteFile(game, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out := parley(t, self(t), score...).want(t, 0); strings.Contains(out.stderr, "has changed since") {
		t.Errorf("%s", out.stderr)
	}
	edit("# edited")
	if out := parley(t, self(t), append(score, "--changed-code")...).want(t, 0).wantErr(t, "nothing is left to play"); strings.Contains(out.stderr, "has changed since") {
		t.Errorf("%s", out.stderr)
	}
	parley(t, self(t), score...).want(t, 0).wantOut(t, "5 of 5 episodes").wantErr(t, "has changed since the scores Game: its scores are named Game-2")
	parley(t, self(t), score...).want(t, 0).wantErr(t, "named Game-2", "nothing is left to play")
	parley(t, self(t), append(score, "--set", "params.n=2")...).want(t, 2).wantErr(t, "use --name for scores with another judge or other params")
	edit("# edited again")
	parley(t, self(t), score...).want(t, 0).wantErr(t, "named Game-3")
	edit("")
	parley(t, self(t), score...).want(t, 0).wantErr(t, "nothing is left to play")
	parley(t, self(t), "run", plan, "--set", "episodes=7", "--trust", "code="+game).want(t, 0)
	parley(t, self(t), score...).want(t, 0).wantOut(t, "7 of 7 episodes").wantErr(t, "5 episodes recorded, 2 new")
	rows := parley(t, State{}, "export", file, "--table", "scores").want(t, 0).stdout
	for name, n := range map[string]int{"Game": 7, "Game-2": 5, "Game-3": 5} {
		if strings.Count(rows, `"name":"`+name+`.points","value":2`) != n {
			t.Errorf("%s: %s", name, rows)
		}
	}
}

// TestScore: a scorer adds scores to a run, which is not changed. They are recorded as a run, and appear in tables and
// reports of the run that was scored.
func TestScore(t *testing.T) {
	t.Setenv("LAB_KEY", "sk-secret")
	plan := codePlan(t, "game.py:Game")
	dir := filepath.Dir(plan)
	game, file := filepath.Join(dir, "game.py"), strings.TrimSuffix(plan, ".yaml")+".parley"
	parley(t, self(t), "run", plan, "--trust", "code="+game).want(t, 0)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	with := []string{"score", file, "--with", game + ":Game"}
	parley(t, self(t), with...).want(t, 2).wantErr(t, "the judge a has no model: add --judge a=MODEL")
	out := parley(t, self(t), append(with, "--judge", "a=sim/small")...).want(t, 0).wantErr(t, "parley score runs the code of", "key: \n")
	if !strings.Contains(out.stdout, "5 of 5 episodes; 5 calls") {
		t.Errorf("%s", out.stdout)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the run file has changed, or %v", err)
	}
	rows := parley(t, State{}, "export", file, "--table", "scores").want(t, 0).stdout
	if strings.Count(rows, `"name":"Game.points","value":2`) != 5 || strings.Count(rows, "\n") != 10 {
		t.Errorf("%s", rows)
	}
	for _, args := range [][]string{{"report", file}, {"report", file, "--json"}} {
		if out := parley(t, State{}, args...).want(t, 0); !strings.Contains(out.stdout, "Game.points") || strings.Contains(out.stderr, "runs the code") {
			t.Errorf("%v: %s\n%s", args, out.stdout, out.stderr)
		}
	}
	// Again, it has nothing to do; another name is another judge. A run that is cut short is resumed.
	parley(t, self(t), append(with, "--judge", "a=sim/small")...).want(t, 0).wantErr(t, "nothing is left to play")
	parley(t, self(t), append(with, "--judge", "a=sim/small", "--name", "Cheap", "--budget", "0.0001")...).want(t, 3)
	cheap := filepath.Join(dir, "plan.scores", "Cheap.parley")
	parley(t, self(t), "run", cheap, "--budget", "1").want(t, 2).wantErr(t, "would run the code of")
	parley(t, self(t), "run", cheap, "--budget", "1", "--trust", "code="+game).want(t, 0)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"score", file, "--with", "game.py"}, "want a file and a class"},
		{[]string{"score", file, "--with", "nothing.py:Game"}, "there is no file nothing.py"},
		{append(with, "--name", "../x"), "want a word without"},
		{append(with, "--detach"), "has neither"},
		{append(with, "--judge", "b=sim/small"), "the scorer has the judges"},
		{[]string{"score", cheap + "x", "--with", game + ":Game"}, "Cheap.parleyx"},
	} {
		parley(t, self(t), c.args...).want(t, 2).wantErr(t, c.want)
	}
	// Another run in the same file has no scores, and is not mixed up with the first.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	parley(t, self(t), "run", plan, "--trust", "code="+game).want(t, 0)
	if rows := parley(t, State{}, "export", file, "--table", "scores").want(t, 0).stdout; strings.Contains(rows, "Game.points") {
		t.Errorf("%s", rows)
	}
	parley(t, self(t), append(with, "--judge", "a=sim/small")...).want(t, 2).wantErr(t, "has the scores of another run")
}
