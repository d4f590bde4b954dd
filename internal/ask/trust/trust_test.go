package trust

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/internal/ask/provider"
)

func set(string) (string, bool) { return "secret", true }

func TestOrigin(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://API.OpenAI.com/v1":        "https://api.openai.com",
		"HTTPS://api.openai.com:443/v1?x#": "https://api.openai.com",
		"http://api.openai.com:443/v1":     "http://api.openai.com:443",
		"http://h:80":                      "http://h",
		"https://[2001:DB8::1]:8443/":      "https://[2001:db8::1]:8443",
		"https://user:pass@h/":             "https://h",
		"https://\u0430pi.openai.com/v1":   `https://\u0430pi.openai.com`, // Cyrillic a
		"https://ap\u0130.openai.com/v1":   `https://ap\u0130.openai.com`, // whose lower case is an i
		"ftp://h":                          "", "h:80": "", "": "", "https://": "", "://": "", "https://:443": "",
	} {
		got, err := Origin(address)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", address, got, err, want)
		}
	}
}

// TestFree lists the variables and hosts that need no permission.
func TestFree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, host, want string }{
		{"OPENAI_API_KEY", "https://api.openai.com", Preset},
		{"ANTHROPIC_API_KEY", "https://api.anthropic.com", Preset},
		{"OPENAI_API_KEY", "http://api.openai.com", ""},
		{"OPENAI_API_KEY", "https://api.openai.com:8443", ""},
		{"OPENAI_API_KEY", "https://api.anthropic.com", ""},
		{"OPENAI_API_KEY", "https://api.openai.com.evil.example", ""},
		{"OPENAI_API_KEY", "https://api.openai.com.", ""},
		{"GITHUB_TOKEN", "https://api.openai.com", ""},
		{"LAB_KEY", "http://127.0.0.1:8080", OnLoopback},
		{"LAB_KEY", "http://localhost", OnLoopback},
		{"LAB_KEY", "https://[::1]:1", OnLoopback},
		{"LAB_KEY", "http://localhost.evil.example", ""},
		{"LAB_KEY", "http://0.0.0.0", ""},
		{"LAB_KEY", "http://localho\u017ft", ""},
		{"LAB_KEY", "http://127.1", ""},
		{"", "https://lab.example", ""},
	} {
		g := Grant{What: Variable, Name: c.name, Host: c.host}
		if got := (*Gate)(nil).Why(g); got != c.want {
			t.Errorf("%v: %q, want %q", g, got, c.want)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	p := provider.Provider{Name: "lab", Dialect: "openai", KeyEnv: "LAB_KEY", BaseURLs: []string{"https://a/v1", "https://b/v1", "https://A:443/v2"}}
	want := []Grant{{Variable, "LAB_KEY", "https://a"}, {Variable, "LAB_KEY", "https://b"}}
	if got := Keys(p); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if got := Handed(p); got != nil {
		t.Errorf("%v: the provider has a key of its own", got)
	}
	p.KeyEnv, p.KeyCommand = "", []string{"vault", "read", "a b"}
	want = []Grant{{Command, `vault read "a b"`, "https://a"}, {Command, `vault read "a b"`, "https://b"}}
	if got := Keys(p); !slices.Equal(got, want) || Handed(p) != nil || got[0].free() != "" {
		t.Errorf("%v", got)
	}
	p.KeyCommand = nil
	if got := Handed(p); len(Keys(p)) != 0 || len(got) != 2 || got[0] != (Grant{What: clientKeys, Host: "https://a"}) {
		t.Errorf("%v", got)
	}
	if p.Dialect = "sim"; len(Handed(p)) != 0 {
		t.Error("the simulated provider is sent something")
	}
}

func TestParseFlag(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]Grant{
		"LAB_KEY=https://lab.example:8443":    {Variable, "LAB_KEY", "https://lab.example:8443"},
		"LAB_KEY=lab.example":                 {Variable, "LAB_KEY", "https://lab.example"},
		"LAB_KEY=http://10.0.0.1:8000/v1":     {Variable, "LAB_KEY", "http://10.0.0.1:8000"},
		"client-keys=https://gateway.example": {clientKeys, "", "https://gateway.example"},
		"command=vault read a=b=https://h":    {Command, "vault read a=b", "https://h"},
	} {
		if got, err := ParseFlag(flag); err != nil || got != want || (got.Host == "https://lab.example:8443" && got.Flag() != flag) {
			t.Errorf("%s: %v, %v", flag, got, err)
		}
	}
	for _, bad := range []string{"", "LAB_KEY", "=https://h", "sk-hunter2=https://h", "sk-hunter2", "LAB_KEY=", "LAB_KEY=ftp://h", "command=vault read", "command==https://h"} {
		if _, err := ParseFlag(bad); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestGate: asked once, remembered for the variable and host, and refused where nobody can be asked.
func TestGate(t *testing.T) {
	t.Parallel()
	store := NewStore(filepath.Join(t.TempDir(), "parley", "trusted.jsonl"))
	need := Need{Grant{Variable, "LAB_KEY", "https://lab.example"}, "the plan x.yaml", "x.yaml:3:5: providers.lab.key_env"}
	asked, answer := 0, false
	gate := func() *Gate {
		return &Gate{Store: store, Env: set, Ask: func(Need) (bool, error) { asked++; return answer, nil }}
	}
	refused, ok := errors.AsType[*RefusedError](gate().Check(need))
	if !ok || asked != 1 {
		t.Fatalf("the answer no allowed it: %v, asked %d times", refused, asked)
	}
	for _, part := range []string{"x.yaml:3:5", "providers.lab.key_env", "LAB_KEY", "https://lab.example", "--trust LAB_KEY=https://lab.example"} {
		if !strings.Contains(refused.Error(), part) {
			t.Errorf("%q does not say %q", refused, part)
		}
	}
	answer = true
	one := gate()
	if err := errors.Join(one.Check(need), one.Check(need), one.Allow(need), gate().Check(need), (&Gate{Store: store, Env: set}).Allow(need)); err != nil || asked != 2 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	other := need
	other.Host = "https://lab.example:8443"
	if err := (&Gate{Store: store, Env: set}).Check(other); err == nil {
		t.Error("another port is not the same host")
	}
	if info, err := os.Stat(store.Path()); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v, %v: others can read it", info.Mode(), err)
	}
}

// TestUnset: a variable that is not set sends nothing, and nobody is asked.
func TestUnset(t *testing.T) {
	t.Parallel()
	need := Need{Grant: Grant{Variable, "LAB_KEY", "https://lab.example"}}
	for _, value := range []string{"", " \n"} {
		g := &Gate{Env: func(string) (string, bool) { return value, true }, Ask: func(Need) (bool, error) { panic("asked") }}
		if err := errors.Join(g.Check(need), g.Allow(need)); err != nil {
			t.Error(err)
		}
	}
}

// TestPlain: the user is warned once that something is sent unencrypted.
func TestPlain(t *testing.T) {
	t.Parallel()
	var said []string
	g := &Gate{Env: set, Say: func(text string) { said = append(said, text) }}
	need := Need{Grant: Grant{Variable, "LAB_KEY", "http://lab.example"}}
	if err := g.Check(need); err == nil || !strings.Contains(err.Error(), "unencrypted") {
		t.Error(err)
	}
	g.Give(need.Grant)
	if err := errors.Join(g.Check(need), g.Check(need)); err != nil || len(said) != 1 || !strings.Contains(said[0], "plain HTTP") {
		t.Errorf("%v, %q", err, said)
	}
}

// TestDamagedStore: what cannot be read allows nothing, and costs nothing else.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trusted.jsonl")
	good := Grant{Variable, "LAB_KEY", "https://lab.example"}
	torn := `{"what":"variable","name":"A","host":"https://a"}` + "\n" + `{"what":"program","name":"/bin/x"}` + "\n" + `{"what":"variable","na`
	if err := os.WriteFile(path, []byte(torn), 0o600); err != nil {
		t.Fatal(err)
	}
	s := NewStore(path)
	if err := s.Add(good); err != nil {
		t.Fatal(err)
	}
	all, err := s.Load()
	if len(all) != 3 || !slices.Contains(all, good) || err == nil || !strings.Contains(err.Error(), path+":3") {
		t.Errorf("%v, %v", all, err)
	}
	said := 0
	g := &Gate{Store: s, Env: set, Say: func(string) { said++ }}
	if err := errors.Join(g.Check(Need{Grant: good}), g.Check(Need{Grant: good})); err != nil || said != 1 {
		t.Errorf("%v, said %d times", err, said)
	}
	if all, err := NewStore(t.TempDir()).Load(); err == nil || len(all) > 0 {
		t.Errorf("a folder was read: %v, %v", all, err)
	}
}

// TestStoreTogether: what several remember at once is all there.
func TestStoreTogether(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "trusted.jsonl")
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := NewStore(path).Add(Grant{Variable, "K" + strings.Repeat("X", i), "https://h"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := NewStore(path).Load(); err != nil || len(all) != 50 {
		t.Errorf("%d remembered: %v", len(all), err)
	}
}

func FuzzStore(f *testing.F) {
	f.Add([]byte(`{"what":"variable","name":"A","host":"https://a"}`))
	f.Add([]byte("\n{\n[]\nnull\n0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, _ := NewStore("x").parse(b)
		for _, g := range all {
			if g.What == "" {
				t.Errorf("%v is empty", g)
			}
		}
	})
}

func FuzzOrigin(f *testing.F) {
	f.Add("https://lab.example:8443/v1")
	f.Fuzz(func(t *testing.T, s string) {
		o, err := Origin(s)
		if err != nil {
			return
		}
		if strings.ContainsFunc(o, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q -> %q", s, o)
		}
	})
}
