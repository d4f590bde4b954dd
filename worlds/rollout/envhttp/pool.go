package envhttp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/kit/health"
	"parley/internal/kit/queue"
	"parley/llm"
	"parley/world/part"
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

// poolConfig configures a pool.
type poolConfig struct {
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
	// DownTimeout is how long to wait when all hosts are down. Default: 2 minutes.
	DownTimeout time.Duration
	// Jitter is the maximum random delay before the first sessions are made. Default: none.
	Jitter time.Duration
}

func (c poolConfig) resolved() poolConfig {
	c.First = cmp.Or(max(0, c.First), 256)
	c.Timeout = cmp.Or(max(0, c.Timeout), 5*time.Minute)
	c.DownTimeout = cmp.Or(max(0, c.DownTimeout), 2*time.Minute)
	return c
}

// envPool holds environments on several hosts: it makes them, gives each to one episode at a time, and closes
// them. It is safe for concurrent use.
//
// No host has more environments than allowed, and no more are made at once than allowed, by the user or as far
// as the host keeps up (adaptiveLimit). Waiters are served in order, on the host with the fewest environments. A
// host that fails gets no work until it answers a probe. An environment is closed after use, and one that an
// earlier process left behind is found and closed. Every goroutine has ended when Close returns.
type envPool struct {
	poolConfig
	policy   *health.Policy
	work     sync.WaitGroup // goroutines in the background
	places   chan struct{}  // to make sessions: one for each that may begin now
	capacity atomic.Int64   // see Capacity

	mu           sync.Mutex
	startup      adaptiveLimit // sessions being made at once
	rand         *rand.Rand
	hosts        []*host
	queue        queue.Queue[*waiter]
	known        map[string]bool // sessions there or being made
	resumed      map[int]int     // attempts at episodes that another pool of the run began
	leases       map[*envLease]struct{}
	spares       map[string][]*envLease // by class
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
func newPool(hosts []Host, c poolConfig) *envPool {
	c = c.resolved()
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.Owner)) // never fails
	startup := newLimit(c.Startup, firstStartup)
	p := &envPool{
		poolConfig: c, policy: policy(c.DownTimeout), startup: startup, places: make(chan struct{}, startup.max), rand: rand.New(rand.NewPCG(h.Sum64(), uint64(len(hosts)))),
		known: map[string]bool{}, resumed: map[int]int{}, leases: map[*envLease]struct{}{}, spares: map[string][]*envLease{}, filling: map[string]int{},
		stops: map[*func()]struct{}{}, over: make(chan struct{}),
	}
	p.queue.Track = func(w *waiter, i int) { w.index = i }
	for _, one := range hosts {
		p.hosts = append(p.hosts, &host{Host: one, share: 1, limit: newLimit(c.PerHost, c.First)})
	}
	for range p.startup.now {
		p.places <- struct{}{}
	}
	p.updateCapacity()
	return p
}

