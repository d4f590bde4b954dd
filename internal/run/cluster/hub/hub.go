// Package hub runs the message hub of a cluster in this process: a NATS server with JetStream.
//
// What it promises: nobody connects without the token, or a token that WorkerToken makes from it for one
// run; a worker with such a token can use the subjects of its run and of no other; off this machine,
// everything is encrypted; nothing of a message is logged.
//
// A hub of one node keeps everything in memory, since the run file is the truth. Three nodes keep
// everything on disk, each of them all of it.
//
// auth.go has who may do what, reach.go how clients find a node, and subject.go the names of a run's streams and subjects,
// with the small messages that a coordinator and its workers send each other there.
package hub

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Config says how a hub runs. The zero value is one node on this machine, on any port.
type Config struct {
	// Listen is the address for workers and coordinators. Default: 127.0.0.1 with any port.
	Listen string
	// Token is what clients must know. Default: a random one.
	Token string
	// TLS is required if Listen is not on this machine.
	TLS *tls.Config
	// Join has the addresses of the routes of all nodes, of a hub of three: host:port. Route is this node's
	// own. Default: one node.
	Join  []string
	Route string
	// Folder keeps the messages of a hub of several nodes.
	Folder string
	// MaxMemory limits the bytes of messages of a hub of one node. Default: 4 GiB.
	MaxMemory int64
	// Log gets what happens. Default: nothing is logged.
	Log *slog.Logger
}

// Hub is a hub that runs.
type Hub struct {
	server atomic.Pointer[server.Server] // Keep replaces it
	config Config                        // with the token
	folder string                        // to remove; "" if it stays
	// stopsWithin is how long the server may take to stop.
	stopsWithin time.Duration
}

const (
	defaultMemory = 4 << 30
	maxPayload    = 8 << 20
	clusterName   = "parley"
	startsWithin  = 20 * time.Second
	anyPort       = "127.0.0.1:0"
	keyBytes      = 16 // of what is derived from the token
)

// Start starts a hub. The caller must close it.
func Start(c Config) (*Hub, error) {
	given := c.Token
	if c.Token == "" {
		c.Token = rand.Text()
	}
	if RunOf(c.Token) != "" {
		return nil, errors.New("hub: the token has the form of one for the workers of a run, and could not be told from these: use another, as from openssl rand -hex 16")
	}
	h := &Hub{config: c, stopsWithin: 30 * time.Second}
	if host, _, err := address(c.Listen, anyPort); err == nil && !loopback(host) && (c.TLS == nil || given == "") {
		return nil, fmt.Errorf("hub: %s is not on this machine: a certificate and a token are required", c.Listen)
	}
	o, err := h.options()
	if err != nil {
		return nil, err
	}
	if err := h.start(o); err != nil {
		return nil, errors.Join(err, h.clear())
	}
	return h, nil
}

// options returns how the server runs.
func (h *Hub) options() (*server.Options, error) {
	c := h.config
	host, port, err := address(c.Listen, anyPort)
	if err != nil {
		return nil, fmt.Errorf("hub: listen: %w", err)
	}
	o := &server.Options{
		ServerName: "parley-" + rand.Text()[:8], Host: host, Port: port, DontListen: false, NoSigs: true, NoLog: true, NoSystemAccount: false,
		JetStream: true, JetStreamMaxMemory: c.MaxMemory, JetStreamMaxStore: -1, MaxPayload: maxPayload, MaxPending: 256 << 20,
		CustomClientAuthentication: &auth{token: c.Token}, AlwaysEnableNonce: false, DisableShortFirstPing: true,
	}
	if port == 0 {
		o.Port = server.RANDOM_PORT
	}
	if o.JetStreamMaxMemory == 0 {
		o.JetStreamMaxMemory = defaultMemory
	}
	if c.TLS != nil {
		o.TLSConfig, o.TLS, o.TLSTimeout, o.AllowNonTLS = c.TLS, true, 5, false
	}
	return o, h.store(o, c)
}

