// Part pool holds environments on several hosts: it makes them, gives each to one episode at a time, and
// closes them.
//
// It promises that no host has more environments than allowed and that no more are made at once than
// allowed, by the user or as far as the host keeps up (room.go); that waiters are served in order, on the host with the fewest environments; that a host that
// fails gets no work until it answers a probe (package health); that an environment is closed after use, and
// that one that an earlier process left behind is found and closed; and that every goroutine has ended when
// Close returns. It sends every step once.
//
// It is not for any wire format: see Host.

package envhttp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/kit/health"
	"parley/internal/kit/queue"
	"parley/llm"
	"parley/worlds/rollout/rules"
)

// Host is where environments are: a server, or this process. Its methods must be safe for concurrent use.
type Host interface {
	// Name returns its name, for errors.
	Name() string
	// New returns a session, which Reset makes. Its id begins with the pool's Owner.
	New(id string, o rules.Opening) Session
	// Check returns nil if the host answers. It closes sessions that stray reports as left behind, if the
	// host can list its sessions.
	Check(ctx context.Context, stray func(id string) bool) error
}

// Session is an environment on a host. It is used by one goroutine at a time. Its errors are *llm.Error.
type Session interface {
	// Reset starts over. The first Reset makes the environment.
	Reset(ctx context.Context, seed int64) (info json.RawMessage, err error)
	// Prompt asks what the agents are to do. Some environments change when they are asked, so it is called
	// once a step.
	Prompt(ctx context.Context) (rules.Prompt, error)
	// Step sends an action. key names the step: a host that knows keys does not take one twice.
	Step(ctx context.Context, key string, a rules.Action) (rules.Result, error)
	// Close frees the environment. Closing one that does not exist is not an error.
	Close(ctx context.Context) error
}

// Config configures a Pool.
type Config struct {
	// Owner begins the id of every session. Two pools on one host must have different owners.
	Owner string
	// Run, if set, means that other pools play other episodes of the same run. Their owners begin with it too.
	Run string
	// PerHost is the maximum number of sessions on a host. Default: found by trying, from First up.
	PerHost int
	// First is how many sessions a host has at first if PerHost is not set. Default: 256.
	First int
	// Startup is the maximum number of sessions being made at once. Default: found by trying, from 16 up.
	Startup int
	// Warm is how many spare sessions are made ahead, for each environment in use. Default: none.
	Warm int
	// Timeout is how long a host may take to answer. Default: 5 minutes.
	Timeout time.Duration
	// Patience is how long to wait when all hosts are down. Default: 2 minutes.
	Patience time.Duration
	// Jitter is the maximum random delay before the first sessions are made. Default: none.
	Jitter time.Duration
}

func (c Config) resolved() Config {
	c.First = cmp.Or(max(0, c.First), 256)
	c.Timeout = cmp.Or(max(0, c.Timeout), 5*time.Minute)
	c.Patience = cmp.Or(max(0, c.Patience), 2*time.Minute)
	return c
}

// envPool holds environments. It is safe for concurrent use.
type envPool struct {
	Config
	policy *health.Policy
	work   sync.WaitGroup // goroutines in the background
	places chan struct{}  // to make sessions: one for each that may begin now
	room   atomic.Int64   // see Capacity

	mu           sync.Mutex
	startup      room // sessions being made at once
	rand         *rand.Rand
	hosts        []*host
	queue        queue.Queue[*waiter]
	known        map[string]bool // sessions there or being made
	resumed      map[int]int     // attempts at episodes that another pool of the run began
	leases       map[*Lease]struct{}
	spares       map[string][]*Lease // by class
	filling      map[string]int
	spared       int                  // spares so far
	made         int                  // sessions so far
	allDownSince time.Time            // since when no host can be used; zero: one can
	stops        map[*func()]struct{} // end goroutines in the background
	wanting      int                  // waiting calls of Lease
	shut         error                // why nothing new begins
	over         chan struct{}        // closed when shut is set
}

// newPool returns a pool of hosts. It opens nothing before the first Lease.
func newPool(hosts []Host, c Config) *envPool {
	c = c.resolved()
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.Owner)) // never fails
	startup := newRoom(c.Startup, firstStartup)
	p := &envPool{
		Config: c, policy: policy(c.Patience), startup: startup, places: make(chan struct{}, startup.max), rand: rand.New(rand.NewPCG(h.Sum64(), uint64(len(hosts)))),
		known: map[string]bool{}, resumed: map[int]int{}, leases: map[*Lease]struct{}{}, spares: map[string][]*Lease{}, filling: map[string]int{},
		stops: map[*func()]struct{}{}, over: make(chan struct{}),
	}
	p.queue.Track = func(w *waiter, i int) { w.index = i }
	for _, one := range hosts {
		p.hosts = append(p.hosts, &host{Host: one, share: 1, room: newRoom(c.PerHost, c.First)})
	}
	for range p.startup.limit {
		p.places <- struct{}{}
	}
	p.countRoom()
	return p
}

