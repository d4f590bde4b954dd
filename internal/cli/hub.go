package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/internal/cli/exit"
	"parley/internal/run/cluster/hub"
	"parley/internal/serve/telemetry"
)

// hubCmd runs a hub, or one node of three.
type hubCmd struct {
	Listen string   `default:"127.0.0.1:4222" placeholder:"HOST:PORT" help:"Address for runs and workers. Default: ${default}."`
	Join   []string `placeholder:"HOST:PORT" help:"For a hub of three nodes: the addresses at which the nodes reach each other, separated by commas. Give every node the same list. Default: one node."`
	Route  string   `placeholder:"HOST:PORT" help:"With --join: which of them is this node's."`
	Folder string   `placeholder:"DIR" help:"With --join: where this node keeps messages."`
	hubFlags
	metricsFlags
}

// Run serves until a signal.
func (c *hubCmd) Run(ctx context.Context, s *State) error {
	token, err := c.token(s)
	if err != nil {
		return err
	}
	if token == "" {
		return exit.Usagef("a hub needs a token: set PARLEY_CLUSTER_TOKEN, or name a file with --token-file; %s", goodToken)
	}
	if err := checkToken(token); err != nil {
		return err
	}
	if err := c.checkNodes(); err != nil {
		return err
	}
	secure, err := c.serverTLS()
	if err != nil {
		return err
	}
	g := exit.NewGate()
	ctx, end := listen(ctx, s, g)
	defer end()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g.OnClose(stop)
	watched, err := c.openMonitor(ctx, s)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(s.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	h, err := hub.Start(hub.Config{Listen: c.Listen, Token: token, TLS: secure, Join: c.Join, Route: c.Route, Folder: c.Folder, Log: log})
	if err != nil {
		watched.close(ctx, s)
		return exit.AsUsage(err)
	}
	began := time.Now()
	watched.show(ctx, s, func() *telemetry.Page { return hubPage(h, began) })
	defer watched.close(ctx, s)
	fmt.Fprintf(s.Stdout, "listening on %s\n", h.URL())
	return h.Keep(ctx, s.nodeProblem)
}

// nodeProblem says what is wrong with the node of a hub, or that it is back.
func (s *State) nodeProblem(problem error) {
	if problem != nil {
		s.tellError(problem)
		return
	}
	s.tell("the node is back")
}

// checkNodes refuses nodes that cannot be a hub together.
func (c *hubCmd) checkNodes() error {
	switch n := len(c.Join); {
	case n != 0 && n != 3:
		return exit.Usagef("--join has %d addresses: want 3, or none for a hub of one node", n)
	case n != 0 && len(slices.Compact(slices.Sorted(slices.Values(c.Join)))) != n:
		return exit.Usagef("--join %s: want three different addresses", strings.Join(c.Join, ","))
	case n != 0 && c.Route == "":
		return exit.Usagef("--join needs --route: which of the addresses is this node's")
	case n == 0 && c.Route+c.Folder != "":
		return exit.Usagef("--route and --folder need --join: a hub of one node keeps everything in memory")
	case n != 0 && !slices.Contains(c.Join, c.Route):
		return exit.Usagef("--route %s is not one of --join", c.Route)
	default:
		return nil
	}
}

// hubPage returns the page of a hub for Prometheus.
func hubPage(h *hub.Hub, began time.Time) *telemetry.Page {
	p := &telemetry.Page{}
	if s, err := h.Stats(); err == nil { // it is not closing
		gauge := func(name, help string, v float64, labels ...string) {
			p.Add(telemetry.Gauge, telemetry.Prefix+"hub_"+name, help, v, labels...)
		}
		gauge("clients", "Runs, workers and others that are connected to this node.", float64(s.Clients))
		gauge("streams", "Streams of this node: two for each run.", float64(s.Streams))
		gauge("messages", "Messages of this node.", float64(s.Messages))
		const size, limit = "Bytes of messages of this node.", "How many bytes of messages this node may have."
		gauge("bytes", size, s.Memory, "in", "memory")
		gauge("bytes", size, s.Disk, "in", "disk")
		gauge("max_bytes", limit, s.MaxMemory, "in", "memory")
		gauge("max_bytes", limit, s.MaxDisk, "in", "disk")
	}
	p.AddProcess(began)
	return p
}

// tokenEnv is the environment variable with the token of a hub, or of the workers of one run.
const tokenEnv = "PARLEY_CLUSTER_TOKEN"

// minToken is how many characters the token of a hub has at least. Who guesses it can read all prompts and spend all money.
const minToken = 16

// goodToken says how to make a token.
const goodToken = "this makes a good one: openssl rand -hex 32 > token"

// checkToken refuses a token that is too short for a hub. There may be none.
func checkToken(token string) error {
	if n := utf8.RuneCountInString(token); n > 0 && n < minToken {
		return exit.Usagef("the token of the hub (%s, --token-file) has %d characters, and who guesses it can use the hub: want %d or more; %s", tokenEnv, n, minToken, goodToken)
	}
	return nil
}

// hubFlags say how to reach a hub, or to be one.
type hubFlags struct {
	TokenFile string `group:"cluster" placeholder:"FILE" help:"File with the token of the hub. Default: the environment variable PARLEY_CLUSTER_TOKEN."`
	TLSCert   string `group:"cluster" placeholder:"FILE" help:"With --tls-key: the certificate of the hub, as PEM."`
	TLSKey    string `group:"cluster" placeholder:"FILE" help:"The key of --tls-cert."`
	TLSCA     string `name:"tls-ca" group:"cluster" placeholder:"FILE" help:"Certificates of the authorities that signed the hub's, as PEM. Default: those of the system."`
	TLSName   string `hidden:"" help:"The name in the hub's certificate. Default: that of the address."`
}

// token returns the token, or "".
func (f *hubFlags) token(s *State) (string, error) {
	if f.TokenFile != "" {
		b, err := os.ReadFile(f.TokenFile)
		if err != nil {
			return "", exit.AsUsage(fmt.Errorf("--token-file: %w", err))
		}
		return strings.TrimSpace(string(b)), nil
	}
	if token, ok := s.Env(tokenEnv); ok {
		return token, nil
	}
	return "", nil
}

// serverTLS returns the TLS settings of a hub; nil without a certificate.
func (f *hubFlags) serverTLS() (*tls.Config, error) {
	if f.TLSCert == "" && f.TLSKey == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey)
	if err != nil {
		return nil, exit.AsUsage(fmt.Errorf("--tls-cert, --tls-key: %w", err))
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	cfg.RootCAs, err = f.authorities()
	return cfg, err
}

func (f *hubFlags) authorities() (*x509.CertPool, error) {
	if f.TLSCA == "" {
		return nil, nil // those of the system
	}
	b, err := os.ReadFile(f.TLSCA)
	if err != nil {
		return nil, exit.AsUsage(fmt.Errorf("--tls-ca: %w", err))
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, exit.Usagef("--tls-ca: %s has no certificates", f.TLSCA)
	}
	return pool, nil
}
