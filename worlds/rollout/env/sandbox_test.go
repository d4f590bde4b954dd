package env

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

// fake is a runtime that writes down its arguments, one on a line, and runs the last one in a shell. It knows one image.
const fake = `#!/bin/sh
case "$1" in
image) test "$3" = tiny || { echo "no such image" >&2; exit 1; }; exit 0 ;;
rm) echo "removed $3" >> "$0.removed"; exit 0 ;;
esac
for last in "$@"; do printf '%s\n' "$last"; done > "$0.args"
exec sh -c "$last"
`

// open opens a sandbox with the fake runtime, alone on the PATH but for a shell's own programs.
func open(t *testing.T, change func(*SandboxConfig)) (*Sandbox, string, error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the runtime of the test is a shell script")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "podman")
	if err := os.WriteFile(program, []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	c := SandboxConfig{Image: "tiny", Command: []string{"sh", "-c"}, Memory: 64, Timeout: 2 * time.Second, Containers: 2}
	if change != nil {
		change(&c)
	}
	s, err := OpenSandbox(t.Context(), c)
	return s, program, err
}

func start(t *testing.T, s *Sandbox, params string) Env {
	t.Helper()
	e, err := s.Kind().New(json.RawMessage(params))
	if err != nil {
		t.Fatal(err)
	}
	e.Reset(1)
	return e
}

func sandboxAct(text string) rules.Action { return rules.Action{"agent": llm.Assistant(text)} }

// TestProgram checks what programs earn, what agents are told, and that expected outputs are shown to nobody.
func TestProgram(t *testing.T) {
	s, _, err := open(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := start(t, s, `{"problem":"Add one.","tries":4,"tests":[{"input":"1\n","output":"2\n"},{"input":"41","output":"42"}]}`)
	for i, c := range []struct {
		answer, info, heard string
		reward              float64
	}{
		{"I cannot.", `{"passed":0,"tests":2}`, "It ended with status", 0},
		{"```sh\necho 2\n```", `{"passed":1,"tests":2}`, "Test 2 of 2 failed. For the input\n41\nit printed\n2", 0},
		{"```\nread n; echo oops >&2; exit 3\n```", `{"passed":0,"tests":2}`, "It ended with status 3.\noops", 0},
		{"First ```\nexit 1\n``` and better ```\nread n || true; echo $((n+1))\n```", `{"passed":2,"tests":2}`, "", 1},
	} {
		r := e.Step(sandboxAct(c.answer))
		if r.Reward[rules.DefaultAgent] != c.reward || string(r.Info) != c.info || r.Terminated != (i == 3) {
			t.Errorf("%s: %+v", c.answer, r)
		}
		var last string
		if q, asked := e.Prompt()[rules.DefaultAgent]; asked {
			last = q.Messages[len(q.Messages)-1].Text()
		}
		if !strings.Contains(last, c.heard) || (last == "") != (c.heard == "") || strings.Contains(last, "42") {
			t.Errorf("%s: the agent hears %q", c.answer, last)
		}
	}
}

// TestContainer checks how the runtime is called: without a network, without rights, within limits, with the program as the
// last argument and nothing of a test.
func TestContainer(t *testing.T) {
	s, program, err := open(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	start(t, s, `{"dataset":{"question":"?","tests":[{"input":"secret in","output":"secret out"}],"more":1}}`).Step(sandboxAct("```\ncat #--privileged\n```"))
	raw, err := os.ReadFile(program + ".args")
	if err != nil {
		t.Fatal(err)
	}
	args := " " + strings.Join(strings.Fields(string(raw)), " ") + " "
	for _, want := range []string{
		" run --rm --interactive --name parley-", " --pull never ", " --network none ", " --read-only ", " --tmpfs /tmp:rw,noexec,nosuid,nodev,size=16m ", " --user 65534:65534 ",
		" --cap-drop ALL ", " --security-opt no-new-privileges ", " --memory 64m --memory-swap 64m ", " --cpus 1 ", " --pids-limit 64 ", " --ulimit cpu=2 ", " tiny sh -c cat #--privileged ",
	} {
		if !strings.Contains(args, want) {
			t.Errorf("no %q in %s", want, args)
		}
	}
	if strings.Contains(args, "secret") {
		t.Error("a test is in the arguments: ", args)
	}
}

// TestHostile checks that programs that print or run without end are ended, and their containers removed.
func TestHostile(t *testing.T) {
	s, program, err := open(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.grace = 0
	for answer, want := range map[string]string{
		"```\nexec sleep 1000\n```":       "It did not end within 100ms.",
		"```\nexec cat /dev/zero\n```":    "It printed more than 65536 bytes.",
		strings.Repeat("x", maxProgram+1): "The program has more than 100000 bytes.",
		"```\n\x00\n```":                  "The program has a zero byte.",
		"```\n```":                        "There is no program in your answer.",
		"":                                "There is no program in your answer.",
		"```\nprintf '\\377\\033[31m' >&2; exit 1\n```": "It ended with status 1.\n\uFFFD",
	} {
		s.Timeout = time.Minute
		if strings.Contains(want, "did not end") {
			s.Timeout = 100 * time.Millisecond
		}
		e := start(t, s, `{"problem":"?","tries":2,"tests":[{"output":"1"}]}`)
		r := e.Step(sandboxAct(answer))
		q := e.Prompt()[rules.DefaultAgent].Messages
		if heard := q[len(q)-1].Text(); r.Reward[rules.DefaultAgent] != 0 || !strings.Contains(heard, want) || len(heard) > 3*maxShown {
			t.Errorf("%.40q: %.300q, want %q", answer, heard, want)
		}
	}
	if raw, err := os.ReadFile(program + ".removed"); err != nil || strings.Count(string(raw), "removed parley-") != 2 {
		t.Errorf("%s %v", raw, err)
	}
}

// TestRefusals checks what is said without a runtime, without an image, and about wrong params, and that a container that
// does not start fails the environment.
func TestRefusals(t *testing.T) {
	if _, _, err := open(t, func(c *SandboxConfig) { c.Image = "huge" }); err == nil || !strings.Contains(err.Error(), `has no image "huge"`) || !strings.Contains(err.Error(), "pull huge") {
		t.Error(err)
	}
	s, _, err := open(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for params, want := range map[string]string{
		`{}`:                                     "params.problem",
		`{"problem":"?"}`:                        "params.tests: 0 tests: want 1 to 100",
		`{"problem":"?","test":[]}`:              "test",
		`{"problem":"?","tests":[{}],"tries":0}`: "params.tries",
	} {
		if _, err := s.Kind().New(json.RawMessage(params)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", params, err)
		}
	}
	e := start(t, s, `{"problem":"?","tests":[{"output":"1"}]}`)
	if r := e.Step(sandboxAct("```\nexit 125\n```")); e.(Failing).Failure() != nil || r.Reward[rules.DefaultAgent] != 0 { // the program's own status
		t.Errorf("%v, %v", r, e.(Failing).Failure())
	}
	s.runtime = filepath.Join(t.TempDir(), "podman")
	if err := os.WriteFile(s.runtime, []byte("#!/bin/sh\necho no space left >&2; exit 125\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	e = start(t, s, `{"problem":"?","tests":[{"output":"1"}]}`)
	e.Step(sandboxAct("```\nexit 0\n```"))
	if err := e.(Failing).Failure(); err == nil || !strings.Contains(err.Error(), "did not run sh in tiny: no space left") {
		t.Error(err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := OpenSandbox(t.Context(), s.SandboxConfig); err == nil || !strings.Contains(err.Error(), "neither podman nor docker is on the PATH: install one") {
		t.Error(err)
	}
}
