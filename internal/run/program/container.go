package program

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/kit/process"
	"parley/llm"
	"parley/world"
)

// engines are the commands that run containers.
func engines() []string { return []string{"podman", "docker"} }

// image is an image that is built once for all programs.
type image struct {
	once sync.Once
	err  error
}

// where returns where the program and its check run.
func (s *start) where() world.Where {
	if s.q.Work == nil {
		return world.Where{}
	}
	return s.q.Work.Where
}

// contained reports whether programs see other folders than this machine has.
func (s *start) contained() bool { return s.where().Engine != "" }

// workdir is where tasks expect the folder of the program.
func (s *start) workdir() string { return cmp.Or(s.where().Workdir, workdir) }

// homeDir is the program's HOME in a container.
const homeDir = "/parley"

// inside returns where a program sees a folder of its own.
func (s *start) inside(dir string) string {
	switch {
	case !s.contained():
		return dir
	case filepath.Base(dir) == "home":
		return homeDir
	default:
		return s.workdir()
	}
}

// moved returns a text with the folder of the program in place of the one that tasks expect.
func (s *start) moved(text string) string {
	if s.contained() || s.q.Work == nil {
		return text
	}
	return moved(text, [][2]string{{s.workdir(), s.folder()}})
}

// userEnvironment are the variables that an engine needs. None of them reaches the program in a container.
func userEnvironment() map[string]string {
	env := map[string]string{}
	for _, name := range []string{"PATH", "HOME", "USER", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DOCKER_HOST", "DOCKER_CONFIG", "CONTAINER_HOST", "DBUS_SESSION_BUS_ADDRESS", "TMPDIR", "SystemRoot", "USERPROFILE"} {
		if v, ok := os.LookupEnv(name); ok {
			env[name] = v
		}
	}
	return env
}

// contain runs a command in a new container, and removes the container.
func (s *start) contain(ctx context.Context, c process.Command, args []string, env map[string]string, see mounts) (process.Result, error) {
	w := s.where()
	if err := s.useEngine(w.Engine); err != nil {
		return process.Result{}, err
	}
	image, err := s.image(ctx)
	if err != nil {
		return process.Result{}, err
	}
	name := s.container()
	if strings.HasSuffix(c.Mark, "/check") {
		name += "-check"
	}
	network := cmp.Or(w.Network, "host")
	if network == gatewayOnly {
		network = "none"
		if s.gateway != "" && !strings.HasSuffix(c.Mark, "/check") {
			stop, relayed, err := s.relay(args) //nolint:contextcheck // it ends after the program, whose context may have ended
			if err != nil {
				return process.Result{}, err
			}
			defer stop()
			args, see = relayed, merged(see, mounts{s.socket(): socketInside, s.Supervisor[0]: relayInside + ":ro"})
		}
	}
	run := []string{w.Engine, "run", "--rm", "-i", "--name", name, "--label", "parley.run=" + s.Run, "--network", network, "--workdir", s.workdir()}
	if w.CPUs > 0 {
		run = append(run, "--cpus", strconv.FormatFloat(w.CPUs, 'g', -1, 64))
	}
	if w.Memory > 0 {
		run = append(run, "--memory", strconv.FormatFloat(w.Memory, 'f', 0, 64)+"m")
	}
	for _, dir := range slices.Sorted(maps.Keys(see)) {
		run = append(run, "--volume", dir+":"+cmp.Or(see[dir], s.inside(dir)))
	}
	// The values are not in the list of processes, and not in the environment of the engine: a task could make it do what it likes.
	file, err := os.CreateTemp(s.root, "env-")
	if err != nil {
		return process.Result{}, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	for _, variable := range list(merged(env, map[string]string{"TMPDIR": homeDir + "/tmp"})) {
		if strings.ContainsAny(variable, "\r\n") {
			run = append(run, "--env", variable) // a line of the file cannot hold it
			continue
		}
		_, e := file.WriteString(variable + "\n")
		err = errors.Join(err, e)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return process.Result{}, err
	}
	c.Env = list(userEnvironment())
	run = append(run, "--env-file", file.Name(), "--entrypoint", args[0], image)
	c.Args, c.Dir = append(run, args[1:]...), s.dir
	if _, err := os.Stat(c.Dir); err != nil {
		c.Dir = s.root
	}
	defer s.engine(ctx, w.Engine, "rm", "--force", name) //nolint:errcheck // it may be gone already
	return startError(process.Run(ctx, c))
}

// RelayVerb is the first argument of this program when it is a relay: see process.Relay.
const RelayVerb = "relay-program"

// A container that reaches nothing but the gateway has no network. This program in it, which needs nothing of the image, listens where the
// gateway does on the host, and passes on connections through a socket.
const (
	gatewayOnly  = "gateway"
	socketInside = "/parley.sock"
	relayInside  = "/parley-relay"
)

// socket is where the gateway is reached from a container.
func (s *start) socket() string { return filepath.Join(s.dir, "s") }

// relay opens the socket to the gateway, and returns the command that uses it in place of args.
func (s *start) relay(args []string) (stop func(), relayed []string, err error) {
	if len(s.Supervisor) == 0 {
		return nil, nil, &llm.Error{Kind: llm.KindBadRequest, Message: "network: gateway needs Linux: set params.network: host"}
	}
	u, err := url.Parse(s.gateway)
	if err != nil {
		return nil, nil, err
	}
	_ = os.Remove(s.socket())
	ln, err := net.Listen("unix", s.socket()) //nolint:noctx // stop ends it
	if err != nil {
		return nil, nil, fmt.Errorf("a socket to the gateway: %w", err)
	}
	if err := os.Chmod(s.socket(), 0o666); err != nil { // users of containers need it, and its folder is the user's own
		_ = ln.Close()
		return nil, nil, err
	}
	return process.PassOn(ln, "tcp", u.Host), append([]string{relayInside, RelayVerb, socketInside, u.Host}, args...), nil
}

// container returns the name of the container of the program.
func (s *start) container() string {
	sum := sha256.Sum256([]byte(s.name))
	return "parley-" + s.Run + "-" + hex.EncodeToString(sum[:6])
}

// useEngine notes that containers are made, so that they are looked for when this process was killed.
func (s *start) useEngine(engine string) error {
	if !slices.Contains(engines(), engine) {
		return fmt.Errorf("there is no engine %q", engine)
	}
	return os.WriteFile(filepath.Join(s.root, engine), nil, 0o600)
}

// engineTime is how long an engine may take for anything but an image.
const engineTime = time.Minute

// engine runs a command of an engine, and returns its output.
func (r *Runner) engine(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineTime)
	defer cancel()
	res, err := process.Run(ctx, process.Command{Args: args, Env: list(userEnvironment()), Mark: r.engineMark(), Keep: 1 << 16, Timeout: engineTime})
	return engineResult(args, res, err)
}

