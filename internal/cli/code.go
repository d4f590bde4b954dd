package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"parley/internal/ask/trust"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/score"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/internal/run/worker"
	"parley/journal"
	"parley/world"
)

// loadPlanFile reads a plan file, and opens the code of its kind and of its params.
func (s *State) loadPlanFile(ctx context.Context, path string, sets []string, reach planfile.Reach) (*planfile.Plan, error) {
	origin, err := s.planCode(ctx, path, reach)
	if err != nil {
		return nil, err
	}
	plan, err := planfile.Load(ctx, path, s.Kinds, sets, reach)
	if err != nil {
		return nil, err
	}
	return plan, s.openParams(plan, origin)
}

// loadPlan reads a plan and its files, which may be large: a signal ends it.
func loadPlan(ctx context.Context, s *State, file string, sets []string, reach planfile.Reach) (*planfile.Plan, error) {
	origin, err := s.planCode(ctx, file, reach) // it may ask, and a signal ends the question
	if err != nil {
		return nil, err
	}
	ctx, end := untilSignal(ctx, s)
	plan, err := planfile.Load(ctx, file, s.Kinds, sets, reach)
	end() // a signal at the last moment still counts: the player would wait for another one
	_, interrupted := errors.AsType[*exit.Error](context.Cause(ctx))
	switch {
	case interrupted:
		return nil, exit.Silent(exit.Interrupted)
	case err != nil:
		return nil, exit.AsUsage(err)
	}
	return plan, s.openParams(plan, origin)
}

// planCode opens the code of the kind of a plan file. The code is beside the plan, or within reach.
func (s *State) planCode(ctx context.Context, path string, reach planfile.Reach) (codeOrigin, error) {
	origin := codeOrigin{file: path, folders: []string{filepath.Dir(path)}, Named: planfile.Peek(ctx, path), reach: reach}
	if origin.Kind == score.RubricName {
		return origin, exit.Usagef("%s: kind rubric: it scores a run; use parley score RUN --with %s", path, terminal.ShellWord(path))
	}
	if err := s.openKind(origin); err != nil {
		return origin, err
	}
	if inner, file := origin.Plays(ctx, filepath.Dir(path)); file != "" {
		return origin, s.openKind(codeOrigin{file: file, folders: []string{filepath.Dir(file)}, Named: inner, reach: reach})
	}
	return origin, nil
}

// recordedCode opens the code of a run file that is resumed. The code is beside the run file or in the current folder. It
// reports nothing about the run file itself.
func (s *State) recordedCode(ctx context.Context, p app.Play) error {
	if p.Plan != nil || p.Reach == nil {
		return nil
	}
	about, err := outlineOf(ctx, p.File)
	if err != nil || about.Begun == nil {
		return nil //nolint:nilerr // whoever opens the file to play it reports the error
	}
	origin := codeOrigin{file: p.File, folders: []string{filepath.Dir(p.File), "."}, Named: planfile.PeekJSON(about.Begun.Plan), reach: *p.Reach}
	if what, err := results.ScoredOf(about.Begun); err == nil && what.Run != "" {
		return s.resumeScorer(ctx, what, origin)
	}
	if err := s.openKind(origin); err != nil {
		return err
	}
	if inner, _ := origin.Plays(ctx, ""); inner.Kind != "" {
		of := origin
		of.Named = inner
		if err := s.openKind(of); err != nil {
			return err
		}
	}
	plan, err := planfile.FromJSON(about.Begun.Plan, s.Kinds, nil)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	return s.openParams(plan, origin)
}

// codeOrigin is a file that names code.
type codeOrigin struct {
	planfile.Named
	file    string
	folders []string // that may hold the code
	reach   planfile.Reach
	typed   bool // the user typed the name of the code, which allows it
}

