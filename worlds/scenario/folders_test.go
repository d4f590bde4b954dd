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
	"parley/worlds/scenario/script"
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

// TestEarlierFolders converts every folder in testdata/earlier, the good scenario in a spelling of the earlier Scenario Lab,
// and plays it. The end of each file has the report and what is written.
func TestEarlierFolders(t *testing.T) {
	t.Parallel()
	eachCase(t, "earlier", "want", 10, converted)
}

// TestEarlierFoldersNameTheConverter: whoever plays a folder of the earlier Scenario Lab as it is reads once what converts it.
func TestEarlierFoldersNameTheConverter(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob(filepath.Join("testdata", "earlier", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, path := range cases {
		dir := folderOf(t, parts(t, path))
		_, err := planfile.Load(t.Context(), filepath.Join(dir, "plan.yaml"), []world.Kind{Kind()}, nil, planfile.Reach{})
		if err == nil {
			continue // a spelling of today
		}
		refused++
		if strings.Count(err.Error(), "parley init scenario --from FOLDER") != 1 {
			t.Errorf("%s: %v", path, err)
		}
	}
	if refused < 8 {
		t.Error("only", refused, "folders were refused")
	}
}

// converted converts the folder of a case, plays the plans that are written, and returns all that was written.
func converted(t *testing.T, of map[string]string) string {
	t.Helper()
	from, to := folderOf(t, of), t.TempDir()
	files, err := planfile.NewFiles(t.Context(), filepath.Join(from, "plan.yaml"), planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := definition{}.Convert(files, "s", "")
	if err != nil {
		t.Fatal(err)
	}
	made.Files["plan.yaml"] = made.Plan
	var b strings.Builder
	for _, line := range made.Report {
		b.WriteString(strings.ReplaceAll(filepath.ToSlash(line), filepath.ToSlash(from)+"/", "") + "\n")
	}
	names := slices.Sorted(maps.Keys(made.Files))
	for _, name := range names {
		b.WriteString("\n== " + name + "\n" + strings.TrimSuffix(made.Files[name], "\n") + "\n")
		path := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(made.Files[name]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		if strings.Contains(name, "/") {
			continue
		}
		p, err := planfile.Load(t.Context(), filepath.Join(to, name), []world.Kind{Kind()}, nil, planfile.Reach{})
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, b.String())
			continue
		}
		for _, line := range p.Advice {
			b.WriteString("\nadvice: " + strings.ReplaceAll(filepath.ToSlash(line), filepath.ToSlash(to)+"/", "") + "\n")
		}
		var s *script.Script
		if s, err = p.Params.Pointer().(*Params).script(); err != nil {
			t.Fatal(err)
		}
		if out := playScript(s, 0, answers(map[string]any{"check": `{"explanation":"","issues":[]}`})); out.failure != "" || out.outcome.Failed != "" {
			t.Error(out.failure, out.outcome.Failed)
		}
	}
	return b.String()
}

// FuzzConvert checks that no file makes the conversion panic, and that what it writes is YAML.
func FuzzConvert(f *testing.F) {
	cases, err := filepath.Glob(filepath.Join("testdata", "earlier", "*.txt"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range cases {
		all := parts(f, path)
		f.Add(all["s/scenario.yaml"], all["s/actors/east.yaml"], all["s/metrics.yaml"], all["s/validation-rules.yaml"], all["s/exogenous-events.yaml"], all["s/batch-config.yaml"])
	}
	f.Fuzz(func(t *testing.T, scenario, actor, metrics, checks, events, batch string) {
		from := folderOf(t, map[string]string{
			"s/scenario.yaml": scenario, "s/actors/east.yaml": actor, "s/metrics.yaml": metrics, "s/validation-rules.yaml": checks, "s/exogenous-events.yaml": events, "s/batch-config.yaml": batch,
		})
		files, err := planfile.NewFiles(t.Context(), filepath.Join(from, "plan.yaml"), planfile.Reach{})
		if err != nil {
			t.Fatal(err)
		}
		made, err := definition{}.Convert(files, "s", "")
		if err != nil {
			return
		}
		for name, text := range made.Files {
			path := filepath.Join(from, "made.yaml")
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			var m map[string]any
			if _, err := files.YAML("made.yaml", &m); err != nil && strings.HasSuffix(name, ".yaml") {
				t.Errorf("%s: %v\n%s", name, err, text)
			}
		}
	})
}
