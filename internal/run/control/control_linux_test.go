package control

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"parley/internal/kit/files"
)

// TestOtherUser: a sender who may not enter the folder of requests learns that another user plays the run, or that
// nobody does.
func TestOtherUser(t *testing.T) {
	t.Parallel()
	run := newRun(t)
	end := serve(t, run, map[string]Handler{"echo": echo})
	defer end()
	guard, err := files.TakeGuard(files.Resolve(run))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(run)), 0o755); err != nil { // others come as far as the run
		t.Fatal(err)
	}
	send := func() (err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			if os.Geteuid() == 0 { // root may enter any folder: this thread acts as somebody else, and ends with the goroutine
				runtime.LockOSThread()
				if err = syscall.Setfsuid(65534); err != nil {
					return
				}
			} else if err = os.Chmod(run+Suffix, 0); err != nil {
				return
			}
			err = Send(t.Context(), run, "echo", nil, nil)
		}()
		<-done
		return err
	}
	if err := send(); !errors.Is(err, ErrOtherUser) {
		t.Errorf("%v, want %v", err, ErrOtherUser)
	}
	if err := guard.Release(); err != nil {
		t.Fatal(err)
	}
	if err := send(); !errors.Is(err, ErrNotPlayed) {
		t.Errorf("%v, want %v", err, ErrNotPlayed)
	}
	if err := os.Chmod(run+Suffix, 0o700); err != nil {
		t.Fatal(err)
	}
}
