package hub

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// UnreachableError says why no node of a hub can be used.
type UnreachableError struct {
	// Nodes are the addresses that were tried, each with its own problem.
	Nodes []string
}

func (e *UnreachableError) Error() string { return strings.Join(e.Nodes, "; ") }

// Reach tries the nodes of a hub one by one, for at most so long each. It returns an UnreachableError, or nil if one answers.
func Reach(nodes []string, wait time.Duration, options ...nats.Option) error {
	var all UnreachableError
	seen := map[string]bool{}
	for _, node := range nodes {
		name := host(node)
		if seen[name] {
			continue
		}
		seen[name] = true
		err := try(node, wait, options)
		if err == nil {
			return nil
		}
		all.Nodes = append(all.Nodes, name+": "+problem(err))
	}
	return &all
}

// host returns the part of an address that has no secrets.
func host(node string) string {
	if u, err := url.Parse(strings.TrimSpace(node)); err == nil && u.Host != "" {
		return u.Host
	}
	return node[strings.LastIndexByte(node, '@')+1:]
}

// try connects to one node.
func try(node string, wait time.Duration, options []nats.Option) error {
	d := &dialer{Dialer: net.Dialer{Timeout: wait}}
	nc, err := nats.Connect(strings.TrimSpace(node), append(slices.Clip(options), nats.Timeout(wait), nats.NoReconnect(), nats.RetryOnFailedConnect(false), nats.SetCustomDialer(d))...)
	if err != nil {
		if d.err != nil {
			return d.err // the client only says that there are no servers
		}
		return err
	}
	nc.Close()
	return nil
}

// dialer keeps its last error.
type dialer struct {
	net.Dialer
	err error
}

func (d *dialer) Dial(network, address string) (net.Conn, error) {
	var conn net.Conn
	conn, d.err = d.Dialer.Dial(network, address)
	return conn, d.err
}

// problem says what is wrong with a node, and what to do if that depends on the error.
func problem(err error) string {
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return "it refuses the token"
	case errors.Is(err, nats.ErrSecureConnRequired):
		return "it wants TLS: write tls:// instead of nats://"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "it has no TLS: write nats:// instead of tls://"
	}
	if e, ok := errors.AsType[net.Error](err); errors.Is(err, nats.ErrTimeout) || ok && e.Timeout() {
		return "it does not answer in time"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return e.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), "nats: ")
}
