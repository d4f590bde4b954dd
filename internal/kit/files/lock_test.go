package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"parley/internal/kit/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m, holdUntilKilled) }

// holdUntilKilled holds the lock of a file.
func holdUntilKilled(path string) error {
	f, err := OpenLocked(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// forks excludes tests that close a locked file and expect it to be free: a process that is started meanwhile has the file
// open too, until its program runs.
var forks sync.Mutex

// hold starts a process that holds the lock of a file.
func hold(t *testing.T, path string) *testkit.Process {
	t.Helper()
	forks.Lock()
	defer forks.Unlock()
	p := testkit.Start(t, path)
	if line := p.Line(t); line != "held" {
		t.Fatal(line)
	}
	return p
}

// names makes a file and returns different paths to it.
func names(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	symbolic, hard, folder := filepath.Join(t.TempDir(), "symbolic"), filepath.Join(dir, "hard"), filepath.Join(t.TempDir(), "folder")
	if err := errors.Join(os.Symlink(path, symbolic), os.Link(path, hard), os.Symlink(dir, folder)); err != nil {
		t.Skip(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(here, path)
	if err != nil {
		t.Skip(err)
	}
	return map[string]string{
		"itself": path, "a symbolic link": symbolic, "a hard link": hard, "a linked folder": filepath.Join(folder, "file"), "a relative path": relative,
	}
}

// TestOneFile: a lock excludes a second one, by every name of the file.
func TestOneFile(t *testing.T) {
	t.Parallel()
	all := names(t)
	id, links, err := identity(all["itself"])
	if err != nil || links != 2 {
		t.Fatalf("it has %d names: %v", links, err)
	}
	f, err := OpenLocked(all["itself"])
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range all {
		if _, err := OpenLocked(path); !errors.Is(err, ErrHeld) {
			t.Errorf("by %s: %v, want %v", name, err, ErrHeld)
		}
		if other, _, err := identity(path); other != id || err != nil {
			t.Errorf("by %s it is %s and not %s: %v", name, other, id, err)
		}
		if target := Resolve(path); name != "a hard link" && target != Resolve(all["itself"]) {
			t.Errorf("by %s it is at %s", name, target)
		}
	}
	forks.Lock()
	defer forks.Unlock()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, path := range all {
		f, err := OpenLocked(path)
		if err != nil {
			t.Fatalf("by %s, when it is free: %v", name, err)
		}
		_ = f.Close()
	}
}

// TestTwoProcesses: a lock excludes other processes, and ends with its process.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	all := names(t)
	holder := hold(t, all["a symbolic link"])
	for name, path := range all {
		if _, err := OpenLocked(path); !errors.Is(err, ErrHeld) {
			t.Errorf("by %s: %v, want %v", name, err, ErrHeld)
		}
	}
	holder.Kill()
	holder.Wait()
	f, err := OpenLocked(all["itself"])
	if err != nil {
		t.Fatalf("the process is gone, and the lock is not: %v", err)
	}
	_ = f.Close()
}

// TestGuarded: a guard is seen by others, until it is released or its process is killed.
func TestGuarded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if Guarded(path) {
		t.Error("nobody has it")
	}
	g, err := TakeGuard(path)
	if err != nil || !Guarded(path) {
		t.Errorf("it is not seen: %v", err)
	}
	if err := g.Release(); err != nil || Guarded(path) {
		t.Errorf("it is released: %v", err)
	}
	holder := hold(t, path+besideSuffix)
	if !Guarded(path) {
		t.Error("another process has it")
	}
	holder.Kill()
	holder.Wait()
	if Guarded(path) {
		t.Error("its process was killed")
	}
}

// TestSymlink: a lock file is not created through a symbolic link.
func TestSymlink(t *testing.T) {
	t.Parallel()
	if noFollow == 0 {
		t.Skip("the system follows links")
	}
	dir := t.TempDir()
	path, target := filepath.Join(dir, "run"), filepath.Join(t.TempDir(), "target")
	if err := os.Symlink(target, path+besideSuffix); err != nil {
		t.Skip(err)
	}
	for _, what := range []string{"dangling", "to a file"} {
		if _, err := TakeGuard(path); !errors.Is(err, ErrSymlink) {
			t.Errorf("%s: %v, want %v", what, err, ErrSymlink)
		}
		if _, err := os.Lstat(target); what == "dangling" && err == nil {
			t.Error("the target was created")
		}
		if err := os.WriteFile(target, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTake: Release deletes the lock file.
func TestTake(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	l, err := TakeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(path); !errors.Is(err, ErrHeld) {
		t.Errorf("%v, want %v", err, ErrHeld)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if l, err = TakeLock(path); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Release(), (*Lock)(nil).Release()); err != nil {
		t.Error(err)
	}
}