// Lease returns an environment that was just reset, and waits for one if necessary; lower orders go first.
// ctx also bounds the work in the background that the call starts, so it must live as long as the pool. name
// must be unique.
func (p *envPool) Lease(ctx context.Context, order int, name string, o rules.Opening) (*Lease, error) {
	p.want(1)
	defer p.want(-1)
	if l := p.takeSpare(ctx, o); l != nil {
		return l, nil
	}
	asked := time.Now()
	var since time.Time // the first failure
	failures := 0
	for id := p.Owner + "-" + name; ; id += "+" { // a new id each time: the last session may still be closing
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
			failures++ // the host answers, and cannot make such an environment
		}
		another := e.Kind == llm.KindInvalid && len(p.hosts) > 1 // another host may answer in the right form
		if !e.Kind.Retryable() && !another || failures == p.maxFailures() || time.Since(since) > p.Patience {
			return nil, e
		}
		if err := p.pause(ctx, p.between(time.Second/2, time.Second)); err != nil {
			return nil, err
		}
	}
}

// want counts waiting calls of Lease.
func (p *envPool) want(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanting += n
}

// maxFailures returns how often making an environment may fail: with several hosts, until one of them is down.
func (p *envPool) maxFailures() int {
	if len(p.hosts) > 1 {
		return p.policy.Failures + 1
	}
	return 3
}

// open makes a session in a slot that was taken.
func (p *envPool) open(ctx context.Context, h *host, id string, o rules.Opening) (*Lease, error) {
	p.mu.Lock()
	early := p.made < h.room.limit*len(p.hosts)
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

// starting runs f when it may begin.
func (p *envPool) starting(ctx context.Context, early bool, f func() error) error {
	if early && p.Jitter > 0 {
		if err := p.pause(ctx, p.between(0, p.Jitter)); err != nil {
			return err
		}
	}
	select {
	case <-p.places:
		began := time.Now()
		err := f()
		p.started(time.Since(began), err)
		return err
	case <-p.over:
		return p.shut
	case <-ctx.Done():
		return llm.ContextError(ctx)
	}
}

// Drain begins nothing new: waiting calls of Lease fail. Leases stay usable.
func (p *envPool) Drain() { p.stop("the run is stopping") }

func (p *envPool) stop(why string) {
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

// Close closes every environment and waits until that is done. ctx bounds the closing.
func (p *envPool) Close(ctx context.Context) {
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

// background runs f in a goroutine that Close ends.
func (p *envPool) background(ctx context.Context, f func(ctx context.Context)) {
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

// between returns a random duration from low to high.
func (p *envPool) between(low, high time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return low + time.Duration(p.rand.Float64()*float64(high-low))
}

// pause waits, unless ctx is done or the pool ends first.
func (p *envPool) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-p.over:
		return p.shut // set once, before over is closed
	case <-ctx.Done():
		return llm.ContextError(ctx)
	}
}

// Waiting says what calls of Lease wait for: the first host, with its last failure, if every host failed last; or an
// environment that is free. If none waits, it returns "".
func (p *envPool) Waiting() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanting == 0 {
		return ""
	}
	inUse := 0
	for _, h := range p.hosts {
		inUse += h.load
	}
	if n := p.queue.Len(); slices.ContainsFunc(p.hosts, func(h *host) bool { return h.why == "" }) {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("environments: the servers have %d, and %d episodes wait for one", inUse, n)
	}
	h := p.hosts[0]
	return h.Name() + ": " + strings.TrimPrefix(h.why, h.Name()+": ")
}

// Stat is the state of a host.
type Stat struct {
	Host string `json:"host"`
	// Sessions counts sessions there or being made, and Spare those that nobody uses.
	Sessions int `json:"sessions"`
	Spare    int `json:"spare,omitempty"`
	// Made and Failed count sessions that were made and requests that failed.
	Made   int `json:"made"`
	Failed int `json:"failed,omitempty"`
	// Down means that it gets no work for now, and Trips is how often it went down.
	Down  bool `json:"down,omitempty"`
	Trips int  `json:"trips,omitempty"`
}

// Stats returns the state of each host.
func (p *envPool) Stats() []Stat {
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
			Host: h.Name(), Sessions: h.load, Spare: spare[h], Made: h.made, Failed: h.failed, Down: h.Down(), Trips: h.trips,
		})
	}
	return out
}

func (s Stat) String() string { return fmt.Sprintf("%s: %d sessions", s.Host, s.Sessions) }
