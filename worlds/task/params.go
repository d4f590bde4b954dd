package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
)

// Params are the params of a plan file.
type Params struct {
	Tasks        string         `json:"tasks" doc:"The tasks: a folder of Harbor task folders, one such folder, or a .jsonl file with a task in each row."`
	Only         []string       `json:"only" doc:"The names of the tasks to play. Empty: all of them."`
	Runtime      Runtime        `json:"runtime" doc:"Where programs and checks run. local: processes of this machine. podman, docker: containers. Or {command: [...]}: your own command before theirs."`
	Timeout      world.Duration `json:"timeout" doc:"How long a program may work on a task, as 20m. 0s: as the task says." range:"0s..168h"`
	CheckTimeout world.Duration `json:"check_timeout" doc:"How long a check may take. 0s: as the task says." range:"0s..168h"`
	Calls        int            `json:"calls" doc:"The most calls of models in one episode; 0: no limit." range:"0..1073741824"`
	Tokens       int            `json:"tokens" doc:"The most tokens, input and output, of the calls of one episode; 0: no limit." range:"0..1099511627776"`
	AtOnce       int            `json:"at_once" doc:"How many programs work at the same time; 0: one for each processor." range:"0..10000"`
	Output       int            `json:"output" doc:"How many bytes of each output, and of the texts of changed files, are kept." range:"1000..10000000"`
	Result       int            `json:"result" doc:"How many bytes of files a program may leave. A larger result is not checked, and its reward is 0." range:"1000..1099511627776"`
	Network      string         `json:"network" doc:"The network of containers. With gateway, programs reach their model and nothing else, and checks nothing. With none, programs reach no model." oneof:"host,gateway,none"`
	Range        []float64      `json:"range" doc:"The lowest and the highest reward. Empty: any number."`
	Pass         float64        `json:"pass" doc:"The reward from which a task has passed."`
	Ignore       []string       `json:"ignore" doc:"Keys of task.toml, as environment.gpus, that are not supported and that you know to be irrelevant."`
	Loaded       []Task         `json:"loaded,omitempty" doc:"The tasks; set when the plan is read."`
}

// local runs programs as processes of this machine.
const local = "local"

// Runtime is where programs and checks run.
type Runtime struct {
	Name    string   // local, podman or docker; empty: by Command
	Command []string // the user's own
}

// MarshalJSON writes what UnmarshalJSON reads.
func (r Runtime) MarshalJSON() ([]byte, error) {
	if len(r.Command) > 0 {
		return json.Marshal(map[string][]string{"command": r.Command})
	}
	return json.Marshal(r.Name)
}

// UnmarshalJSON reads a name or a mapping with a command.
func (r *Runtime) UnmarshalJSON(b []byte) error {
	var own struct {
		Command []string `json:"command"`
	}
	*r = Runtime{}
	if json.Unmarshal(b, &r.Name) == nil {
		return nil
	}
	if err := world.DecodeStrict(b, &own); err != nil || len(own.Command) == 0 {
		return errors.New("params.runtime: want local, podman, docker or {command: [PROGRAM, ARGUMENTS...]}")
	}
	r.Command = own.Command
	return nil
}

// Task is a task.
type Task struct {
	Name   string            `json:"name"`
	Prompt string            `json:"prompt"`
	Files  []world.File      `json:"files,omitempty"`
	Env    map[string]string `json:"env,omitempty"`
	// Workdir is the folder that the task's texts name.
	Workdir  string         `json:"workdir,omitempty"`
	Image    string         `json:"image,omitempty"`
	Build    []world.File   `json:"build,omitempty"` // of the image, with a Dockerfile
	CPUs     float64        `json:"cpus,omitempty"`
	Memory   float64        `json:"memory_mb,omitempty"`
	Timeout  world.Duration `json:"timeout,omitempty"`
	Check    *world.Script  `json:"check"`
	Solution *world.Script  `json:"solution,omitempty"`
}

// maxTime is the longest time of a program or a check.
const maxTime = 7 * 24 * 3600 * second

const second world.Duration = 1e9

