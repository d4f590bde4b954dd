package cli

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/internal/ask/trust"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
)

// elsewhere is a server at an address that does not count as this machine, though it is: it stands for an
// external server. Its key is the variable PATH, which is always set.
type elsewhere struct {
	url string // http://0.0.0.0:PORT

	mu   sync.Mutex
	keys []string
}

func strangers(t *testing.T) *elsewhere {
	t.Helper()
	e := &elsewhere{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.keys = append(e.keys, r.Header.Get("Authorization"))
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusUnauthorized)
	}))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	e.url = "http://0.0.0.0:" + port
	conn, err := net.Dial("tcp", "0.0.0.0:"+port)
	if err != nil {
		t.Skip("this system has no other address of its own: ", err)
	}
	_ = conn.Close()
	return e
}

// got returns the number of requests and whether each had the value of PATH.
func (e *elsewhere) got() (requests int, all bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all = true
	for _, k := range e.keys {
		all = all && k == "Bearer "+os.Getenv("PATH")
	}
	return len(e.keys), all
}

func (e *elsewhere) plan(t *testing.T) string {
	t.Helper()
	return write(t, "plan.yaml", fmt.Sprintf(`kind: secrets
agents: {a: {model: lab/any, max_tokens: 50}}
params: {messages: 1}
providers:
  lab: {dialect: openai, base_url: %q, key_env: PATH}
`, e.url+"/v1"))
}

// scripted returns a state without a terminal.
func scripted(t *testing.T) State { return State{Env: os.LookupEnv, ConfigDir: t.TempDir()} }

func (e *elsewhere) terminal(t *testing.T, answer string) State {
	s := scripted(t)
	s.Stdin, s.Terminal = strings.NewReader(answer), func(any) int { return 80 }
	return s
}

// TestStrangersPlan checks that a variable goes to an external server only if the user allows it, for run,
// resume, fork, trainer and gateway.
func TestStrangersPlan(t *testing.T) {
	t.Parallel()
	sequential(t)
	e := strangers(t)
	plan, s := e.plan(t), scripted(t)
	flag := "PATH=" + e.url
	refused := parley(t, s, "run", plan).want(t, exit.Misuse)
	refused.wantErr(t, plan+":5:", "providers.lab.key_env", "the environment variable PATH", e.url, "unencrypted", "nothing was sent",
		"parley run "+plan+" --trust "+flag)
	if n, _ := e.got(); n > 0 {
		t.Fatalf("%d requests were sent", n)
	}
	if strings.Contains(refused.stderr, os.Getenv("PATH")) {
		t.Error("the value is shown")
	}
	parley(t, s, "run", plan, "--trust", flag).wantErr(t, "over plain HTTP")
	n, all := e.got()
	if n == 0 || !all {
		t.Fatalf("%d requests, with the key: %v", n, all)
	}
	file := strings.TrimSuffix(plan, ".yaml") + ".parley"
	for _, args := range [][]string{{"run", file}, {"run", plan}, {"fork", file, "--episode", "0", "--turn", "0"}} {
		parley(t, s, args...).want(t, exit.Misuse).wantErr(t, "providers.lab.key_env", "parley "+strings.Join(args, " ")+" --trust "+flag)
	}
	parley(t, s, "run", file).wantErr(t, file+": recorded plan: providers.lab.key_env")
	if now, _ := e.got(); now != n {
		t.Errorf("%d more requests were sent", now-n)
	}
	parley(t, s, "run", file, "--trust", flag)
	if now, all := e.got(); now == n || !all {
		t.Errorf("%d more requests, with the key: %v", now-n, all)
	}
}

