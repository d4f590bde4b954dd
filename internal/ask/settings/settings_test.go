package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestDefaults has the defaults of every caller: a tag that cannot be read would be a zero value.
func TestDefaults(t *testing.T) {
	t.Parallel()
	plan := Settings{
		Pace: "free", Limits: Limits{Live: 20_000}, Batch: Batch{Route: "auto", Poll: 2 * time.Second},
		Retry: Retry{Unreachable: 10 * time.Minute, Retries: 4, Pause: 500 * time.Millisecond, MaxPause: time.Minute, Deadline: time.Hour},
	}
	ask, gateway, library := plan, plan, plan
	ask.Retry.Unreachable = 2 * time.Minute
	gateway.Retry.Unreachable, gateway.Retry.Deadline = time.Minute, 0
	library.Retry.Unreachable = 0
	for caller, want := range map[Caller]Settings{Plan: plan, Ask: ask, Gateway: gateway, Library: library} {
		if got := New(caller); *got != want {
			t.Errorf("%s: %+v, want %+v", caller, *got, want)
		}
	}
}

// TestVars checks that every setting says what it means, and that the help of flags can say its defaults.
func TestVars(t *testing.T) {
	t.Parallel()
	vars := Vars()
	for name, text := range vars {
		if of, _, ok := strings.Cut(name, "_default"); ok && (!strings.HasSuffix(vars[of], ".") || text == "") {
			t.Errorf("%s: %q, and the default %q", of, vars[of], text)
		}
	}
	for name, want := range map[string]string{"retry_unreachable_default": "10m", "retry_unreachable_ask": "2m", "retry_unreachable_gateway": "1m", "retry_retries_gateway": "4"} {
		if vars[name] != want {
			t.Errorf("%s: %q, want %q", name, vars[name], want)
		}
	}
}

// TestDocuments checks the defaults that texts for people have.
func TestDocuments(t *testing.T) {
	t.Parallel()
	minutes := func(c Caller) string { return fmt.Sprintf(" | %.0f minute", New(c).Retry.Unreachable.Minutes()) }
	for file, texts := range map[string][]string{
		"docs/how-to/providers.md": {"`trainer`" + minutes(Plan), "`ask`" + minutes(Ask), "`gateway`" + minutes(Gateway)},
		"ask.go":                   {fmt.Sprintf("Default: %d; negative: never.", New(Library).Retry.Retries), "while it restarts. Default: not at all."},
	} {
		b, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if !strings.Contains(string(b), text) {
				t.Errorf("%s: does not say %q", file, text)
			}
		}
	}
}

// TestLongest checks how long a call may take.
func TestLongest(t *testing.T) {
	t.Parallel()
	for r, want := range map[Retry]time.Duration{
		{Deadline: time.Hour, Unreachable: time.Minute}: time.Hour + time.Minute,
		{Unreachable: time.Minute}:                      0,
		{Deadline: 1<<63 - 1, Unreachable: time.Minute}: 1<<63 - 1,
	} {
		if got := r.Longest(); got != want {
			t.Errorf("%+v: %v, want %v", r, got, want)
		}
	}
}

// TestLeast checks the default of the smallest batch, which its doc says.
func TestLeast(t *testing.T) {
	t.Parallel()
	for b, want := range map[Batch]int{{Route: "auto"}: 100, {Route: "batch"}: 2, {Route: "live"}: 2, {Route: "auto", Min: 7}: 7} {
		if got := b.Least(); got != want {
			t.Errorf("%+v: %d, want %d", b, got, want)
		}
	}
	if f, _ := reflect.TypeFor[Batch]().FieldByName("Min"); f.Tag.Get("default") != "100, and 2 with batch" {
		t.Error(f.Tag)
	}
}
