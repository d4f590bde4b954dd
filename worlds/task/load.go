package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
)

// maxTasks is how many bytes the files of all tasks may have together: every episode reads them.
const maxTasks = 64 << 20

// Load reads the tasks.
func (definition) Load(p *Params, from world.Files) (advice []string, err error) {
	if p.Tasks == "" {
		return nil, nil
	}
	p.Loaded = nil
	reader, ok := from.(part.FolderReader)
	lister, ok2 := from.(part.FolderLister)
	rows, ok3 := from.(part.RowReader)
	tables, ok4 := from.(part.TOMLReader)
	switch {
	case !ok || !ok2 || !ok3 || !ok4:
		return nil, errors.New("folders cannot be read here")
	case strings.HasSuffix(p.Tasks, ".jsonl"):
		err = p.loadRows(rows)
	default:
		advice, err = p.loadFolders(reader, lister, tables)
	}
	if err != nil {
		return nil, atTasks(err)
	}
	size := 0
	for _, t := range p.Loaded {
		b, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		size += len(b)
	}
	if size > maxTasks {
		return nil, atTasks(fmt.Errorf("the files of the tasks have %d MB together, and at most %d MB are possible: remove what no task needs, or choose tasks with only", size>>20, maxTasks>>20))
	}
	return advice, nil
}

// joined is an error made of several.
type joined interface{ Unwrap() []error }

// atTasks makes errors those of the param.
func atTasks(err error) error {
	c, all := world.ParamErrors{Kind: "task"}, []error{err}
	if many, ok := err.(joined); ok {
		all = many.Unwrap()
	}
	for _, one := range all {
		if strings.HasPrefix(one.Error(), "task: params.") { // it names its param
			c.Add(one)
			continue
		}
		c.Addf("tasks", "%w", one)
	}
	return c.Err()
}

// loadFolders reads Harbor task folders, in the order of their names.
func (p *Params) loadFolders(from part.FolderReader, in part.FolderLister, tables part.TOMLReader) (advice []string, err error) {
	dirs := []string{}
	for _, name := range in.Folders(p.Tasks) {
		if !strings.HasPrefix(name, ".") && (len(p.Only) == 0 || slices.Contains(p.Only, name)) {
			dirs = append(dirs, path.Join(p.Tasks, name))
		}
	}
	slices.Sort(dirs)
	if slices.ContainsFunc(in.Folders(p.Tasks), func(name string) bool { return name == "tests" || name == "environment" }) {
		dirs = []string{p.Tasks} // it is a task itself
	}
	var problems []error
	for _, dir := range dirs {
		all, err := from.Folder(dir)
		if err != nil {
			return nil, err
		}
		f := folder{dir: dir, files: map[string]world.File{}, params: p}
		for _, one := range all {
			f.files[one.Path] = one
		}
		if _, is := f.files["task.toml"]; !is {
			if _, is := f.files["task.yaml"]; is {
				problems = append(problems, fmt.Errorf("%s: it is a task of Terminal-Bench's older format, with task.yaml: convert it to Harbor's, with task.toml", dir))
			}
			continue
		}
		t, err := f.read(tables)
		advice = append(advice, f.advice...)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		p.Loaded = append(p.Loaded, *t)
	}
	if len(problems) == 0 && len(p.Loaded) == 0 && len(dirs) == 0 && len(p.Only) > 0 {
		return nil, p.noneOf(in.Folders(p.Tasks))
	}
	if len(problems) == 0 && len(p.Loaded) == 0 {
		if _, err := from.Folder(p.Tasks); err != nil {
			return nil, err // it is not there, or may not be read
		}
		return nil, fmt.Errorf("%s has no Harbor task folders: each has a task.toml, and the tests in tests/test.sh", p.Tasks)
	}
	return advice, errors.Join(problems...)
}

// row is a task in a file of rows.
type row struct {
	ID     string            `json:"id"`
	Prompt string            `json:"prompt"`
	Files  map[string]string `json:"files"`
	// Check is a command for sh, and CheckFiles are files that are beside the result only while it runs, in $PARLEY_FILES.
	Check      string            `json:"check"`
	CheckFiles map[string]string `json:"check_files"`
	Solution   string            `json:"solution"`
	Timeout    any               `json:"timeout"`
	Env        map[string]string `json:"env"`
	Image      string            `json:"image"`
}

// loadRows reads a file of rows.
func (p *Params) loadRows(from part.RowReader) error {
	seen := map[string]bool{}
	n := 0
	for raw, err := range from.Rows(p.Tasks) {
		if err != nil {
			return err
		}
		n++
		var r row
		wrong := func(format string, args ...any) error {
			return fmt.Errorf("%s: row %d: %s", p.Tasks, n, fmt.Sprintf(format, args...))
		}
		if err := world.DecodeStrict(raw, &r); err != nil {
			return wrong("%v", err)
		}
		timeout, err := timeOf(r.Timeout)
		switch {
		case r.ID == "" || r.Prompt == "" || r.Check == "":
			return wrong("want id, prompt and check")
		case seen[r.ID]:
			return wrong("the id %q is there twice", r.ID)
		case err != nil:
			return wrong("timeout: %v", err)
		}
		seen[r.ID] = true
		t := Task{Name: r.ID, Prompt: r.Prompt, Files: textFiles(r.Files), Env: r.Env, Image: r.Image, Timeout: timeout, Check: &world.Script{Files: textFiles(r.CheckFiles), Command: []string{"sh", "-c", r.Check}}}
		if r.Solution != "" {
			t.Solution = &world.Script{Command: []string{"sh", "-c", r.Solution}}
		}
		if err := t.check(); err != nil {
			return wrong("%v", err)
		}
		if len(p.Only) == 0 || slices.Contains(p.Only, t.Name) {
			p.Loaded = append(p.Loaded, t)
		}
	}
	switch {
	case n == 0:
		return fmt.Errorf("%s has no tasks", p.Tasks)
	case len(p.Loaded) == 0:
		return p.noneOf(slices.Sorted(maps.Keys(seen)))
	}
	return nil
}

// noneOf is the error that only names no task. There are those of these names.
func (p *Params) noneOf(there []string) error {
	c := world.ParamErrors{Kind: "task"}
	if len(there) == 0 {
		c.Addf("tasks", "%s has no tasks", p.Tasks)
	} else {
		c.Addf("only", "names no task of %s; there are: %s", p.Tasks, exhibit.Shorten(strings.Join(there, ", "), 300))
	}
	return c.Err()
}

// timeOf reads a time: a number of seconds, or a text as 5m.
func timeOf(v any) (world.Duration, error) {
	var d world.Duration
	switch v := v.(type) {
	case nil:
	case float64:
		d = world.Duration(v * float64(second))
	case string:
		if err := d.UnmarshalText([]byte(v)); err != nil {
			return 0, err
		}
	default:
		return 0, errors.New("want seconds, or a time as 5m")
	}
	if d < 0 || d > maxTime {
		return 0, fmt.Errorf("want at most %v", maxTime)
	}
	return d, nil
}

func textFiles(of map[string]string) (out []world.File) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, world.File{Path: name, Data: []byte(of[name]), Exec: strings.HasPrefix(of[name], "#!")})
	}
	return out
}
