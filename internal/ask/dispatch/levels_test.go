package dispatch

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/provider"
	"parley/llm"
)

const secret = "sk-very-secret-key"

func lab(t *testing.T) (*LevelStore, provider.Provider) {
	t.Helper()
	env := func(name string) (string, bool) { return map[string]string{"A": secret, "B": "other"}[name], true }
	return NewLevels(filepath.Join(t.TempDir(), "new", "limits"), env), provider.Provider{Name: "lab", Dialect: "openai", KeyEnv: "A"}
}

func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	s, p := lab(t)
	const at = "https://lab.example/v1"
	for _, c := range []struct {
		name       string
		save, want limiter.Level
	}{
		{"nothing", limiter.Level{}, limiter.Level{}},
		{"too few to matter", limiter.Level{InFlight: limiter.FirstConcurrency}, limiter.Level{}},
		{"many", limiter.Level{InFlight: 500}, limiter.Level{InFlight: 500}},
		{"fewer were needed", limiter.Level{InFlight: 40}, limiter.Level{InFlight: 500}},
		{"fewer are allowed now", limiter.Level{InFlight: 8, Limited: true}, limiter.Level{InFlight: 8, Limited: true}},
		{"fewer were needed than are allowed", limiter.Level{InFlight: 3}, limiter.Level{InFlight: 8, Limited: true}},
		{"more than anybody asks for", limiter.Level{InFlight: 1 << 40}, limiter.Level{InFlight: limiter.MaxConcurrency}},
	} {
		if err := s.Save(p, at, "", c.save); err != nil {
			t.Fatal(err)
		}
		if got := s.Load(p, at+"/", ""); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	other := p
	other.KeyEnv = "B"
	if s.Load(other, at, "") != (limiter.Level{}) || s.Load(p, "https://else.example/v1", "") != (limiter.Level{}) || s.Load(p, at, "gpt-*") != (limiter.Level{}) {
		t.Error("another key, server or pattern has the same level")
	}
	s.now = func() time.Time { return time.Now().Add(maxLevelAge + time.Minute) }
	if got := s.Load(p, at, ""); got != (limiter.Level{}) {
		t.Errorf("after a day: %+v", got)
	}
	var none *LevelStore
	if none.Load(p, at, "") != (limiter.Level{}) || none.Save(p, at, "", limiter.Level{InFlight: 50}) != nil {
		t.Error("a store that remembers nothing")
	}
	if s.Load(provider.Provider{Dialect: "sim"}, "", "") != (limiter.Level{}) {
		t.Error("the simulated provider has a level")
	}
}

// TestDamaged: a file that cannot be used is as good as none, and is replaced.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "{", "null", "[]", `{"in_flight": -1}`, `{"in_flight": 1e99, "at": "2026-01-01T00:00:00Z"}`,
		`{"in_flight": 8, "at": "9999-01-01T00:00:00Z"}`, `{"in_flight": 8}`, strings.Repeat(" ", maxLevelFile) + `{"in_flight": 8}`,
	} {
		s, p := lab(t)
		if err := os.MkdirAll(s.folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.path(p, "x", ""), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.Load(p, "x", ""); got != (limiter.Level{}) {
			t.Errorf("%.40q: %+v", text, got)
		}
		want := limiter.Level{InFlight: 9, Limited: true}
		if err := s.Save(p, "x", "", want); err != nil || s.Load(p, "x", "") != want {
			t.Errorf("%.40q: it cannot be replaced: %v", text, err)
		}
	}
}

// TestWritersAtOnce: whoever wins, the file is whole. Nothing of the key is in the folder.
func TestWritersAtOnce(t *testing.T) {
	t.Parallel()
	s, p := lab(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := s.Save(p, "x", "", limiter.Level{InFlight: 100 + i, Limited: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := s.Load(p, "x", ""); got.InFlight < 100 || !got.Limited {
		t.Errorf("%+v", got)
	}
	all, err := os.ReadDir(s.folder)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	b, err := os.ReadFile(filepath.Join(s.folder, all[0].Name()))
	if err != nil || strings.Contains(string(b)+all[0].Name(), secret[:5]) {
		t.Errorf("%s: %s, %v", all[0].Name(), b, err)
	}
}

// remembered is a Levels for one server.
type remembered struct{ limiter.Level }

func (r *remembered) Load(provider.Provider, string, string) limiter.Level { return r.Level }
func (r *remembered) Save(_ provider.Provider, _, _ string, l limiter.Level) error {
	r.Level = l
	return nil
}

// TestNextRunKnowsTheLimit: a second run of a provider that allows few calls has nearly no refusals.
// If it allows fewer than it did, the promise about refusals still holds.
func TestNextRunKnowsTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		known := &remembered{}
		for _, c := range []struct{ allows, refused int }{{100, 40}, {100, 8}, {1000, 0}, {20, 40}, {20, 8}} {
			p := &place{allows: c.allows, latency: time.Second, refusing: 50 * time.Millisecond, says: llm.Error{Kind: llm.KindRateLimited, Status: 429}}
			d := dispatcher(t, p, providerAt(false), func(c *Config) { c.Levels = known })
			d.All(t.Context(), asked(3000, 10, 1))
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if p.refused > c.refused || c.allows < 1000 && known.Level != (limiter.Level{InFlight: c.allows, Limited: true}) {
				t.Errorf("allows %d: %d refused; then known: %+v", c.allows, p.refused, known.Level)
			}
		}
		chosen := providerAt(false)
		chosen.Limits.Concurrency = 5
		d := dispatcher(t, answersAfter(time.Second), chosen, func(c *Config) { c.Levels = known })
		d.All(t.Context(), asked(20, 10, 1))
		if _ = d.Close(); known.InFlight != 20 {
			t.Errorf("a limit that the user chose is stored: %+v", known.Level)
		}
	})
}
