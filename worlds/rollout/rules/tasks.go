package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"parley/world"
	"parley/world/part"
)

// Task is one environment to be played a number of times: a group.
type Task struct {
	Env    string          `json:"env"`
	Params json.RawMessage `json:"params,omitempty"`
	// Group is the name of the task: the environment and the task's number in its entry, such as maze:3; for a
	// second entry of the same environment maze.2:3. It depends only on the file.
	Group string `json:"group"`
	Index int    `json:"index"` // in its entry, from 1
	Size  int    `json:"size"`  // episodes in the group
}

// Limits of an environments file.
const (
	maxTasks     = 1_000_000
	maxTaskBytes = 128 << 20 // all tasks as JSON: they are params, which are copied several times
	maxEnvNum    = 10_000
	rowRef       = "parquet_row_ref"
	eagerRows    = "eager"
	datasetKey   = "dataset"
)

// environmentsFile is an environments file.
type environmentsFile struct {
	Environments []entry `json:"environments" doc:"The environments to play."`
}

type entry struct {
	EnvName   string          `json:"env_name" doc:"The environment's name."`
	EnvImage  string          `json:"env_image" doc:"The image it runs in. It is not looked at: servers are named in the plan."`
	EnvNum    int             `json:"env_num" doc:"How many episodes are played of each task: 1 where it is left out."`
	Dataset   string          `json:"dataset" doc:"A file of rows (json, jsonl, yaml, parquet), a task each, beside this one."`
	LoadMode  string          `json:"dataset_load_mode" doc:"What of a row the environment is given: eager is the row, parquet_row_ref its file and number." oneof:"eager,parquet_row_ref"`
	EnvParams json.RawMessage `json:"env_params" doc:"What the environment is made with: an object of its own keys."`
}

// loadTasks reads an environments file and returns its tasks, one on a line, for parseTasks. advice lists things to write
// differently in the file.
func loadTasks(name string, files world.Files) (lines string, advice []string, err error) {
	var file environmentsFile
	doc, err := files.YAML(name, &file)
	if err != nil {
		return "", nil, err
	}
	var errs []error
	all := taskList{limit: maxTaskBytes}
	seen := map[string]int{}
	for i, e := range file.Environments {
		key := fmt.Sprintf("environments[%d]", i)
		seen[e.EnvName]++
		err := e.tasks(doc, key, seen[e.EnvName], path.Dir(name), files, all.add)
		if over, ok := errors.AsType[*tooManyError](err); ok {
			return "", nil, errors.Join(append(errs, doc.Fault(key, "%v", over))...)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if e.EnvImage != "" {
			advice = append(advice, doc.Place(key+".env_image")+": is not looked at: params.servers says where environments run")
		}
	}
	if all.n == 0 && len(errs) == 0 {
		errs = append(errs, doc.Fault("environments", "lists no task"))
	}
	return all.out.String(), advice, errors.Join(errs...)
}

// taskList collects tasks, one per line, within limits.
type taskList struct {
	out      strings.Builder
	n, limit int
}

// tooManyError means that there are more tasks than a run can hold.
type tooManyError struct{ what string }

// Error implements error.
func (e *tooManyError) Error() string { return e.what }

func (l *taskList) add(t Task) error {
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if l.n++; l.n > maxTasks {
		return &tooManyError{fmt.Sprintf("more than %d tasks", maxTasks)}
	}
	if l.out.Len()+len(line) >= l.limit {
		return &tooManyError{fmt.Sprintf("the tasks up to here are more than %d MiB: play the rest in another run, or use dataset_load_mode: parquet_row_ref", l.limit>>20)}
	}
	l.out.Write(line)
	l.out.WriteByte('\n')
	return nil
}

// tasks adds the tasks of an entry: one, or one for each row of its dataset. nth numbers the entries of one
// environment.
func (e entry) tasks(doc world.Document, key string, nth int, dir string, files world.Files, add func(Task) error) error {
	if e.EnvNum == 0 {
		e.EnvNum = 1
	}
	if len(e.EnvParams) == 0 || string(e.EnvParams) == "null" {
		e.EnvParams = json.RawMessage("{}")
	}
	switch err := checkName(e.EnvName); {
	case err != nil:
		return doc.Fault(key+".env_name", "%v", err)
	case e.EnvNum < 1 || e.EnvNum > maxEnvNum:
		return doc.Fault(key+".env_num", "%d: want 1 to %d", e.EnvNum, maxEnvNum)
	case !IsObject(e.EnvParams):
		return doc.Fault(key+".env_params", "want an object of the environment's own keys")
	}
	name := e.EnvName
	if nth > 1 {
		name = fmt.Sprintf("%s.%d", name, nth)
	}
	if e.Dataset == "" {
		return add(Task{Env: e.EnvName, Params: e.EnvParams, Group: name + ":1", Index: 1, Size: e.EnvNum})
	}
	reader, ok := files.(part.RowReader)
	if !ok {
		return doc.Fault(key+".dataset", "datasets cannot be read here")
	}
	i := 0
	for row, err := range reader.Rows(path.Join(dir, e.Dataset)) {
		if err != nil {
			return doc.Fault(key+".dataset", "%v", err)
		}
		params, err := e.with(row, i)
		if err != nil {
			return doc.Fault(key+".dataset", "row %d: %v", i+1, err)
		}
		i++
		if err := add(Task{Env: e.EnvName, Params: params, Group: fmt.Sprintf("%s:%d", name, i), Index: i, Size: e.EnvNum}); err != nil {
			return err
		}
	}
	return nil
}

// with returns the entry's params with a row added.
func (e entry) with(row json.RawMessage, i int) (json.RawMessage, error) {
	params := map[string]json.RawMessage{}
	if err := json.Unmarshal(e.EnvParams, &params); err != nil {
		return nil, err
	}
	if e.LoadMode == rowRef {
		ref, err := json.Marshal(map[string]any{"path": e.Dataset, "row": i})
		if err != nil {
			return nil, err
		}
		row = ref
	}
	params[datasetKey] = row
	return json.Marshal(params)
}

// parseTasks reads tasks, one on a line, as loadTasks writes them.
func parseTasks(lines string) (all []Task, err error) {
	for line := range strings.Lines(lines) {
		var t Task
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(all)+1, err)
		}
		if checkName(t.Env) != nil || !IsObject(t.Params) || t.Size < 1 || t.Group == "" {
			return nil, fmt.Errorf("line %d: %w", len(all)+1, errIncomplete)
		}
		all = append(all, t)
	}
	return all, nil
}

var errIncomplete = errors.New("want env, params, group and size")

// nth returns the task as it is played again: for the nth time, from 0. Its group has another name each time.
func (t Task) nth(n int) Task {
	if n > 0 {
		t.Group = fmt.Sprintf("%s/%d", t.Group, n+1)
	}
	return t
}

// entry returns the name of the entry of the file that the task is from: maze.2 of maze.2:3.
func (t Task) entry() string {
	name, _, _ := strings.Cut(t.Group, ":")
	return name
}
