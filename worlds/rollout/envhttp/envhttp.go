// Package envhttp carries out the acts of rollouts: it is the actor that the engine plays
// them with. It opens environments on servers or in this process, sends each step once, and
// gives environments back.
//
// What it promises: a step is sent at most once, ever; where its outcome is not known the
// environment is given up and the act fails, so that the episode begins again from a reset;
// an environment is freed when its episode ended, failed, began again, or the actor is
// closed; what is recorded of a prompt is what is new in it.
//
// The packages below: pool holds environments on hosts, v1 and openenv speak to servers,
// inproc has them in this process, server serves those of package env. It is not for the
// rules of an episode: they are package rollout's.
package envhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/envhttp/inproc"
	"parley/worlds/rollout/envhttp/openenv"
	"parley/worlds/rollout/envhttp/pool"
	v1 "parley/worlds/rollout/envhttp/v1"
	"parley/worlds/rollout/rules"
	"parley/worlds/rollout/rules/protocol"
)

// Actor carries out acts. It may be used from any number of goroutines.
type Actor struct {
	pool   *pool.Pool
	single int      // the most environments at once; 0: no bound
	idle   []func() // close connections

	mu    sync.Mutex
	plays map[int]*play // by episode
}

// play is the environment of an episode.
type play struct {
	attempt, try int
	lease        *pool.Lease
	past         protocol.Past
}

var notInOwner = regexp.MustCompile(`[^A-Za-z0-9]+`)

// New makes the actor of a run of rollouts. owner names the run and who plays it: sessions
// on servers are named after it, and those that an earlier process of that name left
// behind are closed.
func New(p *rules.Params, owner string) (*Actor, error) {
	owner = strings.Trim(notInOwner.ReplaceAllString(owner, "_"), "_")
	if owner == "" {
		return nil, fmt.Errorf("envhttp: a run without a name cannot tell its environments from others'")
	}
	a := &Actor{plays: map[int]*play{}}
	c := pool.Config{
		Owner: owner, PerHost: p.Pool.PerServer, Startup: p.Pool.Startup, Warm: p.Pool.Warm,
		Timeout: seconds(p.Pool.Timeout), Patience: seconds(p.Pool.Patience), Jitter: seconds(p.Pool.Jitter),
	}
	if len(p.Servers) == 0 {
		if err := native(p); err != nil {
			return nil, err
		}
		c.PerHost = 1 << 30 // nothing here is short
		a.pool = pool.New([]pool.Host{inproc.New(env.Standard())}, c)
		return a, nil
	}
	hosts, idle, most := reach(p)
	a.idle, c.PerHost = idle, most
	a.single = c.PerHost * len(hosts)
	a.pool = pool.New(hosts, c)
	return a, nil
}

