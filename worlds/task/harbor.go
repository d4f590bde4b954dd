package task

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
)

// folder is a Harbor task folder.
type folder struct {
	dir    string
	files  map[string]world.File
	params *Params
	advice []string
}

// config is task.toml, as far as it is supported. Other keys are refused: see refused.
type config struct {
	SchemaVersion string         `toml:"schema_version"`
	Version       string         `toml:"version"`
	Source        string         `toml:"source"`
	Metadata      map[string]any `toml:"metadata"`
	Task          map[string]any `toml:"task"`
	Agent         phase          `toml:"agent"`
	Verifier      verifier       `toml:"verifier"`
	Environment   environment    `toml:"environment"`
	Solution      struct {
		Env map[string]string `toml:"env"`
	} `toml:"solution"`
}

type phase struct {
	Timeout float64 `toml:"timeout_sec"`
	Network string  `toml:"network_mode"`
}

type verifier struct {
	phase
	Env  map[string]string `toml:"env"`
	Mode string            `toml:"environment_mode"`
}

type environment struct {
	BuildTimeout float64           `toml:"build_timeout_sec"`
	Image        string            `toml:"docker_image"`
	OS           string            `toml:"os"`
	CPUs         float64           `toml:"cpus"`
	Memory       float64           `toml:"memory_mb"`
	Storage      float64           `toml:"storage_mb"`
	GPUs         int               `toml:"gpus"`
	Env          map[string]string `toml:"env"`
	Workdir      string            `toml:"workdir"`
	Network      string            `toml:"network_mode"`
	Internet     *bool             `toml:"allow_internet"`
}

// refused are the keys of task.toml that Harbor has and Parley does not support, and why.
func refused() map[string]string {
	return map[string]string{
		"steps": "tasks of several steps are not supported", "multi_step_reward_strategy": "tasks of several steps are not supported",
		"artifacts": "a check gets the whole folder of the program and nothing else", "verifier.collect": "a check gets the whole folder of the program and nothing else",
		"agent.user": "programs run as the user who runs Parley", "verifier.user": "checks run as the user who runs Parley",
		"agent.allowed_hosts": "lists of allowed hosts are not supported", "verifier.allowed_hosts": "lists of allowed hosts are not supported", "environment.allowed_hosts": "lists of allowed hosts are not supported",
		"verifier.environment":  "a check runs in the environment of the task",
		"environment.gpu_types": "accelerators are not given to programs", "environment.tpu": "accelerators are not given to programs",
		"environment.skills_dir": "skills are not given to programs", "environment.mcp_servers": "MCP servers are not started", "environment.healthcheck": "health checks are not supported",
		"environment.memory": "write memory_mb", "environment.storage": "write storage_mb",
	}
}

// read reads the task.
func (f *folder) read(tables part.TOMLReader) (*Task, error) {
	at := path.Join(f.dir, "task.toml")
	var c config
	unknown, err := tables.TOML(at, &c)
	if err != nil {
		return nil, err
	}
	problems := f.problems(at, unknown, &c)
	prompt := strings.TrimSpace(string(f.files["instruction.md"].Data))
	if prompt == "" {
		problems = append(problems, fmt.Errorf("%s: is missing or empty: it is the question to the program", path.Join(f.dir, "instruction.md")))
	}
	t := &Task{Name: path.Base(f.dir), Prompt: prompt, Workdir: c.Environment.Workdir, Image: c.Environment.Image, CPUs: c.Environment.CPUs, Memory: c.Environment.Memory}
	t.Timeout = f.seconds(&problems, at, "agent.timeout_sec", c.Agent.Timeout)
	t.Env = f.env(&problems, at, "environment.env", c.Environment.Env)
	t.Check = f.script("tests", "test.sh")
	if t.Check == nil {
		problems = append(problems, fmt.Errorf("%s: is missing: it checks the result", path.Join(f.dir, "tests/test.sh")))
	} else {
		t.Check.Reward = true
		t.Check.Env = f.env(&problems, at, "verifier.env", c.Verifier.Env)
		t.Check.Timeout = f.seconds(&problems, at, "verifier.timeout_sec", c.Verifier.Timeout)
	}
	if t.Solution = f.script("solution", "solve.sh"); t.Solution != nil {
		t.Solution.Env = f.env(&problems, at, "solution.env", c.Solution.Env)
	}
	f.environment(t, &problems)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return t, t.check()
}

