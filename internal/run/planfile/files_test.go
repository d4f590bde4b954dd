package planfile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds"
)

// book is what the kind of these tests reads from its files.
type book struct {
	Title string   `json:"title"`
	Pages *int     `json:"pages"`
	Mood  string   `json:"mood" oneof:"calm,tense"`
	Parts []string `json:"parts"`
}

// reading is a kind whose params name a folder of books, to be read by load.
func reading(load func(p *shelf, files world.Files) ([]string, error)) world.Kind {
	return world.Define(reader{worldtest.Simple[shelf]{Kind: world.About{Name: "reading", Version: 1}, Sits: []string{"reader", "critic"}}, load})
}

type reader struct {
	worldtest.Simple[shelf]
	load func(p *shelf, files world.Files) ([]string, error)
}

func (r reader) Load(p *shelf, files world.Files) ([]string, error) { return r.load(p, files) }
func (reader) Models(*shelf) map[string]string                      { return map[string]string{"reader": "sim/read"} }

type shelf struct {
	Folder string `json:"folder"`
	Texts  string `json:"texts,omitempty"`
}

// loadBooks writes files and loads a plan that names them.
func loadBooks(t *testing.T, plan string, files map[string]string, load func(*shelf, world.Files) ([]string, error)) (*planfile.Plan, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(path, []byte("kind: reading\n"+plan), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := planfile.Load(t.Context(), path, []world.Kind{reading(load)}, nil, planfile.Reach{})
	if err != nil {
		err = errors.New(strings.ReplaceAll(filepath.ToSlash(err.Error()), filepath.ToSlash(dir)+"/", ""))
	}
	return p, err
}

// TestFilesOfAPlan: a kind reads the files its params name, and what it makes of them is
// recorded with its params.
func TestFilesOfAPlan(t *testing.T) {
	t.Parallel()
	files := map[string]string{"b/two.md": "Two.", "b/one.md": "\ufeffOne.\r\n", "b/.hidden.md": "no", "b/deeper/three.md": "no", "b/x.yaml": "title: X\npages: 7\n"}
	p, err := loadBooks(t, "agents: {a: sim/small}\nlineup: {critic: a}\nparams: {folder: b}\n", files, func(p *shelf, f world.Files) ([]string, error) {
		for _, name := range f.Match(p.Folder + "/*.md") {
			text, err := f.Text(name)
			if err != nil {
				return nil, err
			}
			p.Texts += name + "=" + text + ";"
		}
		var b book
		d, err := f.YAML(p.Folder+"/x.yaml", &b)
		if err != nil || f.Match("none/*") != nil {
			return nil, fmt.Errorf("a folder that is not there: %q, %w", f.Match("none/*"), err)
		}
		p.Texts += b.Title + fmt.Sprint(*b.Pages)
		_, place, _ := strings.Cut(filepath.ToSlash(d.Place("pages")), "/b/")
		return []string{place}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"folder":"b","texts":"b/one.md=One.\n;b/two.md=Two.;X7"}`; string(p.ParamsJSON) != want {
		t.Errorf("got %s, want %s", p.ParamsJSON, want)
	}
	if len(p.Advice) != 1 || p.Advice[0] != "x.yaml:2:1: pages" {
		t.Errorf("advice %q", p.Advice)
	}
	if p.Lineup["reader"] != "sim/read" || p.Lineup["critic"] != "a" || len(p.Agents) != 2 {
		t.Errorf("lineup %v, agents %+v", p.Lineup, p.Agents)
	}
	never := reading(func(*shelf, world.Files) ([]string, error) { return nil, errors.New("files are read again") })
	again, err := planfile.FromJSON(p.JSON(), []world.Kind{never}, nil)
	if err != nil || string(again.JSON()) != string(p.JSON()) {
		t.Errorf("recorded: %v", err)
	}
}

// TestFaultsOfFiles: what is wrong is named by file, line, column and key, once.
func TestFaultsOfFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"titel: X\n":                "b.yaml:1:1: titel: unknown key; did you mean title? allowed: title, pages, mood, parts\n     1 | titel: X\n       | ^",
		"title: X\npages: many\n":   "b.yaml:2:8: pages: wants a whole number, found the text \"many\"\n     2 | pages: many\n       |        ^",
		"title: X\nmood: calmm\n":   "b.yaml:2:7: mood: wants one of calm, tense, found the text \"calmm\"; did you mean calm?\n     2 | mood: calmm\n       |       ^",
		"pages: 3\n":                "b.yaml:1:1: title: is missing\n     1 | pages: 3\n       | ^",
		"title: X\nparts: [a, a]\n": "b.yaml:2:12: parts[1]: is there twice\n     2 | parts: [a, a]\n       |            ^",
		"- a\n":                     "b.yaml:1:1: wants a mapping (key: value), found a list\n     1 | - a\n       | ^",
		"":                          "b.yaml: is empty",
	} {
		_, err := loadBooks(t, "agents: {a: sim/small}\n", map[string]string{"b.yaml": text}, func(_ *shelf, f world.Files) ([]string, error) {
			var b book
			d, err := f.YAML("b.yaml", &b)
			if d == nil {
				return nil, err
			}
			errs := []error{err}
			if b.Title == "" {
				errs = append(errs, d.Fault("title", "is missing"))
			}
			for i := range b.Parts {
				if i > 0 && b.Parts[i] == b.Parts[i-1] {
					errs = append(errs, d.Fault(fmt.Sprintf("parts[%d]", i), "is there twice"), d.Fault(fmt.Sprintf("parts[%d]", i), "is said twice"))
				}
			}
			return nil, errors.Join(errs...)
		})
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", text, got, want)
		}
	}
	_, err := loadBooks(t, "agents: {a: sim/small}\nparams: {folder: x}\n", nil, func(_ *shelf, f world.Files) ([]string, error) {
		_, err := f.Text("none.md")
		return nil, errors.Join(err, errors.New("reading: params.folder: is no shelf"))
	})
	if got := fmt.Sprint(err); !strings.Contains(got, "none.md: there is no such file") || !strings.Contains(got, "plan.yaml:3:18: params.folder: is no shelf") {
		t.Error(got)
	}
}

// neighbours makes a plan's folder and another beside it that holds a secret, and returns both.
func neighbours(t *testing.T, files map[string]string) (own, other string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own, other = filepath.Join(root, "own"), filepath.Join(root, "other")
	all := map[string]string{"other/secret.json": `[{"text": "hush"}]`, "other/secret.txt": "hush", "own/here.txt": "here"}
	for name, text := range files {
		all["own/"+name] = strings.ReplaceAll(text, "OTHER", filepath.ToSlash(other))
	}
	for name, text := range all {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return own, other
}

// link makes a symbolic link, where the system lets it.
func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
}

const (
	rolloutPlan = "kind: rollout\nagents: {a: sim/small}\nparams: {env: maze}\n"
	environment = "kind: rollout\nagents: {a: sim/small}\nparams:\n  environments: tasks.yaml\n"
)

// TestOutside: a plan names no file outside its folder, whichever key names it, unless the user
// allows the folder.
func TestOutside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan, tasks, want string
	}{
		"dataset":         {environment, "environments:\n  - {env_name: maze, dataset: ../other/secret.json}\n", "tasks.yaml:2:31: environments[0].dataset: "},
		"environments":    {strings.ReplaceAll(environment, "tasks.yaml", "../other/secret.json"), "", "plan.yaml:4:17: params.environments: "},
		"start":           {"kind: diplomacy\nagents: {a: sim/small}\nparams:\n  start: ../other/secret.json\n", "", "plan.yaml:4:10: params.start: "},
		"problems":        {"kind: evolve\nagents: {a: sim/small}\nparams:\n  problems: {source: file, file: ../other/secret.json}\n", "", "plan.yaml:4:34: params.problems.file: "},
		"scenario":        {"kind: scenario\nparams:\n  folder: ../other\n", "", "plan.yaml:3:11: params.folder: "},
		"templates":       {"kind: diplomacy\nagents: {a: sim/small}\nparams:\n  templates: {ALL: ../other}\n", "", "plan.yaml:4:20: params.templates.ALL: "},
		"prices":          {rolloutPlan + "prices: ../other/secret.json\n", "", "plan.yaml:4:9: prices: "},
		"out":             {rolloutPlan + "out: ../other/new.parley\n", "", "plan.yaml:4:6: out: "},
		"cache":           {rolloutPlan + "cache: OTHER\n", "", "plan.yaml:4:8: cache: "},
		"through and out": {rolloutPlan + "prices: OTHER/../other/./secret.json\n", "", "plan.yaml:4:9: prices: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own, other := neighbours(t, map[string]string{"plan.yaml": c.plan, "tasks.yaml": c.tasks})
			plan := filepath.Join(own, "plan.yaml")
			_, err := planfile.Load(t.Context(), plan, worlds.Standard(), nil, planfile.Reach{})
			if err == nil {
				t.Fatal("it is read")
			}
			for _, want := range []string{filepath.Join(own, "") + string(filepath.Separator) + c.want, " leads to " + other, "outside the folder of " + plan, "--allow-files "} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant %s", err, want)
				}
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("it was read: %v", err)
			}
			_, err = planfile.Load(t.Context(), plan, worlds.Standard(), nil, planfile.Reach{Folders: []string{other}})
			if err != nil && strings.Contains(err.Error(), "outside the folder") {
				t.Errorf("allowed, and still refused: %v", err)
			}
		})
	}
}

// TestOutsideByLink: a link in a plan's folder does not lead outside of it, also where
// it leads to nothing yet; a folder that is itself a link is one like others.
func TestOutsideByLink(t *testing.T) {
	t.Parallel()
	reads := func(name string) world.Kind {
		return reading(func(p *shelf, files world.Files) (_ []string, err error) {
			p.Texts, err = files.Text(name)
			return nil, err
		})
	}
	own, other := neighbours(t, map[string]string{"plan.yaml": "kind: reading\nagents: {a: sim/small}\nparams:\n  folder: scene\n", "out.yaml": "kind: reading\nagents: {a: sim/small}\nout: new.parley\n"})
	link(t, filepath.Join(other, "secret.txt"), filepath.Join(own, "scene", "x.md"))
	link(t, filepath.Join(own, "here.txt"), filepath.Join(own, "scene", "y.md"))
	link(t, filepath.Join(other, "none"), filepath.Join(own, "new.parley"))
	link(t, own, filepath.Join(other, "way"))
	load := func(ctx context.Context, plan, name string, reach planfile.Reach) (*planfile.Plan, error) {
		return planfile.Load(ctx, plan, []world.Kind{reads(name)}, nil, reach)
	}
	for _, dir := range []string{own, filepath.Join(other, "way")} {
		plan := filepath.Join(dir, "plan.yaml")
		_, err := load(t.Context(), plan, "scene/x.md", planfile.Reach{})
		if err == nil || !strings.Contains(err.Error(), "plan.yaml:4:11: params.folder: ") || !strings.Contains(err.Error(), filepath.Join(other, "secret.txt")) {
			t.Errorf("%v", err)
		}
		p, err := load(t.Context(), plan, "scene/y.md", planfile.Reach{})
		if err != nil || p.Params.Pointer().(*shelf).Texts != "here" || len(p.Outside) > 0 {
			t.Errorf("a link within the folder: %v", err)
		}
		p, err = load(t.Context(), plan, "scene/x.md", planfile.Reach{Folders: []string{other}})
		if err != nil || !slices.Equal(p.Outside, []string{filepath.Join(other, "secret.txt")}) {
			t.Errorf("%+v, %v", p, err)
		}
		if _, err := load(t.Context(), filepath.Join(dir, "out.yaml"), "here.txt", planfile.Reach{}); err == nil || !strings.Contains(err.Error(), "out.yaml:3:6: out: ") {
			t.Errorf("a link to nothing: %v", err)
		}
	}
}

// TestOutsideTyped: what the user types needs no permission; what others set does, and so does
// a link in the plan's folder.
func TestOutsideTyped(t *testing.T) {
	t.Parallel()
	own, other := neighbours(t, map[string]string{"plan.yaml": rolloutPlan})
	link(t, other, filepath.Join(own, "link"))
	for _, c := range []struct {
		set     string
		foreign bool
		refused bool
	}{
		{"params.environments=../other/secret.json", false, false},
		{"params.environments=../other/secret.json", true, true},
		{"params.environments=link/secret.json", false, true},
		{"prices=../other/secret.json", false, false},
		{"prices=../other/secret.json", true, true},
	} {
		_, err := planfile.Load(t.Context(), filepath.Join(own, "plan.yaml"), worlds.Standard(), []string{c.set}, planfile.Reach{Foreign: c.foreign})
		if refused := err != nil && strings.Contains(err.Error(), "outside the folder"); refused != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestAllowFilesMissing: a folder that is allowed must be there, so that a slip is noticed.
func TestAllowFilesMissing(t *testing.T) {
	t.Parallel()
	own, _ := neighbours(t, map[string]string{"plan.yaml": rolloutPlan})
	_, err := planfile.Load(t.Context(), filepath.Join(own, "plan.yaml"), worlds.Standard(), nil, planfile.Reach{Folders: []string{filepath.Join(own, "none")}})
	if err == nil || !strings.Contains(err.Error(), "--allow-files") {
		t.Errorf("%v", err)
	}
}
