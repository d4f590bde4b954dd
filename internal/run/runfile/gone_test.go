package runfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/journal"
)

// TestGone: a writer notices that its file was deleted, moved, replaced or truncated, and writes nothing more.
func TestGone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"deleted":   os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 0) },
		"cut":       func(path string) error { return os.Truncate(path, 4096) },
		"moved":     func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, []byte("another"), 0o600))
		},
	} {
		for _, shard := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, shard: %t", name, shard), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "run.parley")
				s, err := OpenSharded(t.Context(), path, Create, 2)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if shard {
					path = shardFile(path, 2)
				}
				if err := change(path); err != nil {
					t.Skip("the system does not allow it:", err)
				}
				for range 2 {
					if err := s.Append(t.Context(), &journal.Opened{}); !errors.Is(err, ErrGone) {
						t.Errorf("%v, want %v", err, ErrGone)
					}
				}
			})
		}
	}
}

// TestGoneAtClose: a file that is deleted or truncated after the last entry is noticed when it is closed, and only once.
func TestGoneAtClose(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"deleted":   os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 0) },
	} {
		for _, noticed := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "run.parley")
			s, err := Open(t.Context(), path, Create)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Append(t.Context(), &journal.Opened{}); err != nil {
				t.Fatal(err)
			}
			if err := change(path); err != nil {
				t.Skip("the system does not allow it:", err)
			}
			if noticed {
				s.writer.checked = time.Time{}
				if err := s.Append(t.Context(), &journal.Opened{}); !errors.Is(err, ErrGone) {
					t.Errorf("%s: %v, want %v", name, err, ErrGone)
				}
			}
			if err := s.Close(); errors.Is(err, ErrGone) == noticed {
				t.Errorf("%s, noticed before: %t: Close returns %v", name, noticed, err)
			}
		}
	}
}
