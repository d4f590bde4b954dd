package task_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/llm"
	"parley/world"
	"parley/world/part"
	"parley/world/worldtest"
	"parley/worlds/task"
)

// load reads a plan with these params beside the folder dir.
func load(t *testing.T, dir, params string) (*planfile.Plan, error) {
	t.Helper()
	plan := filepath.Join(dir, "plan.yaml")
	text := "kind: task\nagents: {a: {program: nop}}\nparams:\n" + params
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return planfile.Load(context.Background(), plan, []world.Kind{task.Kind()}, nil, planfile.Reach{})
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// minimal is a task folder.
func minimal() map[string]string {
	return map[string]string{"tasks/one/task.toml": "", "tasks/one/instruction.md": "Do it.", "tasks/one/tests/test.sh": "exit 0"}
}

// TestKind holds the kind to everything that any kind promises. No program answers there, so its episodes fail.
func TestKind(t *testing.T) {
	t.Parallel()
	worldtest.Imports(t, ".")
	dir := t.TempDir()
	put(t, dir, minimal())
	plan, err := load(t, dir, "  tasks: tasks/\n")
	if err != nil {
		t.Fatal(err)
	}
	asked, err := plan.Asked()
	if err != nil {
		t.Fatal(err)
	}
	params, err := plan.Kind.Read(asked.Next(nil).At(0).Params)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reply world.Reply
		want  string // why it failed, or the scores
	}{
		"a model's text":   {world.Reply{Text: "done"}, "task one: no program worked on it"},
		"a failure":        {world.Reply{Failed: llm.KindServer}, "task one: the program failed (server)"},
		"nonsense":         {world.Reply{JSON: json.RawMessage(`{"check": 7}`)}, "task one: no program worked on it"},
		"a broken check":   {done(&world.Checked{Failed: "no file"}), "task one: no file"},
		"several rewards":  {done(&world.Checked{Rewards: map[string]float64{"a": 1, "b": 2}}), "task one: the check gave several rewards, and none is called reward"},
		"the only reward":  {done(&world.Checked{Rewards: map[string]float64{"a": 0.5}}), "reward 0.5 passed 0 "},
		"a reward of many": {done(&world.Checked{Rewards: map[string]float64{"a": 0.5, "reward": 1}}), "reward 1 passed 1 "},
	} {
		w, err := plan.Kind.World(params, world.Lineup{})
		if err != nil {
			t.Fatal(err)
		}
		s := world.Begin(w, world.Deal{Number: 5})
		calls := s.Next(nil).Calls
		if len(calls) != 1 || calls[0].Work == nil || calls[0].Work.Check == nil || calls[0].Ask.Messages[0].Text() != "Do it." {
			t.Fatalf("%+v", calls)
		}
		o := s.Next([]world.Reply{c.reply}).Outcome
		got := o.Failed
		for _, score := range o.Scores {
			b, _ := json.Marshal(score.Value)
			got += score.Name + " " + string(b) + " "
		}
		if got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func done(c *world.Checked) world.Reply {
	b, _ := json.Marshal(world.Done{Check: c})
	return world.Reply{JSON: b}
}

// TestHarbor: what is read of a task folder, and what is refused by name.
func TestHarbor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files  map[string]string // besides those of minimal; "-": not there
		params string
		want   string // in the error; empty: none
	}{
		"as little as possible": {},
		"everything": {files: map[string]string{
			"tasks/one/task.toml": "schema_version = \"1.4\"\nsource = \"x\"\n[metadata]\nany = [1, {a = \"b\"}]\n[task]\nname = \"org/one\"\nauthors = [{name = \"A\", email = \"a@b\"}]\n[agent]\ntimeout_sec = 120.0\nnetwork_mode = \"public\"\n" +
				"[verifier]\ntimeout_sec = 60\nenvironment_mode = \"separate\"\nenv = {A = \"${HOST:-x}\"}\n[environment]\nbuild_timeout_sec = 600\ncpus = 1.5\nmemory_mb = 2048\nstorage_mb = 10240\nworkdir = \"/home/t\"\nos = \"linux\"\nallow_internet = true\n[environment.env]\nB = \"c\"\n[solution]\nenv = {}\n",
			"tasks/one/environment/Dockerfile": "FROM python:3\n# a comment\nWORKDIR /home/t\nENV X=1 Y='2'\nRUN pip install \\\n  pytest\nCOPY data/ in/\nCOPY main.py /home/t/\n", "tasks/one/environment/data/d.txt": "d", "tasks/one/environment/main.py": "p", "tasks/one/solution/solve.sh": "true",
		}},
		"no instruction":      {files: map[string]string{"tasks/one/instruction.md": " "}, want: "tasks/one/instruction.md: is missing or empty"},
		"no tests":            {files: map[string]string{"tasks/one/tests/test.sh": "-"}, want: "tasks/one/tests/test.sh: is missing"},
		"no tasks":            {files: map[string]string{"tasks/one/task.toml": "-"}, want: "has no Harbor task folders"},
		"the older format":    {files: map[string]string{"tasks/one/task.toml": "-", "tasks/one/task.yaml": "x"}, want: "tasks/one: it is a task of Terminal-Bench's older format"},
		"broken TOML":         {files: map[string]string{"tasks/one/task.toml": "[agent\n"}, want: "tasks/one/task.toml: toml: line 2"},
		"another type":        {files: map[string]string{"tasks/one/task.toml": "[agent]\ntimeout_sec = \"x\"\n"}, want: "tasks/one/task.toml: toml:"},
		"an unknown key":      {files: map[string]string{"tasks/one/task.toml": "[agent]\ntimout_sec = 1\n"}, want: "tasks/one/task.toml: agent.timout_sec: is unknown"},
		"several steps":       {files: map[string]string{"tasks/one/task.toml": "[[steps]]\nname = \"a\"\n"}, want: "steps: tasks of several steps are not supported"},
		"allowed hosts":       {files: map[string]string{"tasks/one/task.toml": "[environment]\nallowed_hosts = [\"a\"]\n"}, want: "environment.allowed_hosts: lists of allowed hosts"},
		"no network":          {files: map[string]string{"tasks/one/task.toml": "[environment]\nnetwork_mode = \"no-network\"\n"}, want: `environment.network_mode: "no-network" is not supported`},
		"no internet":         {files: map[string]string{"tasks/one/task.toml": "[environment]\nallow_internet = false\n"}, want: "environment.allow_internet: false is not supported"},
		"closed by an engine": {files: map[string]string{"tasks/one/task.toml": "[agent]\nnetwork_mode = \"no-network\"\n[environment]\ndocker_image = \"x\"\nallow_internet = false\n"}, params: "  runtime: podman\n  network: gateway\n"},
		"open in an engine":   {files: map[string]string{"tasks/one/task.toml": "[environment]\ndocker_image = \"x\"\nallow_internet = false\n"}, params: "  runtime: podman\n", want: "environment.allow_internet: false is not supported"},
		"a GPU":               {files: map[string]string{"tasks/one/task.toml": "[environment]\ngpus = 1\n"}, want: `environment.gpus: accelerators are not given to programs; if that does not matter here, add "environment.gpus" to params.ignore`},
		"a GPU, ignored":      {files: map[string]string{"tasks/one/task.toml": "[environment]\ngpus = 1\n"}, params: "  ignore: [environment.gpus]\n"},
		"a user":              {files: map[string]string{"tasks/one/task.toml": "[verifier]\nuser = \"root\"\n"}, want: "verifier.user"},
		"health":              {files: map[string]string{"tasks/one/task.toml": "[environment.healthcheck]\ncommand = \"x\"\n"}, want: "environment.healthcheck"},
		"an own verifier":     {files: map[string]string{"tasks/one/task.toml": "[verifier.environment]\ndocker_image = \"x\"\n"}, want: "verifier.environment"},
		"compose":             {files: map[string]string{"tasks/one/environment/docker-compose.yaml": "x"}, want: "tasks/one/environment/docker-compose.yaml: is not supported"},
		"a trajectory":        {files: map[string]string{"tasks/one/trajectory.json": "{}"}, want: "tasks/one/trajectory.json: is not supported"},
		"a host's variable":   {files: map[string]string{"tasks/one/task.toml": "[verifier.env]\nKEY = \"${OPENAI_API_KEY}\"\n"}, want: "verifier.env.KEY: names the variable OPENAI_API_KEY of this machine"},
		"NaN seconds":         {files: map[string]string{"tasks/one/task.toml": "[agent]\ntimeout_sec = nan\n"}, want: "agent.timeout_sec: NaN"},
		"COPY elsewhere":      {files: map[string]string{"tasks/one/environment/Dockerfile": "FROM x\nCOPY a /etc/a\n", "tasks/one/environment/a": "a"}, want: "tasks/one/environment/Dockerfile:2: COPY to /etc/a, outside of the working folder /app"},
		"COPY of nothing":     {files: map[string]string{"tasks/one/environment/Dockerfile": "FROM x\nCOPY a /app/\n"}, want: "there is no such file"},
		"COPY out of /app":    {files: map[string]string{"tasks/one/environment/Dockerfile": "FROM x\nCOPY a /app/../x\n", "tasks/one/environment/a": "a"}, want: "outside of the working folder"},
		"no image":            {params: "  runtime: podman\n", want: "runtime podman needs one of them"},
		"an open network":     {params: "  network: gateway\n", want: "network: gateway holds for containers"},
		"a lost network":      {params: "  network: none\n  runtime: {command: [bwrap]}\n", want: "does not have {network}"},
		"an option":           {files: map[string]string{"tasks/one/task.toml": "[environment]\ndocker_image = \"--volume=/:/x\"\n"}, params: "  runtime: podman\n", want: `the image "--volume=/:/x"`},
		"a byte 0":            {files: map[string]string{"tasks/one/task.toml": "[environment.env]\nA = \"\\u0000\"\n"}, want: `the variable "A"`},
		"a wrong runtime":     {params: "  runtime: lxc\n", want: "want one of local, podman, docker"},
		"a runtime without":   {params: "  runtime: {command: []}\n", want: "runtime: want local, podman, docker or {command: [PROGRAM, ARGUMENTS...]}"},
		"an unknown task":     {params: "  only: [two]\n", want: "params.only: names no task of tasks/; there are: one"},
		"a range":             {params: "  range: [1, 0]\n", want: "want the lowest and the highest reward"},
		"a link out of reach": {files: map[string]string{"tasks/one/tests/passwd": "link /etc/passwd"}, want: "outside the folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			all := minimal()
			for f, text := range c.files {
				if all[f] = text; text == "-" {
					delete(all, f)
				}
			}
			links := map[string]string{}
			for f, text := range all {
				if to, is := strings.CutPrefix(text, "link "); is {
					links[f] = to
					delete(all, f)
				}
			}
			put(t, dir, all)
			if err := os.MkdirAll(filepath.Join(dir, "tasks", "one"), 0o700); err != nil {
				t.Fatal(err)
			}
			for f, to := range links {
				if err := os.Symlink(to, filepath.Join(dir, filepath.FromSlash(f))); err != nil {
					t.Skip(err)
				}
			}
			plan, err := load(t, dir, "  tasks: tasks/\n"+c.params)
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want != "":
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v", err)
				}
				return
			}
			if name != "everything" {
				return
			}
			p := plan.Params.Pointer().(*task.Params).Loaded[0]
			b, _ := json.Marshal(p)
			const want = `{"name":"one","prompt":"Do it.","files":[{"path":"in/d.txt","text":"d"},{"path":"main.py","text":"p"}],"env":{"B":"c","X":"1","Y":"2"},"workdir":"/home/t","cpus":1.5,"memory_mb":2048,"timeout":"2m","check":{"files":[{"path":"test.sh","text":"exit 0","exec":true}],"command":["/tests/test.sh"],"env":{"A":"x"},"timeout":"1m","reward":true},"solution":{"files":[{"path":"solve.sh","text":"true","exec":true}],"command":["/solution/solve.sh"]}}`
			if string(b) != want {
				t.Errorf("%s", b)
			}
			if got := strings.Join(plan.Advice, "\n"); !strings.Contains(got, "Dockerfile:5: RUN pip install  pytest is not run with runtime: local") || !strings.Contains(got, "hold for containers") || !strings.Contains(got, "storage_mb is not enforced") {
				t.Errorf("%s", got)
			}
		})
	}
}