// TestStrangersGateway checks the same for a plan of upstreams. Clients' own keys count as keys too.
func TestStrangersGateway(t *testing.T) {
	t.Parallel()
	e := strangers(t)
	plan, s := e.plan(t), scripted(t)
	out := filepath.Join(t.TempDir(), "out.parley")
	parley(t, s, "gateway", plan, "--out", out).want(t, exit.Misuse).wantErr(t, "providers.lab.key_env", "--trust PATH="+e.url)
	keyless := write(t, "keyless.yaml", strings.ReplaceAll(read(t, plan), ", key_env: PATH", ""))
	parley(t, s, "gateway", keyless, "--out", out).want(t, exit.Misuse).wantErr(t, "providers.lab.base_url", "clients", "--trust client-keys="+e.url)
	parley(t, s, "gateway", keyless, "--out", out, "--key-env", "PATH").want(t, exit.Misuse).wantErr(t, "--trust PATH="+e.url)
	if _, err := os.Stat(out); err == nil {
		t.Error("a run file was begun")
	}
	env := map[string]string{"PATH": os.Getenv("PATH"), "CLIENTS": "c"}
	for _, args := range [][]string{
		{plan, "--trust", "PATH=" + e.url},
		{keyless, "--trust", "client-keys=" + e.url},
		{keyless, "--client-key-env", "CLIENTS"},
		{"--upstream", "lab=" + e.url + "/v1", "--key-env", "PATH"},
		{"--upstream", "lab=" + e.url + "/v1"},
	} {
		_, stop := serves(t, env, "gateway", append([]string{"--out", filepath.Join(t.TempDir(), "out.parley")}, args...)...)
		stop().want(t, exit.OK)
	}
}

// TestStrangersTrainer checks that trainer asks before it serves.
func TestStrangersTrainer(t *testing.T) {
	t.Parallel()
	e := strangers(t)
	plan := write(t, "plan.yaml", strings.ReplaceAll(rolloutPlan, "sim/small", "lab/any")+
		fmt.Sprintf("providers:\n  lab: {dialect: openai, base_url: %q, key_env: PATH}\n", e.url+"/v1"))
	parley(t, scripted(t), "trainer", plan).want(t, exit.Misuse).wantErr(t, "providers.lab.key_env", "--trust PATH="+e.url)
	_, stop := serves(t, map[string]string{"PATH": os.Getenv("PATH")}, "trainer", plan, "--trust", "PATH="+e.url)
	stop().want(t, exit.OK)
}

// TestTrustIsAsked checks that a terminal asks once, and that the answer is remembered for this variable and
// host.
func TestTrustIsAsked(t *testing.T) {
	t.Parallel()
	sequential(t)
	e := strangers(t)
	plan := e.plan(t)
	question := terminal.Broken("The plan "+plan+" sends the environment variable PATH to "+e.url+" over plain HTTP, where others on the network can read it. Allow? [y/N] ", 80)
	if strings.Count(question, "\n") < 2 {
		t.Fatalf("the question is not broken between words: %s", question)
	}
	for _, no := range []string{"n\n", "", "\n", "yeah\n"} {
		s := e.terminal(t, no)
		parley(t, s, "run", plan).want(t, exit.Misuse).wantErr(t, question, "--trust")
		if n, _ := e.got(); n > 0 {
			t.Fatalf("%q: %d requests were sent", no, n)
		}
	}
	s := e.terminal(t, "Y\n")
	parley(t, s, "run", plan).wantErr(t, question)
	n, all := e.got()
	if n == 0 || !all {
		t.Fatalf("%d requests, with the key: %v", n, all)
	}
	s.Stdin, s.Terminal = nil, nil
	if got := parley(t, s, "run", plan, "--out", filepath.Join(t.TempDir(), "other.parley")); strings.Contains(got.stderr, "--trust") {
		t.Errorf("it was not remembered: %s", got.stderr)
	}
	path := filepath.Join(s.ConfigDir, "parley", trustedName)
	if known, err := trust.NewStore(path).Load(); err != nil || len(known) != 1 || known[0].Flag() != "PATH="+e.url {
		t.Errorf("%v, %v", known, err)
	}
}

