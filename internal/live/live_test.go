package live

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
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
