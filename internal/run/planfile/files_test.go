package planfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/world"
	"parley/world/worldtest"
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
