package scenario

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
	"parley/internal/run/planfile"
	"parley/world"
)

// parts returns the parts of a corpus file: each begins with a line -- name --.
func parts(t testing.TB, path string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, part := range strings.Split("\n"+string(b), "\n-- ")[1:] {
		name, body, ok := strings.Cut(part, " --\n")
		if !ok {
			t.Fatalf("%s: no name: %.40q", path, part)
		}
		all[name] = strings.TrimSuffix(body, "\n") + "\n"
	}
	return all
}

// folderOf writes the files of the good scenario, replaced by those of a case. A file that is empty in the case
// is left out.
func folderOf(t *testing.T, changed map[string]string) string {
	t.Helper()
	files := parts(t, filepath.Join("testdata", "good.txt"))
	maps.Copy(files, changed)
	dir := t.TempDir()
	for name, text := range files {
		if text == "\n" || name == "want" || name == "advice" {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// rewrite puts the parts of a corpus file back with another last one.
func rewrite(t *testing.T, path string, all map[string]string, last, text string) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != last {
			b.WriteString("-- " + name + " --\n" + all[name])
		}
	}
	if err := os.WriteFile(path, []byte(b.String()+"-- "+last+" --\n"+text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// eachCase makes the text of every file in a folder of testdata, and compares it with the last part of the file.
func eachCase(t *testing.T, folder, last string, atLeast int, text func(t *testing.T, of map[string]string) string) {
	t.Helper()
	cases, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil || len(cases) < atLeast {
		t.Fatalf("%d cases (%v)", len(cases), err)
	}
	for _, path := range cases {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			all := parts(t, path)
			got := text(t, all)
			if testkit.Update() {
				rewrite(t, path, all, last, got)
			} else if got != all[last] {
				t.Errorf("got\n%swant\n%s", got, all[last])
			}
		})
	}
}

// TestBrokenFolders checks that every file in testdata/broken makes the good scenario invalid, with the errors
// at the end of the file.
func TestBrokenFolders(t *testing.T) {
	t.Parallel()
	eachCase(t, "broken", "want", 40, func(t *testing.T, of map[string]string) string {
		dir := folderOf(t, of)
		_, err := planfile.Load(t.Context(), filepath.Join(dir, "plan.yaml"), []world.Kind{Kind()}, nil, planfile.Reach{})
		if err == nil {
			t.Fatal("nothing is wrong with it")
		}
		return strings.ReplaceAll(filepath.ToSlash(err.Error()), filepath.ToSlash(dir)+"/", "") + "\n"
	})
}

// TestAdvice checks that every file in testdata/advice, a change of the good scenario, can be played. The advice is at the end
// of the file.
func TestAdvice(t *testing.T) {
	t.Parallel()
	eachCase(t, "advice", "advice", 10, func(t *testing.T, of map[string]string) string {
		dir := folderOf(t, of)
		p, s := loaded(t, filepath.Join(dir, "plan.yaml"))
		if out := playScript(s, 0, nil); out.failure != "" || out.outcome.Failed != "" {
			t.Error(out.failure, out.outcome.Failed)
		}
		return strings.ReplaceAll(filepath.ToSlash(strings.Join(p.Advice, "\n")), filepath.ToSlash(dir)+"/", "") + "\n"
	})
}
