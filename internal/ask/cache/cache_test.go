package cache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("PARLEY_CACHESTORE_CHILD"); dir != "" {
		child(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func keyOf(s string) [32]byte { return sha256.Sum256([]byte(s)) }

func valueOf(s string, size int) []byte { return bytes.Repeat([]byte(s), size/len(s)+1)[:size] }

// limits are those of a store in a test.
type limits struct {
	disk int64 // zero: the usual one; below zero: no trim in the background
	now  func() time.Time
}

func open(t testing.TB, dir string, o limits) *Store {
	t.Helper()
	s, err := limited(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func limited(dir string, o limits) (*Store, error) {
	s, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if o.now != nil {
		s.disk.now = o.now
	}
	s.disk.looked = o.disk < 0
	if o.disk > 0 {
		s.disk.limit = o.disk
	}
	return s, nil
}

// sound checks that what has a name is stored whole or not at all.
func sound(s *Store, name string) error {
	_, err := s.read(context.Background(), keyOf(name))
	return err
}

func save(t testing.TB, s *Store, name string, value []byte) {
	t.Helper()
	if err := s.Save(keyOf(name), value); err != nil {
		t.Fatal(err)
	}
}

func wantValue(t testing.TB, s *Store, name string, want []byte) {
	t.Helper()
	got, ok := s.Load(t.Context(), keyOf(name))
	if !ok || !bytes.Equal(got, want) {
		t.Fatalf("%s: found %v, %d bytes, want %d", name, ok, len(got), len(want))
	}
}

func wantNone(t testing.TB, s *Store, name string) {
	t.Helper()
	if got, ok := s.Load(t.Context(), keyOf(name)); ok {
		t.Fatalf("%s: found %d bytes, want none", name, len(got))
	}
}

func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), limits{})
	wantNone(t, s, "a")
	value := []byte("one")
	save(t, s, "a", value)
	value[0] = 'X' // the store has a copy
	wantValue(t, s, "a", []byte("one"))
	save(t, s, "a", []byte("two"))
	wantValue(t, s, "a", []byte("two"))
	save(t, s, "empty", nil)
	wantValue(t, s, "empty", nil)
}

func TestValuesOutliveTheStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "cache")
	first := open(t, dir, limits{})
	big := valueOf("big", 3<<20)
	save(t, first, "a", []byte("one"))
	save(t, first, "big", big)
	save(t, first, "empty", nil)
	first.Close()

	second := open(t, dir, limits{})
	wantValue(t, second, "a", []byte("one"))
	wantValue(t, second, "big", big)
	wantValue(t, second, "empty", nil)
	wantValue(t, second, "a", []byte("one"))
}

func TestModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	dir := filepath.Join(t.TempDir(), "cache")
	s := open(t, dir, limits{disk: -1})
	save(t, s, "a", []byte("one"))
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	whole := append(header(keyOf("a"), []byte("value")), "value"...)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-1] ^= 1
	tests := map[string][]byte{
		"empty":          {},
		"half a header":  whole[:20],
		"cut short":      whole[:len(whole)-2],
		"too long":       append(bytes.Clone(whole), 'x'),
		"flipped":        flipped,
		"of another key": append(header(keyOf("b"), []byte("value")), "value"...),
		"foreign":        []byte(strings.Repeat("not ours\n", 100)),
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir(), limits{})
			path := s.disk.path(keyOf("a"))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			wantNone(t, s, "a")
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("the file is still there: %v", err)
			}
			save(t, s, "a", []byte("again"))
			wantValue(t, s, "a", []byte("again"))
		})
	}
}

func TestOpenError(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "cache")); err == nil || !strings.HasPrefix(err.Error(), "make the directory: ") {
		t.Errorf("error is %v", err)
	}
}

// TestDiskThatFails puts a file where a directory should be: no write can succeed, as on a full or
// read-only disk.
func TestDiskThatFails(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), limits{})
	dir := filepath.Dir(s.disk.path(keyOf("a")))
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(keyOf("a"), []byte("one")); err == nil {
		t.Error("saved where nothing can be saved")
	}
	wantNone(t, s, "a")
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := limits{disk: 1 << 20}
	stores := []*Store{open(t, dir, o), open(t, dir, o)}
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() { exercise(t, stores[g%2], g) })
	}
	wg.Wait()
	for _, s := range stores {
		s.Close()
	}
}

