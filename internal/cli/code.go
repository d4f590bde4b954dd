package cli

import (
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

	"parley/internal/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/config"
	"parley/internal/config/peek"
	"parley/internal/trust"
	"parley/internal/worker"
	"parley/world"
)

// loadPlanFile reads a plan file, after the code of its kind.
func (s *State) loadPlanFile(ctx context.Context, path string, sets []string, reach config.Reach) (*config.Plan, error) {
	if err := s.planCode(ctx, path, reach); err != nil {
		return nil, err
	}
	return config.Load(ctx, path, s.Kinds, sets, reach)
}

// planCode opens the code of the kind of a plan file. The code is beside the plan, or within reach.
func (s *State) planCode(ctx context.Context, path string, reach config.Reach) error {
	return s.openCode(peek.File(ctx, path), path, []string{filepath.Dir(path)}, reach)
}

// recordedCode opens the code of the kind of a run file that is resumed. The code is beside the run file or in the current
// folder. It reports nothing about the run file itself.
func (s *State) recordedCode(ctx context.Context, p app.Play) error {
	if p.Plan != nil || p.Reach == nil {
		return nil
	}
	about, err := outlineOf(ctx, p.File)
	if err != nil || about.Begun == nil {
		return nil //nolint:nilerr // whoever opens the file to play it reports the error
	}
	return s.openCode(peek.JSON(about.Begun.Plan), p.File, []string{filepath.Dir(p.File), "."}, *p.Reach)
}

// openCode starts a worker for a kind whose code is in a file, and makes the kind known. of is the file that names it;
// folders may hold the code.
func (s *State) openCode(n peek.Named, of string, folders []string, reach config.Reach) error {
	name, class, ok := worker.Source(n.Kind)
	if !ok || slices.ContainsFunc(s.Kinds, func(k world.Kind) bool { return k.Name == n.Kind }) {
		return nil
	}
	c := worker.Config{Name: n.Kind, Class: class, Conn: s.conn}
	if c.Conn == nil {
		file, err := findCode(name, of, folders, reach)
		if err != nil {
			return exit.Usagef("%s: %w", n.Place, err)
		}
		if err := s.allowCode(trust.Need{Grant: trust.Grant{What: trust.Code, Name: file}, Source: "the file " + of, Place: n.Place}); err != nil {
			return err
		}
		program, err := worker.FindPython(func(name string) string { v, _ := s.Env(name); return v })
		if err != nil {
			return exit.Usagef("%s: %w", n.Place, err)
		}
		fmt.Fprintf(s.Stderr, "parley: %s runs the code of %s\n", of, terminal.Quoted(file))
		if c.Max, err = s.workers(); err != nil {
			return err
		}
		_, loopback := s.Env("PARLEY_LOOPBACK")
		c.File, c.Start = file, worker.Python{Program: program, Output: s.Stderr, Hide: n.Keys, Loopback: loopback}.Start
	}
	pool, kind, err := worker.Open(c)
	if err != nil {
		return exit.Usagef("%s: %s", n.Place, terminal.Safe(err.Error()))
	}
	s.pools = append(s.pools, pool)
	s.Kinds = append(slices.Clip(s.Kinds), kind)
	return nil
}

// workers returns how many workers the user wants; 0: the default.
func (s *State) workers() (int, error) {
	text, ok := s.Env("PARLEY_WORKERS")
	if !ok || text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxWorkers {
		return 0, exit.Usagef("PARLEY_WORKERS is %q: want a whole number from 1 to %d", text, maxWorkers)
	}
	return n, nil
}

// maxWorkers limits how many processes play a world.
const maxWorkers = 1000

// allowCode returns an error unless the user allows the code to run.
func (s *State) allowCode(n trust.Need) error {
	if s.keys == nil {
		return exit.AsUsage((*trust.Gate)(nil).Allow(n))
	}
	return exit.AsUsage(s.keys.Check(n))
}

// findCode returns the path of a file of code that another file names.
func findCode(name, of string, folders []string, reach config.Reach) (string, error) {
	if filepath.Ext(name) != ".py" {
		return "", fmt.Errorf("%s is not a file of Python: want a kind such as auction.py:Auction", name)
	}
	for _, folder := range folders {
		path := filepath.FromSlash(name)
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
		if err == nil {
			err = reach.Check(of, path)
		}
		if err != nil {
			return "", err
		}
		return filepath.Abs(path)
	}
	return "", fmt.Errorf("there is no file %s in the folder of %s", name, of)
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
		s.conn, err = inherited(address)
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

// inherited returns the connection at a descriptor.
func inherited(number string) (net.Conn, error) {
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

// closeCode ends the workers.
func (s *State) closeCode() {
	for _, p := range s.pools {
		_ = p.Close() // it waits, and does not fail
	}
}