// reach returns the servers of p, what closes connections to them, and the most environments
// on each.
func reach(p *rules.Params) (hosts []pool.Host, idle []func(), most int) {
	most = p.Pool.PerServer
	for _, address := range p.Servers {
		if p.Protocol == rules.ProtocolOpenEnv {
			h, bound := openenv.New(address, p.OpenEnv)
			if bound > 0 {
				most = min(most, bound)
			}
			hosts, idle = append(hosts, h), append(idle, h.Close)
			continue
		}
		h := v1.New(address, most)
		hosts, idle = append(hosts, h), append(idle, h.Close)
	}
	return hosts, idle, most
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// native checks that an environment comes with Parley and has the seats of the params.
func native(p *rules.Params) error {
	if p.Tasks != "" {
		return nativeTasks(p.Tasks)
	}
	kind, err := env.Find(env.Standard(), p.Env)
	if err != nil {
		return fmt.Errorf("%w; or name its servers in params.servers", err)
	}
	if len(kind.Seats) > 0 && !slices.Equal(slices.Sorted(slices.Values(kind.Seats)), slices.Sorted(slices.Values(p.Seats))) {
		return fmt.Errorf("envhttp: params.seats: %s has the agents %s", p.Env, strings.Join(kind.Seats, ", "))
	}
	if _, err := kind.New(p.EnvParams); err != nil {
		return fmt.Errorf("params.env_params: %w", err)
	}
	return nil
}

// nativeTasks checks the environments of a file of tasks by the first task of each entry:
// the others differ from it in their row alone.
func nativeTasks(tasks string) error {
	for line := range strings.Lines(tasks) {
		var t rules.Task
		if json.Unmarshal([]byte(line), &t) != nil || t.Index != 1 {
			continue // what is no task at all has been told by the plan
		}
		kind, err := env.Find(env.Standard(), t.Env)
		if err == nil {
			_, err = kind.New(t.Params)
		}
		if err != nil {
			return fmt.Errorf("params.environments: %s: %w", t.Group, err)
		}
	}
	return nil
}

// Room is the most environments at once, and so the most episodes that are worth having
// live; 0: no bound.
func (a *Actor) Room() int { return a.single }

// Stats says how each host is doing.
func (a *Actor) Stats() []pool.Stat { return a.pool.Stats() }

// Drain opens nothing more. Episodes that have their environment go on.
func (a *Actor) Drain() { a.pool.Drain() }

// Waiting says which server is waited for, and why, where nothing can be opened at the moment;
// what servers said is in it as they said it.
func (a *Actor) Waiting() string { return a.pool.Waiting() }

// Close gives all environments back and waits until that is done, or ctx is. No act may be
// going on.
func (a *Actor) Close(ctx context.Context) {
	a.pool.Close(ctx)
	for _, f := range a.idle {
		f()
	}
}

// Leave gives back what an episode has that ends before its world does.
func (a *Actor) Leave(ctx context.Context, episode int) {
	a.give(ctx, journal.Turn{Episode: episode}, -1)
}

// Act carries out one act. ctx must be that of the run. Failures are *llm.Error.
func (a *Actor) Act(ctx context.Context, turn journal.Turn, _ int, _ string, act world.Act) (*llm.Response, error) {
	began := time.Now()
	var out any
	var waited time.Duration // for a place
	var err error
	switch act.Name {
	case protocol.Open:
		out, err = decoded(act, func(o protocol.Opening) (any, error) { return a.open(ctx, turn, o, &waited) })
	case protocol.Step:
		out, err = decoded(act, func(s protocol.Stepping) (any, error) { return a.step(ctx, turn, s) })
	case protocol.Close:
		out, err = decoded(act, func(c protocol.Closing) (any, error) { a.give(ctx, turn, c.Try); return nil, nil })
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

// wrong is an act that nobody can carry out. That is our own mistake, so it ends the run.
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

// open gets an environment for an episode, and asks what it asks first. One that the episode
// still has, of a try before, is given back.
func (a *Actor) open(ctx context.Context, turn journal.Turn, o protocol.Opening, waited *time.Duration) (any, error) {
	a.give(ctx, turn, -1)
	name := fmt.Sprintf("%d-%d-%d", turn.Episode, turn.Attempt, o.Try)
	lease, err := a.pool.Lease(ctx, turn.Episode, name, o)
	if err != nil {
		return nil, err
	}
	*waited = lease.Waited
	p := &play{attempt: turn.Attempt, try: o.Try, lease: lease, past: protocol.Past{}}
	prompt, err := lease.Prompt(ctx)
	if err != nil {
		lease.Release(ctx)
		return nil, uncertain(ctx, err)
	}
	a.mu.Lock()
	a.plays[turn.Episode] = p
	a.mu.Unlock()
	return protocol.Opened{Info: lease.Info, Prompt: p.past.Delta(prompt)}, nil
}

// step sends an action and asks what is asked next. An environment that came to its end, or
// is not asked for any more, or failed, is given back.
func (a *Actor) step(ctx context.Context, turn journal.Turn, s protocol.Stepping) (any, error) {
	p := a.find(turn, s.Try)
	if p == nil {
		return nil, &llm.Error{Kind: llm.KindServer, Uncertain: true, Message: fmt.Sprintf("envhttp: episode %d has no environment", turn.Episode)}
	}
	r, err := p.lease.Step(ctx, s.Action)
	if err != nil {
		a.give(ctx, turn, s.Try)
		return nil, uncertain(ctx, err)
	}
	out := protocol.Stepped{Reward: r.Rewarded(), Terminated: r.Terminated, Truncated: r.Truncated, Info: r.Info}
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

// uncertain marks a failure as one of an environment that was lost on the way: the episode
// begins again, and the run goes on. One that is called off is no answer at all.
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

// give gives the environment of a try back; -1 is any.
func (a *Actor) give(ctx context.Context, turn journal.Turn, try int) {
	a.mu.Lock()
	p := a.plays[turn.Episode]
	if p == nil || try >= 0 && (p.attempt != turn.Attempt || p.try != try) {
		a.mu.Unlock()
		return
	}
	delete(a.plays, turn.Episode)
	a.mu.Unlock()
	p.lease.Release(ctx)
}

var _ world.Actor = (*Actor)(nil)
