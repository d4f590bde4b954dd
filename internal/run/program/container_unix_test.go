//go:build unix

package program_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/run/program"
	"parley/llm"
	"parley/world"
)

// fakePodman is a script in place of podman: it runs what a container would run as a process, in the folder of the program, and notes its arguments.
const fakePodman = `#!/bin/sh
echo "$@" >> "$LOG"
if [ "$DOCKER_HOST" ]; then echo "the engine has variables of the task" >> "$LOG"; fi
case "$1" in
image) exit 1 ;;
build|create) echo made ;;
cp)
	if [ -e "$LOG.nofolder" ]; then echo 'Error: "/app/." could not be found on container made: no such file or directory' >&2; exit 125; fi
	echo seeded > "$3/seeded" ;;
ps) echo left1; echo left2 ;;
run)
	shift
	while [ $# -gt 0 ]; do
		case "$1" in
		--rm|-i) shift ;;
		--volume) case "$2" in *:/app) cd "${2%:/app}" ;; *:/logs) logs=${2%:/logs} ;; *:/tests) tests=${2%:/tests} ;; esac; shift 2 ;;
		--entrypoint) entry=$2; shift 2 ;;
		--env-file) while IFS= read -r line; do export "$line"; done < "$2"; shift 2 ;;
		--*) shift 2 ;;
		*) shift; break ;;
		esac
	done
	LOGS=$logs exec $(echo "$entry" | sed "s#^/tests#$tests#") "$@" ;;
esac
`

// TestContainers: what is run with podman, in which order, and that no value of a variable is among its arguments.
func TestContainers(t *testing.T) {
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(filepath.Join(bin, "podman"), []byte(strings.ReplaceAll(fakePodman, "$LOG", log)), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	r := newRunner(t, nil)
	w := harbor()
	w.Where = world.Where{Engine: "podman", Build: []world.File{file("Dockerfile", "FROM x\n")}, CPUs: 1.5, Memory: 512}
	w.Env = map[string]string{"TASK": "hidden value", "DOCKER_HOST": "of the task", "LD_PRELOAD": ""}
	w.Check = &world.Script{Files: []world.File{file("test.sh", "#!/bin/sh\ntest -f seeded && test \"$(cat answer)\" = right && echo 1 > \"$LOGS/verifier/reward.txt\"\n")}, Command: []string{"/tests/test.sh"}, Reward: true}
	done := works(t, r, script("echo right > answer; echo $TASK"), w)
	if done.Check == nil || done.Check.Rewards["reward"] != 1 || done.Stdout != "hidden value\n" {
		t.Fatalf("%+v %+v", done, done.Check)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for line := range strings.Lines(string(b)) {
		verbs = append(verbs, strings.Fields(line)[0])
	}
	if got := strings.Join(verbs, " "); got != "image build create cp rm run rm run rm" {
		t.Errorf("%s\n%s", got, b)
	}
	if s := string(b); strings.Contains(s, "hidden value") || strings.Contains(s, "variables of the task") || !strings.Contains(s, "--label parley.run=test") || !strings.Contains(s, "--cpus 1.5 --memory 512m") || !strings.Contains(s, "--network host") {
		t.Errorf("%s", b)
	}
	// An image need not have the folder. With network: gateway there is no network, and this program passes on what is for the gateway.
	q := question(script("true"), "x")
	q.Model, q.Work = "sim/x", &world.Work{Where: world.Where{Engine: "podman", Image: "x", Network: "gateway"}}
	if err := os.WriteFile(log+".nofolder", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _ = newRunner(t, &sessions{}).Ask(t.Context(), q) // the stand-in has no such relay
	if b, err = os.ReadFile(log); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if line := lines[len(lines)-2]; !strings.Contains(line, " --network none ") || !strings.Contains(line, "/s:/parley.sock ") || !strings.Contains(line, ":/parley-relay:ro ") ||
		!strings.Contains(line, " --entrypoint /parley-relay x relay-program /parley.sock 127.0.0.1:") || !strings.HasSuffix(line, " sh -c true") {
		t.Errorf("%s", line)
	}
	// What a killed process left is removed at the next start.
	temp := t.TempDir()
	root := filepath.Join(temp, "parley-mine")
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "podman"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := program.New(t.Context(), program.Config{Run: "mine", Temp: temp}); err != nil {
		t.Fatal(err)
	}
	b, _ = os.ReadFile(log)
	if !strings.HasSuffix(string(b), "ps --all --quiet --filter label=parley.run=mine\nrm --force left1 left2\n") {
		t.Errorf("%s", b)
	}
	// A program that cannot reach its model is refused.
	q = question(script("true"), "x")
	q.Model, q.Work = "sim/x", &world.Work{Where: world.Where{Engine: "podman", Network: "none"}}
	if _, err := newRunner(t, &sessions{}).Ask(t.Context(), q); llm.KindOf(err) != llm.KindBadRequest || !strings.Contains(err.Error(), "without a network") {
		t.Error(err)
	}
}
