// Package simhttp serves the simulated provider over HTTP in the formats of OpenAI, Anthropic, Gemini and AWS Bedrock, for
// tests, benchmarks and your own programs.
//
// It promises the vendors' status codes, forms of errors, headers and limits. It refuses only what it cannot answer, in its own words. Answers depend only on the request and the seed. Faults happen on the real connection. Memory for one request
// is bounded. Run returns only after everything it started has ended.
//
// Requests are read and checked in check.go, answered in exchange.go, encode.go and play.go,
// and in batches in batch*.go; cloud.go has what Azure, AWS and Google change.
//
// The batches of each vendor are what the tests of internal/ask/dialect and internal/ask/dispatch, the kills of cmd/parley
// (wave_test.go) and the SDKs of test/oracle ask for. The paths of clouds are what the tests of internal/ask/dialect
// (cloud_test.go), the examples in every format of internal/cli/app, the accounts of the gateway in internal/cli and the SDKs of
// test/oracle ask for. What none of them asks for is not here.
//
// It is not for the open internet: it has one key and no users.
package simhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/kit/auth"
)

// Config is the behavior of the server. The zero value answers everybody at once, without limits
// and faults.
type Config struct {
	// Sim configures answers, delays, limits and faults. Each format has limits of
	// its own. Default: the zero sim.Config
	Sim sim.Config
	// KeyEnv names the environment variable with the key that clients must send.
	// Default: no key is needed
	KeyEnv string
	// Access says which host names and web pages may use the server. Default: its address and
	// the names of loopback, and no web page
	Access auth.Access
	// Patience is the time a client has to send a request. Default: 1 min
	Patience time.Duration
	// MaxBody is the maximum size of a request that is not a batch. Default: 32 MiB
	MaxBody int64
	// ChunkTokens is the number of tokens in an event of a stream. Default: 4
	ChunkTokens int
	// Batch configures batches. Default: see BatchConfig
	Batch BatchConfig
	// ChatOnly serves chat completions and no other format. Default: false
	ChatOnly bool
	// NoLimitHeaders leaves out the headers about limits, as many servers do. Default: false
	NoLimitHeaders bool
	// Grace is the time that requests in flight have when the server stops. Default: 5 s
	Grace time.Duration
}

func (c *Config) fill() {
	orDefault(&c.MaxBody, 32<<20)
	orDefault(&c.ChunkTokens, 4)
	orDefault(&c.Grace, 5*time.Second)
}

func orDefault[T int | int64 | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// Server is the simulated provider as an http.Handler.
type Server struct {
	cfg      Config
	keys     auth.Keys
	brain    *sim.Brain
	mux      *http.ServeMux
	formats  formats
	accounts map[sim.Style]*account
	stats    stats
	batches  *batchStore
	ids      atomic.Uint64
	buffers  sync.Pool     // of *bytes.Buffer, to read bodies into
	stopping chan struct{} // closed when the server stops
}

// account has the limits of one vendor's format.
type account struct {
	quota *sim.Quota
	gate  *sim.Gate
}

// New checks cfg and returns a Server.
func New(cfg Config) (*Server, error) {
	cfg.fill()
	brain, err := sim.NewBrain(cfg.Sim)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, brain: brain, stopping: make(chan struct{}), accounts: map[sim.Style]*account{}}
	if cfg.KeyEnv != "" {
		key := os.Getenv(cfg.KeyEnv)
		if key == "" {
			return nil, fmt.Errorf("key: the environment variable %s is empty", cfg.KeyEnv)
		}
		s.keys = auth.HashKeys([]string{key})
	}
	now := time.Now()
	for _, style := range []sim.Style{sim.OpenAI, sim.Anthropic, sim.Google, sim.Amazon} {
		s.accounts[style] = &account{quota: sim.NewQuota(cfg.Sim.Limits, style, now), gate: sim.NewGate(cfg.Sim.Limits)}
	}
	s.formats = newFormats()
	s.batches = newBatchStore(cfg.Batch, s)
	s.mux = s.routes()
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mux.ServeHTTP(w, r)
}

// Run serves on ln until ctx is done. It then gives requests in flight Config.Grace to finish,
// closes ln and returns nil. It can be called once.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	srv, cancel := s.httpServer(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		cancel()
		err = errors.Join(err, srv.Close())
		s.stats.wait()
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	close(s.stopping)
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Grace)
	defer stop()
	err := srv.Shutdown(grace)
	cancel() // for requests that still wait
	if err != nil {
		err = srv.Close()
	}
	<-served
	s.stats.wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}

// httpServer returns a server whose requests continue after ctx is done, until cancel.
func (s *Server) httpServer(ctx context.Context) (*http.Server, context.CancelFunc) {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	guard := &auth.Guard{Access: s.cfg.Access, Keys: s.keys, Public: checksKey, Refuse: s.refuse, ClientTimeout: s.cfg.Patience}
	srv := guard.Server(s)
	srv.BaseContext = func(net.Listener) context.Context { return base }
	srv.Protocols = &http.Protocols{}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	return srv, cancel
}
