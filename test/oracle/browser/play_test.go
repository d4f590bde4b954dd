package browser

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// shared is the folder of what all tests use: the program, and runs that are finished.
var shared string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "parley-browser-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// program builds parley once and returns its path.
func program(t *testing.T) string {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

var built = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(shared, "parley")
	build := exec.Command("go", "build", "-o", bin, "./cmd/parley")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})

// played returns a folder of the test's own with three runs that are finished: one, two, whose episodes fail, and map, a game of Diplomacy.
func played(t *testing.T) string {
	t.Helper()
	from, err := playOnce()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return folder
}

var playOnce = sync.OnceValues(func() (string, error) {
	bin, err := built()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(shared, "runs")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	for name, text := range map[string]string{
		"one": "kind: secrets\nseed: 1\nagents: {a: {model: sim/a}, b: {model: sim/b}}\nplan: {matrix: {agents: [a, b], swap: true, self: false, repeat: 10}}\n",
		"two": "kind: secrets\nseed: 1\nagents: {a: {model: sim/a}, b: {model: sim/b, max_tokens: 9}}\nplan: {matrix: {agents: [a, b], swap: true, self: false, repeat: 3}}\n",
		"map": "kind: diplomacy\nseed: 1\nagents: {a: {model: sim/a}}\nplan: {matrix: {agents: [a], self: true, repeat: 1}}\nparams: {max_year: 1902}\n",
	} {
		plan := filepath.Join(folder, name+".yaml")
		if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
			return "", err
		}
		if out, err := exec.Command(bin, "run", plan, "--out", filepath.Join(folder, name+".parley"), "--quiet").CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", name, err, out)
		}
	}
	return folder, nil
})

// serve starts a command that serves, and returns its address.
func serve(t *testing.T, bin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("it did not start")
	}
	_, address, _ := strings.Cut(lines.Text(), "listening on ")
	return address
}

// begin starts a command, which ends with the test.
func begin(t *testing.T, bin string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// waitForFile waits until a file exists.
func waitForFile(t *testing.T, file string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
	}
	t.Fatal(file + " does not exist")
}

// model is a server of models that answers as many questions as a test allows. So what a test sees of a run that is being played does not
// depend on how busy the machine is.
type model struct {
	*httptest.Server
	allowed chan struct{}
}

func newModel(t *testing.T, bin string) *model {
	t.Helper()
	sim, err := url.Parse(serve(t, bin, "sim", "--addr", "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	m := &model{allowed: make(chan struct{}, 1<<16)}
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(sim) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // who asked was killed
	}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-m.allowed:
			proxy.ServeHTTP(w, r)
		case <-r.Context().Done():
		case <-t.Context().Done():
		}
	}))
	t.Cleanup(m.Close)
	return m
}

// allow lets n more questions be answered.
func (m *model) allow(n int) {
	for range n {
		m.allowed <- struct{}{}
	}
}

// pace lets twenty questions be answered each second.
func (m *model) pace(ctx context.Context) {
	for every := time.NewTicker(50 * time.Millisecond); ; {
		select {
		case <-every.C:
			m.allow(1)
		case <-ctx.Done():
			return
		}
	}
}

// allowAll lets all questions be answered from now on.
func (m *model) allowAll() { close(m.allowed) }

// begin plays a plan of secrets with the model, and serves its folder. It returns the address of the run.
func (m *model) begin(t *testing.T, bin, plan string) (play *exec.Cmd, file, page string) {
	t.Helper()
	folder := t.TempDir()
	file = filepath.Join(folder, "run.parley")
	text := "kind: secrets\nseed: 1\nproviders: {lab: {dialect: openai, base_url: \"" + m.URL + "/v1\", limits: {rpm: 60000}}}\n" +
		"agents: {a: {model: lab/a, max_tokens: 200}, b: {model: lab/b, max_tokens: 200}}\n" + plan
	if err := os.WriteFile(filepath.Join(folder, "plan.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "prices.json"), []byte(`{"models": {"lab/*": {"input": 1, "output": 5}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	play = begin(t, bin, "run", filepath.Join(folder, "plan.yaml"), "--out", file, "--quiet")
	waitForFile(t, file)
	site, key, _ := strings.Cut(serve(t, bin, "view", folder), "/#key=")
	return play, file, site + "/run/run.parley#key=" + key
}
