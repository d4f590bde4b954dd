package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/provider"
	"parley/llm"
)

// Outage says that a provider cannot be reached, or can be reached again.
type Outage struct {
	Provider, URL string
	Since         time.Time
	Why           string
	Limit         time.Duration // how long calls wait, from Since on
	Refuses       bool          // it can be reached and refuses every call; Limit does not count
	Back          bool          // it can be reached again
}

// Text describes the outage as of now.
func (o Outage) Text(now time.Time) string {
	took := now.Sub(o.Since).Round(time.Second)
	state, end := " is unreachable", " can be reached again"
	if o.Refuses {
		state, end = " refuses all calls", " answers again"
	}
	if o.Back {
		return fmt.Sprintf("%s%s after %v", o.Provider, end, took)
	}
	text := o.Provider + state
	if took > 0 {
		text += fmt.Sprintf(" for %v", took)
	}
	text += ": " + o.Why
	if o.URL != "" {
		text += " at " + o.URL
	}
	if took < o.Limit && !o.Refuses {
		text += fmt.Sprintf("; waits up to %v", o.Limit)
	}
	return text
}

const (
	firstPause   = 500 * time.Millisecond // after a call that reached nobody
	maxPause     = 5 * time.Second        // each pause is twice as long as the one before
	aliveTimeout = 5 * time.Second        // for the answer of Alive
	probeSettles = time.Second            // a call that was not refused by then has arrived

	// A server that refuses so many calls in a row, for so long, refuses every call. It answers at once, so it is
	// probed more often than one that is not there.
	minRefused      = 3
	minRefusedTime  = time.Second
	maxRefusedPause = time.Second
)

// reachConfig is what reach knows of its provider.
type reachConfig struct {
	Provider, URL string
	// Limit is how long calls wait, counted from the first one that did not reach the provider.
	Limit time.Duration
	// Alive checks whether a server of the provider is there, without a call. Default: only calls
	// find out.
	Alive func(ctx context.Context) error
	// Recall makes the calls that wait to be sent fail with replica.ErrRecalled. Default: nothing.
	Recall func()
	// Arrived is called when the others continue after a probe. Default: nothing.
	Arrived func()
	// Events is that of Config. It is called when an outage begins and when it ends.
	Events func(Event)
}

// reach is the layer that holds calls back while their provider cannot be reached, or refuses every
// call: its server restarts, loads its model or new weights, or was not started yet.
//
// One call at a time probes the server, with growing pauses; the others wait, and all continue once
// the probe has arrived. Calls that wait longer than the limit fail. From then on later calls fail
// at once, until a probe is answered.
//
// A failure for which the server certainly did no work is waited out here, and costs neither money
// nor an attempt. Any other failure is returned; if the server is down, the next attempt waits
// here.
type reach struct {
	reachConfig
	next layer

	draining context.Context //nolint:containedctx // a signal of its own, beside that of calls
	drain    context.CancelFunc
	trouble  atomic.Bool // since or refused is set: all that most calls need to know

	mu          sync.Mutex
	drained     *llm.Error
	down        bool       // calls wait
	since       time.Time  // of the first failure after the last answer; zero: it can be reached
	cause       *llm.Error // the last failure
	pause       time.Duration
	probeAt     time.Time     // no probe before
	probing     bool          // a call probes
	refused     int           // calls in a row that it refused because it is busy
	refusedFrom time.Time     // when it refused the first of them
	refuses     bool          // the outage is that it refuses every call
	checking    bool          // a call checks whether the server is still there
	changed     chan struct{} // closed when any of this changes
}

func newReach(next layer, c reachConfig) *reach {
	r := &reach{reachConfig: c, next: next, changed: make(chan struct{})}
	r.draining, r.drain = context.WithCancel(context.Background())
	return r
}

// refuseWaiting refuses the calls that wait, and all later ones that would, with e.
func (r *reach) refuseWaiting(e *llm.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drained = e
	r.drain()
}

