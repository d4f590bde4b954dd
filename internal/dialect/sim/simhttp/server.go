// Package simhttp serves the simulated provider over HTTP in the formats of OpenAI
// (chat completions, responses, embeddings, files, batches) and Anthropic
// (messages, token counts, message batches), for tests, benchmarks and anybody's
// own programs.
//
// It promises the vendors' status codes, error bodies, headers and limits; answers
// that depend on the request and the seed only; faults done for real on the
// connection; bounded memory for one request; and that Run returns only after
// everything it started has ended. Files and batches are kept in memory and are
// gone with the server.
//
// It is not for the open internet: it has no users, and its limits are there to be
// run into.
package simhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/quota"
	"parley/internal/serve/auth"
)

// Config is how the server behaves. The zero value serves everybody, at once,
// without limits and faults.
type Config struct {
	// Sim is how answers, delays, limits and faults come about. Its Style is not used:
	// each format has its own. Default: the zero sim.Config
	Sim sim.Config
	// KeyEnv names the environment variable with the key that clients must send.
	// Default: none, everybody is served
	KeyEnv string
	// Access is by which names the server may be used, and from which web pages. Default: by
	// its address and the names of loopback, from none
	Access auth.Access
	// Patience is how long a client may take to send a request. Default: 1 min
	Patience time.Duration
	// TLS serves https with a certificate made for this run. Default: false
	TLS bool
	// MaxStreams is how many requests share an HTTP/2 connection. Default: 100
	MaxStreams int
	// MaxBody is the largest request in bytes, uploads and batches aside. Default: 32 MiB
	MaxBody int64
	// ChunkTokens is how many tokens an event of a stream carries. Default: 4
	ChunkTokens int
	// Batch is how batches behave. Default: see BatchConfig
	Batch BatchConfig
	// Lax accepts unknown parameters, and schemas the vendors refuse. Default: false
	Lax bool
	// BadJSON500 answers a body that is no JSON with status 500, as some servers do.
	// Default: false, status 400
	BadJSON500 bool
	// WeightVersion is what answers to chat completions say of the model's weights, until it is
	// set anew by POST /update_weight_version. Default: nothing
	WeightVersion string
	// Grace is how long requests in flight may take when the server stops. Default: 5 s
	Grace time.Duration
}

// BatchConfig is how batches behave.
type BatchConfig struct {
	// Latency is how long a batch takes. Default: 2 s
	Latency sim.Delay
	// MaxRequests is the most requests of one batch. Default: 50,000, and 100,000 in
	// Anthropic's format
	MaxRequests int
	// MaxBytes is the largest batch. Default: 200 MB, and 256 MB in Anthropic's format
	MaxBytes int64
	// PerHour is how many batches may be created in an hour. Default: 2,000
	PerHour int
	// EnqueuedTokens is how many prompt tokens of one model may wait in batches; one
	// more batch is taken and then fails (OpenAI's format). Default: 0, no limit
	EnqueuedTokens int
	// RetryAfter is when a batch that is refused with 429 may be created again. Default: 1 min
	RetryAfter time.Duration
	// MaxStored is how many bytes of files are kept in all. Default: 4 GB
	MaxStored int64
}

func (c *Config) fill() {
	orDefault(&c.MaxStreams, 100)
	orDefault(&c.MaxBody, 32<<20)
	orDefault(&c.ChunkTokens, 4)
	orDefault(&c.Grace, 5*time.Second)
	orDefault(&c.Batch.PerHour, 2000)
	orDefault(&c.Batch.RetryAfter, time.Minute)
	orDefault(&c.Batch.MaxStored, 4<<30)
	if c.Batch.Latency.IsZero() {
		c.Batch.Latency = sim.Fixed(2 * time.Second)
	}
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
	accounts map[quota.Style]*account
	stats    stats
	files    fileStore
	batches  batchStore
	engine   engine
	ids      atomic.Uint64
	buffers  sync.Pool     // of *bytes.Buffer, to read bodies into
	stopping chan struct{} // closed when the server begins to stop
}

// account is what the limits are kept by: one for each format's vendor.
type account struct {
	quota *quota.Quota
	gate  *quota.Gate
}

// New checks cfg and returns a Server.
func New(cfg Config) (*Server, error) {
	cfg.fill()
	brain, err := sim.NewBrain(cfg.Sim)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, brain: brain, formats: newFormats(), stopping: make(chan struct{}), accounts: map[quota.Style]*account{}}
	if cfg.KeyEnv != "" {
		key := os.Getenv(cfg.KeyEnv)
		if key == "" {
			return nil, fmt.Errorf("simhttp: key: the environment variable %s is empty", cfg.KeyEnv)
		}
		s.keys = auth.New([]string{key})
	}
	now := time.Now()
	for _, style := range []quota.Style{quota.OpenAI, quota.Anthropic} {
		s.accounts[style] = &account{quota: quota.New(cfg.Sim.Limits, style, now), gate: quota.NewGate(cfg.Sim.Limits)}
	}
	s.files.limit = cfg.Batch.MaxStored
	s.engine.version, s.engine.sessions = cfg.WeightVersion, map[string]bool{}
	s.mux = s.routes()
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Run serves on ln until ctx is done, lets requests in flight finish for at most
// Config.Grace, and closes ln. It returns nil after such an end.
func Run(ctx context.Context, cfg Config, ln net.Listener) error {
	s, err := New(cfg)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	return s.Run(ctx, ln)
}

// Run is Run for a Server made by New. It can be called once.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	srv, cancel, err := s.httpServer(ctx)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer cancel()
	served := make(chan error, 1)
	go func() {
		if s.cfg.TLS {
			served <- srv.ServeTLS(ln, "", "")
		} else {
			served <- srv.Serve(ln)
		}
	}()
	select {
	case err := <-served:
		cancel()
		err = errors.Join(err, srv.Close())
		s.stats.wait()
		return fmt.Errorf("simhttp: serve: %w", err)
	case <-ctx.Done():
	}
	close(s.stopping)
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Grace)
	defer stop()
	err = srv.Shutdown(grace)
	cancel() // whoever still waits, waits in vain
	if err != nil {
		err = srv.Close()
	}
	<-served
	s.stats.wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("simhttp: stop: %w", err)
	}
	return nil
}

// httpServer returns a server whose requests live on when ctx is done, until cancel.
func (s *Server) httpServer(ctx context.Context) (*http.Server, context.CancelFunc, error) {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	guard := &auth.Guard{Access: s.cfg.Access, Keys: s.keys, Public: checksKey, Refuse: s.refuse, Patience: s.cfg.Patience}
	srv := guard.Server(s)
	srv.BaseContext = func(net.Listener) context.Context { return base }
	srv.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: s.cfg.MaxStreams}
	srv.Protocols = &http.Protocols{}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	if s.cfg.TLS {
		cert, err := selfSigned(time.Now())
		if err != nil {
			cancel()
			return nil, nil, fmt.Errorf("simhttp: certificate: %w", err)
		}
		srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	}
	return srv, cancel, nil
}
