package scenario

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/world"
	"parley/worlds/scenario/script"
)

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
	made, err := definition{}.Convert(files, "s")
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
		made, err := definition{}.Convert(files, "s")
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
