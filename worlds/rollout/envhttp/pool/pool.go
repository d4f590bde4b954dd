// Package pool holds environments on several hosts: it makes them, hands each to one episode
// at a time, and gives them back.
//
// What it promises: no host has more environments than it may, and no more are being made
// at once than is allowed; who waits is served in order, on the host with the fewest; a
// host that fails is left alone, looked after, and comes back by itself; an environment
// that was handed out is closed when it is given back, whatever became of it, and one that
// a process before left behind is found and closed; every goroutine has ended when Close
// returns.
//
// What it never does is step twice: a step is sent once, and what became of it is the
// caller's to know. It is not for any wire format: see Host.
package pool

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"parley/internal/queue"
	"parley/llm"
	"parley/worlds/rollout/rules/protocol"
)

// Host is where environments are: a server, or this process. Its methods are called from
// many goroutines at once.
type Host interface {
	// Name is what errors call it.
	Name() string
	// New returns a session that is not there yet: its Reset makes it. id is its name for
	// good; it begins with the pool's Owner.
	New(id string, o protocol.Opening) Session
	// Check finds out whether the host is well. Sessions there that stray says yes to have
	// been left behind, and are closed where the host can tell.
	Check(ctx context.Context, stray func(id string) bool) error
}

// Session is an environment on a host. One call is made at a time. Errors are *llm.Error.
type Session interface {
	// Reset begins anew, and the first time makes the environment.
	Reset(ctx context.Context, seed int64) (info json.RawMessage, err error)
	// Prompt asks what is to be done. Some environments change when they are asked, so it is
	// asked once a step.
	Prompt(ctx context.Context) (protocol.Prompt, error)
	// Step acts. key names the step: a host that knows such keys does not step twice for one.
	Step(ctx context.Context, key string, a protocol.Action) (protocol.Result, error)
	// Close frees the environment. Of one that is not there it is no error.
	Close(ctx context.Context) error
}

// Config is how environments are held.
type Config struct {
	// Owner begins the name of every session. Two pools at one host must not have the same.
	Owner string
	// PerHost is the most sessions on a host. Default: 256.
	PerHost int
	// Startup is the most sessions being made at once. Default: 16.
	Startup int
	// Warm is how many sessions are made ahead of need, of each environment that is asked
	// for. Default: none.
	Warm int
	// Timeout is how long a host may take to answer. Default: 5 minutes.
	Timeout time.Duration
	// Patience is how long to wait for a host when none is well. Default: 2 minutes.
	Patience time.Duration
	// Jitter is the most that the making of the first sessions is put off. Default: not at all.
	Jitter time.Duration
}

func (c Config) resolved() Config {
	for _, d := range []struct {
		value  *int
		preset int
	}{{&c.PerHost, 256}, {&c.Startup, 16}} {
		if *d.value <= 0 {
			*d.value = d.preset
		}
	}
	for _, d := range []struct {
		value  *time.Duration
		preset time.Duration
	}{{&c.Timeout, 5 * time.Minute}, {&c.Patience, 2 * time.Minute}} {
		if *d.value <= 0 {
			*d.value = d.preset
		}
	}
	return c
}

// Pool holds environments. It may be used from any number of goroutines.
type Pool struct {
	Config
	startup chan struct{}
	work    sync.WaitGroup // of what goes on in the background

	mu      sync.Mutex
	rand    *rand.Rand
	hosts   []*host
	queue   queue.Queue[*waiter]
	known   map[string]bool // sessions that are there, or are being made
	leases  map[*Lease]struct{}
	spares  map[string][]*Lease // by what they are: see class
	filling map[string]int
	named   int                  // spares so far
	made    int                  // sessions so far
	dark    time.Time            // since when no host is well
	stops   map[*func()]struct{} // of what goes on in the background
	wanting int                  // leases that are waited for
	shut    error                // nothing is begun any more
	over    chan struct{}        // closed when shut is set
}

// New makes a pool of hosts. It opens nothing before it is asked to.
func New(hosts []Host, c Config) *Pool {
	c = c.resolved()
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.Owner)) // never fails
	p := &Pool{
		Config: c, startup: make(chan struct{}, c.Startup), rand: rand.New(rand.NewPCG(h.Sum64(), uint64(len(hosts)))),
		known: map[string]bool{}, leases: map[*Lease]struct{}{}, spares: map[string][]*Lease{}, filling: map[string]int{},
		stops: map[*func()]struct{}{}, over: make(chan struct{}),
	}
	p.queue.Track = func(w *waiter, i int) { w.index = i }
	for _, one := range hosts {
		p.hosts = append(p.hosts, &host{Host: one})
	}
	return p
}

// Lease returns an environment that has just been reset, and waits for one if it must; lower
// orders go first. ctx bounds also what goes on in the background for its sake, so it must
// last as long as the pool is used. name must be new.
func (p *Pool) Lease(ctx context.Context, order int, name string, o protocol.Opening) (*Lease, error) {
	p.want(1)
	defer p.want(-1)
	if l := p.takeSpare(ctx, o); l != nil {
		return l, nil
	}
	asked := time.Now()
	var since time.Time // the first failure
	failures := 0
	for id := p.Owner + "-" + name; ; id += "+" { // another name each time: the last one may still be being closed
		h, err := p.take(ctx, order)
		if err != nil {
			return nil, err
		}
		l, err := p.open(ctx, h, id, o)
		if err == nil {
			l.Waited = l.began.Sub(asked)
			p.refill(ctx, o)
			return l, nil
		}
		e := llm.AsError(err)
		if since.IsZero() {
			since = time.Now()
		}
		if e.Kind != llm.KindTransport && e.Kind != llm.KindOverloaded {
			failures++ // the host is there, and has no such environment to give
		}
		if !e.Kind.Retryable() || failures == p.mostFailures() || time.Since(since) > p.Patience {
			return nil, e
		}
		if err := p.pause(ctx, p.between(time.Second/2, time.Second)); err != nil {
			return nil, err
		}
	}
}