// openKind starts a worker for a kind whose code is in a file, and makes the kind known. It gives the other kinds the code
// that their params may name.
func (s *State) openKind(origin codeOrigin) error {
	if s.codes == nil {
		s.codes = &codeSet{}
		for i, k := range s.Kinds {
			s.Kinds = slices.Clone(s.Kinds)
			s.Kinds[i] = k.WithCode(s.codes)
		}
	}
	_, class, ok := worker.Source(origin.Kind)
	if !ok || slices.ContainsFunc(s.Kinds, func(k world.Kind) bool { return k.Name == origin.Kind }) {
		return nil
	}
	c := worker.Config{Name: origin.Kind, Class: class, Conn: s.conn}
	if c.Conn == nil {
		var err error
		if c, err = s.codeConfig(origin.Kind, origin.Place, origin); err != nil {
			return err
		}
	}
	pool, kind, err := worker.Open(c)
	if err != nil {
		return exit.Usagef("%s: %s", origin.Place, terminal.Safe(err.Error()))
	}
	s.pools = append(s.pools, pool)
	s.Kinds = append(slices.Clip(s.Kinds), kind)
	return nil
}

// openParams starts workers for the code that the params of a plan name.
func (s *State) openParams(plan *planfile.Plan, origin codeOrigin) error {
	plan = plan.Acting()
	asked, err := plan.Asked()
	if err != nil {
		return exit.AsUsage(err)
	}
	for _, spec := range asked.Next(nil).Distinct() {
		params, err := plan.Kind.Read(spec.Params)
		if err != nil {
			return exit.AsUsage(err)
		}
		for _, n := range plan.Kind.Code(params) {
			if err := s.openName(n, origin, func() string { return plan.ParamPlace(spec.Params, n.Param) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// openName starts workers for code, unless it has some. place says where the plan names it; empty: in its params.
func (s *State) openName(n world.CodeName, origin codeOrigin, place func() string) error {
	if _, err := s.codes.Find(n.Name); err == nil {
		return nil
	}
	at := cmp.Or(place(), origin.At("params", n.Param))
	c, err := s.codeConfig(n.Name, at, origin)
	if err != nil {
		return err
	}
	code, err := worker.OpenEnvironment(c)
	if err != nil {
		return exit.Usagef("%s: %s", at, terminal.Safe(err.Error()))
	}
	s.pools = append(s.pools, code)
	s.codes.add(n.Name, code)
	return nil
}

// codeConfig says how to start workers with code, if the user allows it. place is where the code is named.
func (s *State) codeConfig(name, place string, origin codeOrigin) (c worker.Config, err error) {
	file, class, _ := worker.Source(name)
	c = worker.Config{Name: name, Class: class}
	var folder string
	if c.File, folder, err = findCode(file, origin); err != nil {
		return c, exit.Usagef("%s: %w", place, err)
	}
	s.codeFolders = append(s.codeFolders, folder)
	if !origin.typed {
		err = s.allowCode(trust.Need{Grant: trust.Grant{What: trust.Code, Name: c.File}, Source: "the file " + origin.file, Place: place})
	}
	if err != nil {
		return c, err
	}
	program, err := worker.FindPython(func(name string) string { v, _ := s.Env(name); return v })
	if err != nil {
		return c, exit.Usagef("%s: %w", place, err)
	}
	fmt.Fprintf(s.Stderr, "parley: %s runs the code of %s\n", origin.file, terminal.Quoted(c.File))
	_, loopback := s.Env("PARLEY_LOOPBACK")
	c.Start = worker.Python{Program: program, Output: s.Stderr, Hide: origin.Keys, Loopback: loopback}.Start
	return c, s.setWorkerLimits(&c)
}

// codeSet is the code that the params of a plan name, after the user allowed it. It is safe for concurrent use.
type codeSet struct {
	mu   sync.Mutex
	all  []world.Code
	name map[string]world.Code
}

func (c *codeSet) add(name string, code world.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.name == nil {
		c.name = map[string]world.Code{}
	}
	c.name[name] = code
	c.all = append(c.all, code)
}

// Find returns the code of a name.
func (c *codeSet) Find(name string) (world.Code, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if code, ok := c.name[name]; ok {
		return code, nil
	}
	return nil, fmt.Errorf("%s: the plan did not name this code when it was read", name)
}

// All lists all code.
func (c *codeSet) All() []world.Code {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

// setWorkerLimits sets how many workers there may be, and how much memory each, if the user says so.
func (s *State) setWorkerLimits(c *worker.Config) (err error) {
	if c.Max, err = s.envNumber("PARLEY_WORKERS", "", maxWorkers); err != nil {
		return err
	}
	memory, err := s.envNumber("PARLEY_WORKER_MEMORY", " of MiB", maxWorkerMiB)
	c.Memory = int64(memory) << 20
	return err
}

// envNumber returns a whole number that the user set in the environment; 0: none.
func (s *State) envNumber(name, unit string, limit int) (int, error) {
	text, ok := s.Env(name)
	if !ok || text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > limit {
		return 0, exit.Usagef("%s is %q: want a whole number%s from 1 to %d", name, text, unit, limit)
	}
	return n, nil
}

// maxWorkers limits how many processes play a world, and maxWorkerMiB the memory of each.
const (
	maxWorkers   = 1000
	maxWorkerMiB = 1 << 20
)

// allowCode returns an error unless the user allows the code to run.
func (s *State) allowCode(n trust.Need) error {
	if s.keys == nil {
		return exit.AsUsage((*trust.Gate)(nil).Allow(n))
	}
	return exit.AsUsage(s.keys.Check(n))
}

// findCode returns the path of a file of code that another file names, and which of the folders that may hold it does.
func findCode(name string, origin codeOrigin) (path, folder string, err error) {
	if filepath.Ext(name) != ".py" {
		return "", "", fmt.Errorf("%s is not a file of Python: want a name such as auction.py:Auction", name)
	}
	for _, folder = range origin.folders {
		path = filepath.FromSlash(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a file", path)
		}
		if err == nil && !origin.typed {
			err = origin.reach.Check(origin.file, path)
		}
		if err != nil {
			return "", "", err
		}
		path, err = filepath.Abs(path)
		return path, folder, err
	}
	if origin.typed {
		return "", "", fmt.Errorf("there is no file %s", name)
	}
	return "", "", fmt.Errorf("there is no file %s in the folder of %s", name, origin.file)
}

// useBrought connects to the program that plays the world itself, if PARLEY_BROUGHT names it: parley.run in Python sets it
// to fd:N, or to tcp:HOST:PORT:TOKEN where a socket cannot be inherited.
func (s *State) useBrought(ctx context.Context) error {
	const name = "PARLEY_BROUGHT"
	text, ok := s.Env(name)
	if !ok {
		return nil
	}
	how, address, _ := strings.Cut(text, ":")
	var err error
	switch how {
	case "fd":
		s.conn, err = inheritedConn(address)
	case "tcp":
		s.conn, err = worker.Dial(ctx, address)
	default:
		err = errors.New("want fd:N or tcp:HOST:PORT:TOKEN")
	}
	if err != nil {
		return exit.Usagef("%s: %w. parley.run of the Python package sets it; do not set it yourself", name, err)
	}
	return nil
}

// inheritedConn returns the connection at a descriptor.
func inheritedConn(number string) (net.Conn, error) {
	fd, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("fd:%.20q: want the number of an open descriptor", number)
	}
	file := os.NewFile(uintptr(fd), "worker")
	if file == nil {
		return nil, fmt.Errorf("fd:%d: want an open descriptor", fd)
	}
	conn, err := net.FileConn(file)
	return conn, errors.Join(err, file.Close())
}

// codeDescriber are workers that say which code they play.
type codeDescriber interface{ Code() journal.Code }

// code describes the code that workers play.
func (s *State) code() []journal.Code {
	var all []journal.Code
	for _, p := range s.pools {
		if d, ok := p.(codeDescriber); ok {
			all = append(all, d.Code())
		}
	}
	return all
}

// closeCode ends the workers.
func (s *State) closeCode() {
	for _, p := range s.pools {
		_ = p.Close() // it waits, and does not fail
	}
}
