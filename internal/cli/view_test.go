package cli

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/run/control"
	"parley/internal/run/results"
)

// TestView plays a run, and reads its pages with the key of the address that view prints.
func TestView(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "run.parley")
	parley(t, State{}, "run", write(t, "plan.yaml", "kind: secrets\nepisodes: 3\nagents: {a: {model: sim/small}}\nlineup: {first: a, second: a}\n"), "--out", file, "--quiet").want(t, exit.OK)
	url, stop := serves(t, nil, "view", folder)
	at, key, ok := strings.Cut(url, "/#key=")
	if !ok {
		t.Fatalf("the address has no key: %s", url)
	}
	for path, want := range map[string]string{
		"/": "run.parley", "/run/run.parley": "3 of 3", "/run/run.parley/episodes": "first=a", "/run/run.parley/episodes/2": "secret",
		"/run/run.parley/episodes/2/0:0": "Asked", "/run/run.parley/search?q=the": "Episode", "/run/run.parley/report": "Parley report",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		if status, body := fetchAll(t, req); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, without %q:\n%s", path, status, want, body)
		}
	}
	stop().want(t, exit.OK)
	if _, err := os.Stat(file + results.IndexSuffix); err != nil {
		t.Error("the index is not kept:", err)
	}
}

// TestViewKeys checks that a key of the environment is not printed.
func TestViewKeys(t *testing.T) {
	t.Parallel()
	url, stop := serves(t, map[string]string{"VIEW_KEY": "k1"}, "view", "--key-env", "VIEW_KEY", t.TempDir())
	if strings.Contains(url, "k1") || strings.Contains(url, "#") {
		t.Errorf("the key is printed: %s", url)
	}
	stop().want(t, exit.OK)
	parley(t, State{}, "view", "--key-env", "VIEW_KEY").want(t, exit.Misuse).wantErr(t, "--key-env")
}

// TestViewRefuses checks that paths that cannot be shown are refused, and that nothing is served then.
func TestViewRefuses(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none.parley"): "there is no such file or folder",
		write(t, "plan.yaml", "kind: secrets\n"):  "is a plan, not a run file: parley run",
		write(t, "text.parley", "text"):           "is not a run file",
		write(t, "empty.parley", ""):              "it is empty",
	} {
		got := parley(t, State{}, "view", path).want(t, exit.Misuse).wantErr(t, filepath.Base(path), want)
		if got.stdout != "" {
			t.Errorf("%s: %s", path, got.stdout)
		}
	}
}

// TestViewFlags checks that flags without an effect are refused.
func TestViewFlags(t *testing.T) {
	t.Parallel()
	site := filepath.Join(t.TempDir(), "site")
	for want, flags := range map[string][]string{
		"only --export writes pages into a folder":      {"--export-episodes", "3"},
		"--export-episodes -1: want 0 or more episodes": {"--export", site, "--export-episodes=-1"},
		"leave out --open, and open " + site:            {"--export", site, "--open"},
		"--addr: with --export nothing is served, so this flag has no effect; leave it out, or leave out --export":       {"--export", site, "--addr", "127.0.0.1:0"},
		"--addr, --key-env: with --export nothing is served, so these flags have no effect; leave them out":              {"--export", site, "--addr", ":8100", "--key-env", "KEY"},
		"--allow-host, --allow-origin, --client-timeout: with --export nothing is served, so these flags have no effect": {"--export", site, "--allow-host", "a.example", "--allow-origin", "https://a.example", "--client-timeout", "1m"},
		"--client-timeout -5s: want a time above 0, such as 1m":                                                          {"--client-timeout=-5s"},
		"--client-timeout 0s: want a time above 0, such as 1m":                                                           {"--client-timeout=0s"},
		"--client-timeout: with --export nothing is served, so this flag has no effect; leave it out":                    {"--export", site, "--client-timeout=0s"},
	} {
		if got := parley(t, State{}, append([]string{"view", t.TempDir()}, flags...)...).want(t, exit.Misuse).wantErr(t, want); got.stdout != "" {
			t.Errorf("%v: %s", flags, got.stdout)
		}
	}
	if _, err := os.Stat(site); err == nil {
		t.Error("a site was written")
	}
}

// TestBytesInNames checks that a file whose name is not UTF-8 can be named.
func TestBytesInNames(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "\xff.parley")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Skip("the file system has no such names:", err)
	}
	parley(t, State{}, "ctl", file, "wait").want(t, exit.Misuse).wantErr(t, "it is empty")
}

// TestRunView checks that a run can show itself, and leaves no live file behind.
func TestRunView(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	got := parley(t, State{}, "run", write(t, "plan.yaml", "kind: secrets\nepisodes: 3\nagents: {a: {model: sim/small}}\nlineup: {first: a, second: a}\n"), "--out", file, "--view").want(t, exit.OK)
	if !strings.Contains(got.stderr, "the run is shown at http://127.0.0.1:") {
		t.Error(got.stderr)
	}
	if _, err := os.Stat(file + control.LiveSuffix); !os.IsNotExist(err) {
		t.Error("the live file is left:", err)
	}
}

// TestDetachedView checks that no key gets into the log of a process of --detach.
func TestDetachedView(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	for _, args := range [][]string{{"run", "plan.yaml", "--out", file}, {"run", file}} {
		parley(t, State{}, append(args, "--detach", "--view")...).want(t, exit.Misuse).wantErr(t, "--detach and --view", "parley view FILE")
	}
	if _, err := os.Stat(file + logSuffix); !os.IsNotExist(err) {
		t.Error("there is a log:", err)
	}
}

// fetchAll sends a request and reads the answer.
func fetchAll(t *testing.T, req *http.Request) (status int, body string) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}
