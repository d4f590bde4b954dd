package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/llm"
)

// TestShow checks that the file is written every second, and is gone at the end.
func TestShow(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	run := filepath.Join(folder, "run.parley")
	synctest.Test(t, func(t *testing.T) {
		n := int64(0)
		end := Show(run, func(now time.Time) State { n++; return State{At: now, InFlight: n} })
		for want := range int64(3) {
			time.Sleep(every + every/2)
			if s, ok := Read(t.Context(), run); !ok || s.InFlight < want+1 || s.Process != os.Getpid() {
				t.Errorf("%+v %v", s, ok)
			}
		}
		end()
	})
	if _, ok := Read(t.Context(), run); ok {
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
		if err := os.WriteFile(run+Suffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, ok := Read(t.Context(), run); ok {
			t.Errorf("%s: %+v", name, s)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		end := Show(filepath.Join(run, "no", "folder"), func(time.Time) State { return State{} })
		time.Sleep(3 * every)
		end()
	})
}

// TestHistory checks that a history has few points, however long the run is, and that they keep their means.
func TestHistory(t *testing.T) {
	t.Parallel()
	var h History
	const states = 10_000
	for i := range int64(states) {
		h.add(&State{InFlight: i, CallsPerSecond: 2, ErrorsPerSecond: float64(i % 2), Spent: llm.Money(i) * llm.Dollar})
		if n := len(h.Points); n >= maxPoints || n > 0 && time.Duration(n)*h.Every > time.Duration(i+1)*every {
			t.Fatalf("%d points of %v after %d seconds", n, h.Every, i+1)
		}
	}
	if covered := time.Duration(len(h.Points)) * h.Every; covered < states*every-h.Every {
		t.Errorf("the points cover %v", covered)
	}
	width := float64(h.Every / every)
	for i, p := range h.Points {
		middle := (float64(i)+0.5)*width - 0.5
		want := Point{PointInFlight: middle, PointCalls: 2, PointErrors: 0.5, PointSpent: middle}
		if p != want {
			t.Fatalf("point %d of width %v: %v, want %v", i, width, p, want)
		}
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
		`,"models":[` + strings.Repeat(`{},`, maxRows) + `{}]`: false, `,"history":{"points":[` + strings.Repeat(`[0],`, maxPoints) + `[0]]}`: false,
	} {
		if err := os.WriteFile(run+Suffix, []byte(`{"at":"`+at+`"`+text+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, ok := Read(t.Context(), run); ok != want {
			t.Errorf("%.80s: %v %+v", text, ok, s)
		}
	}
}