// TestRows: tasks in a file of rows.
func TestRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rows, want string }{
		"two":           {`{"id": "a", "prompt": "p", "files": {"x/y": "z"}, "check": "true", "timeout": "5m", "solution": "echo"}` + "\n" + `{"id": "b", "prompt": "p", "check": "true", "timeout": 2.5, "check_files": {"t.sh": "#!/bin/sh\n"}}`, ""},
		"no check":      {`{"id": "a", "prompt": "p"}`, "tasks.jsonl: row 1: want id, prompt and check"},
		"twice":         {`{"id": "a", "prompt": "p", "check": "c"}` + "\n" + `{"id": "a", "prompt": "p", "check": "c"}`, `row 2: the id "a" is there twice`},
		"unknown":       {`{"id": "a", "prompt": "p", "check": "c", "chek": 1}`, "chek"},
		"a path out":    {`{"id": "a", "prompt": "p", "check": "c", "files": {"../x": ""}}`, "leads out of its folder"},
		"in a file":     {`{"id": "a", "prompt": "p", "check": "c", "files": {"x/y": "", "x/y/z/w": ""}}`, `row 1: the file "x/y/z/w" needs a folder "x/y", and that is a file too`},
		"a time":        {`{"id": "a", "prompt": "p", "check": "c", "timeout": "soon"}`, "row 1: timeout"},
		"negative time": {`{"id": "a", "prompt": "p", "check": "c", "timeout": -1}`, "row 1: timeout"},
		"nothing":       {"", "has no rows"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, dir, map[string]string{"tasks.jsonl": c.rows})
			plan, err := load(t, dir, "  tasks: tasks.jsonl\n")
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			b, _ := json.Marshal(plan.Params.Pointer().(*task.Params).Loaded)
			const want = `[{"name":"a","prompt":"p","files":[{"path":"x/y","text":"z"}],"timeout":"5m","check":{"command":["sh","-c","true"]},"solution":{"command":["sh","-c","echo"]}},{"name":"b","prompt":"p","timeout":"2.5s","check":{"files":[{"path":"t.sh","text":"#!/bin/sh\n","exec":true}],"command":["sh","-c","true"]}}]`
			if string(b) != want {
				t.Errorf("%s", b)
			}
		})
	}
}

