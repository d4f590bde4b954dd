package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/cli/exit"
	"parley/internal/cluster/hub"
)

const (
	connects = 30 * time.Second // how long a hub may take to answer
	tries    = 3 * time.Second  // how long one of its nodes may take, if none does
	silence  = 2 * time.Second  // how long a hub cannot be used before this is said
)

// connect connects to a hub. It waits for one that is not there yet. While none of its nodes can be used, it tells once why; nil
// tells nothing.
func (f *hubFlags) connect(url, token string, tell func(string), more ...nats.Option) (*nats.Conn, error) {
	own, err := f.options(token)
	if err != nil {
		return nil, err
	}
	w := &hubWatch{tell: tell, why: func(nc *nats.Conn) error { return f.unreachable(nc, url, token) }}
	nc, err := nats.Connect(url, append(append(own,
		nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.CustomReconnectDelay(w.failed), nats.ReconnectHandler(w.back), nats.ConnectHandler(w.back),
		nats.PingInterval(5*time.Second), nats.MaxPingsOutstanding(2), nats.Name("parley")), more...)...)
	if err != nil {
		return nil, exit.AsUsage(fmt.Errorf("--cluster: %w", err))
	}
	w.conn.Store(nc)
	return nc, nil
}

// hubWatch tells that a hub cannot be used, once, and that it can be used again.
type hubWatch struct {
	tell func(string) // nil: nothing is said
	why  func(*nats.Conn) error
	conn atomic.Pointer[nats.Conn]

	mu    sync.Mutex
	since time.Time // when all nodes were tried for the first time; zero: one is connected
	said  bool
}

// failed is called after all nodes were tried. It returns how long to wait before they are tried again.
func (w *hubWatch) failed(int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		w.since = time.Now()
	}
	if w.tell != nil && !w.said && time.Since(w.since) >= silence {
		if err := w.why(w.conn.Load()); err != nil {
			w.said = true
			w.tell(err.Error() + ". This process waits until one can be used")
		}
	}
	return 250*time.Millisecond + time.Duration(os.Getpid()%100)*time.Millisecond // not all clients at the same moment
}

// back is called when a node is connected.
func (w *hubWatch) back(*nats.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said {
		w.tell("the hub answers again")
	}
	w.since, w.said = time.Time{}, false
}

// options returns what every connection to the hub needs.
func (f *hubFlags) options(token string) ([]nats.Option, error) {
	options, _ := hub.Options(token)
	if f.TLSCA == "" {
		return options, nil
	}
	pool, err := f.authorities()
	if err != nil {
		return nil, err
	}
	return append(options, nats.Secure(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13})), nil
}

// unreachable says for each node of a hub why it cannot be used, and what to do. It returns nil if one answers. nc may be nil.
func (f *hubFlags) unreachable(nc *nats.Conn, url, token string) error {
	options, err := f.options(token)
	if err != nil {
		return err
	}
	nodes := strings.Split(url, ",")
	if nc != nil {
		nodes = append(nodes, nc.DiscoveredServers()...)
	}
	if err := hub.Reach(nodes, tries, options...); err != nil {
		return fmt.Errorf("no node of the hub can be used: %w. Start one with parley hub, or correct --cluster, --tls-ca or the token (%s, --token-file); a node prints why it stopped", err, tokenEnv)
	}
	return nil
}

// connected connects to a hub, and waits until it answers.
func (f *hubFlags) connected(ctx context.Context, url, token string, tell func(string)) (*nats.Conn, error) {
	var said atomic.Bool
	says := tell
	if tell != nil {
		says = func(text string) { said.Store(true); tell(text) }
	}
	nc, err := f.connect(url, token, says)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connects)
	defer cancel()
	for !nc.IsConnected() {
		if nc.IsClosed() || ctx.Err() != nil {
			err := fmt.Errorf("--cluster: the hub does not answer: %w", cmp.Or(context.Cause(ctx), nc.LastError()))
			if !said.Load() && !errors.Is(ctx.Err(), context.Canceled) {
				err = cmp.Or(f.unreachable(nc, url, token), err)
			}
			nc.Close()
			return nil, exit.AsUsage(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nc, nil
}