// problems lists what task.toml and the folder ask for that is not supported.
func (f *folder) problems(at string, unknown []string, c *config) (all []error) {
	not := func(key, format string, args ...any) {
		if !slices.Contains(f.params.Ignore, key) {
			all = append(all, fmt.Errorf("%s: %s: %s; if that does not matter here, add %[2]q to params.ignore", at, key, fmt.Sprintf(format, args...)))
		}
	}
	why, said := refused(), map[string]bool{}
	for _, name := range unknown {
		if strings.HasPrefix(name, "metadata.") || strings.HasPrefix(name, "task.") {
			continue // they are for readers
		}
		for known := range why {
			if name == known || strings.HasPrefix(name, known+".") {
				name = known
			}
		}
		if said[name] {
			continue
		}
		said[name] = true
		if reason, known := why[name]; known {
			not(name, "%s", reason)
		} else {
			not(name, "is unknown: Parley knows no such key of Harbor")
		}
	}
	local, open := f.params.Runtime.Name == local, "programs have the network of this machine, unless an engine runs them and the param network says otherwise"
	closed := !local && f.params.Network != "" && f.params.Network != "host"
	networks := map[string]string{"agent.network_mode": c.Agent.Network, "verifier.network_mode": c.Verifier.Network, "environment.network_mode": c.Environment.Network}
	for _, key := range slices.Sorted(maps.Keys(networks)) {
		if mode := networks[key]; mode != "" && mode != "public" && !(closed && mode == "no-network") {
			not(key, "%q is not supported: %s", mode, open)
		}
	}
	if in := c.Environment.Internet; in != nil && !*in && !closed {
		not("environment.allow_internet", "false is not supported: %s", open)
	}
	if os := c.Environment.OS; os != "" && os != "linux" {
		not("environment.os", "%q is not supported", os)
	}
	if c.Environment.GPUs > 0 {
		not("environment.gpus", "accelerators are not given to programs")
	}
	if mode := c.Verifier.Mode; mode != "" && mode != "shared" && mode != "separate" {
		not("verifier.environment_mode", "%q is unknown", mode)
	}
	for _, name := range []string{"trajectory.json", "environment/docker-compose.yaml", "environment/docker-compose.yml", "tests/test.bat", "solution/solve.bat"} {
		if _, there := f.files[name]; there {
			all = append(all, fmt.Errorf("%s: is not supported", path.Join(f.dir, name)))
		}
	}
	if (c.Environment.CPUs > 0 || c.Environment.Memory > 0) && local {
		f.advise("environment.cpus and memory_mb hold for containers, and not with runtime: local")
	}
	if c.Environment.Storage > 0 {
		f.advise("environment.storage_mb is not enforced; params.result limits what a program may leave")
	}
	return all
}

func (f *folder) advise(format string, args ...any) {
	f.advice = append(f.advice, path.Join(f.dir, "task.toml")+": "+fmt.Sprintf(format, args...))
}

// script returns a command of the task with its files.
func (f *folder) script(in, name string) *world.Script {
	if _, there := f.files[in+"/"+name]; !there {
		return nil
	}
	s := &world.Script{Command: []string{"/" + in + "/" + name}}
	s.Files = f.below(in)
	for i := range s.Files {
		if s.Files[i].Path == name {
			s.Files[i].Exec = true // as Harbor makes it
		}
	}
	return s
}

// below returns the files in a folder of the task.
func (f *folder) below(dir string) (out []world.File) {
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			one := f.files[name]
			one.Path = rest
			out = append(out, one)
		}
	}
	return out
}