// lease returns an environment that was just reset, and waits for one if necessary; lower orders go first.
// ctx also bounds the work in the background that the call starts, so it must live as long as the pool. name
// must be unique.
func (p *envPool) lease(ctx context.Context, order int, name string, o rules.Opening) (*envLease, error) {
	p.countWaiting(1)
	defer p.countWaiting(-1)
	if l := p.takeSpare(ctx, o); l != nil {
		return l, nil
	}
	asked := time.Now()
	var since time.Time // the first failure
	failures := 0
	for id := p.Owner + "-" + name; ; id += "+" { // a new id each time: the last session may still be closing
		h, err := p.takeSlot(ctx, order)
		if err != nil {
			return nil, err
		}
		l, err := p.open(ctx, h, id, o)
		if err == nil {
			l.Waited = l.began.Sub(asked)
			p.refillSpares(ctx, o)
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
		if !e.Kind.Retryable() && !another || failures == p.maxFailures() || time.Since(since) > p.DownTimeout {
			return nil, e
		}
		if err := p.pause(ctx, p.between(time.Second/2, time.Second)); err != nil {
			return nil, err
		}
	}
}

// countWaiting counts waiting calls of Lease.
func (p *envPool) countWaiting(n int) {
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
func (p *envPool) open(ctx context.Context, h *host, id string, o rules.Opening) (*envLease, error) {
	p.mu.Lock()
	early := p.made < h.limit.now*len(p.hosts)
	p.made++
	p.known[id] = true
	p.mu.Unlock()
	l := &envLease{pool: p, host: h, id: id, Session: h.New(id, o)}
	err := p.whenAllowed(ctx, early, func() (err error) {
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

// whenAllowed runs f when it may begin.
func (p *envPool) whenAllowed(ctx context.Context, early bool, f func() error) error {
	if early && p.Jitter > 0 {
		if err := p.pause(ctx, p.between(0, p.Jitter)); err != nil {
			return err
		}
	}
	select {
	case <-p.places:
		began := time.Now()
		err := f()
		p.sessionStarted(time.Since(began), err)
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
		p.shut = &llm.Error{Kind: llm.KindCanceled, Message: why}
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
	var rest []*envLease
	for l := range p.leases {
		rest = append(rest, l)
	}
	p.mu.Unlock()
	p.work.Wait()
	for _, l := range rest {
		p.drop(ctx, l)
	}
	p.work.Wait()
	p.checkLast(ctx)
}

// checkLast closes what is left on hosts: a check at the start may have been cut short, a request to close may have failed, and a host
// may have handled a request of a process that was killed later than the check.
func (p *envPool) checkLast(ctx context.Context) {
	for _, h := range p.hosts {
		p.mu.Lock()
		down := h.Down()
		p.mu.Unlock()
		if !down {
			p.work.Go(func() { _ = p.probe(ctx, h) }) // if it fails, the host ends what is not used
		}
	}
	p.work.Wait()
}

// background runs f in a goroutine that Close ends.
func (p *envPool) background(ctx context.Context, f func(ctx context.Context)) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() { cancel(&llm.Error{Kind: llm.KindCanceled, Message: "the pool of environments is closed"}) }
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

// envLease is an environment of one episode. It is used by one goroutine at a time.
type envLease struct {
	Session
	// Info is the info of its reset.
	Info json.RawMessage
	// Waited is how long Lease waited before it began to make the environment.
	Waited time.Duration

	pool  *envPool
	host  *host
	id    string
	steps int
	began time.Time // when making it began
	gone  bool      // released; guarded by envPool.mu
}

// Prompt asks the environment what the agents are to do.
func (l *envLease) Prompt(ctx context.Context) (p rules.Prompt, err error) {
	err = l.timed(ctx, func(ctx context.Context) error {
		p, err = l.Session.Prompt(ctx)
		return err
	})
	return p, err
}

// Step sends an action, once.
func (l *envLease) Step(ctx context.Context, a rules.Action) (r rules.Result, err error) {
	l.steps++
	err = l.timed(ctx, func(ctx context.Context) error {
		r, err = l.Session.Step(ctx, fmt.Sprintf("%s-%d", l.id, l.steps), a)
		return err
	})
	return r, err
}

func (l *envLease) reset(ctx context.Context, seed int64) (info json.RawMessage, err error) {
	err = l.within(ctx, func(ctx context.Context) error {
		info, err = l.Session.Reset(ctx, seed)
		return err
	})
	return info, err
}

// timed runs a request of a session that exists, and notes how the host handled it.
func (l *envLease) timed(ctx context.Context, f func(ctx context.Context) error) error {
	l.pool.requestBegan(l.host)
	began := time.Now()
	err := l.within(ctx, f)
	l.pool.requestEnded(l.host, time.Since(began), err)
	l.pool.report(ctx, l.host, err)
	return err
}

// within runs f within the time that the host may take.
func (l *envLease) within(ctx context.Context, f func(ctx context.Context) error) error {
	limit := l.pool.Timeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &llm.Error{
		Kind: llm.KindTimeout, Uncertain: true, Message: fmt.Sprintf("%s: no answer within %s", l.host.Name(), limit),
	})
	defer cancel()
	return f(ctx)
}

// Release closes the environment in the background. Then its slot is free.
func (l *envLease) Release(ctx context.Context) { l.pool.drop(ctx, l) }

// closeTime is how long a host may take to close a session, if Timeout is not shorter.
const closeTime = 10 * time.Second

// drop closes a session in the background and frees its slot.
func (p *envPool) drop(ctx context.Context, l *envLease) {
	p.mu.Lock()
	if l.gone {
		p.mu.Unlock()
		return
	}
	l.gone = true
	delete(p.leases, l)
	p.mu.Unlock()
	p.work.Go(func() {
		// The caller may be stopping: the environment is closed anyway.
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), min(closeTime, p.Timeout), &llm.Error{
			Kind: llm.KindTimeout, Message: l.host.Name() + ": closing took too long",
		})
		defer cancel()
		_ = l.Session.Close(ctx) // Check finds a session that was left behind
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.known, l.id)
		l.host.load--
		p.serveWaiters()
	})
}

// spareKey is the key of spares: everything an environment is made with.
func spareKey(o rules.Opening) string { return o.Env + " " + string(o.Params) }

// takeSpare resets a spare for an episode, and drops spares that fail.
func (p *envPool) takeSpare(ctx context.Context, o rules.Opening) *envLease {
	for {
		p.mu.Lock()
		all := p.spares[spareKey(o)]
		if len(all) == 0 || p.shut != nil {
			p.mu.Unlock()
			return nil
		}
		l := all[len(all)-1]
		p.spares[spareKey(o)] = all[:len(all)-1]
		p.mu.Unlock()
		info, err := l.reset(ctx, o.Seed)
		p.report(ctx, l.host, err)
		if err == nil {
			l.Info = info
			p.refillSpares(ctx, o)
			return l
		}
		p.drop(ctx, l)
	}
}

// refillSpares makes spares while there is room that nobody waits for.
func (p *envPool) refillSpares(ctx context.Context, o rules.Opening) {
	c := spareKey(o)
	for {
		p.mu.Lock()
		h := p.freeHost()
		if p.shut != nil || h == nil || p.queue.Len() > 0 || len(p.spares[c])+p.filling[c] >= p.Warm {
			p.mu.Unlock()
			return
		}
		p.claim(h)
		p.filling[c]++
		p.spared++
		id := fmt.Sprintf("%s-spare%d", p.Owner, p.spared)
		p.mu.Unlock()
		p.background(ctx, func(ctx context.Context) {
			l, err := p.open(ctx, h, id, o)
			p.mu.Lock()
			p.filling[c]--
			keep := err == nil && p.shut == nil
			if keep {
				p.spares[c] = append(p.spares[c], l)
				p.evict(ctx)
			}
			p.mu.Unlock()
			if err == nil && !keep {
				p.drop(ctx, l)
			}
		})
	}
}

// evict drops a spare of any class if somebody waits for its slot. envPool.mu is held.
func (p *envPool) evict(ctx context.Context) {
	if p.queue.Len() == 0 || p.freeHost() != nil {
		return
	}
	for c, all := range p.spares {
		if len(all) > 0 {
			l := all[len(all)-1]
			p.spares[c] = all[:len(all)-1]
			p.work.Go(func() { p.drop(ctx, l) }) // needs envPool.mu
			return
		}
	}
}

// Capacities returns how full each host is. Where the user has not chosen how many sessions it has, each process finds out how
// many the host has room for, and nothing is shared.
func (p *envPool) Capacities() (all []part.Capacity) {
	if p.PerHost == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hosts {
		all = append(all, part.Capacity{Name: h.Name(), Max: p.PerHost, Used: h.load, Waiting: p.queue.Len()})
	}
	return all
}

// ShareCapacity sets the part of each host, by name, that the pool may use until then. Sessions that are there stay.
func (p *envPool) ShareCapacity(parts map[string]float64, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hosts {
		if part, ok := parts[h.Name()]; ok {
			h.share, h.until = 0, until
			if part > 0 { // and a number
				h.share = min(part, 1)
			}
		}
	}
	p.serveWaiters()
}

// slots returns how many of a host's sessions may be ours.
func (h *host) slots(perHost int, now time.Time) int {
	switch {
	case h.share == 1 && h.until.IsZero():
		return h.limit.now
	case !now.Before(h.until):
		return 0
	default:
		return min(h.limit.now, int(h.share*float64(perHost)+1e-6)) // shares are fractions of whole sessions
	}
}

// Resume notes that the pool plays an episode that began elsewhere. What was left behind of earlier attempts is closed.
func (p *envPool) Resume(episode, attempt int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Run == "" {
		return // nobody else plays: everything unknown is left behind
	}
	p.resumed[episode] = attempt
	for _, h := range p.hosts {
		h.checked = time.Time{}
	}
}

// stray reports whether a session was left behind. If nobody else plays the run, that is every one that is not known.
// Otherwise it is one of ours, or of an earlier attempt at an episode that is ours by now.
func (p *envPool) stray(id string) bool {
	owner, name, _ := strings.Cut(id, "-")
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.known[id]:
		return false
	case owner == p.Owner, p.Run == "" && strings.HasPrefix(owner, p.Owner+"_"):
		return true
	case p.Run == "" || owner != p.Run && !strings.HasPrefix(owner, p.Run+"_"):
		return false
	}
	first, rest, _ := strings.Cut(name, "-")
	second, _, _ := strings.Cut(rest, "-")
	episode, err := strconv.Atoi(first)
	attempt, attemptErr := strconv.Atoi(second)
	ours, ok := p.resumed[episode]
	return err == nil && attemptErr == nil && ok && attempt < ours
}
