// Package envhttp performs the acts of rollouts. It opens environments on servers or in this process, sends
// each step once, and closes environments.
//
// It promises that a step is sent at most once; that if its result is unknown, the environment is dropped and
// the act fails, so that the episode starts over from a reset; that an environment is closed when its episode
// ends, fails or starts over, or when the actor is closed; and that only the new part of a prompt is recorded.
//
// Package pool holds environments on hosts, v1 and openenv speak to servers, inproc has environments in this
// process, workers those in Python, server serves those of package env. It is not for the rules of an episode: those are in package
// rules.
package envhttp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules"
)

// Actor performs acts. It is safe for concurrent use.
type Actor struct {
	pool *envPool
	any  bool     // there is room for any number of environments
	idle []func() // close connections

	tools    *MCPServer // nil: none
	timeout  time.Duration
	patience time.Duration
	ending   sync.WaitGroup // sessions with the tools

	mu    sync.Mutex
	plays map[int]*play // by episode
}

// play is the environment of an episode.
type play struct {
	attempt, try int
	lease        *Lease
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
		return nil, fmt.Errorf("envhttp: a run without a name cannot tell its environments from others'")
	}
	a := &Actor{plays: map[int]*play{}, timeout: seconds(p.Pool.Timeout), patience: seconds(p.Pool.Patience)}
	if p.Tools.MCP != "" {
		a.tools = NewMCP(p.Tools.MCP)
	}
	c := Config{
		Owner: owner, PerHost: p.Pool.PerServer, Startup: p.Pool.Startup, Warm: p.Pool.Warm,
		Timeout: seconds(p.Pool.Timeout), Patience: seconds(p.Pool.Patience), Jitter: seconds(p.Pool.Jitter),
	}
	if id, _, ok := strings.Cut(run, "."); ok {
		c.Run = strings.Trim(notInOwner.ReplaceAllString(id, "_"), "_")
	}
	if len(p.Servers) == 0 {
		processes, err := native(p, codes)
		if err != nil {
			return nil, err
		}
		if a.any = processes == 0; a.any {
			c.PerHost = 1 << 30 // there is no limit in this process
		} else {
			c.PerHost, c.First = p.Pool.PerServer*processes, firstInProcess*processes
		}
		a.pool = newPool([]Host{newWorkers(codes, newInproc(env.Standard()))}, c)
		return a, nil
	}
	hosts, idle, perHost := reach(p)
	a.idle, c.PerHost = idle, perHost
	a.pool = newPool(hosts, c)
	return a, nil
}

// firstInProcess is how many environments a worker process has at first.
const firstInProcess = 256

// connections is how many idle connections to a server are kept if the number of environments has no limit.
const connections = 10_000

// reach returns the servers of p, functions that close connections to them, and the maximum number of
// environments on each; 0: it is found by trying.
func reach(p *rules.Params) (hosts []Host, idle []func(), perHost int) {
	perHost = p.Pool.PerServer
	for _, address := range p.Servers {
		if p.Protocol == rules.ProtocolOpenEnv {
			h, bound := newOpenenv(address, p.OpenEnv)
			if bound > 0 {
				perHost = bound
			}
			hosts, idle = append(hosts, h), append(idle, h.Close)
			continue
		}
		h := newV1(address, cmp.Or(perHost, connections))
		hosts, idle = append(hosts, h), append(idle, h.Close)
	}
	return hosts, idle, perHost
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Capacity returns how many episodes can be played at the moment; 0: any number.
func (a *Actor) Capacity() int {
	if a.any {
		return 0
	}
	return a.pool.Capacity()
}

// Capacities returns how full each server is. Environments in this process or its workers are not shared with others.
func (a *Actor) Capacities() []world.Capacity {
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
	a.give(ctx, journal.Turn{Episode: episode}, -1)
}

// Act performs one act. ctx must be that of the run. Failures are *llm.Error.
func (a *Actor) Act(ctx context.Context, turn journal.Turn, _ int, _ string, act world.Act) (*llm.Response, error) {
	began := time.Now()
	var out any
	var waited time.Duration // for a slot
	var err error
	switch act.Name {
	case rules.Open:
		out, err = decoded(act, func(o rules.Opening) (any, error) { return a.open(ctx, turn, o, &waited) })
	case rules.Step:
		out, err = decoded(act, func(s rules.Stepping) (any, error) { return a.step(ctx, turn, s) })
	case rules.Close:
		out, err = decoded(act, func(c rules.Closing) (any, error) { a.give(ctx, turn, c.Try); return nil, nil })
	case rules.List:
		out, err = decoded(act, func(l rules.Listing) (any, error) { return a.list(ctx, turn, l) })
	case rules.Call:
		out, err = decoded(act, func(c rules.Calling) (any, error) { return a.call(ctx, turn, c) })
	default:
		err = wrong("there is no act %.40q", act.Name)
	}
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindMalformed, Uncertain: true, Message: "envhttp: " + act.Name + ": " + err.Error()}
	}
	return &llm.Response{JSON: b, Finish: llm.FinishStop, Metadata: llm.Metadata{Latency: time.Since(began) - waited, Waited: waited}}, nil
}