// start starts the server. If it does not start, it is stopped.
func (h *Hub) start(o *server.Options) error {
	for _, at := range []struct {
		host string
		port int
	}{{o.Host, o.Port}, {o.Cluster.Host, o.Cluster.Port}} {
		if err := vacant(at.host, at.port); err != nil {
			return err
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	if h.config.Log != nil {
		s.SetLogger(&logger{h.config.Log}, false, false) // neither debug nor trace, which would show messages
	}
	s.Start()
	if !s.ReadyForConnections(startsWithin) {
		s.Shutdown()
		s.WaitForShutdown()
		return fmt.Errorf("hub: it did not start at %s within %v", net.JoinHostPort(o.Host, strconv.Itoa(o.Port)), startsWithin)
	}
	h.server.Store(s)
	return nil
}

// vacant returns an error unless somebody can listen at an address. The server itself would only be late.
func vacant(host string, port int) error {
	if port <= 0 {
		return nil // there is none, or any will do
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))) //nolint:noctx // it does not wait
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	return l.Close()
}

// store says where the hub keeps messages.
func (h *Hub) store(o *server.Options, c Config) (err error) {
	if len(c.Join) == 0 {
		if h.folder, err = os.MkdirTemp("", "parley-hub-"); err != nil { // the server wants one, even if everything is in memory
			return fmt.Errorf("hub: %w", err)
		}
		o.StoreDir = h.folder
		return nil
	}
	host, port, err := address(c.Route, "")
	switch {
	case err != nil:
		return fmt.Errorf("hub: route: %w", err)
	case c.Folder == "":
		return errors.New("hub: several nodes: a folder for messages is required")
	case !loopback(host) && c.TLS == nil:
		return fmt.Errorf("hub: %s is not on this machine: a certificate is required", c.Route)
	}
	o.StoreDir = filepath.Clean(c.Folder)
	o.SyncAlways = true // a quorum that loses its power at once must not lose replies
	o.ServerName = "parley-" + strings.NewReplacer(":", "-", ".", "-").Replace(c.Route)
	o.Cluster = server.ClusterOpts{Name: clusterName, Host: host, Port: port, Username: clusterName, Password: derive(c.Token, "route"), NoAdvertise: true}
	if c.TLS != nil {
		o.Cluster.TLSConfig, o.Cluster.TLSTimeout = c.TLS.Clone(), 5
	}
	for _, other := range c.Join {
		if other != c.Route {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", User: url.UserPassword(clusterName, o.Cluster.Password), Host: other})
		}
	}
	return nil
}

// address splits host:port.
func address(listen, otherwise string) (host string, port int, err error) {
	if listen == "" {
		listen = otherwise
	}
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("address %s: unknown port %q; want 0 to 65535", listen, text)
	}
	return host, port, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// URL returns the address of the hub.
func (h *Hub) URL() string { return h.server.Load().ClientURL() }

// LocalURL returns the address of the hub for processes of this machine.
func (h *Hub) LocalURL() string {
	u := parse(h.URL())
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", u.Port())
	}
	return u.String()
}

// Connect connects this process with the hub, without the network: what its certificate says does not matter.
func (h *Hub) Connect() (*nats.Conn, error) {
	options, _ := Options(h.config.Token)
	nc, err := nats.Connect(nats.DefaultURL, append(options, nats.InProcessServer(h.server.Load()), nats.MaxReconnects(-1), nats.Name("parley"))...)
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	return nc, nil
}

// Token returns what clients must know.
func (h *Hub) Token() string { return h.config.Token }

// Stats is how full a hub is. Messages are those of all runs on this node.
type Stats struct {
	Clients, Streams, Messages int
	// Memory and Disk are the bytes of messages, and MaxMemory and MaxDisk how many there may be.
	Memory, MaxMemory, Disk, MaxDisk float64
}

