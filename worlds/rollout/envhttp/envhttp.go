// Package envhttp performs the acts of rollouts. It opens environments on servers or in this process, sends
// each step once, and closes environments. It also serves environments to other programs.
//
// It promises that a step is sent at most once; that if its result is unknown, the environment is dropped and
// the act fails, so that the episode starts over from a reset; that an environment is closed when its episode
// ends, fails or starts over, or when the actor is closed; and that only the new part of a prompt is recorded.
//
// The actor (envhttp.go) has its environments from a pool (pool.go) of hosts (host.go). A host is a server of
// the v1 protocol (v1.go) or of OpenEnv (openenv.go), or this process and its workers (local.go). Hosts only
// send; the pool chooses and retries. Requests over HTTP are sent by client.go. mcp.go is for tools that are
// not the environment's, and server.go serves the environments of package env.
package envhttp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules"
)

// Actor performs acts. It is safe for concurrent use.
type Actor struct {
	pool      *envPool
	unlimited bool     // there is room for any number of environments
	idle      []func() // close connections

	tools       *MCPServer // nil: none
	timeout     time.Duration
	downTimeout time.Duration
	ending      sync.WaitGroup // sessions with the tools

	mu   sync.Mutex
	envs map[int]*episodeEnv // by episode
}

// episodeEnv is the environment of an episode.
type episodeEnv struct {
	attempt, try int
	lease        *envLease
	past         rules.Past
	tools        *MCPSession // nil: not open
}

var notInOwner = regexp.MustCompile(`[^A-Za-z0-9]+`)

// New returns the actor of a run, whose id a dot and the name of a process follow if several play it. The ids of sessions
// on servers begin with both, and sessions that earlier processes left behind are closed. codes is the code that params
// may name; nil: none.
func New(p *rules.Params, run string, codes world.Codes) (*Actor, error) {
	owner := strings.Trim(notInOwner.ReplaceAllString(run, "_"), "_")
	if owner == "" {
		return nil, fmt.Errorf("a run without a name cannot tell its environments from others'")
	}
	a := &Actor{envs: map[int]*episodeEnv{}, timeout: time.Duration(p.Pool.Timeout), downTimeout: time.Duration(p.Pool.Patience)}
	if p.Tools.MCP != "" {
		a.tools = NewMCP(p.Tools.MCP)
	}
	c := poolConfig{
		Owner: owner, PerHost: p.Pool.PerServer, Startup: p.Pool.Startup, Warm: p.Pool.Warm,
		Timeout: time.Duration(p.Pool.Timeout), DownTimeout: time.Duration(p.Pool.Patience), Jitter: time.Duration(p.Pool.Jitter),
	}
	if id, _, ok := strings.Cut(run, "."); ok {
		c.Run = strings.Trim(notInOwner.ReplaceAllString(id, "_"), "_")
	}
	if len(p.Servers) == 0 {
		processes, err := checkLocal(p, codes)
		if err != nil {
			return nil, err
		}
		if a.unlimited = processes == 0; a.unlimited {
			c.PerHost = 1 << 30 // there is no limit in this process
		} else {
			c.PerHost, c.First = p.Pool.PerServer*processes, firstInProcess*processes
		}
		a.pool = newPool([]Host{&localHost{env.Standard(), codes}}, c)
		return a, nil
	}
	hosts, idle, perHost := serverHosts(p)
	a.idle, c.PerHost = idle, perHost
	a.pool = newPool(hosts, c)
	return a, nil
}

// firstInProcess is how many environments a worker process has at first.
const firstInProcess = 256

// idleConnections is how many idle connections to a server are kept if the number of environments has no limit.
const idleConnections = 10_000

// serverHosts returns the servers of p, functions that close connections to them, and the maximum number of
// environments on each; 0: it is found by trying.
func serverHosts(p *rules.Params) (hosts []Host, idle []func(), perHost int) {
	perHost = p.Pool.PerServer
	for _, address := range p.Servers {
		if p.Protocol == rules.ProtocolOpenEnv {
			h, bound := newOpenEnvHost(address, p.OpenEnv)
			if bound > 0 {
				perHost = bound
			}
			hosts, idle = append(hosts, h), append(idle, h.Close)
			continue
		}
		h := newV1Host(address, cmp.Or(perHost, idleConnections))
		hosts, idle = append(hosts, h), append(idle, h.Close)
	}
	return hosts, idle, perHost
}

// Capacity returns how many episodes can be played at the moment; 0: any number.
func (a *Actor) Capacity() int {
	if a.unlimited {
		return 0
	}
	return a.pool.Capacity()
}