// wrong returns the error of an invalid act. It is a programming error, so it ends the run.
func wrong(format string, args ...any) error {
	return &llm.Error{Kind: llm.KindBadRequest, Message: "envhttp: " + fmt.Sprintf(format, args...)}
}

func decoded[T any](act world.Act, f func(T) (any, error)) (any, error) {
	var v T
	if err := json.Unmarshal(act.Body, &v); err != nil {
		return nil, wrong("%s: %v", act.Name, err)
	}
	return f(v)
}

// open opens an environment for an episode and asks for the first prompt. It closes the one of an earlier try.
func (a *Actor) open(ctx context.Context, turn journal.Turn, o rules.Opening, waited *time.Duration) (any, error) {
	a.give(ctx, turn, -1)
	if turn.Attempt > 0 && o.Try == 0 {
		a.pool.Resume(turn.Episode, turn.Attempt)
	}
	name := fmt.Sprintf("%d-%d-%d", turn.Episode, turn.Attempt, o.Try)
	lease, err := a.pool.Lease(ctx, turn.Episode, name, o)
	if fault, ok := errors.AsType[*rules.CodeError](err); ok {
		return rules.Opened{Fault: fault}, nil
	}
	if err != nil {
		return nil, err
	}
	*waited = lease.Waited
	p := &play{attempt: turn.Attempt, try: o.Try, lease: lease, past: rules.Past{}}
	prompt, err := lease.Prompt(ctx)
	if err != nil {
		lease.Release(ctx)
		return nil, uncertain(ctx, err)
	}
	a.mu.Lock()
	a.plays[turn.Episode] = p
	a.mu.Unlock()
	return rules.Opened{Info: lease.Info, Prompt: p.past.Delta(prompt)}, nil
}

// step sends an action and asks for the next prompt. It closes the environment after the last step or a
// failure.
func (a *Actor) step(ctx context.Context, turn journal.Turn, s rules.Stepping) (any, error) {
	p := a.find(turn, s.Try)
	if p == nil {
		return nil, &llm.Error{Kind: llm.KindServer, Uncertain: true, Message: fmt.Sprintf("envhttp: episode %d has no environment", turn.Episode)}
	}
	r, err := p.lease.Step(ctx, s.Action)
	if fault, ok := errors.AsType[*rules.CodeError](err); ok {
		a.give(ctx, turn, s.Try)
		return rules.ProtocolStepped{Fault: fault}, nil
	}
	if err != nil {
		a.give(ctx, turn, s.Try)
		return nil, uncertain(ctx, err)
	}
	out := rules.ProtocolStepped{Reward: r.Rewarded(), Terminated: r.Terminated, Truncated: r.Truncated, Info: r.Info, Rejected: r.Rejected}
	if r.Done() || s.Last {
		a.give(ctx, turn, s.Try)
		return out, nil
	}
	prompt, err := p.lease.Prompt(ctx)
	if err != nil {
		a.give(ctx, turn, s.Try)
		return nil, uncertain(ctx, err)
	}
	out.Prompt = p.past.Delta(prompt)
	return out, nil
}

// uncertain marks a failure as the loss of an environment: the episode starts over, and the run continues.
func uncertain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return llm.ContextError(ctx)
	}
	e := *llm.AsError(err)
	e.Uncertain = true
	return &e
}

// find returns the environment of a try.
func (a *Actor) find(turn journal.Turn, try int) *play {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.plays[turn.Episode]
	if p == nil || p.attempt != turn.Attempt || p.try != try {
		return nil
	}
	return p
}

// give closes the environment of a try; -1 is any.
func (a *Actor) give(ctx context.Context, turn journal.Turn, try int) {
	a.mu.Lock()
	p := a.plays[turn.Episode]
	if p == nil || try >= 0 && (p.attempt != turn.Attempt || p.try != try) {
		a.mu.Unlock()
		return
	}
	delete(a.plays, turn.Episode)
	a.mu.Unlock()
	a.end(ctx, p.tools)
	p.lease.Release(ctx)
}

var (
	_ world.Actor          = (*Actor)(nil)
	_ world.SharedCapacity = (*Actor)(nil)
)