// ask asks once the provider can be reached, and again if the call did not reach it. A call that is
// hasty does not wait.
func (r *reach) ask(ctx context.Context, c *call) (*llm.Response, error) {
	for {
		probe, err := r.enter(ctx, c)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		there := false
		if probe {
			if there, err = r.check(ctx); err != nil {
				r.noteDown(llm.AsError(err), probe)
				continue
			}
		}
		resp, err := r.try(ctx, c, there)
		if !r.ended(ctx, probe, began, err) || c.hasty {
			return resp, err
		}
	}
}

// try asks. If the server is known to be there, the others need not wait for a slow answer: a call
// that was not refused soon has arrived.
func (r *reach) try(ctx context.Context, c *call, there bool) (*llm.Response, error) {
	if there || r.refusing() {
		t := time.AfterFunc(probeSettles, r.arrived)
		defer t.Stop()
	}
	return r.next.ask(ctx, c)
}

// enter waits until a call may be sent, unless it is hasty. probe reports whether the call is the
// one that probes.
func (r *reach) enter(ctx context.Context, c *call) (probe bool, err error) {
	if !r.trouble.Load() {
		return false, nil
	}
	for {
		r.mu.Lock()
		now, end := time.Now(), r.since.Add(r.Limit)
		if r.refuses {
			end = now.Add(r.Limit) // the call's own deadline bounds its wait
		}
		next := r.probeAt
		if r.probing || next.After(end) {
			next = end
		}
		switch {
		case !r.down:
			r.mu.Unlock()
			return false, nil
		case r.drained != nil:
			r.mu.Unlock()
			return false, r.drained
		case !r.probing && !now.Before(r.probeAt):
			r.probing = true
			r.mu.Unlock()
			return true, nil
		case !now.Before(end), c.hasty:
			e := r.failure(now)
			r.mu.Unlock()
			return false, e
		}
		changed := r.changed
		r.mu.Unlock()
		err := r.wait(ctx, next.Sub(now), changed)
		c.waitedSince(now)
		if err != nil {
			return false, err
		}
	}
}

// wait waits for d, for a change, or for a drain.
func (r *reach) wait(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-r.draining.Done():
	case <-ctx.Done():
		e := *llm.ContextError(ctx)
		if o, ok := r.Outage(); ok {
			e.Message += "; " + o.Text(time.Now())
		}
		return &e
	}
	return nil
}