// Capacities returns how full each server is. Environments in this process or its workers are not shared with others.
func (a *Actor) Capacities() []part.Capacity {
	if len(a.idle) == 0 {
		return nil
	}
	return a.pool.Capacities()
}

// ShareCapacity sets the part of each server that may be used until then.
func (a *Actor) ShareCapacity(parts map[string]float64, until time.Time) {
	a.pool.ShareCapacity(parts, until)
}

// Drain opens nothing new. Episodes keep their environments.
func (a *Actor) Drain() { a.pool.Drain() }

// Waiting returns which server is waited for, and why, if nothing can be opened now. It contains text of
// servers.
func (a *Actor) Waiting() string { return a.pool.Waiting() }

// Close closes all environments and waits until that is done, or ctx is. No act may be in flight.
func (a *Actor) Close(ctx context.Context) {
	a.pool.Close(ctx)
	a.ending.Wait()
	if a.tools != nil {
		a.tools.Close()
	}
	for _, f := range a.idle {
		f()
	}
}

// ReleaseEpisode closes the environment of an episode that ends before its world does.
func (a *Actor) ReleaseEpisode(ctx context.Context, episode int) {
	a.release(ctx, journal.Turn{Episode: episode}, -1)
}

// Act performs one act. ctx must be that of the run. Failures are *llm.Error.
func (a *Actor) Act(ctx context.Context, turn journal.Turn, _ int, _ string, act world.Act) (*llm.Response, error) {
	began := time.Now()
	var out any
	var waited time.Duration // for a slot
	var err error
	switch act.Name {
	case rules.ActOpen:
		out, err = decodeAct(act, func(o rules.Opening) (any, error) { return a.open(ctx, turn, o, &waited) })
	case rules.ActStep:
		out, err = decodeAct(act, func(s rules.Stepping) (any, error) { return a.step(ctx, turn, s) })
	case rules.ActClose:
		out, err = decodeAct(act, func(c rules.Closing) (any, error) { a.release(ctx, turn, c.Try); return nil, nil })
	case rules.ActList:
		out, err = decodeAct(act, func(l rules.Listing) (any, error) { return a.listTools(ctx, turn, l) })
	case rules.ActCall:
		out, err = decodeAct(act, func(c rules.Calling) (any, error) { return a.callTools(ctx, turn, c) })
	default:
		err = badActError("there is no act %.40q", act.Name)
	}
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindMalformed, Uncertain: true, Message: act.Name + ": " + err.Error()}
	}
	return &llm.Response{JSON: b, Finish: llm.FinishStop, Metadata: llm.Metadata{Latency: time.Since(began) - waited, Waited: waited}}, nil
}

// badActError returns the error of an invalid act. It is a programming error, so it ends the run.
func badActError(format string, args ...any) error {
	return &llm.Error{Kind: llm.KindBadRequest, Message: fmt.Sprintf(format, args...)}
}

func decodeAct[T any](act world.Act, f func(T) (any, error)) (any, error) {
	var v T
	if err := json.Unmarshal(act.Body, &v); err != nil {
		return nil, badActError("%s: %v", act.Name, err)
	}
	return f(v)
}

// open opens an environment for an episode and asks for the first prompt. It closes the one of an earlier try.
func (a *Actor) open(ctx context.Context, turn journal.Turn, o rules.Opening, waited *time.Duration) (any, error) {
	a.release(ctx, turn, -1)
	if turn.Attempt > 0 && o.Try == 0 {
		a.pool.Resume(turn.Episode, turn.Attempt)
	}
	name := fmt.Sprintf("%d-%d-%d", turn.Episode, turn.Attempt, o.Try)
	lease, err := a.pool.lease(ctx, turn.Episode, name, o)
	if fault, ok := errors.AsType[*rules.CodeError](err); ok {
		return rules.Opened{Fault: fault}, nil
	}
	if err != nil {
		return nil, err
	}
	*waited = lease.Waited
	p := &episodeEnv{attempt: turn.Attempt, try: o.Try, lease: lease, past: rules.Past{}}
	prompt, err := lease.Prompt(ctx)
	if err != nil {
		lease.Release(ctx)
		return nil, lostError(ctx, err)
	}
	a.mu.Lock()
	a.envs[turn.Episode] = p
	a.mu.Unlock()
	return rules.Opened{Info: lease.Info, Prompt: p.past.Delta(prompt)}, nil
}