// Stats returns how full the hub is.
func (h *Hub) Stats() (s Stats, err error) {
	node := h.server.Load()
	js, err := node.Jsz(nil)
	if err != nil {
		return s, fmt.Errorf("hub: %w", err)
	}
	return Stats{
		Clients: node.NumClients(), Streams: js.Streams, Messages: int(js.Messages),
		Memory: float64(js.Memory), MaxMemory: float64(js.Config.MaxMemory), Disk: float64(js.Store), MaxDisk: float64(js.Config.MaxStore),
	}, nil
}

// Close stops the hub.
func (h *Hub) Close() error { return errors.Join(h.stop(), h.clear()) }

// stop stops the server. A server whose disk is full can hold its locks for ever: when it deletes messages and cannot write those
// that it has not yet written, it waits for itself. Only the end of the program helps then.
func (h *Hub) stop() error {
	done := make(chan struct{})
	go func() {
		s := h.server.Load()
		s.Shutdown()
		s.WaitForShutdown()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(h.stopsWithin):
		return fmt.Errorf("hub: the server does not stop within %v: start this program again", h.stopsWithin)
	}
}

func (h *Hub) clear() error {
	if h.folder == "" {
		return nil
	}
	return os.RemoveAll(h.folder)
}

const (
	checkInterval = time.Second // between two looks at the server, or at the disk
	neededRoom    = 16 << 20    // bytes that must fit on the disk before a node starts again
	leastRoom     = 16 << 10    // bytes that must fit while it runs
)

// Keep serves until ctx is done, and closes the hub. A node whose disk is full, or refuses writes, stores nothing any more. Keep then
// stops it, so that the others know, and starts it again when its folder can be written. It calls tell with what is wrong, and with nil
// when the node is back. It returns an error if the server does not stop: the program must end then, and can be started again.
func (h *Hub) Keep(ctx context.Context, tell func(problem error)) error {
	for wait(ctx) {
		if len(h.config.Join) == 0 || h.server.Load().JetStreamEnabled() && checkRoom(h.config.Folder, leastRoom) == nil {
			continue // not after every failed write does the server itself stop storing
		}
		why := checkRoom(h.config.Folder, neededRoom)
		if err := h.stop(); err != nil {
			return fmt.Errorf("node %s cannot write to its folder %s%s: make room there. %w", h.config.Route, h.config.Folder, because(why), err)
		}
		tell(fmt.Errorf("node %s stopped: it cannot write to its folder %s%s. The others go on if two are left. Make room there for at least %d MB: the node then starts again by itself", h.config.Route, h.config.Folder, because(why), neededRoom>>20))
		for wait(ctx) {
			if checkRoom(h.config.Folder, neededRoom) == nil && h.restart() == nil {
				tell(nil)
				break
			}
		}
	}
	return h.Close()
}

// restart starts the server once more. If it fails, it says why in the log.
func (h *Hub) restart() error {
	o, err := h.options()
	if err == nil {
		err = h.start(o)
	}
	return err
}

// wait waits a moment. It returns false when ctx is done.
func wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(checkInterval):
		return true
	}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return " (" + err.Error() + ")"
}

// checkRoom writes a file of this size into a folder and deletes it, to see whether there is room.
func checkRoom(folder string, size int) (err error) {
	f, err := os.CreateTemp(folder, "room-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	part := make([]byte, min(size, 1<<20))
	for range size / len(part) {
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	return f.Sync()
}

// WorkerToken returns the token of the workers of one run, given the hub's.
func WorkerToken(token, run string) string { return run + "." + derive(token, "worker "+run) }

func derive(token, what string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(what))
	return hex.EncodeToString(mac.Sum(nil)[:keyBytes])
}

// logger logs what the server says about itself, without what it says about single clients.
type logger struct{ log *slog.Logger }

func (l *logger) Noticef(format string, v ...any) { l.log.Info(fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l *logger) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l *logger) Fatalf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(string, ...any)           {}
func (l *logger) Tracef(string, ...any)           {}
