//go:build unix

package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// programPlan is a plan of the kind task in a folder of its own.
type programPlan struct {
	dir, plan string
	trust     []string
}

// taskPlan writes files and a plan, and allows its tasks.
func taskPlan(t *testing.T, plan string, files map[string]string) programPlan {
	t.Helper()
	p := programPlan{dir: t.TempDir()}
	p.plan = filepath.Join(p.dir, "plan.yaml")
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(strings.ReplaceAll(text, "DIR", p.dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(p.plan, []byte(strings.ReplaceAll(plan, "DIR", p.dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.allow("code=" + filepath.Join(p.dir, "tasks.jsonl"))
	return p
}

func (p *programPlan) allow(grants ...string) {
	for _, g := range grants {
		p.trust = append(p.trust, "--trust", strings.ReplaceAll(g, "DIR", p.dir))
	}
}

// run runs a verb on the plan.
func (p *programPlan) run(t *testing.T, verb string, args ...string) outcome {
	t.Helper()
	return parley(t, State{}, append(append([]string{verb, p.plan}, args...), p.trust...)...)
}

// encoded returns the forms of a secret that must not be anywhere: itself, hexadecimal, and base64 wherever it begins.
func encoded(secret string) (all []string) {
	all = append(all, secret, hex.EncodeToString([]byte(secret)))
	for lead := range 3 {
		whole := base64.StdEncoding.EncodeToString(append(make([]byte, lead), secret...))
		all = append(all, whole[(lead*8+5)/6:(lead+len(secret))*8/6])
	}
	return all
}

// TestProgramSecrets: a program that shows its whole environment wherever it can, as it is and encoded, shows neither the address nor the key of its
// session: not in its output, its files and their names, its check, what it asks its model, the run file and what is made of it.
func TestProgramSecrets(t *testing.T) {
	t.Parallel()
	asked := 0
	var sent bytes.Buffer
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&sent, r.Body)
		asked++
		said := "Done."
		if asked == 1 {
			said = "```sh\nenv\n```"
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, said)
	}))
	defer model.Close()
	p := taskPlan(t, `kind: task
providers: {lab: {dialect: openai, base_url: "`+model.URL+`/v1"}}
agents:
  other: {program: {command: [sh, DIR/leak.sh]}, model: lab/m}
  talks: {program: shell, model: lab/m}
plan: {matrix: {seats: [solver], agents: [other, talks]}}
params: {tasks: tasks.jsonl}
`, map[string]string{
		"tasks.jsonl": `{"id": "leak", "prompt": "Leak.", "check": "cat * .[a-z]*; ls; cat * >&2; echo 1"}` + "\n",
		"leak.sh": `echo "$PARLEY_URL $PARLEY_KEY" >> DIR/secrets
leak() {
	env; env | fold -w 23 | sed 's/^/    /'; env | base64; env | base64 | fold -w 13; printf %s "$PARLEY_KEY" | base64
	env | od -An -v -tx1 | tr -d ' \n' | fold -w 17
	printf '\n"%s"\n' "$PARLEY_URL" | sed 's#/#\\/#g'
}
leak; leak >&2; leak > all.txt; leak > "$PARLEY_KEY.txt"
`,
	})
	p.allow("program=sh DIR/leak.sh", "program=shell")
	shown := p.run(t, "run").want(t, exit.OK)
	file := filepath.Join(p.dir, "plan.parley")
	everything := map[string]string{"terminal": shown.stdout + shown.stderr, "model": sent.String()}
	for i := range 2 {
		for _, how := range []string{"--story", "--json"} {
			everything[fmt.Sprint("show ", i, how)] = parley(t, State{}, "show", file, "--episode", fmt.Sprint(i), how).want(t, exit.OK).stdout
		}
	}
	for name, args := range map[string][]string{
		"page": {"report", file, "--html", filepath.Join(p.dir, "page.html")}, "calls": {"export", file, "--out", filepath.Join(p.dir, "calls.jsonl")},
		"messages": {"export", file, "--table", "messages", "--out", filepath.Join(p.dir, "messages.jsonl")},
	} {
		parley(t, State{}, args...).want(t, exit.OK)
		b, err := os.ReadFile(args[len(args)-1])
		if err != nil {
			t.Fatal(err)
		}
		everything[name] = string(b)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	everything["run file"] = string(raw)
	secrets, err := os.ReadFile(filepath.Join(p.dir, "secrets"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(secrets))); n != 2 {
		t.Fatalf("%d secrets: %s", n, secrets)
	}
	if asked != 2 || !strings.Contains(everything["show 0--json"], "[key]") || !strings.Contains(everything["model"], "[key]") {
		t.Errorf("asked %d times, or nothing was attacked", asked)
	}
	lines := regexp.MustCompile(`(\\+[nr]|[\r\n]) *`)
	for field := range strings.FieldsSeq(string(secrets)) {
		secret := field[strings.LastIndexAny(field, "/-")+1:]
		for where, text := range everything {
			joined := lines.ReplaceAllString(text, "")
			for _, form := range encoded(secret) {
				if strings.Contains(text, form) || strings.Contains(joined, form) {
					t.Errorf("%s has %s of %s", where, form, field)
				}
			}
		}
	}
}

// TestProgramMissing: check says which program this machine does not have, what must be allowed and what it cannot know; run refuses the plan before
// anything is asked.
func TestProgramMissing(t *testing.T) {
	t.Parallel()
	p := taskPlan(t, `kind: task
agents:
  gone: {program: {command: [no-such-agent]}, model: sim/large}
  tool: {program: {preset: claude-code, command: [no-such-codex]}, model: openai/gpt-5-mini}
  away: {program: {command: [DIR/not-executable]}}
  here: {program: shell, model: sim/large}
plan: {matrix: {seats: [solver], agents: [gone, tool, away, here]}}
params: {tasks: tasks.jsonl}
budget: 5
`, map[string]string{"tasks.jsonl": `{"id": "x", "prompt": "X.", "check": "true"}` + "\n", "not-executable": "#!/bin/sh\n"})
	p.allow("program=no-such-agent")
	checked := p.run(t, "check").want(t, exit.OK)
	for _, want := range []string{
		"gone: no-such-agent is not in PATH. Install it", "tool: no-such-codex is not in PATH. Install it (npm install -g @anthropic-ai/claude-code)", p.dir + "/not-executable cannot be started",
		"time      not known", "OPENAI_API_KEY", "--trust program=no-such-agent (given)", "--trust program=shell (run asks you first", "--trust code=" + p.dir,
		"agents.gone, agents.here, agents.tool", "budget    $5.00 may not cover it", "next:  install what is missing",
		"--trust program=shell --trust program=no-such-codex\n",
	} {
		if !strings.Contains(checked.stdout, want) {
			t.Errorf("check does not say %q:\n%s", want, checked.stdout)
		}
	}
	p.run(t, "run").want(t, exit.Misuse).wantErr(t, "would start the program shell", "If you trust all of these: parley run ", "--trust program=no-such-agent --trust program="+p.dir+"/not-executable --trust program=shell --trust program=no-such-codex")
	for _, not := range []string{"negligible", "COST"} {
		if strings.Contains(checked.stdout, not) {
			t.Errorf("check says %q:\n%s", not, checked.stdout)
		}
	}
	p.allow("program=no-such-codex", "program=DIR/not-executable", "program=shell")
	p.run(t, "run").want(t, exit.Misuse).wantErr(t, "plan.yaml:3:", "agents.gone.program: no-such-agent is not in PATH", "agents.tool.program", "agents.away.program")
	if _, err := os.Stat(filepath.Join(p.dir, "plan.parley")); err == nil {
		t.Error("a run file is there")
	}
	for set, want := range map[string]string{
		"{preset: codex, command: [tool]}":                                    "agents.gone.program.command: has no {prompt}, and with input: argument",
		"{command: [tool], input: argument}":                                  "agents.gone.program.command: has no {prompt}",
		`{command: [tool], ignore: ["re:b", "re:a("]}`:                        `agents.gone.program.ignore: rule "re:a(": error parsing regexp: missing closing )`,
		`{command: [tool], ignore: [spaces]}`:                                 `agents.gone.program.ignore: unknown rule "spaces"`,
		"{preset: codex, command: [no-such-codex], files: {ask: '{prompt}'}}": "",
	} {
		got := p.run(t, "check", "--set", "agents.gone.program="+set)
		if want == "" {
			got.want(t, exit.OK)
			continue
		}
		got.want(t, exit.Misuse).wantErr(t, want)
	}
	p.run(t, "check", "--set", "agents.here={program: oracle}").want(t, exit.Misuse).wantErr(t, "agents.here.program", "task x has none")
}

// TestProgramCorrected: a program that turns out not to start stops the run. With its command corrected in the plan, --failed goes on.
func TestProgramCorrected(t *testing.T) {
	t.Parallel()
	files := map[string]string{"tasks.jsonl": `{"id": "x", "prompt": "X.", "check": "true"}` + "\n", "bad": "#!/no/such/interpreter\n", "good": "#!/bin/sh\necho hi\n"}
	p := taskPlan(t, `kind: task
agents:
  a: {program: {command: [DIR/bad]}}
  b: {program: {command: [DIR/good]}}
plan: {matrix: {seats: [solver], agents: [b, a], repeat: 2}}
params: {tasks: tasks.jsonl, at_once: 1}
`, files)
	for _, name := range []string{"bad", "good"} {
		if err := os.Chmod(filepath.Join(p.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.allow("program=DIR/bad", "program=DIR/good")
	got := p.run(t, "run").want(t, exit.Failed)
	if !strings.Contains(got.stdout, "cannot be started") || !strings.Contains(got.stdout, "make the program startable") {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
	_, printed, _ := strings.Cut(got.stdout, "to resume it:\n    parley ")
	printed, _, _ = strings.Cut(printed, "\n")
	if again := parley(t, State{}, strings.Fields(printed)...).want(t, exit.Failed); !strings.Contains(again.stdout, "cannot be started") {
		t.Errorf("%s: %s%s", printed, again.stdout, again.stderr)
	}
	corrected := []string{"--set", "agents.a.program.command=[" + p.dir + "/good]"}
	p.run(t, "run", corrected...).want(t, exit.Misuse).wantErr(t, "agents.a.program.command", "--failed")
	p.run(t, "run", append(corrected, "--failed")...).want(t, exit.OK)
	// What was played cannot change.
	p.run(t, "run", "--failed").want(t, exit.Misuse).wantErr(t, "agents.a.program.command")
	moved := filepath.Join(t.TempDir(), "good")
	if err := os.Rename(filepath.Join(p.dir, "good"), moved); err != nil {
		t.Fatal(err)
	}
	both := "[" + moved + "]"
	p.allow("program=" + moved)
	p.run(t, "run", "--set", "agents.a.program.command="+both, "--set", "agents.b.program.command="+both, "--set", "plan.matrix.repeat=3").want(t, exit.OK)
}

// TestProgramLimit: a program that reaches its limit of calls sees why, and so do readers.
func TestProgramLimit(t *testing.T) {
	t.Parallel()
	p := taskPlan(t, `kind: task
agents: {a: {program: shell, model: lab/m}}
providers: {lab: {dialect: openai, base_url: "URL"}}
plan: {matrix: {seats: [solver], agents: [a]}}
params: {tasks: tasks.jsonl, calls: 3}
`, map[string]string{"tasks.jsonl": `{"id": "x", "prompt": "X.", "check": "true"}` + "\n"})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, "```sh\necho on\n```")
	}))
	defer model.Close()
	p.allow("program=shell")
	p.run(t, "run", "--set", "providers.lab.base_url="+model.URL+"/v1").want(t, exit.OK)
	file := filepath.Join(p.dir, "plan.parley")
	story := parley(t, State{}, "show", file, "--episode", "0", "--story").want(t, exit.OK).stdout
	for _, want := range []string{"after the limit of calls", "status 402", "the limit of 3 calls for this task is reached", "3 calls"} {
		if !strings.Contains(story, want) {
			t.Errorf("no %q in:\n%s", want, story)
		}
	}
}
