package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"parley/world"
	"parley/worlds/rollout/rules/protocol"
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

// Plan makes groups of the episodes of a plan file. Each episode is one group or, with an environments file,
// all tasks of the file once. Members of a group have the same deal, so also the same seed, and follow each
// other, so that groups are complete early.
func (Definition) Plan(p *Params, cell world.Spec, seed uint64) (_ world.Plan, err error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Tasks == "" {
		if p.Experience.Lessons == "" {
			return groups(group(cell, p.Group))
		}
		if cell, err = p.spec(cell, seed); err != nil {
			return nil, err
		}
		return groups(group(cell, p.Group))
	}
	tasks, err := p.tasks()
	if err != nil {
		return nil, err
	}
	all := make([]world.Group, 0, len(tasks))
	for i, task := range tasks {
		one := *p
		one.Tasks, one.Environments = "", ""
		one.Env, one.EnvParams = task.Env, task.Params
		task.Index += cell.Deal * len(tasks)
		task.Group = again(task.Group, cell.Deal)
		task.Params = nil
		one.Task = &task
		spec := cell
		spec.Deal = cell.Deal*len(tasks) + i
		if spec, err = one.spec(spec, seed); err != nil {
			return nil, err
		}
		size := task.Size
		if p.Group > 0 {
			size = p.Group
		}
		all = append(all, group(spec, size))
	}
	return groups(all...)
}

// Forecast returns nothing: the plan is its first stage.
func (Definition) Forecast(*Params, world.Spec, uint64) ([]world.Part, error) { return nil, nil }

// Uniform reports whether every deal is the same: tasks and lessons change with the deal.
func (Definition) Uniform(p *Params) bool { return p.Tasks == "" && p.Experience.Lessons == "" }

// spec returns the spec of a task: cell with the params and the lessons.
func (p Params) spec(cell world.Spec, seed uint64) (_ world.Spec, err error) {
	if p.Experience, err = p.Experience.taught(p.Env, cell.Deal, seed); err != nil {
		return cell, err
	}
	if cell.Params, err = json.Marshal(p); err != nil {
		return cell, fmt.Errorf("rollout: params: %w", err)
	}
	return cell, nil
}

// again returns the name of a task's group in a later epoch.
func again(name string, epoch int) string {
	if epoch == 0 {
		return name
	}
	return fmt.Sprintf("%s/%d", name, epoch+1)
}

func group(spec world.Spec, n int) world.Group { return world.Group{Spec: spec, Size: max(1, n)} }

// groups returns a plan of groups.
func groups(all ...world.Group) (world.Plan, error) {
	return world.Blocks(world.Block{Groups: all, Rounds: 1})
}

// GroupOf returns the name of the group of an episode: its task or, without an environments file, its
// environment and deal. Each cell of a matrix has its own groups.
func GroupOf(spec world.Spec) (string, error) {
	var p struct {
		Env  string
		Task *Task
	}
	if spec.Kind == "" && spec.Params == nil {
		return "", nil // its spec was lost
	}
	if err := json.Unmarshal(spec.Params, &p); err != nil {
		return "", fmt.Errorf("rollout: params: %w", err)
	}
	name := fmt.Sprintf("%s:%d", p.Env, spec.Deal+1)
	if p.Task != nil {
		name = p.Task.Group
	}
	if spec.Cell != "" {
		name = spec.Cell + " " + name
	}
	return name, nil
}

// tasks reads what list wrote.
func (p *Params) tasks() (all []Task, err error) {
	for line := range strings.Lines(p.Tasks) {
		var t Task
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			return nil, wrong("tasks", "line %d: %v", len(all)+1, err)
		}
		if protocol.CheckName(t.Env) != nil || !protocol.IsObject(t.Params) || t.Size < 1 || t.Group == "" {
			return nil, wrong("tasks", "line %d: want env, params, group and size", len(all)+1)
		}
		all = append(all, t)
	}
	return all, nil
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

// environments is an environments file.
type environments struct {
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

// Load loads the files that the params name.
func (Definition) Load(p *Params, files world.Files) (advice []string, err error) {
	advice, err = p.list(files)
	return advice, errors.Join(err, p.learn(files))
}

// list loads the tasks of the environments file.
func (p *Params) list(files world.Files) (advice []string, err error) {
	if p.Environments == "" {
		return nil, nil
	}
	var file environments
	doc, err := files.YAML(p.Environments, &file)
	if err != nil {
		return nil, err
	}
	var errs []error
	all := taskList{limit: maxTaskBytes}
	seen := map[string]int{}
	for i, e := range file.Environments {
		key := fmt.Sprintf("environments[%d]", i)
		seen[e.EnvName]++
		err := e.tasks(doc, key, seen[e.EnvName], path.Dir(p.Environments), files, all.add)
		if over, ok := errors.AsType[*tooManyError](err); ok {
			return nil, errors.Join(append(errs, doc.Fault(key, "%v", over))...)
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
	p.Tasks = all.out.String()
	return advice, errors.Join(errs...)
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
	switch err := protocol.CheckName(e.EnvName); {
	case err != nil:
		return doc.Fault(key+".env_name", "%v", err)
	case e.EnvNum < 1 || e.EnvNum > maxEnvNum:
		return doc.Fault(key+".env_num", "%d: want 1 to %d", e.EnvNum, maxEnvNum)
	case !protocol.IsObject(e.EnvParams):
		return doc.Fault(key+".env_params", "want an object of the environment's own keys")
	}
	name := e.EnvName
	if nth > 1 {
		name = fmt.Sprintf("%s.%d", name, nth)
	}
	if e.Dataset == "" {
		return add(Task{Env: e.EnvName, Params: e.EnvParams, Group: name + ":1", Index: 1, Size: e.EnvNum})
	}
	reader, ok := files.(world.RowReader)
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
