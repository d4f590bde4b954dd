package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := Read(t.Context(), path, 10); err != nil || string(b) != "0123456789" {
		t.Errorf("%q %v", b, err)
	}
	_, err := Read(t.Context(), path, 9)
	if large, ok := errors.AsType[*TooLargeError](err); !ok || large.Limit != 9 || err.Error() != path+": is larger than 9 bytes" {
		t.Error(err)
	}
	if _, err := Read(t.Context(), dir, 9); !errors.Is(err, ErrNotRegular) || err.Error() != dir+": is a folder, not a regular file" {
		t.Error(err)
	}
	if _, err := Read(t.Context(), path+"x", 9); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if link := filepath.Join(dir, "link"); os.Symlink(path, link) == nil {
		if b, err := Read(t.Context(), link, 10); err != nil || len(b) != 10 {
			t.Errorf("a link: %q %v", b, err)
		}
	}
	why := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := Read(ctx, path, 10); !errors.Is(err, why) || !strings.HasPrefix(err.Error(), path) {
		t.Error(err)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 bytes", 1000: "1000 bytes", 2048: "2 KiB", 1 << 20: "1 MiB", 1<<20 + 1: "1048577 bytes", 3 << 20: "3 MiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
}

func TestParseYAML(t *testing.T) {
	t.Parallel()
	l := YAMLLimits{Tokens: 100, Depth: 5}
	if f, err := ParseYAML("a: &x [1, 2]\nb: *x\n", l); err != nil || len(f.Docs) != 1 {
		t.Error(f, err)
	}
	for text, want := range map[string]string{
		strings.Repeat("[", 10_000):                   "is too large: more than 100 words and signs",
		strings.Repeat("- a\n", 60):                   "line 51: is too large: more than 100 words and signs up to here",
		"a: [[[[[[1]]]]]]":                            "line 1: is nested too deeply: at most 5 levels",
		"- - - - - - - - - - - - - - - - - - - - - 1": "line 1: is nested too deeply: at most 5 levels",
		"a: [":  "line 1: is not YAML: ",
		"a\n\t": "",
	} {
		_, err := ParseYAML(text, l)
		if _, ok := errors.AsType[*YAMLError](err); want != "" && (!ok || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// FuzzParseYAML: there is no panic, and every error is a *YAMLError.
func FuzzParseYAML(f *testing.F) {
	for _, text := range []string{"a: &x [1, 2]\nb: *x\n", "- {a: 1, <<: *b}", "? [\n", "a: |\n  b\n", "%YAML 1.2\n---\n", "\"\\x", "!!binary x", "&a &b *c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParseYAML(text, YAMLLimits{Tokens: 2000, Depth: 20}); err != nil {
			if _, ok := errors.AsType[*YAMLError](err); !ok {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

// TestReplace: the file has the new contents and the mode, and no other file remains, even
// after a failure.
func TestReplace(t *testing.T) {
	t.Parallel()
	testReplace(t, Replace)
	testReplace(t, Publish)
}

func testReplace(t *testing.T, replace func(string, fs.FileMode, []byte) error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	for _, text := range []string{"first", "second"} {
		if err := replace(path, 0o600, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%q, %v; want %q", b, err, text)
		}
	}
	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replace(folder, 0o600, []byte("text")); err == nil {
		t.Error("a folder was replaced")
	}
	if err := replace(filepath.Join(dir, "missing", "a.txt"), 0o600, nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("%v remain, %v", all, err)
	}
}
