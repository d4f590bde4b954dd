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
	why      func() error          // why no node can be used; it asks them
	reason   atomic.Pointer[error] // what watch told; nil: a node can be used, or nothing was told yet
	refusals atomic.Int64          // how often the nodes were tried since one was seen to refuse the token; 0: none does
	cancel   context.CancelFunc    // ends watch
	watching sync.WaitGroup
}

// Close closes the connection, and waits for the goroutine that finds out why the hub cannot be used.
func (c *hubConn) Close() {
	c.cancel()
	c.Conn.Close()
	c.watching.Wait()
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
	c := &hubConn{}
	nc, err := nats.Connect(strings.Join(nodes, ","), append(append(slices.Clone(own),
		nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.CustomReconnectDelay(c.delay),
		nats.PingInterval(5*time.Second), nats.MaxPingsOutstanding(2), nats.Name("parley")), more...)...)
	if err != nil {
		return nil, exit.AsUsage(fmt.Errorf("--cluster: %w", err))
	}
	ctx, c.cancel = context.WithCancel(ctx)
	c.Conn, c.why = nc, func() error { return f.unreachable(ctx, nc, nodes, own) }
	if tell != nil {
		c.watching.Go(func() { c.watch(ctx, nc.IsConnected, limit, tell) })
	}
	return c, nil
}

// delay returns how long to wait, after all nodes were tried, before they are tried again.
func (c *hubConn) delay(int) time.Duration {
	delay := retryDelay
	if n := c.refusals.Load(); n > 0 {
		delay = min(retryDelay<<min(n, 10), maxRetryDelay) // the token is hardly right a moment later
		c.refusals.Add(1)
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

// watch tells once that the hub cannot be used, and why, and that it can be used again, until ctx is done. limit is how long the
// process waits for the first connection; 0: for ever.
func (c *hubConn) watch(ctx context.Context, usable func() bool, limit time.Duration, tell func(string)) {
	for silent := time.Duration(0); ; silent += retryDelay {
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryDelay):
		}
		switch {
		case usable():
			if c.reason.Swap(nil) != nil {
				tell("the hub answers again")
			}
			c.refusals.Store(0)
			silent, limit = 0, 0
		case silent >= silentTime && c.reason.Load() == nil:
			err := c.why()
			if err == nil || usable() || ctx.Err() != nil {
				continue
			}
			c.reason.Store(&err)
			if of, ok := errors.AsType[*hub.UnreachableError](err); ok && of.Refused {
				c.refusals.Store(1)
			}
			waits := "until one can be used"
			if limit > 0 {
				waits = fmt.Sprintf("up to %v", limit)
			}
			tell(err.Error() + ". This process waits " + waits)
		}
	}
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

// unreachable says for each node of a hub why it cannot be used, and what to do. It returns nil if one answers.
func (f *hubFlags) unreachable(ctx context.Context, nc *nats.Conn, nodes []string, options []nats.Option) error {
	if err := hub.Reach(ctx, slices.Concat(nodes, nc.DiscoveredServers()), nodeTimeout, options...); err != nil {
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
			var err error
			if reason := nc.reason.Load(); reason != nil {
				err = *reason
			} else {
				err = nc.why()
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
