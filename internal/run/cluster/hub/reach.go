package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	maxNodes = 4   // how many nodes are tried to find out what is wrong: a hub says itself which it has
	maxNode  = 130 // bytes of a node's name and what is wrong with it: a hub may send any text
)

// Nodes splits the addresses of a hub, which have commas between them. It refuses an address with a user or a password, what
// nobody can connect to, and one off this machine without TLS, unless secure says that all connections have it. Its errors repeat nothing of the addresses: what cannot be read may hold a password.
func Nodes(addresses string, secure bool) ([]string, error) {
	if strings.Contains(addresses, "@") {
		return nil, errors.New("an address must not have a user or a password before an @")
	}
	nodes := strings.Split(addresses, ",")
	for i, node := range nodes {
		nodes[i] = strings.TrimSpace(node)
		u := parse(nodes[i])
		switch {
		case u == nil || u.Scheme != "nats" && u.Scheme != "tls":
			return nil, fmt.Errorf("address %d of %d cannot be read: want nats://HOST:PORT or tls://HOST:PORT", i+1, len(nodes))
		case u.Scheme == "nats" && !secure && !loopback(u.Hostname()):
			return nil, fmt.Errorf("address %d of %d is not on this machine, and without TLS others could read the token and all prompts on the way: write tls://HOST:PORT, or nats://127.0.0.1:PORT for the end of a tunnel", i+1, len(nodes))
		}
	}
	return nodes, nil
}

// UnreachableError says why no node of a hub can be used.
type UnreachableError struct {
	// Nodes are the addresses that were tried, each with its own problem.
	Nodes []string
	// Refused reports whether one of them refused the token.
	Refused bool
}

func (e *UnreachableError) Error() string { return strings.Join(e.Nodes, "; ") }

// Reach tries the nodes of a hub one by one, the first few and for at most so long each. It returns an UnreachableError, or nil if one answers.
func Reach(ctx context.Context, nodes []string, wait time.Duration, options ...nats.Option) error {
	var all UnreachableError
	seen := map[string]bool{}
	for _, node := range nodes {
		name := host(node)
		if name == "" || seen[name] || len(seen) == maxNodes {
			continue
		}
		seen[name] = true
		err := try(ctx, node, wait, options)
		if err == nil {
			return nil
		}
		all.Refused = all.Refused || errors.Is(err, nats.ErrAuthorization)
		line := name + ": " + problem(err)
		if len(line) > maxNode {
			line = strings.ToValidUTF8(line[:maxNode], "") + "…"
		}
		all.Nodes = append(all.Nodes, line)
	}
	return &all
}

// host returns the host and port of an address, or "" if it cannot be read.
func host(node string) string {
	if u := parse(node); u != nil {
		return u.Host
	}
	return ""
}

// parse returns the parts of an address, or nil if it cannot be read.
func parse(node string) *url.URL {
	if !strings.Contains(node, "://") {
		node = "nats://" + node
	}
	u, err := url.Parse(node)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	return u
}

// try connects to one node, until ctx is done.
func try(ctx context.Context, node string, wait time.Duration, options []nats.Option) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	dial := dialer(func(network, address string) (net.Conn, error) {
		d := net.Dialer{Timeout: wait}
		conn, err := d.DialContext(ctx, network, address)
		if failed = err; err == nil {
			context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, err
	})
	nc, err := nats.Connect(node, append(slices.Clip(options), nats.Timeout(wait), nats.NoReconnect(), nats.RetryOnFailedConnect(false), nats.SetCustomDialer(dial))...)
	if err != nil {
		return cmp.Or(failed, err) // the client only says that there are no servers
	}
	nc.Close()
	return nil
}

// dialer is a nats.CustomDialer.
type dialer func(network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// problem says what is wrong with a node, and what to do if that depends on the error.
func problem(err error) string {
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return "it refuses the token"
	case errors.Is(err, nats.ErrSecureConnRequired):
		return "it wants TLS: write tls:// instead of nats://"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "it has no TLS: give it a certificate, or write nats:// on the same machine"
	}
	if e, ok := errors.AsType[net.Error](err); errors.Is(err, nats.ErrTimeout) || ok && e.Timeout() {
		return "it does not answer in time"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return e.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), "nats: ")
}