// step sends an action and asks for the next prompt. It closes the environment after the last step or a
// failure.
func (a *Actor) step(ctx context.Context, turn journal.Turn, s rules.Stepping) (any, error) {
	p := a.envOf(turn, s.Try)
	if p == nil {
		return nil, &llm.Error{Kind: llm.KindServer, Uncertain: true, Message: fmt.Sprintf("episode %d has no environment", turn.Episode)}
	}
	r, err := p.lease.Step(ctx, s.Action)
	if fault, ok := errors.AsType[*rules.CodeError](err); ok {
		a.release(ctx, turn, s.Try)
		return rules.Stepped{Fault: fault}, nil
	}
	if err != nil {
		a.release(ctx, turn, s.Try)
		return nil, lostError(ctx, err)
	}
	out := rules.Stepped{Reward: r.Rewarded(), Terminated: r.Terminated, Truncated: r.Truncated, Info: r.Info, Rejected: r.Rejected}
	if r.Done() || s.Last {
		a.release(ctx, turn, s.Try)
		return out, nil
	}
	prompt, err := p.lease.Prompt(ctx)
	if err != nil {
		a.release(ctx, turn, s.Try)
		return nil, lostError(ctx, err)
	}
	out.Prompt = p.past.Delta(prompt)
	return out, nil
}

// lostError marks a failure as the loss of an environment: the episode starts over, and the run continues.
func lostError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return llm.ContextError(ctx)
	}
	e := *llm.AsError(err)
	e.Uncertain = true
	return &e
}

// envOf returns the environment of a try.
func (a *Actor) envOf(turn journal.Turn, try int) *episodeEnv {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.envs[turn.Episode]
	if p == nil || p.attempt != turn.Attempt || p.try != try {
		return nil
	}
	return p
}

// release closes the environment of a try; -1 is any.
func (a *Actor) release(ctx context.Context, turn journal.Turn, try int) {
	a.mu.Lock()
	p := a.envs[turn.Episode]
	if p == nil || try >= 0 && (p.attempt != turn.Attempt || p.try != try) {
		a.mu.Unlock()
		return
	}
	delete(a.envs, turn.Episode)
	a.mu.Unlock()
	a.endTools(ctx, p.tools)
	p.lease.Release(ctx)
}

var (
	_ world.Actor         = (*Actor)(nil)
	_ part.SharedCapacity = (*Actor)(nil)
)

// listTools opens a session with the server of tools for an episode, and lists its tools. A server that cannot be reached is
// waited for, as environment servers are.
func (a *Actor) listTools(ctx context.Context, turn journal.Turn, l rules.Listing) (any, error) {
	p := a.envOf(turn, l.Try)
	if p == nil || a.tools == nil {
		return nil, badActError("episode %d has no environment, or no tools", turn.Episode)
	}
	began := time.Now()
	for pause := time.Second; ; pause = min(2*pause, 15*time.Second) {
		var listed rules.Listed
		err := a.within(ctx, func(ctx context.Context) (err error) {
			if p.tools, err = a.tools.Open(ctx); err == nil {
				listed.Tools, err = p.tools.Tools(ctx)
			}
			return err
		})
		if err == nil {
			return listed, nil
		}
		e := *llm.AsError(err)
		if ctx.Err() != nil {
			return nil, llm.ContextError(ctx)
		}
		if !e.Kind.Retryable() || time.Since(began)+pause > a.downTimeout {
			e.Uncertain = false // nothing was called: the run stops, and can be resumed
			e.Message = "params.tools.mcp: " + e.Message
			return nil, &e
		}
		select {
		case <-ctx.Done():
			return nil, llm.ContextError(ctx)
		case <-time.After(pause):
		}
	}
}

// callTools calls tools, one after the other. If the result of one is unknown, the episode starts over.
func (a *Actor) callTools(ctx context.Context, turn journal.Turn, c rules.Calling) (any, error) {
	p := a.envOf(turn, c.Try)
	if p == nil || p.tools == nil {
		return nil, &llm.Error{Kind: llm.KindServer, Uncertain: true, Message: fmt.Sprintf("episode %d has no session with its tools", turn.Episode)}
	}
	var out rules.Called
	for _, one := range c.Calls {
		err := a.within(ctx, func(ctx context.Context) error {
			m, err := p.tools.Call(ctx, one)
			out.Results = append(out.Results, m)
			return err
		})
		if err != nil {
			return nil, lostError(ctx, err)
		}
	}
	return out, nil
}

// within runs f within the time that a request may take.
func (a *Actor) within(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, a.timeout, &llm.Error{
		Kind: llm.KindTimeout, Uncertain: true, Message: fmt.Sprintf("the server of tools did not answer within %s", a.timeout),
	})
	defer cancel()
	return f(ctx)
}

// endTime is how long a server of tools may take to end a session.
const endTime = 5 * time.Second