// TestWrongParams wants errors at the line of the param that is wrong.
func TestWrongParams(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		"runtime: {command: [bwrap, '{foldr}']}":                   "params.runtime: unknown placeholder {foldr}; want one of {folder}, {home},",
		"runtime: {command: [bwrap, 'a{}']}":                       "params.runtime: unknown placeholder {}; want one of",
		"runtime: {command: ['']}":                                 "params.runtime: the command is empty",
		"runtime: {comand: [x]}":                                   "params.runtime: want local, podman, docker or {command:",
		"runtime: {command: [sh, -c, '${x} {{a}} {home}{tests}']}": "",
		"only: [z]":    "params.only: names no task of tasks.jsonl; there are: a, b",
		"only: [a, z]": `params.only: there is no task "z"`,
		"only: [b]":    "",
	} {
		dir := t.TempDir()
		put(t, dir, map[string]string{"tasks.jsonl": `{"id": "a", "prompt": "p", "check": "c"}` + "\n" + `{"id": "b", "prompt": "p", "check": "c"}`})
		_, err := load(t, dir, "  tasks: tasks.jsonl\n  "+params+"\n")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), ":5:") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", params, err, want)
		}
	}
}

// TestModelsAreRefused: the seat wants a program.
func TestModelsAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, minimal())
	put(t, dir, map[string]string{"plan.yaml": "kind: task\nagents: {a: sim/small}\nparams: {tasks: tasks/}\n"})
	_, err := planfile.Load(t.Context(), filepath.Join(dir, "plan.yaml"), []world.Kind{task.Kind()}, nil, planfile.Reach{})
	if err == nil || !strings.Contains(err.Error(), "plan.yaml:2:13: agents.a: sits in the seat solver of task, which wants a program") {
		t.Errorf("%v", err)
	}
}

