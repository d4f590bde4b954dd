package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/cli/exit"
	"parley/internal/run/cluster/hub"
)

const (
	connectTimeout = 30 * time.Second // how long a hub may take to answer
	nodeTimeout    = 3 * time.Second  // how long one of its nodes may take, if none does
	silentTime     = 2 * time.Second  // how long a hub cannot be used before this is said

	retryDelay    = 250 * time.Millisecond // how long after all nodes failed they are tried again
	maxRetryDelay = 30 * time.Second       // the same, if they refuse the token
)

// hubConn is a connection to a hub.
type hubConn struct {
	*nats.Conn
	watch *hubWatch
}

// Close closes the connection, and waits for the goroutine that finds out why the hub cannot be used.
func (c *hubConn) Close() {
	c.watch.stop()
	c.Conn.Close()
	c.watch.search.Wait()
}

// connect connects to a hub. It waits for one that does not answer yet. limit is only for the message: after how long the caller
// gives up; 0: never. While no node can be used, it calls tell once with the reason; nil: nothing is said.
func (f *hubFlags) connect(ctx context.Context, addresses, token string, limit time.Duration, tell func(string), more ...nats.Option) (*hubConn, error) {
	nodes, err := hub.Nodes(addresses, f.TLSCA != "")
	if err != nil {
		return nil, exit.Usagef("--cluster: %w. The token of a hub comes from %s or --token-file", err, tokenEnv)
	}
	own, err := f.options(token)
	if err != nil {
		return nil, err
	}
	if f.TLSCA == "" && !strings.Contains(addresses, "tls://") {
		own = append(own, nats.IgnoreDiscoveredServers()) // they may be on other machines, and would be used without TLS
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &hubWatch{tell: tell, limit: limit, cancel: cancel}
	w.why = func() error { return f.unreachable(ctx, w.conn.Load(), nodes, own) }
	nc, err := nats.Connect(strings.Join(nodes, ","), append(append(slices.Clone(own),
		nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.CustomReconnectDelay(w.onAllFailed), nats.ReconnectHandler(w.onConnect), nats.ConnectHandler(w.onConnect),
		nats.PingInterval(5*time.Second), nats.MaxPingsOutstanding(2), nats.Name("parley")), more...)...)
	if err != nil {
		w.stop()
		return nil, exit.AsUsage(fmt.Errorf("--cluster: %w", err))
	}
	w.conn.Store(nc)
	return &hubConn{nc, w}, nil
}

// hubWatch says once that a hub cannot be used, and why, and that it can be used again.
type hubWatch struct {
	tell   func(string)  // nil: nothing is said
	limit  time.Duration // how long the process waits for the first connection; 0: for ever
	why    func() error  // it asks the nodes, until cancel is called
	cancel context.CancelFunc
	conn   atomic.Pointer[nats.Conn]
	search sync.WaitGroup // the goroutine that calls why

	mu        sync.Mutex
	since     time.Time // when all nodes were tried for the first time; zero: one is connected
	searching bool
	over      bool  // nothing may be started any more
	reason    error // what was said
	refusals  int   // how often the nodes were tried since one was seen to refuse the token; 0: none does
}

// onAllFailed is called after all nodes were tried. It returns how long to wait before they are tried again.
func (w *hubWatch) onAllFailed(int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		w.since = time.Now()
	}
	if w.tell != nil && w.reason == nil && !w.searching && !w.over && time.Since(w.since) >= silentTime {
		w.searching = true
		w.search.Go(w.findReason)
	}
	delay := retryDelay
	if w.refusals > 0 {
		delay = min(retryDelay<<min(w.refusals, 10), maxRetryDelay) // the token is hardly right a moment later
		w.refusals++
	}
	return delay + delay*time.Duration(processOffset())/250 // not all clients at the same moment
}

// processOffset returns a number below 100 that differs between processes, even in containers, where all have the same process ID.
func processOffset() uint32 {
	name, _ := os.Hostname() // without a name, the process ID alone has to do
	h := fnv.New32a()
	fmt.Fprint(h, name, os.Getpid())
	return h.Sum32() % 100
}

// findReason finds out why no node can be used, and tells it unless one is connected meanwhile.
func (w *hubWatch) findReason() {
	err := w.why()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.searching = false
	if err == nil || w.since.IsZero() || w.over {
		return
	}
	w.reason = err
	if of, ok := errors.AsType[*hub.UnreachableError](err); ok && of.Refused {
		w.refusals = 1
	}
	waits := "until one can be used"
	if w.limit > 0 {
		waits = fmt.Sprintf("up to %v", w.limit)
	}
	w.tell(err.Error() + ". This process waits " + waits)
}

// onConnect is called when a node is connected.
func (w *hubWatch) onConnect(*nats.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reason != nil {
		w.tell("the hub answers again")
	}
	w.since, w.reason, w.refusals, w.limit = time.Time{}, nil, 0, 0
}

// reported returns the reason that was given to tell, or nil.
func (w *hubWatch) reported() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason
}

// stop ends the goroutine that looks for the reason, and starts no other.
func (w *hubWatch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.cancel()
}

// options returns what every connection to the hub needs.
func (f *hubFlags) options(token string) ([]nats.Option, error) {
	options, _ := hub.Options(token)
	if f.TLSCA+f.TLSName == "" {
		return options, nil
	}
	pool, err := f.authorities()
	if err != nil {
		return nil, err
	}
	return append(options, nats.Secure(&tls.Config{RootCAs: pool, ServerName: f.TLSName, MinVersion: tls.VersionTLS13})), nil
}

// unreachable says for each node of a hub why it cannot be used, and what to do. It returns nil if one answers. nc may be nil.
func (f *hubFlags) unreachable(ctx context.Context, nc *nats.Conn, nodes []string, options []nats.Option) error {
	if nc != nil {
		nodes = slices.Concat(nodes, nc.DiscoveredServers())
	}
	if err := hub.Reach(ctx, nodes, nodeTimeout, options...); err != nil {
		return fmt.Errorf("no node of the hub can be used: %w. Start one with parley hub, or correct --cluster, --tls-ca or the token (%s, --token-file); a node prints why it stopped", err, tokenEnv)
	}
	return nil
}

// connectAndWait connects to a hub, and waits until it answers, or stop is closed.
func (f *hubFlags) connectAndWait(ctx context.Context, stop <-chan struct{}, addresses, token string, tell func(string)) (*hubConn, error) {
	nc, err := f.connect(ctx, addresses, token, connectTimeout, tell)
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for !nc.IsConnected() {
		if ctx.Err() != nil {
			nc.Close()
			return nil, context.Cause(ctx)
		}
		if nc.IsClosed() || wait.Err() != nil {
			err := nc.watch.reported()
			if err == nil {
				err = nc.watch.why()
			}
			err = cmp.Or(err, fmt.Errorf("--cluster: the hub does not answer: %w", cmp.Or(context.Cause(wait), nc.LastError())))
			nc.Close()
			return nil, exit.AsUsage(err)
		}
		select {
		case <-stop:
			nc.Close()
			return nil, &exit.Error{Code: exit.Interrupted, Err: errors.New("interrupted while it waited for the hub: nothing was played")}
		case <-wait.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nc, nil
}
