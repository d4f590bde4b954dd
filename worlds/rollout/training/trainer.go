// Package training serves a run of rollouts to trainers over HTTP: it starts and stops the run, and returns
// groups of rows as they become complete. docs/trainer.md describes it.
//
// It promises that a group is returned whole, when all its episodes have ended, in the order in which groups
// were committed; that a cursor is a position in the journal, so that a client that returns with its last one
// gets exactly the rest, also after the server was killed; and that rows are those of the export. Nothing is
// queued for a reader: each reads the run file at its own pace, holds one group at a time, and is disconnected
// if it is too slow. Run returns only after everything it started has ended.
//
// It is not for playing, or for filtering what is recorded. It keeps no rows.
package training

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/kit/auth"
	"parley/journal"
	"parley/world/program"
)

// Config configures a Server.
type Config struct {
	// Plan prepares what a client asks for. Its errors are about the request.
	Plan func(o Override) (Prepared, error)
	// Open opens the run file for reading. It is called once, when there is a run.
	Open func() (src journal.Parts, done func() error, err error)
	// Begun means that there is a run in the file, and Resume that it is resumed at once. Default: a client
	// starts it.
	Begun, Resume bool
	// State is the state of the run in the file, if Begun is set. Default: stopped.
	State State
	// Group is the plan's size of groups. Default: 16.
	Group int
	// Ahead is how many groups may be begun and not yet read by a client. Default: no limit.
	Ahead int
	// Staleness, if set, is how many versions the weights of answers may be behind those that POST /v1/weights said.
	// Groups with older ones are left out, unless a reader asks otherwise. Default: nil, none is.
	Staleness *int
	// Position is the file with the position of POST /get_rollout_data and the version of POST /v1/weights. Default:
	// none, they are lost when Run ends.
	Position string

	// Keys are the keys of which clients must send one. Default: none, everybody is served.
	Keys []string
	// Hosts are more names that clients may use for the server, as NAME or NAME:PORT. Default: only its
	// address and the loopback names.
	Hosts []string
	// Origins are web pages that may send requests, as http://NAME:PORT. Default: none.
	Origins []string
	// Readers is the maximum number of requests for rows at once. Default: 256.
	Readers int
	// Patience bounds the time of a client to send a request or to take a row. Default: 1 minute.
	Patience time.Duration
	// Grace bounds the requests in flight when the server stops. Default: 10 seconds.
	Grace time.Duration
}

// Prepared is a plan that is ready to be played.
type Prepared struct {
	// What is different for different runs.
	What string
	Play PlayFunc
}

// PlayFunc plays the run until it is over, or until drain is done and begun episodes have ended; ctx aborts.
// It calls begun when play begins, and ended whenever an episode has ended and is durable. An error without a
// call of begun means that nothing was played.
type PlayFunc func(ctx, drain context.Context, begun func(program.Control), ended func()) (program.Ending, error)

// Server is an http.Handler. Run must be running while it serves.
type Server struct {
	cfg      Config
	keys     auth.Keys
	mux      *http.ServeMux
	source   *source
	player   *player
	version  atomic.Pointer[int] // of the weights, as a trainer said
	readers  chan struct{}       // one slot each
	position *position
	buffer   chan *position // position, while no client of POST /get_rollout_data moves it
	stopping chan struct{}  // closed when the server stops: nothing waits then
}

// New returns a server.
func New(c Config) (*Server, error) {
	c.Readers = cmp.Or(max(0, c.Readers), 256)
	c.Patience = cmp.Or(max(0, c.Patience), time.Minute)
	c.Grace = cmp.Or(max(0, c.Grace), 10*time.Second)
	c.Group = cmp.Or(max(0, c.Group), 16)
	at, err := openPosition(c.Position)
	if err != nil {
		return nil, err
	}
	f := &source{open: c.Open, ahead: c.Ahead, group: c.Group, wake: make(chan struct{})}
	f.there.Store(c.Begun)
	s := &Server{
		cfg: c, keys: auth.New(c.Keys), mux: http.NewServeMux(), source: f, player: newPlayer(c, f),
		position: at, readers: make(chan struct{}, c.Readers), buffer: make(chan *position, 1), stopping: make(chan struct{}),
	}
	s.buffer <- at
	if at.kept.Weights != nil && c.Begun {
		if _, _, _, err := f.count(context.Background()); err != nil {
			return nil, errors.Join(err, f.close())
		}
		s.version.Store(at.weights(f.groups.Run()))
	}
	s.mux.HandleFunc("GET /health", s.health)
	s.mux.HandleFunc("POST /v1/start", whole(s.start))
	s.mux.HandleFunc("POST /v1/stop", whole(s.stop))
	s.mux.HandleFunc("POST /v1/pause", whole(s.pause))
	s.mux.HandleFunc("POST /v1/resume", whole(s.resume))
	s.mux.HandleFunc("POST /v1/weights", whole(s.weights))
	s.mux.HandleFunc("POST /v1/tasks", whole(s.tasks))
	s.mux.HandleFunc("GET /v1/status", whole(s.status))
	s.mux.HandleFunc("GET /v1/groups", whole(s.reader(s.groups)))
	s.mux.HandleFunc("GET /v1/stream", whole(s.reader(s.stream)))
	s.mux.HandleFunc("POST /start_rollout", whole(s.startRollout))
	s.mux.HandleFunc("POST /get_rollout_data", whole(s.reader(s.rolloutData)))
	s.mux.HandleFunc("/", whole(nowhere))
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Run serves on ln and plays what clients start. Once drain is done it begins nothing, lets begun episodes
// finish, answers waiting requests, and returns; once ctx is done it returns at once. It closes ln, and
// returns nil after such an end.
func (s *Server) Run(ctx, drain context.Context, ln net.Listener) error {
	base, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	drain, stop := context.WithCancelCause(drain)
	defer stop(context.Canceled)
	srv := s.guard().Server(s)
	srv.BaseContext = func(net.Listener) context.Context { return base }
	var wg sync.WaitGroup
	served, rested := make(chan error, 1), make(chan struct{})
	wg.Go(func() { served <- srv.Serve(ln) })
	wg.Go(func() { defer close(rested); s.player.run(ctx, drain) })

	var err error
	select {
	case err = <-served:
		stop(errors.New("the server has ended"))
		<-rested
	case <-rested:
	}
	close(s.stopping)
	grace, cancel := context.WithTimeout(ctx, s.cfg.Grace)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		abort()
		_ = srv.Close() // ends the rest
	}
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, s.source.close())
}