// TestExampleTasks: parley init writes some of the tasks of the examples, and the stand-in knows the question of each.
func TestExampleTasks(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "examples")
	for name, text := range task.Kind().ExampleFiles {
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil || string(b) != text {
			t.Errorf("%s differs from the one in examples: %v", name, err)
		}
	}
	questions, err := filepath.Glob(filepath.Join(root, "tasks", "*", "instruction.md"))
	if err != nil || len(questions) != 10 {
		t.Fatal(questions, err)
	}
	standIn, _ := world.As[part.StandIn](task.Kind())
	for _, name := range questions {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		talk := []llm.Message{llm.System("rules"), llm.User(string(b))}
		text, ok := standIn.StandIn("large", &llm.Request{Messages: talk}, 1)
		if !ok || !strings.HasPrefix(text, "```sh\n") {
			t.Errorf("%s: %q", name, text)
		}
		if text, ok := standIn.StandIn("large", &llm.Request{Messages: append(talk, llm.Assistant(text), llm.User("exit code 0\n"))}, 1); !ok || text != "Done." {
			t.Errorf("%s: %q", name, text)
		}
	}
	if _, ok := standIn.StandIn("large", &llm.Request{Messages: []llm.Message{llm.User("What is the time?")}}, 1); ok {
		t.Error("it answers any question")
	}
}
