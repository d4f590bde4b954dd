package credential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/llm"
)

func source(t *testing.T, command ...string) *Source {
	t.Helper()
	s, err := New(provider.Provider{Name: "lab", KeyCommand: command})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestProgram runs real programs: the key is what they print, and their failures are errors without it.
func TestProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string][]string{
		"print": nil,
		"fail":  {"key_command " + provider.CommandLine([]string{self, "secret-1\n"}), "exit status 7", "please run login first", "[key]"},
		"large": {"more than 64 KB"},
	} {
		t.Setenv("CREDENTIAL_TEST", mode)
		k, err := source(t, self, "secret-1\n").Key(t.Context())
		if want == nil {
			if err != nil || k.Value != "secret-1" || k.Hide == nil {
				t.Errorf("%+v, %v", k, err)
			}
			continue
		}
		if err == nil || llm.AsError(err).Kind != llm.KindAuth || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", mode, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v lacks %q", mode, err, w)
			}
		}
	}
	t.Setenv("CREDENTIAL_TEST", "")
	if _, err := source(t, "parley-no-such-program").Key(t.Context()); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Error(err)
	}
}

// fake replaces the program by a function, and counts how often it runs.
type fake struct {
	mu   sync.Mutex
	runs int
	say  func(run int) (string, error)
}

func (f *fake) run(ctx context.Context, _ []string) ([]byte, error) {
	f.mu.Lock()
	f.runs++
	n := f.runs
	f.mu.Unlock()
	select {
	case <-time.After(time.Second): // programs are slow
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	out, err := f.say(n)
	return []byte(out), err
}

func faked(t *testing.T, say func(run int) (string, error)) (*Source, *fake) {
	t.Helper()
	s, f := source(t, "printer"), &fake{say: say}
	s.run = f.run
	return s, f
}

// TestOneRun: however many calls wait, the program runs once, and again only when its key is about to expire.
func TestOneRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := faked(t, func(n int) (string, error) {
			return fmt.Sprintf(`{"access_token": "key-number-%d", "expires_in": 3600}`, n), nil
		})
		all := func(want string) {
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					if k, err := s.Key(t.Context()); err != nil || k.Value != want {
						t.Errorf("%v, %v: want %s", k, err, want)
					}
				})
			}
			wg.Wait()
		}
		all("key-number-1")
		time.Sleep(58 * time.Minute)
		all("key-number-1")
		time.Sleep(90 * time.Second)
		all("key-number-2")
		if f.runs != 2 {
			t.Errorf("the program ran %d times", f.runs)
		}
		if got := string(s.Last().Hide.Bytes([]byte("key-number-1 key-number-2"))); got != "[key] [key]" {
			t.Errorf("%s: the key before is shown", got)
		}
	})
}

// TestFailing: a key that is still good is used if the program fails, and a failure is not tried again at once.
func TestFailing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := faked(t, func(n int) (string, error) {
			if n == 1 {
				return `{"key": "first", "expires_in": 600}`, nil
			}
			return "", errors.New("exit status 1")
		})
		value := func() string {
			k, err := s.Key(t.Context())
			if err != nil {
				return err.Error()
			}
			return k.Value
		}
		if got := value(); got != "first" {
			t.Error(got)
		}
		time.Sleep(9*time.Minute + 30*time.Second)
		if got := value() + value(); got != "firstfirst" || f.runs != 2 {
			t.Errorf("%s after %d runs", got, f.runs)
		}
		time.Sleep(time.Minute)
		if got := value(); !strings.Contains(got, "exit status 1") || f.runs != 3 {
			t.Errorf("%s after %d runs", got, f.runs)
		}
	})
}

// TestRefused: a key that a server refuses is replaced, but not again and again.
func TestRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := faked(t, func(n int) (string, error) { return fmt.Sprintf("key-number-%d\n", n), nil })
		k, err := s.Key(t.Context())
		if err != nil || !s.Refuse(k) {
			t.Fatal(k, err)
		}
		next, err := s.Key(t.Context())
		if err != nil || next.Value != "key-number-2" || s.Refuse(next) {
			t.Fatal(next, err)
		}
		if s.Refuse(k); f.runs != 2 { // a late refusal of the old key
			t.Errorf("%d runs", f.runs)
		}
		if again, err := s.Key(t.Context()); again != next || err != nil {
			t.Error(again, err)
		}
		time.Sleep(renewPause)
		if !s.Refuse(next) {
			t.Error("the program is never run again")
		}
	})
}

// TestGivenUp: who no longer waits gets the reason, and the next one runs the program.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := faked(t, func(int) (string, error) { return "a-key", nil })
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if _, err := s.Key(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if k, err := s.Key(t.Context()); err != nil || k.Value != "a-key" {
				t.Error(k, err)
			}
		})
		wg.Wait()
		if f.runs > 2 {
			t.Errorf("%d runs", f.runs)
		}
	})
}

func TestParse(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 16, 10, 0, 0, 0, time.FixedZone("here", 3600))
	hour := now.Add(time.Hour)
	for out, want := range map[string]struct {
		key     string
		expires time.Time
	}{
		"ya29.a0\n":     {"ya29.a0", time.Time{}},
		`{"key":" k "}`: {"k", time.Time{}},
		`{"token":"k","expires_at":"2026-11-16T10:00:00Z"}`:                                                         {"k", hour},
		`{"access_token":"k","expires_in":3600,"token_type":"Bearer"}`:                                              {"k", hour},
		`{"accessToken":"k","expiresOn":"2026-11-16 11:00:00.000000","expires_on":` + fmt.Sprint(hour.Unix()) + `}`: {"k", hour},
		`{"accessToken":"k","expiresOn":"2026-11-16 11:00:00.000000"}`:                                              {"k", hour},
	} {
		k, err := parse([]byte(out), now)
		if err != nil || k.Value != want.key || !k.expires.Equal(want.expires) {
			t.Errorf("%s: %+v, %v", out, k, err)
		}
	}
	for out, want := range map[string]string{
		"":                                 "nothing",
		"one hunter2\ntwo":                 "more than one line",
		"hunter2\x00":                      "character",
		`{"hunter2":"x"}`:                  "without key",
		`{"key":"hunter2"`:                 "JSON",
		`{"key":7}`:                        "JSON",
		`{"key":"hunter2","expires_in":0}`: "expired",
		`{"key":"hunter2","expires_at":"tomorrow"}`:             "expires_at",
		`{"key":"hunter2","expires_at":"2020-01-01T00:00:00Z"}`: "expired",
		strings.Repeat("k", maxKey+1):                           "more than 16 KB",
	} {
		if _, err := parse([]byte(out), now); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.40s: %v, want %s", out, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"key":"k","expires_in":1e300}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := parse(b, time.Unix(0, 0))
		if err == nil && (k.Value == "" || !printable(k.Value)) {
			t.Errorf("%q", k.Value)
		}
	})
}

func TestVariable(t *testing.T) {
	t.Setenv("CREDENTIAL_TEST_KEY", " the-key ")
	s, err := New(provider.Provider{Name: "lab", KeyEnv: "CREDENTIAL_TEST_KEY"})
	if err != nil {
		t.Fatal(err)
	}
	if k, err := s.Key(t.Context()); err != nil || k.Value != "the-key" || s.Refuse(k) {
		t.Error(k, err)
	}
	t.Setenv("CREDENTIAL_TEST_KEY", "")
	if _, err := New(provider.Provider{Name: "lab", KeyEnv: "CREDENTIAL_TEST_KEY"}); err == nil || !strings.Contains(err.Error(), "not set") {
		t.Error(err)
	}
}