// TestTrustQuestionEnds checks that a signal ends the question.
func TestTrustQuestionEnds(t *testing.T) {
	t.Parallel()
	e := strangers(t)
	s := e.terminal(t, "")
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	r, w := net.Pipe() // no input arrives
	t.Cleanup(func() { _ = w.Close() })
	s.Stdin, s.Signals = r, signals
	parley(t, s, "run", e.plan(t)).want(t, exit.Interrupted)
	if n, _ := e.got(); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestPresetKeyElsewhere checks that the key of a preset goes only to the preset's hosts, whatever a plan says.
func TestPresetKeyElsewhere(t *testing.T) {
	t.Parallel()
	sequential(t)
	s := scripted(t)
	s.Env = func(name string) (string, bool) { return "secret", strings.HasSuffix(name, "_KEY") }
	const agents = "kind: secrets\nagents: {a: {model: openai/gpt-5-mini, max_tokens: 50}}\nproviders:\n  openai: "
	for entry, says := range map[string]string{
		`{base_url: "https://evil.example/v1"}`:                                              "--trust OPENAI_API_KEY=https://evil.example",
		`{base_url: "http://api.openai.com/v1"}`:                                             "--trust OPENAI_API_KEY=http://api.openai.com",
		`{base_urls: ["https://api.openai.com/v1", "https://evil.example/v1"]}`:              "--trust OPENAI_API_KEY=https://evil.example",
		`{key_env: LAB_KEY}`:                                                                 "--trust LAB_KEY=https://api.openai.com",
		`{dialect: anthropic, key_env: ANTHROPIC_API_KEY, base_url: "https://evil.example"}`: "--trust ANTHROPIC_API_KEY=https://evil.example",
	} {
		plan := write(t, "plan.yaml", agents+entry+"\n")
		parley(t, s, "run", plan).want(t, exit.Misuse).wantErr(t, says)
		parley(t, s, "run", write(t, "plain.yaml", strings.ReplaceAll(agents, "\nproviders:\n  openai: ", "\n")), "--set", "providers.openai="+entry).want(t, exit.Misuse).wantErr(t, "--set providers.openai", "--trust")
	}
	// An unset variable sends nothing: the error is that it is not set.
	parley(t, scripted(t), "run", write(t, "unset.yaml", agents+"{base_url: \"https://evil.example/v1\", key_env: PARLEY_TEST_UNSET_KEY}\n")).
		want(t, exit.Misuse).wantErr(t, "PARLEY_TEST_UNSET_KEY is not set")
}

// TestCheckShowsKeys checks that check says which variable goes to which host, and why it may.
func TestCheckShowsKeys(t *testing.T) {
	t.Parallel()
	s := scripted(t)
	plan := write(t, "plan.yaml", `kind: secrets
agents: {a: {model: openai/gpt-5-mini, fallbacks: [lab/any, far/any]}}
providers:
  lab: {dialect: openai, base_url: "http://127.0.0.1:8080/v1", key_env: LAB_KEY}
  far: {dialect: openai, base_urls: ["https://a.example/v1", "http://b.example:8000/v1"], key_env: FAR_KEY}
`)
	got := parley(t, s, "check", plan, "--trust", "FAR_KEY=https://a.example").want(t, exit.OK)
	for _, want := range []string{
		"OPENAI_API_KEY, which openai needs, is not set; it goes to https://api.openai.com (preset)",
		"LAB_KEY, which lab needs, is not set; it goes to http://127.0.0.1:8080 (loopback)",
		"it goes to https://a.example (given), http://b.example:8000 (run asks you first, unless --trust FAR_KEY=http://b.example:8000, unencrypted)",
		"parley run " + plan + " --trust FAR_KEY=https://a.example",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("it does not say %q:\n%s", want, got.stdout)
		}
	}
	e := checked(t, s, plan)
	if far := e.Keys[0]; far.Env != "FAR_KEY" || len(far.Sent) != 2 || far.Sent[1].Allowed != "" || !far.Sent[1].Plain || e.Keys[1].Sent[0].Allowed != trust.OnLoopback {
		t.Errorf("%+v", e.Keys)
	}
}

func TestTrustFlag(t *testing.T) {
	t.Parallel()
	got := parley(t, scripted(t), "run", write(t, "plan.yaml", duelPlan), "--trust", "sk-hunter2").want(t, exit.Misuse).wantErr(t, "--trust", "VARIABLE=HOST")
	if strings.Contains(got.stderr, "hunter2") {
		t.Error(got.stderr)
	}
}