// exercise saves and loads values that contain their key.
func exercise(t testing.TB, s *Store, seed int) {
	for i := range 200 {
		name := fmt.Sprint((i*7 + seed) % 100)
		want := valueOf(name+".", 3000)
		if got, ok := s.Load(t.Context(), keyOf(name)); ok && !bytes.Equal(got, want) {
			t.Errorf("%s holds another value", name)
			return
		}
		if err := sound(s, name); err != nil {
			t.Error(err)
			return
		}
		if err := s.Save(keyOf(name), want); err != nil {
			t.Error(err)
			return
		}
	}
}

// TestTwoProcesses uses one directory from this process and from others.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := open(t, dir, limits{disk: 1 << 20})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), "PARLEY_CACHESTORE_CHILD="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	exercise(t, s, 1)
	wg.Wait()
	save(t, s, "7", valueOf("7.", 3000))
	wantValue(t, s, "7", valueOf("7.", 3000))
}

// child is what the other processes of TestTwoProcesses do.
func child(dir string) {
	s, err := limited(dir, limits{disk: 1 << 20})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := range 400 {
		name := fmt.Sprint((i * 3) % 100)
		want := valueOf(name+".", 3000)
		if got, ok := s.Load(context.Background(), keyOf(name)); ok && !bytes.Equal(got, want) {
			fmt.Println(name, "holds another value")
			os.Exit(1)
		}
		if err := sound(s, name); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if err := s.Save(keyOf(name), want); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	s.Close()
}

func TestTouch(t *testing.T) {
	t.Parallel()
	now := time.Now()
	clock := now
	s := open(t, t.TempDir(), limits{now: func() time.Time { return clock }, disk: -1})
	save(t, s, "a", []byte("one"))
	path := s.disk.path(keyOf("a"))
	used := func() time.Time {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	before := used()
	clock = now.Add(30 * time.Minute)
	wantValue(t, s, "a", []byte("one"))
	if !used().Equal(before) {
		t.Error("marked as used within the hour")
	}
	clock = now.Add(2 * time.Hour)
	wantValue(t, s, "a", []byte("one"))
	if d := used().Sub(clock).Abs(); d > time.Minute {
		t.Errorf("not marked as used: %v off", d)
	}
}

// remote is a Remote that returns one thing for every key, and keeps what is saved.
type remote struct {
	load  []byte
	err   error
	saved map[[32]byte][]byte
}

func (r *remote) Load(context.Context, [32]byte) ([]byte, error) { return r.load, r.err }

func (r *remote) Save(key [32]byte, framed []byte) error {
	r.saved[key] = framed
	return r.err
}

// TestOver: of another process only what belongs to the key is taken, and the rest is a miss.
func TestOver(t *testing.T) {
	t.Parallel()
	key, value := keyOf("a"), []byte("answer")
	whole := Frame(key, value)
	changed := slices.Clone(whole)
	changed[len(changed)-1]++
	for _, c := range []struct {
		name string
		load []byte
		err  error
		ok   bool
	}{
		{"whole", whole, nil, true}, {"none", nil, nil, false}, {"changed", changed, nil, false}, {"short", whole[:len(whole)-1], nil, false},
		{"of another key", Frame(keyOf("b"), value), nil, false}, {"too short", []byte("x"), nil, false}, {"away", nil, io.ErrUnexpectedEOF, false},
	} {
		r := &remote{load: c.load, err: c.err, saved: map[[32]byte][]byte{}}
		s := Over(r)
		got, ok := s.Load(t.Context(), key)
		if ok != c.ok || ok && !bytes.Equal(got, value) {
			t.Errorf("%s: %q %v", c.name, got, ok)
		}
		if err := s.Save(key, value); !errors.Is(err, c.err) || !bytes.Equal(r.saved[key], whole) {
			t.Errorf("%s: %v %q", c.name, err, r.saved[key])
		}
	}
}