// check checks the params and the tasks, which may come from a run file of somebody else.
func (p *Params) check() error {
	c := world.ParamErrors{Kind: "task"}
	if p.Tasks == "" && len(p.Loaded) == 0 {
		c.Addf("tasks", "is missing: name a folder of Harbor task folders, or a .jsonl file")
	}
	if len(p.Runtime.Command) == 0 {
		c.OneOf("runtime", p.Runtime.Name, []string{local, "podman", "docker"})
	}
	for i, arg := range p.Runtime.Command {
		if i == 0 && arg == "" {
			c.Addf("runtime", "the command is empty: want [PROGRAM, ARGUMENTS...]")
		}
		for _, m := range placeholder.FindAllStringSubmatch(arg, -1) {
			if known := strings.Fields("folder home tests logs name image workdir network"); !slices.Contains(known, m[1]) {
				c.Addf("runtime", "unknown placeholder {%s}; want one of {%s}", m[1], strings.Join(known, "}, {"))
			}
		}
	}
	switch named := slices.ContainsFunc(p.Runtime.Command, func(arg string) bool { return strings.Contains(arg, "{network}") }); {
	case p.Network == "host":
	case len(p.Runtime.Command) == 0 && p.Runtime.Name == local:
		c.Addf("network", "%s holds for containers, and with runtime: local programs have the network of this machine: set runtime to podman or docker, or leave network out", p.Network)
	case len(p.Runtime.Command) > 0 && !named:
		c.Addf("network", "%s holds for containers, and the command of runtime does not have {network}: add it, or leave network out", p.Network)
	}
	if n := len(p.Range); n != 0 && (n != 2 || !(p.Range[0] < p.Range[1])) {
		c.Addf("range", "want the lowest and the highest reward, as [0, 1], or [] for any number")
	}
	for _, name := range p.Only {
		if !slices.ContainsFunc(p.Loaded, func(t Task) bool { return t.Name == name }) && len(p.Loaded) > 0 {
			c.Addf("only", "there is no task %q; there are: %s", name, exhibit.Shorten(names(p.Loaded), 300))
		}
	}
	if err := c.Err(); err != nil {
		return err
	}
	if len(p.Loaded) == 0 {
		return fmt.Errorf("task: %w", world.ErrUnread)
	}
	for i := range p.Loaded {
		if err := p.Loaded[i].check(); err != nil {
			return fmt.Errorf("task %q: %w", p.Loaded[i].Name, err)
		}
	}
	return nil
}

// placeholder finds what looks like a placeholder of the command of runtime: not ${name}, which is of the shell, and not {{.Name}}.
var placeholder = regexp.MustCompile(`(?:^|[^${])\{([a-z_]*)\}`)

// maxArgument is how long an argument of a command may be: as Linux has it.
const maxArgument = 128 << 10

func (t *Task) check() error {
	scripts := []*world.Script{t.Check}
	if t.Solution != nil {
		scripts = append(scripts, t.Solution)
	}
	if strings.HasPrefix(t.Image, "-") || strings.ContainsAny(t.Image, " \t\r\n\x00") {
		return fmt.Errorf("the image %q: want the name of an image", t.Image)
	}
	envs := []map[string]string{t.Env}
	all := [][]world.File{t.Files, t.Build}
	for _, s := range scripts {
		if s == nil || len(s.Command) == 0 || s.Command[0] == "" {
			return errors.New("a check or a solution has no command")
		}
		for _, arg := range s.Command {
			if len(arg) >= maxArgument || strings.Contains(arg, "\x00") {
				return fmt.Errorf("a check or a solution has %d bytes, or the byte 0, in its command: want less than %d bytes without it, and more in a file", len(arg), maxArgument)
			}
		}
		envs = append(envs, s.Env)
		all = append(all, s.Files)
	}
	for _, env := range envs {
		for name, value := range env {
			if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
				return fmt.Errorf("the variable %q: want a name without = and a value without the byte 0", name)
			}
		}
	}
	for _, of := range all {
		there := make(map[string]bool, len(of))
		for _, f := range of {
			there[f.Path] = true
		}
		for _, f := range of {
			for dir := path.Dir(f.Path); dir != "." && dir != "/"; dir = path.Dir(dir) {
				if there[dir] {
					return fmt.Errorf("the file %q needs a folder %q, and that is a file too: rename one of them", f.Path, dir)
				}
			}
			if !part.LocalPath(f.Path) {
				return fmt.Errorf("the file %q has a path that leads out of its folder, or cannot be used on every system", f.Path)
			}
		}
	}
	return nil
}