// engineMark returns the mark of one command of an engine: when it has ended, what has its mark is ended too, and others are in progress.
func (r *Runner) engineMark() string { return fmt.Sprintf("%s/engine/%d", r.Run, r.commands.Add(1)) }

func engineResult(args []string, res process.Result, err error) (string, error) {
	if res, err = startError(res, err); err == nil && res.Exit != 0 {
		err = fmt.Errorf("%s exited with %d: %s", strings.Join(args[:2], " "), res.Exit, lastLine(res.Stderr+"\n"+res.Stdout))
	}
	return strings.TrimSpace(res.Stdout), err
}

// image returns the name of the image of the work, which it builds if it must.
func (s *start) image(ctx context.Context) (string, error) {
	w := s.where()
	if w.Image != "" || len(w.Build) == 0 {
		if w.Image == "" {
			return "", &llm.Error{Kind: llm.KindBadRequest, Message: s.q.Work.Name + " names no image, and has no Dockerfile"}
		}
		return w.Image, nil
	}
	h := sha256.New()
	for _, f := range w.Build {
		fmt.Fprintf(h, "%q %d %t ", f.Path, len(f.Data), f.Exec)
		_, _ = h.Write(f.Data)
	}
	name := "parley-task:" + hex.EncodeToString(h.Sum(nil)[:12])
	s.mu.Lock()
	known := s.images[name]
	if known == nil {
		known = &image{}
		s.images[name] = known
	}
	s.mu.Unlock()
	known.once.Do(func() { known.err = s.build(ctx, name) })
	return name, known.err
}

// buildTime is how long an image may take.
const buildTime = 30 * time.Minute

func (s *start) build(ctx context.Context, name string) error {
	engine := s.where().Engine
	if _, err := s.engine(ctx, engine, "image", "inspect", name); err == nil {
		return nil
	}
	dir, err := os.MkdirTemp(s.root, "image-")
	if err != nil {
		return err
	}
	defer func() { _ = remove(dir) }()
	if err := write(dir, s.where().Build, nil); err != nil {
		return err
	}
	args := []string{engine, "build", "--quiet", "--tag", name, dir}
	res, err := process.Run(ctx, process.Command{Args: args, Env: list(userEnvironment()), Mark: s.engineMark(), Keep: 1 << 16, Timeout: buildTime})
	_, err = engineResult(args, res, err)
	return err
}

// seed copies what an image has in the folder of the work.
func (s *start) seed(ctx context.Context) error {
	if !s.contained() {
		return nil
	}
	w := s.where()
	if err := s.useEngine(w.Engine); err != nil {
		return err
	}
	image, err := s.image(ctx)
	if err != nil {
		return err
	}
	id, err := s.engine(ctx, w.Engine, "create", "--label", "parley.run="+s.Run, image, "true") // many images have no command of their own; it is not started
	if err != nil {
		return err
	}
	_, err = s.engine(ctx, w.Engine, "cp", id+":"+s.workdir()+"/.", s.folder())
	if err != nil && (strings.Contains(err.Error(), "ould not find") || strings.Contains(err.Error(), "could not be found")) {
		err = nil // the image has no such folder: docker's words, and podman's
	}
	_, removed := s.engine(ctx, w.Engine, "rm", "--force", id)
	return errors.Join(err, removed)
}

// wrapped returns the user's own command before that of the program.
func (s *start) wrapped(see mounts) []string {
	values := placeholders{"name": s.container(), "network": cmp.Or(s.where().Network, "host"), "image": s.where().Image, "workdir": s.workdir(), "folder": s.folder(), "home": s.home(), "tests": "", "logs": ""}
	for dir, as := range see {
		switch as {
		case s.workdir():
			values["folder"] = dir
		case testsDir, solutionDir:
			values["tests"] = dir
		case "/logs":
			values["logs"] = filepath.Join(dir, "verifier")
		case "":
			if filepath.Base(dir) == "home" {
				values["home"] = dir
			}
		}
	}
	return values.all(s.where().Wrap)
}

// removeContainers removes the containers with a label.
func (r *Runner) removeContainers(ctx context.Context, engine, label string) {
	ids, err := r.engine(ctx, engine, "ps", "--all", "--quiet", "--filter", "label="+label)
	if err != nil || ids == "" {
		return // the engine is not there any more
	}
	_, _ = r.engine(ctx, append([]string{engine, "rm", "--force"}, strings.Fields(ids)...)...)
}