// TestRedirectedKey checks that a redirect does not pass on a key.
func TestRedirectedKey(t *testing.T) {
	t.Parallel()
	e := strangers(t)
	asked := make(chan string, 100)
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		http.Redirect(w, r, e.url+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(func() { here.CloseClientConnections(); here.Close() })
	plan := write(t, "plan.yaml", strings.ReplaceAll(read(t, e.plan(t)), e.url, here.URL))
	parley(t, scripted(t), "run", plan).want(t, exit.Failed)
	if n, _ := e.got(); n > 0 || <-asked != "Bearer "+os.Getenv("PATH") {
		t.Errorf("%d requests followed the redirect", n)
	}
}

// TestKeyCommandNeedsTrust: a program that a plan names runs only if the user allows it, even if its output stays on
// this machine.
func TestKeyCommandNeedsTrust(t *testing.T) {
	t.Parallel()
	sequential(t)
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skip("there is no cat here: ", err)
	}
	var keys sync.Map
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys.Store(r.Header.Get("Authorization"), true)
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusUnauthorized)
	}))
	t.Cleanup(srv.Close)
	secret := write(t, "secret", "hunter2hunter2\n")
	plan := write(t, "plan.yaml", fmt.Sprintf("kind: secrets\nagents: {a: {model: lab/any}}\nproviders:\n  lab: {dialect: openai, base_url: %q, key_command: [%q, %q]}\n", srv.URL+"/v1", cat, secret))
	flag := "command=" + cat + " " + secret + "=" + srv.URL

	s := scripted(t)
	parley(t, s, "run", plan).want(t, exit.Misuse).wantErr(t, "plan.yaml:4", "providers.lab.key_command", "would run the program "+cat, "--trust '"+flag+"'")
	if _, sent := keys.Load("Bearer hunter2hunter2"); sent {
		t.Fatal("the program was run")
	}
	got := parley(t, s, "check", plan).want(t, exit.OK)
	if want := cat + " " + secret + " prints the one of lab; it goes to " + srv.URL + " (run asks you first, unless --trust '" + flag + "')"; !strings.Contains(got.stdout, want) {
		t.Errorf("it does not say %q:\n%s", want, got.stdout)
	}
	out := parley(t, s, "run", plan, "--trust", flag, "--out", filepath.Join(t.TempDir(), "x.parley"))
	if _, sent := keys.Load("Bearer hunter2hunter2"); !sent || strings.Contains(out.stderr+out.stdout, "hunter2") {
		t.Errorf("the key was not sent, or is shown: %s", out.stderr)
	}
	parley(t, s, "ask", "--model", "lab/any", "--base-url", srv.URL+"/v1", "--key-command", cat+" "+secret, "--retries", "0", "Hello").wantErr(t, "401")
	parley(t, s, "ask", "--model", "lab/any", "--base-url", srv.URL+"/v1", "--key-command", "cat x", "--key-env", "PATH", "Hello").want(t, exit.Misuse).wantErr(t, "both set")
}

// TestAllowFiles checks that check refuses a file outside the plan's folder until it is allowed, and then names
// it. A run file that is a link to another folder is not written. A recorded cache in another folder is not
// opened on resume.
func TestAllowFiles(t *testing.T) {
	t.Parallel()
	sequential(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own, other := filepath.Join(root, "own"), filepath.Join(root, "other")
	for _, dir := range []string{own, other} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	plan := filepath.Join(own, "plan.yaml")
	text := "kind: secrets\nepisodes: 2\nagents: {a: sim/small}\nlineup: {first: a, second: a}\ncache: ../other/cache\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(other, "cache")
	for _, verb := range []string{"check", "run"} {
		got := parley(t, State{}, append(strings.Fields(verb), plan)...)
		if got.code != exit.Misuse || !strings.Contains(got.stderr, "plan.yaml:5:8: cache: ") || !strings.Contains(got.stderr, cache) {
			t.Errorf("%s: %d %s", verb, got.code, got.stderr)
		}
	}
	if got := parley(t, State{}, "check", plan, "--allow-files", other); got.code != exit.OK || !strings.Contains(got.stdout, cache+" is outside") {
		t.Errorf("%d %s%s", got.code, got.stdout, got.stderr)
	}
	file := filepath.Join(own, "plan.parley")
	if got := parley(t, State{}, "run", plan, "--allow-files", other, "--quiet"); got.code != exit.OK {
		t.Fatalf("%d %s", got.code, got.stderr)
	}
	for _, args := range [][]string{{"run", file, "--set", "limits.concurrency=3"}, {"fork", file, "--episode", "0", "--turn", "0"}} {
		if got := parley(t, State{}, args...); got.code != exit.Misuse || !strings.Contains(got.stderr, "--allow-files "+other) {
			t.Errorf("%v: %d %s", args, got.code, got.stderr)
		}
		if got := parley(t, State{}, append(args, "--allow-files", other)...); got.code != exit.OK {
			t.Errorf("%v: allowed: %d %s", args, got.code, got.stderr)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(other, "new"), file); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if got := parley(t, State{}, "run", plan, "--set", "cache=off"); got.code != exit.Misuse || !strings.Contains(got.stderr, "outside the folder") {
		t.Errorf("%d %s", got.code, got.stderr)
	}
}