func (f *folder) seconds(problems *[]error, at, key string, v float64) world.Duration {
	if !(v >= 0 && v <= float64(maxTime/second)) {
		*problems = append(*problems, fmt.Errorf("%s: %s: %v: want 0 to %v", at, key, v, float64(maxTime/second)))
		return 0
	}
	return world.Duration(v * float64(second))
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// env returns variables with the defaults of those of the host that they name. Nothing of the user's environment reaches a program.
func (f *folder) env(problems *[]error, at, key string, of map[string]string) map[string]string {
	out := map[string]string{}
	for name, v := range of {
		out[name] = variable.ReplaceAllStringFunc(v, func(s string) string {
			m := variable.FindStringSubmatch(s)
			if m[2] == "" {
				*problems = append(*problems, fmt.Errorf("%s: %s.%s: names the variable %s of this machine, and programs and checks get none of them: write a value or a default, as ${%[4]s:-none}", at, key, name, m[1]))
			}
			return m[3]
		})
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// environment reads the folder environment: in containers it is the image, and without them, what the Dockerfile copies and sets.
func (f *folder) environment(t *Task, problems *[]error) {
	all := f.below("environment")
	at := slices.IndexFunc(all, func(one world.File) bool { return one.Path == "Dockerfile" })
	p := f.params.Runtime
	switch {
	case at < 0:
		if t.Image == "" && p.Name != local && len(p.Command) == 0 {
			*problems = append(*problems, fmt.Errorf("%s: is missing, and task.toml names no environment.docker_image: runtime %s needs one of them", path.Join(f.dir, "environment/Dockerfile"), p.Name))
		}
		t.Files = all
	case p.Name != local && len(p.Command) == 0:
		if t.Image == "" {
			t.Build = all
		}
		t.Workdir = orDockerfile(t.Workdir, string(all[at].Data))
	default:
		f.dockerfile(t, all, string(all[at].Data), problems)
	}
	if t.Workdir != "" && !path.IsAbs(t.Workdir) {
		*problems = append(*problems, fmt.Errorf("%s: the working folder %q: want an absolute path", f.dir, t.Workdir))
	}
}

// orDockerfile returns the last WORKDIR of a Dockerfile if none is set.
func orDockerfile(workdir, text string) string {
	if workdir != "" {
		return workdir
	}
	for _, l := range instructions(text) {
		if l.name == "WORKDIR" {
			workdir = path.Join("/", workdir, l.rest)
		}
	}
	return workdir
}

// instruction is one of a Dockerfile.
type instruction struct {
	line       int
	name, rest string
}

// instructions reads a Dockerfile.
func instructions(text string) (all []instruction) {
	joined, from := "", 0
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || line == "" && joined == "" {
			continue
		}
		if joined == "" {
			from = i + 1
		}
		more := strings.HasSuffix(line, "\\")
		joined += strings.TrimSuffix(line, "\\") + " "
		if more {
			continue
		}
		name, rest, _ := strings.Cut(strings.TrimSpace(joined), " ")
		all = append(all, instruction{from, strings.ToUpper(name), strings.TrimSpace(rest)})
		joined = ""
	}
	return all
}

// dockerfile does what a Dockerfile does to the working folder, for programs that are not in a container: it copies files there and sets
// variables. Nothing is installed.
func (f *folder) dockerfile(t *Task, context []world.File, text string, problems *[]error) {
	name, env := path.Join(f.dir, "environment/Dockerfile"), map[string]string{}
	t.Workdir = orDockerfile(t.Workdir, text)
	root := path.Clean("/" + t.Workdir)
	if t.Workdir == "" {
		root = "/app"
	}
	at := "/"
	for _, l := range instructions(text) {
		switch l.name {
		case "FROM", "CMD", "LABEL", "EXPOSE", "STOPSIGNAL", "SHELL", "ENTRYPOINT", "HEALTHCHECK", "ARG", "USER":
		case "WORKDIR":
			at = path.Join(at, l.rest)
			if path.IsAbs(l.rest) {
				at = path.Clean(l.rest)
			}
		case "ENV":
			for pair := range strings.FieldsSeq(l.rest) {
				if k, v, ok := strings.Cut(pair, "="); ok {
					env[k] = strings.Trim(v, `"'`)
				}
			}
		case "COPY", "ADD":
			if err := copied(t, context, l.rest, at, root); err != nil {
				*problems = append(*problems, fmt.Errorf("%s:%d: %w; with runtime: local, only files for %s can be copied. Use runtime: podman or docker", name, l.line, err, root))
			}
		case "RUN":
			f.advice = append(f.advice, fmt.Sprintf("%s:%d: RUN %s is not run with runtime: local: what it installs must be on this machine", name, l.line, exhibit.Shorten(l.rest, 80)))
		default:
			*problems = append(*problems, fmt.Errorf("%s:%d: %s is not supported with runtime: local", name, l.line, l.name))
		}
	}
	maps.Copy(env, t.Env)
	if len(env) > 0 {
		t.Env = env
	}
}

// copied does what COPY does, for destinations in the working folder.
func copied(t *Task, context []world.File, args, at, root string) error {
	words := strings.Fields(args)
	if len(words) < 2 || strings.HasPrefix(words[0], "--") || strings.HasPrefix(words[0], "[") || strings.Contains(args, "://") {
		return fmt.Errorf("COPY %s: want COPY SOURCE... DESTINATION, without flags", args)
	}
	sources, to := words[:len(words)-1], words[len(words)-1]
	folder := strings.HasSuffix(to, "/") || to == "." || len(sources) > 1
	if !path.IsAbs(to) {
		to = path.Join(at, to)
	}
	to = path.Clean(to)
	rel, ok := strings.CutPrefix(to+"/", root+"/")
	if !ok {
		return fmt.Errorf("COPY to %s, outside of the working folder %s", to, root)
	}
	rel = strings.TrimSuffix(rel, "/")
	for _, s := range sources {
		s = path.Clean(s)
		found := false
		for _, one := range context {
			switch below, in := strings.CutPrefix(one.Path, s+"/"); {
			case s == ".":
				one.Path = path.Join(rel, one.Path)
			case in:
				one.Path = path.Join(rel, below)
			case one.Path == s && folder, one.Path == s && rel == "":
				one.Path = path.Join(rel, path.Base(s))
			case one.Path == s:
				one.Path = rel
			default:
				continue
			}
			found = true
			t.Files = append(slices.DeleteFunc(t.Files, func(old world.File) bool { return old.Path == one.Path }), one)
		}
		if !found {
			return fmt.Errorf("COPY %s: there is no such file in environment/", s)
		}
	}
	return nil
}
