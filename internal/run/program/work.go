package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/process"
	"parley/llm"
	"parley/world"
)

// The defaults of work.
const (
	keptOutput   = 64 << 10
	keptResult   = 256 << 20
	checkTimeout = 10 * time.Minute
	workdir      = "/app"
)

// work starts the program, checks what it leaves, and returns what it did.
func (s *start) work(ctx context.Context) (*llm.Response, error) {
	defer func() { _ = remove(s.dir) }() // what stays is removed when the run ends
	w := s.q.Work
	keep := cmp.Or(w.MaxOutput, keptOutput)
	res, err := s.played(ctx, func() error { return s.prepare(ctx) }, keep)
	if err != nil {
		return nil, err
	}
	done := world.Done{
		Exit: res.Exit, Seconds: seconds(res.Took), TimedOut: res.TimedOut, Limit: s.used.Limit, Stdout: res.Stdout, Stderr: res.Stderr,
		Calls: s.used.Calls, Input: s.used.Usage.Input, Output: s.used.Usage.Output,
	}
	if done.TimedOut {
		done.Exit = -1
	}
	for _, dir := range []string{s.root, s.dir, s.folder()} { // what is not there any more is an empty result
		if err := restore(dir); err != nil {
			return nil, fmt.Errorf("the folder of the program: %w", err)
		}
	}
	root, err := os.OpenRoot(s.folder())
	if err != nil {
		return nil, fmt.Errorf("the folder of the program: %w", err)
	}
	defer root.Close()
	after, tooMany := inspect(root)
	done.Changed, done.More = changes(root, s.before, after, keep)
	if w.Check != nil {
		if done.Check, err = s.check(ctx, root, after, tooMany); err != nil {
			return nil, err
		}
	}
	b, err := json.Marshal(done)
	if err != nil {
		return nil, err
	}
	return &llm.Response{Text: done.Stdout, JSON: s.hide(b)}, nil // a check can show the program's files, and their names can have anything
}

// seconds rounds a time to milliseconds.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// prepare fills the folder of the program, and notes what is in it.
func (s *start) prepare(ctx context.Context) error {
	if err := s.seed(ctx); err != nil {
		return err
	}
	if err := write(s.folder(), s.q.Work.Files, nil); err != nil {
		return fmt.Errorf("the files of %s: %w", s.q.Work.Name, err)
	}
	root, err := os.OpenRoot(s.folder())
	if err != nil {
		return err
	}
	defer root.Close()
	s.before, err = inspect(root)
	return err
}

// folders of a script that runs on the result of a program.
const (
	testsDir    = "/tests"
	solutionDir = "/solution"
	logsDir     = "/logs/verifier"
)

// script is where a script runs: folders that no program has seen.
type script struct {
	dir    string
	result string
	own    string // its files
	as     string // where a task expects them
}

func (c *script) home() string { return filepath.Join(c.dir, "home") }
func (c *script) logs() string { return filepath.Join(c.dir, "logs", "verifier") }

// folders lists where the folders that tasks name are on this machine.
func (c *script) folders(s *start) [][2]string {
	return [][2]string{{c.as, c.own}, {logsDir, c.logs()}, {"/logs", filepath.Dir(c.logs())}, {s.workdir(), c.result}}
}

// newScript makes the folders of a script, and writes its files. Their paths are new, so a program cannot have prepared them.
func (s *start) newScript(of *world.Script, as, result string) (*script, error) {
	dir, err := os.MkdirTemp(s.root, "check-")
	if err != nil {
		return nil, err
	}
	c := &script{dir: dir, result: cmp.Or(result, filepath.Join(dir, "folder")), own: filepath.Join(dir, "files"), as: as}
	for _, one := range []string{c.result, c.own, c.home(), filepath.Join(c.home(), "tmp"), c.logs(), filepath.Join(dir, "logs", "agent"), filepath.Join(dir, "logs", "artifacts")} {
		if err := os.MkdirAll(one, 0o755); err != nil { //nolint:gosec // users of containers need it
			return c, err
		}
	}
	var edit func(string) string
	if !s.contained() {
		edit = func(text string) string { return moved(text, c.folders(s)) }
	}
	return c, write(c.own, of.Files, edit)
}

// play runs a script.
func (s *start) play(ctx context.Context, c *script, of *world.Script, as process.Command) (process.Result, error) {
	as.Dir, as.Mark = c.result, s.Run+"/"+s.name+"/check"
	env := s.environment(c.home(), merged(s.q.Work.Env, of.Env))
	args := of.Command
	if !s.contained() {
		for name, v := range env {
			env[name] = moved(v, c.folders(s))
		}
		env["HOME"], env["TMPDIR"], env["PATH"] = c.home(), filepath.Join(c.home(), "tmp"), os.Getenv("PATH")
		args = make([]string, len(of.Command))
		for i, a := range of.Command {
			args[i] = moved(a, c.folders(s))
		}
		env["PARLEY_FOLDER"], env["PARLEY_FILES"], env["PARLEY_LOGS"] = c.result, c.own, c.logs()
	}
	res, err := s.exec(ctx, as, args, env, mounts{c.result: s.workdir(), c.home(): "", c.own: c.as, filepath.Dir(c.logs()): "/logs"})
	if e, ok := errors.AsType[*llm.Error](err); ok && e.Kind == llm.KindBadRequest { // the script has no such program, and other tasks may have it
		return process.Result{Exit: 127, Stderr: e.Message}, nil
	}
	return res, err
}

