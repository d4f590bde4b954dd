package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"parley/internal/ask/answer"
	"parley/internal/kit/process"
	"parley/internal/run/engine"
	"parley/llm"
	"parley/world"
)

// Config describes a Runner.
type Config struct {
	// Run is the id of the run: what is started carries it.
	Run string
	// Sessions serves the model calls of programs. Nil: agents with a model cannot be asked.
	Sessions Sessions
	// Supervisor is that of process.Command.
	Supervisor []string
	// Temp is the folder for the folders of programs. Default: that of the system.
	Temp string
}

// Runner asks programs. It is an engine.Answerer. Each question starts a program in a new folder, with a HOME of its own and nothing of the
// user's environment but PATH. When the answer is returned, nothing of the program is left: no process, no container, no folder, no session.
type Runner struct {
	Config
	root string

	mu      sync.Mutex
	changed chan struct{} // closed when a program ends
	working int
	drained context.Context //nolint:containedctx // ended by Drain
	drain   context.CancelCauseFunc
	images  map[string]*image

	commands atomic.Int64 // of engines, so far
}

// errDrained ends programs that a stopping run does not wait for.
var errDrained = errors.New("the run stops; the program is started again when it is resumed")

// New returns the Runner of a run. It first removes what a killed process of the same run had left.
func New(ctx context.Context, c Config) (*Runner, error) {
	if c.Run == "" || strings.ContainsAny(c.Run, `/\`) {
		return nil, fmt.Errorf("the run's id %q cannot be the name of a folder, and programs need one", c.Run)
	}
	r := &Runner{Config: c, changed: make(chan struct{}), images: map[string]*image{}}
	r.root = filepath.Join(cmp.Or(c.Temp, os.TempDir()), "parley-"+c.Run)
	r.drained, r.drain = context.WithCancelCause(context.WithoutCancel(ctx))
	return r, r.clear(ctx)
}

// clear ends and removes what is left of the run.
func (r *Runner) clear(ctx context.Context) error {
	process.End(r.Run)
	for _, engine := range engines() {
		if _, err := os.Lstat(filepath.Join(r.root, engine)); err == nil {
			r.removeContainers(ctx, engine, "parley.run="+r.Run)
		}
	}
	return remove(r.root)
}

// Close ends all programs, and removes what is left. No Ask is in progress then.
func (r *Runner) Close(ctx context.Context) error {
	r.Drain()
	return r.clear(context.WithoutCancel(ctx))
}

// Drain ends all programs. Their questions are asked again when the run is resumed.
func (r *Runner) Drain() { r.drain(errDrained) }

// repairs is how often a program is started again because its answer does not follow the schema of the question.
const repairs = 2

// tries is how often a program is started again because it did not ask again what is recorded.
const tries = 3

// maxAnswer is the most bytes of an answer to a question without work.
const maxAnswer = 1 << 20

// Ask starts the program of a question, and returns what it answered.
func (r *Runner) Ask(ctx context.Context, q engine.Question) (*llm.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.drained, func() { cancel(errDrained) })() //nolint:contextcheck // the runner has it, for all questions
	free, err := r.enter(ctx, q.Work)
	if err != nil {
		return nil, stopped(ctx, err)
	}
	defer free()
	s, err := newStart(r, q)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	var resp *llm.Response
	if q.Work != nil {
		resp, err = s.work(ctx)
	} else {
		resp, err = s.answer(ctx)
	}
	if err != nil {
		e := *stopped(ctx, err)
		e.Message = string(s.hide([]byte(e.Message)))
		return nil, &e
	}
	resp.Model, resp.Finish = q.Request.Model, llm.FinishStop
	resp.Metadata.Attempts, resp.Metadata.Latency = s.try+1, time.Since(begun)
	return resp, nil
}

// stopped returns err as an *llm.Error: one that says that the run stops, if it does.
func stopped(ctx context.Context, err error) *llm.Error {
	if cause := context.Cause(ctx); cause != nil {
		return &llm.Error{Kind: llm.KindCanceled, Message: cause.Error(), Err: cause}
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	return &llm.Error{Kind: llm.KindServer, Final: true, Message: clean(err.Error()), Err: err}
}

// enter waits until another program may begin. The caller calls leave.
func (r *Runner) enter(ctx context.Context, w *world.Work) (leave func(), err error) {
	limit := runtime.GOMAXPROCS(0)
	if w != nil && w.AtOnce > 0 {
		limit = w.AtOnce
	}
	for {
		r.mu.Lock()
		if ctx.Err() == nil && r.working < limit {
			r.working++
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.working--
				close(r.changed)
				r.changed = make(chan struct{})
			}, nil
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// start is one question to a program, with the tries to get its answer.
type start struct {
	*Runner
	q       engine.Question
	program world.Program
	prompt  string
	try     int
	name    string // of this question in the run
	dir     string // has its folders
	used    Used
	gateway string              // the address of the session; empty: it has none
	hide    func([]byte) []byte // removes the address and the key of the session
	before  map[string]entry    // what the folder held when the program began, for work
}

func newStart(r *Runner, q engine.Question) (*start, error) {
	wrong := func(format string, args ...any) error {
		return &llm.Error{Kind: llm.KindBadRequest, Message: "agent " + q.Agent + ": " + fmt.Sprintf(format, args...)}
	}
	p, known := resolve(*q.Program)
	own := Own(*q.Program)
	switch {
	case !known:
		return nil, wrong("there is no program %q", q.Program.Preset)
	case len(p.Command) == 0 && own == "":
		return nil, wrong("the program has no command")
	case own != "" && own != shell && q.Work == nil:
		return nil, wrong("the program %s is for work on files: it answers no questions", own)
	case q.Model != "" && r.Sessions == nil:
		return nil, wrong("it has a model, and this run does not serve the calls of programs")
	case q.Model != "" && q.Work != nil && q.Work.Where.Network == "none":
		return nil, wrong("it cannot reach its model without a network: set params.network: host")
	}
	prompt, err := promptOf(q.Request)
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindBadRequest, Status: 400, Message: "agent " + q.Agent + ": " + err.Error()}
	}
	at := fmt.Sprintf("%d.%d.%s%d.%d", q.Turn.Episode, q.Turn.Attempt, strings.ReplaceAll(q.Turn.Strand, "/", "_"), q.Turn.Turn, q.Index)
	return &start{Runner: r, q: q, program: p, prompt: prompt, name: at, dir: filepath.Join(r.root, at), hide: func(b []byte) []byte { return b }}, nil
}

// Own returns which of the programs that are part of this one a program is, or "".
func Own(p world.Program) string {
	if len(p.Command) == 0 && slices.Contains([]string{nop, Oracle, shell}, p.Preset) {
		return p.Preset
	}
	return ""
}

// answer starts the program until its output is an answer.
func (s *start) answer(ctx context.Context) (*llm.Response, error) {
	var schema *answer.Schema
	if q := s.q.Request.Schema; q != nil {
		var err error
		if schema, err = answer.Compile(q.JSON); err != nil {
			return nil, &llm.Error{Kind: llm.KindBadRequest, Message: err.Error()}
		}
	}
	for n := 0; ; n++ {
		res, err := s.played(ctx, func() error { return nil }, maxAnswer)
		if err != nil {
			return nil, err
		}
		text := strings.TrimSpace(res.Stdout)
		switch {
		case res.Exit != 0:
			after := ""
			if s.used.Limit != "" {
				after = ", after the limit of " + s.used.Limit
			}
			return nil, &llm.Error{Kind: llm.KindServer, Final: true, Message: fmt.Sprintf("the program exited with %d%s: %s", res.Exit, after, lastLine(res.Stderr+"\n"+res.Stdout))}
		case res.Cut:
			return nil, &llm.Error{Kind: llm.KindInvalid, Final: true, Message: fmt.Sprintf("the program answered with more than %d bytes", maxAnswer)}
		case text == "":
			return nil, &llm.Error{Kind: llm.KindMalformed, Final: true, Message: "the program exited with 0 and wrote no answer to its standard output"}
		case schema == nil:
			return &llm.Response{Text: text}, nil
		}
		value, _, err := schema.Read(text)
		if err == nil {
			return &llm.Response{Text: text, JSON: value}, nil
		}
		if n == repairs {
			return nil, &llm.Error{Kind: llm.KindInvalid, Final: true, Message: fmt.Sprintf("the answer does not follow its schema after %d repairs: %v", n, err)}
		}
		s.prompt += fmt.Sprintf("\n# You wrote\n\n%s\n\n# You are told\n\n%s\n", text, answer.Repair(err))
		s.try++
	}
}

// lastLine returns the last line of a text that is not empty, at most 300 bytes of it.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	return clean(last[max(0, len(last)-300):])
}

// folders of a program, below that of its start.
func (s *start) folder() string { return filepath.Join(s.dir, "folder") }
func (s *start) home() string   { return filepath.Join(s.dir, "home") }

// played starts the program in new folders, with a session of its own, until it has asked again what is recorded of it. prepare fills the folder.
func (s *start) played(ctx context.Context, prepare func() error, keep int) (res process.Result, err error) {
	for again := 0; ; again++ {
		if err := s.renew(); err != nil {
			return res, err
		}
		if err := prepare(); err != nil {
			return res, err
		}
		values := placeholders{"prompt": s.moved(s.prompt), "folder": s.inside(s.folder()), "home": s.inside(s.home()), "url": "", "key": "", "model": ""}
		s.used = Used{}
		var session Session
		if s.q.Model != "" {
			_, values["model"] = llm.SplitModel(s.q.Model)
			session, err = s.Sessions.Open(ctx, s.asked())
			if err != nil {
				return res, err
			}
			values["url"], values["key"], s.hide = session.URL(), session.Key(), session.Hide
			s.gateway = session.URL()
		}
		res, err = s.run(ctx, values, keep)
		if session != nil {
			s.used = session.Close(context.WithoutCancel(ctx))
			res.Stdout, res.Stderr = string(s.hide([]byte(res.Stdout))), string(s.hide([]byte(res.Stderr)))
		}
		switch {
		case s.used.Fault != nil:
			return res, s.used.Fault
		case err != nil:
			return res, err
		case s.used.Diverged != "" && again < tries:
			s.try++
			continue
		case s.used.Diverged != "":
			return res, &llm.Error{Kind: llm.KindServer, Final: true, Message: fmt.Sprintf("the program asked something else than is recorded, %d times: %s", tries+1, s.used.Diverged)}
		}
		return res, nil
	}
}

// asked returns the question as a session sees it.
func (s *start) asked() Ask {
	a := Ask{
		Turn: s.q.Turn, Index: s.q.Index, Seat: s.q.Seat, Agent: world.Agent{Name: s.q.Agent, Model: s.q.Model, Program: s.q.Program},
		Try: s.try, Ignore: s.program.Ignore,
	}
	if w := s.q.Work; w != nil {
		a.MaxCalls, a.MaxTokens = w.MaxCalls, w.MaxTokens
	}
	return a
}

// renew makes the folders of the program, which are empty.
func (s *start) renew() error {
	if err := remove(s.dir); err != nil {
		return err
	}
	if err := os.Mkdir(s.root, 0o700); err != nil && !os.IsExist(err) {
		return fmt.Errorf("a folder for programs: %w", err)
	}
	if info, err := os.Lstat(s.root); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is not a folder: remove it", s.root)
	}
	for _, dir := range []string{s.dir, s.folder(), s.home(), filepath.Join(s.home(), "tmp")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("a folder for the program: %w", err)
		}
	}
	return nil
}

// run runs the program once, or what is part of this one.
func (s *start) run(ctx context.Context, values placeholders, keep int) (process.Result, error) {
	files := make([]world.File, 0, len(s.program.Files))
	for name, text := range s.program.Files {
		files = append(files, world.File{Path: name, Data: []byte(values.in(text))})
	}
	if err := write(s.home(), files, nil); err != nil {
		return process.Result{}, err
	}
	var timeout time.Duration
	var env map[string]string
	if w := s.q.Work; w != nil {
		timeout, env = time.Duration(w.Timeout), w.Env
	}
	c := process.Command{Dir: s.folder(), Keep: keep, Timeout: timeout, Mark: s.Run + "/" + s.name, Supervisor: s.Supervisor}
	own := merged(s.environment(s.home(), env), variablesIn(s.program, values))
	switch Own(*s.q.Program) {
	case nop:
		return process.Result{}, nil
	case Oracle:
		return s.solve(ctx, c)
	case shell:
		return s.shell(ctx, c, own, values)
	}
	args := values.all(s.program.Command)
	if s.program.Input == "file" {
		if err := write(s.folder(), []world.File{{Path: "PROMPT.md", Data: []byte(values["prompt"])}}, nil); err != nil {
			return process.Result{}, err
		}
	} else if s.program.Input != "argument" {
		c.Stdin = values["prompt"]
	}
	return s.exec(ctx, c, args, own, mounts{s.folder(): "", s.home(): ""})
}

// variablesIn returns the variables of a program: those that name its server, if it has one, and its own.
func variablesIn(p world.Program, values placeholders) map[string]string {
	all := map[string]string{}
	if values["url"] != "" {
		all = variables(p.Format)
		all = merged(all, map[string]string{"PARLEY_URL": "{url}", "PARLEY_KEY": "{key}", "PARLEY_MODEL": "{model}"})
	}
	all = merged(all, p.Env)
	for name, v := range all {
		all[name] = values.in(v)
	}
	return all
}

// environment returns the variables that every program has, and more of them. A task may say where HOME, TMPDIR and PATH are in its
// container. On this machine, they are those of the program.
func (s *start) environment(home string, more map[string]string) map[string]string {
	env := map[string]string{"HOME": s.inside(home), "TMPDIR": s.inside(home) + "/tmp", "LANG": "C.UTF-8", "NO_COLOR": "1"}
	if runtime.GOOS == "windows" {
		for _, name := range []string{"SystemRoot", "ComSpec", "PATHEXT", "NUMBER_OF_PROCESSORS"} {
			env[name] = os.Getenv(name)
		}
		env["USERPROFILE"], env["TEMP"], env["TMP"], env["APPDATA"], env["LOCALAPPDATA"] = home, home+`\tmp`, home+`\tmp`, home, home
	}
	if !s.contained() {
		env["PATH"] = os.Getenv("PATH")
	}
	for name, v := range more {
		if _, is := env[name]; !is || s.contained() || name == "LANG" || name == "NO_COLOR" {
			env[name] = s.moved(v)
		}
	}
	return env
}

// list returns variables as a process gets them, in order.
func list(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// mounts are folders that a program sees, and where: "" for where inside puts them.
type mounts map[string]string

// exec runs a command where the work is done. A container is removed when it has ended.
func (s *start) exec(ctx context.Context, c process.Command, args []string, env map[string]string, see mounts) (process.Result, error) {
	c.Env, c.Args = list(env), args
	w := s.where()
	switch {
	case w.Engine != "":
		return s.contain(ctx, c, args, env, see)
	case len(w.Wrap) > 0:
		c.Args = append(s.wrapped(see), args...)
		env = maps.Clone(env)
		maps.DeleteFunc(env, func(name, _ string) bool { return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") }) // they would put code of a task into the command
		c.Env = list(merged(userEnvironment(), env))
	}
	return startError(process.Run(ctx, c))
}

// startError makes a program that cannot be started an error about the run: every other start would fail too.
func startError(res process.Result, err error) (process.Result, error) {
	switch {
	case errors.Is(err, syscall.E2BIG), errors.Is(err, syscall.EINVAL): // this question is too long for its arguments, or has a byte 0
		err = &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Message: clean(err.Error()), Err: err}
	case errors.Is(err, process.ErrStart):
		err = &llm.Error{Kind: llm.KindBadRequest, Message: clean(err.Error()), Err: err}
	}
	return res, err
}