// want counts who waits for a lease.
func (p *Pool) want(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanting += n
}

// mostFailures is how often an environment may fail to be made before that is given up:
// of several hosts, until one of them would be left alone.
func (p *Pool) mostFailures() int {
	if len(p.hosts) > 1 {
		return mostInRow + 1
	}
	return 3
}

// open makes a session on a host whose slot was taken.
func (p *Pool) open(ctx context.Context, h *host, id string, o protocol.Opening) (*Lease, error) {
	p.mu.Lock()
	early := p.made < p.PerHost*len(p.hosts)
	p.made++
	p.known[id] = true
	p.mu.Unlock()
	l := &Lease{pool: p, host: h, id: id, Session: h.New(id, o)}
	err := p.starting(ctx, early, func() (err error) {
		l.began = time.Now()
		l.Info, err = l.reset(ctx, o.Seed)
		return err
	})
	p.mu.Lock()
	h.opening--
	if err == nil {
		h.made++
		p.leases[l] = struct{}{}
	}
	p.mu.Unlock()
	p.report(ctx, h, err)
	if err != nil {
		p.drop(ctx, l)
		return nil, err
	}
	return l, nil
}

// starting runs f as one of the few that start at once.
func (p *Pool) starting(ctx context.Context, early bool, f func() error) error {
	if early && p.Jitter > 0 {
		if err := p.pause(ctx, p.between(0, p.Jitter)); err != nil {
			return err
		}
	}
	select {
	case p.startup <- struct{}{}:
		defer func() { <-p.startup }()
		return f()
	case <-p.over:
		return p.shut
	case <-ctx.Done():
		return llm.ContextError(ctx)
	}
}

// Drain begins nothing more: who waits is told that the run is stopping. What was handed
// out goes on.
func (p *Pool) Drain() { p.stop("the run is stopping") }

func (p *Pool) stop(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut == nil {
		p.shut = &llm.Error{Kind: llm.KindCanceled, Message: "envhttp: " + why}
		close(p.over)
	}
	for p.queue.Len() > 0 {
		close(p.queue.Pop().got)
	}
}

// Close gives everything back and waits until all is done, or ctx is.
func (p *Pool) Close(ctx context.Context) {
	p.stop("the pool is closed")
	p.mu.Lock()
	for stop := range p.stops {
		(*stop)()
	}
	var rest []*Lease
	for l := range p.leases {
		rest = append(rest, l)
	}
	p.mu.Unlock()
	p.work.Wait()
	for _, l := range rest {
		p.drop(ctx, l)
	}
	p.work.Wait()
}

// background runs f beside what asked for it, until Close.
func (p *Pool) background(ctx context.Context, f func(ctx context.Context)) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() { cancel(&llm.Error{Kind: llm.KindCanceled, Message: "envhttp: the pool is closed"}) }
	p.mu.Lock()
	p.stops[&stop] = struct{}{}
	p.mu.Unlock()
	p.work.Go(func() {
		f(ctx)
		stop()
		p.mu.Lock()
		delete(p.stops, &stop)
		p.mu.Unlock()
	})
}

// between draws a time from low to high.
func (p *Pool) between(low, high time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return low + time.Duration(p.rand.Float64()*float64(high-low))
}

// stray says whether a session was left behind: it has our name and we do not know it.
func (p *Pool) stray(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.HasPrefix(id, p.Owner+"-") && !p.known[id]
}

// pause waits, unless ctx is done first or nothing is begun any more.
func (p *Pool) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.over:
		return p.shut // set before, and never again
	case <-ctx.Done():
		return llm.ContextError(ctx)
	}
}

// sleep waits, unless ctx is done first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return llm.ContextError(ctx)
	}
}

// Waiting says what is waited for, where somebody waits for an environment and no host has
// one to give: the first host, and what it failed with. It is empty elsewhere.
func (p *Pool) Waiting() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanting == 0 {
		return ""
	}
	for _, h := range p.hosts {
		if h.why == "" {
			return ""
		}
	}
	h := p.hosts[0]
	return h.Name() + ": " + strings.TrimPrefix(h.why, h.Name()+": ")
}

// Stat is how a host is doing.
type Stat struct {
	Host string `json:"host"`
	// Sessions are there or being made; Spare are those of them that nobody uses.
	Sessions int `json:"sessions"`
	Spare    int `json:"spare,omitempty"`
	// Made and Failed count what was made and what was not, so far.
	Made   int `json:"made"`
	Failed int `json:"failed,omitempty"`
	// Down means that it is left alone for now, and Trips is how often it was.
	Down  bool `json:"down,omitempty"`
	Trips int  `json:"trips,omitempty"`
}

// Stats says how each host is doing.
func (p *Pool) Stats() []Stat {
	p.mu.Lock()
	defer p.mu.Unlock()
	spare := map[*host]int{}
	for _, all := range p.spares {
		for _, l := range all {
			spare[l.host]++
		}
	}
	var out []Stat
	for _, h := range p.hosts {
		out = append(out, Stat{
			Host: h.Name(), Sessions: h.load, Spare: spare[h], Made: h.made, Failed: h.failed, Down: h.down, Trips: h.trips,
		})
	}
	return out
}

func (s Stat) String() string { return fmt.Sprintf("%s: %d sessions", s.Host, s.Sessions) }
