package control

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/llm"
)

// TestShow checks that the file is written every second, and is gone at the end.
func TestShow(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	run := filepath.Join(folder, "run.parley")
	synctest.Test(t, func(t *testing.T) {
		n := int64(0)
		end := ShowLive(run, func(now time.Time) LiveState { n++; return LiveState{At: now, InFlight: n} })
		for want := range int64(3) {
			synctest.Wait() // the first state is there at once
			if s, ok := ReadLive(t.Context(), run); !ok || s.InFlight != want+1 || s.Process != os.Getpid() || len(s.History.Points) != int(want)+1 {
				t.Errorf("%+v %v", s, ok)
			}
			time.Sleep(liveEvery)
		}
		end()
	})
	if _, ok := ReadLive(t.Context(), run); ok {
		t.Error("the file is left")
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}

// TestNoProcess checks what readers get of a process that was killed, of garbage, and of a folder that cannot be
// written.
func TestNoProcess(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run.parley")
	for name, text := range map[string]string{"old": `{"at":"2020-01-01T00:00:00Z"}`, "garbage": "{", "empty": "", "of the future": `{"at":"2099-01-01T00:00:00Z"}`} {
		if err := os.WriteFile(run+LiveSuffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, ok := ReadLive(t.Context(), run); ok {
			t.Errorf("%s: %+v", name, s)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		end := ShowLive(filepath.Join(run, "no", "folder"), func(time.Time) LiveState { return LiveState{} })
		time.Sleep(3 * liveEvery)
		end()
	})
}

// TestHistory checks that a history has few points, however long the run is, and that they keep their means.
func TestHistory(t *testing.T) {
	t.Parallel()
	var h History
	const states = 10_000
	for i := range int64(states) {
		h.add(&LiveState{InFlight: i, CallsPerSecond: 2, ErrorsPerSecond: float64(i % 2), Sums: budget.Sums{Spent: llm.Money(i) * llm.Dollar}})
		if n := len(h.Points); n >= maxPoints || n > 0 && time.Duration(n)*h.Every > time.Duration(i+1)*liveEvery {
			t.Fatalf("%d points of %v after %d seconds", n, h.Every, i+1)
		}
	}
	if covered := time.Duration(len(h.Points)) * h.Every; covered < states*liveEvery-h.Every {
		t.Errorf("the points cover %v", covered)
	}
	width := float64(h.Every / liveEvery)
	for i, p := range h.Points {
		middle := (float64(i)+0.5)*width - 0.5
		want := Point{PointInFlight: middle, PointCalls: 2, PointErrors: 0.5, PointSpent: middle}
		if p != want {
			t.Fatalf("point %d of width %v: %v, want %v", i, width, p, want)
		}
	}
}

// TestBound checks that texts of worlds, models and servers do not make the file too large to be read.
func TestBound(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run.parley")
	text := strings.Repeat("\x1b\u2028é", 1000)
	s := LiveState{At: time.Now(), Left: text}
	for range 10 * maxRows {
		m := Model{Name: text, Errors: map[llm.Kind]LiveError{llm.Kind(text): {}}}
		for _, kind := range llm.Kinds() {
			m.Errors[kind] = LiveError{Attempts: 1, Example: text}
		}
		s.Status, s.Waits, s.Models = append(s.Status, text), append(s.Waits, text), append(s.Models, m)
		s.Servers, s.Batches = append(s.Servers, Server{Provider: text, Address: text, Models: text}), append(s.Batches, Batch{Provider: text, Model: text, Trouble: text})
	}
	if err := writeLive(run+LiveSuffix, s); err != nil {
		t.Fatal(err)
	}
	got, ok := ReadLive(t.Context(), run)
	if !ok || len(got.Status) != maxRows || len(got.Waits) != maxRows || len(got.Models) != maxRows || len(got.Servers) != maxRows || len(got.Batches) != maxRows {
		t.Fatalf("%v: %d %d %d %d %d", ok, len(got.Status), len(got.Waits), len(got.Models), len(got.Servers), len(got.Batches))
	}
	m, one, b := got.Models[0], got.Servers[0], got.Batches[0]
	for _, short := range []string{got.Left, got.Status[0], got.Waits[0], m.Name, m.Errors[llm.KindServer].Example, one.Provider, one.Address, one.Models, b.Provider, b.Model, b.Trouble} {
		if len(short) < maxText/2 || len(short) > 2*maxText || !strings.HasPrefix(text, strings.TrimSuffix(short, "…")) {
			t.Errorf("%q", short)
		}
	}
	if len(m.Errors) != len(llm.Kinds()) || len(s.Status[0]) != len(text) {
		t.Errorf("%d kinds of errors; the state itself is changed: %v", len(m.Errors), len(s.Status[0]) != len(text))
	}
}

// TestSane checks that a state with numbers that cannot be is not shown.
func TestSane(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run.parley")
	at := time.Now().UTC().Format(time.RFC3339Nano)
	for text, want := range map[string]bool{
		``: true, `,"history":{"every_ns":1000,"points":[[1,2,3,4,5]]}`: true, `,"in_flight":-1`: false, `,"tokens_per_second":1e300`: false,
		`,"servers":[{"requests":{"now":-1}}]`: false, `,"history":{"every_ns":-1}`: false, `,"history":{"points":[[0,0,0,0,1e200]]}`: false,
		`,"history":{"points":[` + strings.Repeat(`[0],`, maxPoints) + `[0]]}`: false,
	} {
		if err := os.WriteFile(run+LiveSuffix, []byte(`{"at":"`+at+`"`+text+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, ok := ReadLive(t.Context(), run); ok != want {
			t.Errorf("%.80s: %v %+v", text, ok, s)
		}
	}
}