// solve runs the solution of the work in place of a program.
func (s *start) solve(ctx context.Context, as process.Command) (process.Result, error) {
	of := s.q.Work.Solution
	if of == nil {
		return process.Result{}, &llm.Error{Kind: llm.KindServer, Final: true, Message: s.q.Work.Name + " has no solution, and the program oracle runs it"}
	}
	c, err := s.newScript(of, solutionDir, s.folder())
	if c != nil {
		defer func() { _ = remove(c.dir) }()
	}
	if err != nil {
		return process.Result{}, err
	}
	return s.play(ctx, c, of, as)
}

// check runs the check on a copy of the result.
func (s *start) check(ctx context.Context, root *os.Root, after map[string]entry, tooMany error) (*world.Checked, error) {
	of := s.q.Work.Check
	c, err := s.newScript(of, testsDir, "")
	if c != nil {
		defer func() { _ = remove(c.dir) }()
	}
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(tooMany, copyResult(root, after, c.result, cmp.Or(s.q.Work.MaxResult, keptResult))); err != nil {
		if tooMany == nil && !errors.Is(err, errTooLarge) {
			return nil, err
		}
		return &world.Checked{Rewards: map[string]float64{"reward": 0}, Exit: -1, Stderr: "not checked: " + clean(err.Error())}, nil // the program is to blame
	}
	_ = remove(s.dir) // nothing of the program is there while its result is checked
	keep, limit := cmp.Or(s.q.Work.MaxOutput, keptOutput), cmp.Or(time.Duration(of.Timeout), checkTimeout)
	res, err := s.play(ctx, c, of, process.Command{Keep: keep, Timeout: limit, Supervisor: s.Supervisor})
	if err != nil {
		return nil, err
	}
	out := &world.Checked{Exit: res.Exit, Seconds: seconds(res.Took), TimedOut: res.TimedOut, Stdout: res.Stdout, Stderr: res.Stderr}
	switch {
	case res.TimedOut:
		out.Exit, out.Failed = -1, fmt.Sprintf("the check did not end within %v", limit)
	case of.Reward:
		out.Rewards, err = rewards(c.logs())
		if err != nil {
			out.Failed = clean(err.Error())
			if last := lastLine(res.Stdout + "\n" + res.Stderr); last != "" {
				out.Failed += ". Its last output: " + last
			}
		}
	case res.Exit == 126 || res.Exit == 127:
		out.Failed = "the check cannot be run: " + lastLine(res.Stderr)
	default:
		n := reward(res)
		if math.IsInf(n, 0) || math.IsNaN(n) {
			out.Failed = "the last line of the check is not a finite number: " + lastLine(res.Stdout)
			break
		}
		out.Rewards = map[string]float64{"reward": n}
	}
	return out, nil
}

// reward returns the reward of a check without a reward file.
func reward(res process.Result) float64 {
	if res.Exit != 0 {
		return 0
	}
	lines := strings.Split(strings.TrimSpace(res.Stdout), "\n")
	n, err := strconv.ParseFloat(strings.TrimSpace(lines[len(lines)-1]), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 1
	}
	return n
}

// maxReward is how large a reward file may be.
const maxReward = 1 << 20

// rewards reads what a verifier wrote: reward.json, an object of finite numbers, or otherwise reward.txt, one of them.
func rewards(dir string) (map[string]float64, error) {
	b, err := readReward(dir, "reward.json")
	if err == nil {
		var all map[string]*float64
		if err := json.Unmarshal(b, &all); err != nil || len(all) == 0 {
			return nil, fmt.Errorf("the check wrote a reward.json that is not an object of finite numbers: %.100q", b)
		}
		out := map[string]float64{}
		for name, v := range all {
			if v == nil {
				return nil, fmt.Errorf("the check wrote a reward.json whose %q is not a number", clean(name))
			}
			out[clean(name)] = *v
		}
		return out, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if b, err = readReward(dir, "reward.txt"); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the check left no reward: neither %s/reward.json nor %[1]s/reward.txt", logsDir)
	} else if err != nil {
		return nil, err
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return nil, fmt.Errorf("the check wrote a reward.txt that is not a finite number: %.100q", b)
	}
	return map[string]float64{"reward": n}, nil
}

func readReward(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxReward:
		return nil, fmt.Errorf("the check left a %s that is not a file of at most %d bytes", name, maxReward)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxReward))
}