// check finds out whether the server is there, without a call. It returns an error if it is not, and
// false if that could not be found out.
func (r *reach) check(ctx context.Context) (there bool, err error) {
	if r.Alive == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	defer context.AfterFunc(r.draining, cancel)() //nolint:contextcheck // the drain is for all calls
	e := llm.AsError(r.Alive(ctx))
	switch {
	case e == nil:
		return true, nil
	case ctx.Err() != nil, !e.Unreachable:
		return e.Status != 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// A page that always fails says nothing. One that fails as a call did says that calls will fail.
	if e.Status != 0 && r.cause != nil && e.Status != r.cause.Status {
		return true, nil
	}
	return false, e
}

// ended learns from the result of a call that began at began. It reports whether to make the call
// again.
func (r *reach) ended(ctx context.Context, probe bool, began time.Time, err error) (again bool) {
	e := llm.AsError(err)
	switch {
	case e == nil:
		r.noteAnswer(probe, began)
	case r.Recall != nil && errors.Is(err, replica.ErrRecalled):
		r.endProbe(probe)
		return true
	case ctx.Err() != nil:
		r.endProbe(probe)
	case e.Unserved():
		r.noteDown(e, probe)
		return true
	case e.Kind == llm.KindOverloaded && e.Status == http.StatusServiceUnavailable && !e.Uncertain && r.refusesAll(e, probe):
		return true
	case e.Unreachable: // the server may have done the work
		r.verify(ctx, probe, began, e)
	case e.Kind == llm.KindOverloaded && e.Status == http.StatusServiceUnavailable:
		r.endProbe(probe)
	case e.Status != 0 || e.Kind == llm.KindMalformed:
		r.noteAnswer(probe, began)
	default:
		r.endProbe(probe)
	}
	return false
}

// verify checks whether the server is still there after a call that it may have begun. One check is
// enough for all calls that were cut off together.
func (r *reach) verify(ctx context.Context, probe bool, began time.Time, e *llm.Error) {
	r.mu.Lock()
	known := r.down && !probe || r.checking
	if !known {
		r.checking = true
		r.cause = e
	}
	r.mu.Unlock()
	if known {
		return
	}
	there, gone := r.check(ctx)
	r.mu.Lock()
	r.checking = false
	r.mu.Unlock()
	switch {
	case gone != nil:
		r.noteDown(llm.AsError(gone), probe)
	case there:
		r.noteAnswer(probe, began)
	default:
		r.endProbe(probe)
	}
}

// refusesAll notes that the server refused a call because it is busy. It reports whether it refuses every call.
func (r *reach) refusesAll(e *llm.Error, probe bool) bool {
	now := time.Now()
	r.mu.Lock()
	if r.down && !probe {
		r.mu.Unlock()
		return true
	}
	if r.refused == 0 {
		r.refusedFrom = now
		r.trouble.Store(true)
	}
	r.refused++
	all := r.refused >= minRefused && now.Sub(r.refusedFrom) >= minRefusedTime
	r.refuses = r.refuses || all
	r.mu.Unlock()
	if all {
		r.noteDown(e, probe)
	}
	return all
}

// refusing reports whether the server refuses every call.
func (r *reach) refusing() bool {
	if !r.trouble.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down && r.refuses
}

// noteDown notes that the server was not there.
func (r *reach) noteDown(e *llm.Error, probe bool) {
	now := time.Now()
	r.mu.Lock()
	begins, closes := r.since.IsZero(), !r.down
	if begins {
		r.since, r.pause = now, 0
		r.trouble.Store(true)
	}
	if probe || closes { // calls that were sent before do not lengthen the pause
		r.pause = min(max(2*r.pause, firstPause), maxPause)
		if r.refuses {
			r.pause = min(r.pause, maxRefusedPause)
		}
		r.probeAt = now.Add(r.pause)
	}
	r.down, r.cause, r.probing = true, e, r.probing && !probe
	o := r.state()
	r.wake()
	r.mu.Unlock()
	if closes && r.Recall != nil {
		r.Recall()
	}
	if begins {
		r.Events(Event{Outage: &o})
	}
}

// noteAnswer notes that a call that began at began was answered, even if with a refusal. A call that was sent
// before the server went away says nothing.
func (r *reach) noteAnswer(probe bool, began time.Time) {
	if !r.trouble.Load() {
		return
	}
	r.mu.Lock()
	since := r.since
	if r.refused > 0 && (since.IsZero() || r.refuses) {
		since = r.refusedFrom
	}
	if !probe && began.Before(since) {
		r.mu.Unlock()
		return
	}
	o, down := r.state(), r.down
	o.Back = true
	reported := !r.since.IsZero()
	r.down, r.probing, r.since, r.cause, r.refused, r.refuses = false, false, time.Time{}, nil, 0, false
	r.trouble.Store(false)
	r.wake()
	r.mu.Unlock()
	if down && r.Arrived != nil {
		r.Arrived()
	}
	if reported {
		r.Events(Event{Outage: &o})
	}
}

// arrived lets the others continue, since the probe was not refused. The provider counts as back
// once one of them is answered.
func (r *reach) arrived() {
	r.mu.Lock()
	r.down, r.probing = false, false
	r.wake()
	r.mu.Unlock()
	if r.Arrived != nil {
		r.Arrived()
	}
}

// endProbe ends a probe that has found out nothing.
func (r *reach) endProbe(probe bool) {
	if !probe {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probing = false
	r.wake()
}

// wake wakes the calls that wait. r.mu is held.
func (r *reach) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// Outage returns the outage, and false where calls need not wait.
func (r *reach) Outage() (Outage, bool) {
	if !r.trouble.Load() {
		return Outage{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state(), r.down
}

// state describes the outage. r.mu is held.
func (r *reach) state() Outage {
	o := Outage{Provider: r.Provider, URL: r.URL, Since: r.since, Limit: r.Limit, Refuses: r.refuses}
	if r.cause != nil {
		o.Why = errorText(r.cause)
	}
	return o
}

// codeUnreachable is the code of the error of a call that was not made, since its provider stayed unreachable.
const codeUnreachable = "unreachable"

// failure returns the error of a call that waited too long. r.mu is held.
func (r *reach) failure(now time.Time) *llm.Error {
	return &llm.Error{
		Kind: llm.KindTransport, Code: codeUnreachable, Status: r.cause.Status, Final: true, Unreachable: true, Err: r.cause,
		Message: r.state().Text(now) + "; " + Remedy(r.Provider, hostOf(r.URL)) + ", then try again; " +
			"--unreachable, or retry: {unreachable: 10m} in a plan, says how long to wait",
	}
}

// errorText returns what an error says, for a line about its provider.
func errorText(e *llm.Error) string {
	switch {
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return "connection refused"
	case e.Status != 0:
		return fmt.Sprintf("%d %s", e.Status, e.Message)
	default:
		return e.Message
	}
}

// Remedy says what to do about a provider that cannot be reached at a host. If the host is empty, it is that of the preset of this name.
func Remedy(name, host string) string {
	preset, _ := provider.Lookup(name)
	own := hostOf(preset.BaseURL)
	if host == "" {
		host = own
	}
	const network, server = "check the network, or the proxy", "make sure that the server is running, and that base_url of the provider is right"
	switch ip := net.ParseIP(host); {
	case host == "", strings.EqualFold(host, "localhost"), ip.IsLoopback():
		return server
	case host == own:
		return network
	default:
		return network + "; " + server
	}
}

// hostOf returns the host of an address. Empty: it has none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// addReach makes the calls of a lane wait for a provider that cannot be reached, if c demands it.
func (l *lane) addReach(in Lane, c Config) {
	if c.Settings.Retry.Unreachable <= 0 || in.Provider.Dialect == "sim" {
		return
	}
	config := reachConfig{
		Provider: in.Provider.Name, URL: addresses(in.Provider), Limit: c.Settings.Retry.Unreachable,
		Alive: pingAny(in), Events: c.Events,
	}
	if l.set == nil { // a set of replicas recalls calls itself
		config.Recall, config.Arrived = l.endpoints[0].recall, l.endpoints[0].arrived
	}
	l.reach = newReach(l.live, config)
	l.live = l.reach
}

// addresses describes where a provider is.
func addresses(p provider.Provider) string {
	if n := len(p.BaseURLs); n > 1 {
		return fmt.Sprintf("%s and %d more", p.BaseURLs[0], n-1)
	}
	return p.Servers()[0].BaseURL
}

// pingAny returns a function that checks, without a call, whether a server of a lane is there. It
// returns nil where only calls can find out.
func pingAny(in Lane) func(ctx context.Context) error {
	var servers []replica.Pinger
	for _, m := range in.Replicas {
		if m.Server != nil {
			servers = append(servers, m.Server)
		}
	}
	if s, ok := in.Model.(replica.Pinger); ok && len(in.Replicas) == 0 {
		servers = append(servers, s)
	}
	if len(servers) == 0 {
		return nil
	}
	return func(ctx context.Context) (err error) {
		for _, s := range servers {
			if err = s.Alive(ctx); err == nil {
				return nil
			}
		}
		return err
	}
}