// endTools ends a session with the tools in the background.
func (a *Actor) endTools(ctx context.Context, s *MCPSession) {
	if s == nil {
		return
	}
	a.ending.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(endTime, a.timeout))
		defer cancel()
		s.End(ctx)
	})
}

// checkLocal checks the environments of params without servers, and returns how many worker processes they have.
func checkLocal(p *rules.Params, codes world.Codes) (processes int, err error) {
	if p.Tasks != "" {
		err = checkLocalTasks(p.Tasks, codes)
	} else {
		err = checkLocalSeats(p, codes)
	}
	if err != nil {
		return 0, err
	}
	for _, name := range CodeNames(p) {
		code, err := codes.Find(name.Name)
		if err != nil {
			return 0, err
		}
		processes += code.Workers()
	}
	return processes, nil
}

// checkLocalSeats checks that the environment of params has their seats.
func checkLocalSeats(p *rules.Params, codes world.Codes) error {
	seats, err := checkLocalEnv(p.Env, p.EnvParams, codes)
	if wrong, ok := errors.AsType[paramError](err); ok {
		return errors.New("params.env_params" + string(wrong))
	}
	if err != nil {
		return fmt.Errorf("params.env: %w", err)
	}
	if len(seats) > 0 && !slices.Equal(slices.Sorted(slices.Values(seats)), slices.Sorted(slices.Values(p.Seats))) {
		return fmt.Errorf("params.seats: want the agents of %s: %s", p.Env, strings.Join(seats, ", "))
	}
	return nil
}

// paramError is about a param of an environment: .size: want 2 to 30.
type paramError string

func (e paramError) Error() string { return "params" + string(e) }

// checkLocalEnv checks that an environment comes with Parley, or is a class in Python, and can be made with params. It returns
// its agents, if they are known. An error about a param is a paramError.
func checkLocalEnv(name string, params json.RawMessage, codes world.Codes) (seats []string, err error) {
	if rules.IsCode(name) {
		seats, err = checkCode(codes, name, params)
		if fault, ok := errors.AsType[*world.CodeError](err); ok && fault.Param != "" {
			err = paramError("." + fault.Param + ": " + fault.Text)
		}
		return seats, err
	}
	kind, err := env.Find(env.Standard(), name)
	if err != nil {
		return nil, fmt.Errorf("%w; or name its servers in params.servers", err)
	}
	if _, err = kind.New(params); err != nil {
		if wrong, ok := strings.CutPrefix(err.Error(), "env: "+name+": params"); ok {
			err = paramError(wrong)
		}
		return nil, err
	}
	return kind.Seats, nil
}

// checkLocalTasks checks the environments of a file of tasks by the first task of each entry: the others differ
// only in their row.
func checkLocalTasks(tasks string, codes world.Codes) error {
	for line := range strings.Lines(tasks) {
		var t rules.Task
		if json.Unmarshal([]byte(line), &t) != nil || t.Index != 1 {
			continue // the plan reports bad tasks
		}
		if _, err := checkLocalEnv(t.Env, t.Params, codes); err != nil {
			return fmt.Errorf("params.environments: %s: %w", t.Group, err)
		}
	}
	return nil
}

// probeTime is how long a server may take to answer a probe.
const probeTime = 5 * time.Second

// Probe asks all servers of p at once whether they are there. It changes nothing on them.
func Probe(ctx context.Context, p *rules.Params) []world.Presence {
	hosts, idle, _ := serverHosts(p)
	names := slices.Clip(p.Servers)
	var checks []func(ctx context.Context) error
	for _, h := range hosts {
		checks = append(checks, func(ctx context.Context) error { return h.Check(ctx, func(string) bool { return false }) })
	}
	if p.Tools.MCP != "" {
		tools := NewMCP(p.Tools.MCP)
		names, idle = append(names, p.Tools.MCP), append(idle, tools.Close)
		checks = append(checks, func(ctx context.Context) error {
			s, err := tools.Open(ctx)
			if err == nil {
				s.End(ctx)
			}
			return err
		})
	}
	ctx, cancel := context.WithTimeoutCause(ctx, min(probeTime, time.Duration(p.Pool.Timeout)), &llm.Error{Kind: llm.KindTimeout, Message: "no answer in time"})
	defer cancel()
	out := make([]world.Presence, len(checks))
	var wg sync.WaitGroup
	for i, check := range checks {
		wg.Go(func() {
			out[i].Server = names[i]
			if err := check(ctx); err != nil {
				out[i].Why = llm.AsError(err).Message
				return
			}
			out[i].Answers = true
		})
	}
	wg.Wait()
	for _, f := range idle {
		f()
	}
	return out
}
