package cli

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// servers returns the commands that serve, with their arguments and a path that each answers.
func servers(t *testing.T) map[string]struct {
	args []string
	path string
} {
	t.Helper()
	type server = struct {
		args []string
		path string
	}
	return map[string]server{
		"gateway": {[]string{"--out", filepath.Join(t.TempDir(), "run.parley"), "--upstream", "lab=http://127.0.0.1:1/v1"}, "/metrics"},
		"trainer": {[]string{write(t, "plan.yaml", rolloutPlan)}, "/v1/status"},
		"env":     {[]string{"all"}, "/envs"},
		"sim":     {nil, "/stats"},
		"view":    {[]string{t.TempDir()}, "/assets/view.css"},
	}
}

// TestEveryServerIsListed finds the commands that serve by their flag, so that the tests below also attack a new
// one.
func TestEveryServerIsListed(t *testing.T) {
	t.Parallel()
	k, err := newParser(&State{Stdout: io.Discard, Stderr: io.Discard, Kinds: standard()}, &grammar{}, "")
	if err != nil {
		t.Fatal(err)
	}
	listed := servers(t)
	for _, verb := range k.Model.Children {
		has := map[string]bool{}
		for _, f := range verb.Flags {
			has[f.Name] = true
		}
		if _, ok := listed[verb.Name]; ok != has["addr"] {
			t.Errorf("%s: has --addr: %v, is attacked: %v", verb.Name, has["addr"], ok)
		}
		if has["addr"] && (!has["allow-host"] || !has["allow-origin"] || !has["open"] || !has["client-timeout"]) {
			t.Errorf("%s serves without the flags for who may use it: %v", verb.Name, has)
		}
	}
}

// TestClientTimeout checks that no server lets a client take as long as it likes.
func TestClientTimeout(t *testing.T) {
	t.Parallel()
	for verb, c := range servers(t) {
		for _, limit := range []string{"0s", "-5s"} {
			args := append([]string{verb, "--client-timeout=" + limit}, c.args...)
			parley(t, State{}, args...).want(t, exit.Misuse).wantErr(t, "--client-timeout "+limit+": want a time above 0, such as 1m")
		}
	}
}

// TestServersRefuseWebPages attacks every server over HTTP as a rebinding page, a page of another site and a
// stray client. Then it allows a host and an origin.
func TestServersRefuseWebPages(t *testing.T) {
	t.Parallel()
	for verb, c := range servers(t) {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			url, stop := serves(t, nil, verb, append(c.args, "--allow-host", "parley.example", "--allow-origin", "https://app.example")...)
			at, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
			_, port, err := net.SplitHostPort(at)
			if err != nil {
				t.Fatal(err)
			}
			health := map[string]string{"gateway": "/healthz", "trainer": "/health", "env": "/maze/1/health", "sim": "/", "view": "/"}[verb]
			for _, path := range []string{c.path, health, "/nowhere"} {
				for _, bad := range []struct{ host, header, says string }{
					{"evil.example:" + port, "", "--allow-host"},
					{"evil.example:" + port, "Origin: http://evil.example:" + port, "--allow-host"},
					{at, "Origin: https://evil.example", "--allow-origin"},
					{at, "Origin: null", "--allow-origin"},
					{at, "Origin: http://" + at, "--allow-origin"},
					{at, "Sec-Fetch-Site: cross-site", "--allow-origin"},
					{at, "Sec-Fetch-Site: same-site", "--allow-origin"},
					{"0.0.0.0:" + port, "", "--allow-host"},
					{"localhost.:" + port, "", "--allow-host"},
				} {
					if verb == "view" && bad.header == "Origin: http://"+at {
						continue // it has pages of its own
					}
					for _, method := range []string{"GET", "POST"} {
						status, body := send(t, at, method, path, bad.host, bad.header)
						if status != http.StatusForbidden || !strings.Contains(body, bad.says) || !strings.HasPrefix(body, "{") {
							t.Errorf("%s %s, Host %s, %s: %d %s", method, path, bad.host, bad.header, status, body)
						}
					}
				}
			}
			for _, good := range []struct{ host, header string }{
				{at, ""}, {"localhost:" + port, ""}, {"parley.example", ""}, {at, "Origin: https://app.example"}, {at, "Sec-Fetch-Site: none"},
			} {
				if status, body := send(t, at, "GET", c.path, good.host, good.header); status != http.StatusOK {
					t.Errorf("Host %s, %s: %d %s", good.host, good.header, status, body)
				}
			}
			stop().want(t, exit.OK)
		})
	}
}

// send sends a request with the given Host and one more header, and returns the response.
func send(t *testing.T, at, method, path, host, header string) (status int, body string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if header != "" {
		header += "\r\n"
	}
	_, err = io.WriteString(conn, method+" "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\nContent-Length: 0\r\n"+header+"\r\n")
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
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

// TestServersStayOnThisMachine checks that no server listens to other machines without keys or --open, and none
// accepts an invalid host name.
func TestServersStayOnThisMachine(t *testing.T) {
	t.Parallel()
	sequential(t)
	for verb, c := range servers(t) {
		args := append([]string{verb}, c.args...)
		for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "0:0"} {
			parley(t, State{}, append(args, "--addr", addr)...).want(t, exit.Misuse).wantErr(t, "would serve other machines", map[bool]string{true: "--key-env", false: "--open"}[verb == "view"])
		}
		parley(t, State{}, append(args, "--addr", "127.0.0.1:0", "--allow-host", "*")...).want(t, exit.Misuse).wantErr(t, "--allow-host", "NAME:PORT")
		parley(t, State{}, append(args, "--addr", "127.0.0.1:0", "--allow-origin", "*")...).want(t, exit.Misuse).wantErr(t, "--allow-origin", "SCHEME://NAME")
	}
}

// TestDocumentedServers checks the plan of every server in docs/how-to/servers.md.
func TestDocumentedServers(t *testing.T) {
	t.Parallel()
	sequential(t)
	seen := 0
	for i, block := range strings.Split(read(t, "../../docs/how-to/servers.md"), "```") {
		entry, ok := strings.CutPrefix(block, "yaml\n")
		if i%2 == 0 || !ok {
			continue
		}
		seen++
		plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 1\nlineup: {first: player, second: player}\n"+entry)
		if got := parley(t, State{}, "check", plan); got.code != exit.OK {
			t.Errorf("%s\n%s", entry, got.stderr)
		}
	}
	if seen < 5 {
		t.Errorf("%d plans", seen)
	}
}
