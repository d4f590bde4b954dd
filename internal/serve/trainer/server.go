// Package trainer serves the training data of a run to trainers over HTTP while the run is played. docs/how-to/train.md describes
// the server.
//
// It promises that a group is returned whole, in the order in which groups were committed; that a cursor is a position in the
// journal, so that a client that returns with its last one gets exactly the rest, even after the server was killed; and that rows
// are those of the export. Nothing is queued for a reader: each reads the run file at its own pace, holds one group at a time, and
// is disconnected if it is too slow. Run returns only after everything it started has ended.
//
// server.go has the requests, reading.go what readers get, player.go plays the run, and memory.go is what survives a kill.
package trainer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/kit/auth"
	"parley/internal/read/training"
	"parley/internal/run/runfile"
	"parley/world"
	"parley/world/part"
)

// Config configures a Server.
type Config struct {
	// Kind is that of the run.
	Kind world.Kind
	// Plan prepares what a client asks for. Its errors are about the request.
	Plan func(o Override) (Prepared, error)
	// Open opens the run file for reading. It is called once, when there is a run.
	Open func() (*runfile.Store, error)
	// Begun means that there is a run in the file, and Resume that it is resumed at once. Default: a client
	// starts it.
	Begun, Resume bool
	// State is the state of the run in the file, if Begun is set. Default: stopped.
	State State
	// Group is the plan's size of groups. Default: 1.
	Group int
	// Ahead is how many groups may be begun and not yet read by a client. Default: no limit.
	Ahead int
	// Staleness, if set, is how many versions the weights of answers may be behind those that POST /v1/weights said.
	// Groups with older ones are left out, unless a reader asks otherwise. Default: nil, none is.
	Staleness *int
	// Memory is the file with the version of POST /v1/weights and whether the run is paused. Default: none, they
	// are lost when Run ends.
	Memory string

	// Keys are the keys of which clients must send one. Default: none, everybody is served.
	Keys []string
	// Access lists other names of the server, and the web pages that may use it. Default: only its address and the
	// loopback names, and no web page.
	Access auth.Access
	// Readers is the maximum number of requests for rows at once. Default: 256.
	Readers int
	// ClientTimeout bounds the time of a client to send a request or to take a row. Default: 1 minute.
	ClientTimeout time.Duration
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
type PlayFunc func(ctx, drain context.Context, begun func(Control), ended func()) (Ending, error)

// Server is an http.Handler. Run must be running while it serves.
type Server struct {
	cfg      Config
	keys     auth.Keys
	mux      *http.ServeMux
	source   *source
	player   *player
	version  atomic.Pointer[int] // of the weights, as a trainer said
	readers  chan struct{}       // one slot each
	memory   *memory
	stopping chan struct{} // closed when the server stops: nothing waits then
}

// New returns a server.
func New(c Config) (*Server, error) {
	c.Readers = cmp.Or(max(0, c.Readers), 256)
	c.ClientTimeout = cmp.Or(max(0, c.ClientTimeout), time.Minute)
	c.Grace = cmp.Or(max(0, c.Grace), 10*time.Second)
	c.Group = max(1, c.Group)
	m, err := openMemory(c.Memory)
	if err != nil {
		return nil, err
	}
	f := &source{open: c.Open, ahead: c.Ahead, group: c.Group, wake: make(chan struct{}), groups: training.Index{Kind: c.Kind}}
	f.hasRun.Store(c.Begun)
	s := &Server{
		cfg: c, keys: auth.HashKeys(c.Keys), mux: http.NewServeMux(), source: f, player: newPlayer(c, f),
		memory: m, readers: make(chan struct{}, c.Readers), stopping: make(chan struct{}),
	}
	s.player.remember = func(paused bool) error {
		run, err := f.run(context.Background())
		if err == nil {
			err = m.change(run, func(r *remembered) { r.Paused = paused }, func(remembered) {})
		}
		return err
	}
	was := m.saved
	if was.Run != "" {
		was = remembered{}
		if c.Begun {
			if _, _, _, err := f.count(context.Background()); err != nil {
				return nil, errors.Join(err, f.close())
			}
			was = m.of(f.groups.Run())
		}
	}
	s.version.Store(was.Weights)
	s.player.past, s.player.paused = was.Past, was.Paused
	s.mux.HandleFunc("GET /health", s.health)
	s.mux.HandleFunc("POST /v1/start", withBody(s.start))
	s.mux.HandleFunc("POST /v1/stop", withBody(s.stop))
	s.mux.HandleFunc("POST /v1/pause", withBody(s.pause))
	s.mux.HandleFunc("POST /v1/resume", withBody(s.resume))
	s.mux.HandleFunc("POST /v1/weights", withBody(s.weights))
	s.mux.HandleFunc("POST /v1/tasks", withBody(s.tasks))
	s.mux.HandleFunc("GET /v1/status", withBody(s.status))
	s.mux.HandleFunc("GET /v1/groups", withBody(s.limitReaders(s.groups)))
	s.mux.HandleFunc("GET /v1/stream", withBody(s.limitReaders(s.stream)))
	s.mux.HandleFunc("/", withBody(notFound))
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

// guard returns who may use the server.
func (s *Server) guard() *auth.Guard {
	return &auth.Guard{
		Access: s.cfg.Access, Keys: s.keys, ClientTimeout: s.cfg.ClientTimeout,
		Public: func(r *http.Request) bool { return r.URL.Path == "/health" },
		Refuse: func(w http.ResponseWriter, _ *http.Request, why auth.Refusal) {
			fault(w, why.Status, errors.New(why.Message))
		},
	}
}

// withBody reads the body of a request, within its limit, before the handler runs.
func withBody(then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			fault(w, http.StatusRequestEntityTooLarge, errors.New("the body cannot be read, or is larger than 1 MiB"))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		then(w, r)
	}
}

// maxBody is the maximum size of a request.
const maxBody = 1 << 20

// limitReaders limits how many requests read at once.
func (s *Server) limitReaders(then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.readers <- struct{}{}:
			defer func() { <-s.readers }()
			then(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			fault(w, http.StatusServiceUnavailable, errors.New("too many requests read at once: try again later"))
		}
	}
}

func notFound(w http.ResponseWriter, r *http.Request) {
	fault(w, http.StatusNotFound, errors.New("there is no "+r.Method+" "+r.URL.Path+
		": use POST /v1/start, POST /v1/stop, POST /v1/pause, POST /v1/resume, POST /v1/weights, POST /v1/tasks, GET /v1/status, GET /v1/groups, GET /v1/stream, GET /health"))
}

// status describes the run.
type status struct {
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Paused means that no call is sent.
	Paused bool `json:"paused,omitempty"`
	// WeightVersion is what a trainer last said.
	WeightVersion *int `json:"weight_version,omitempty"`
	// Read counts the groups that were read, with those that a filter dropped.
	Read int `json:"read"`
	// Groups counts planned groups, and Complete those that are complete.
	Groups   int `json:"groups"`
	Complete int `json:"complete"`
	// Cursor is the position after the last complete group.
	Cursor string `json:"cursor"`
}

func (s *Server) currentStatus(r *http.Request) (out status, err error) {
	out.State, out.Reason = s.player.status()
	out.Paused, out.WeightVersion = s.player.isPaused(), s.version.Load()
	out.Groups, out.Complete, out.Cursor, err = s.source.count(r.Context())
	out.Read = s.source.groupsRead()
	return out, err
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) { s.answerStatus(w, r, http.StatusOK) }

// answerStatus answers with the status.
func (s *Server) answerStatus(w http.ResponseWriter, r *http.Request, code int) {
	st, err := s.currentStatus(r)
	if err != nil {
		fault(w, http.StatusInternalServerError, err)
		return
	}
	answer(w, code, st)
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	state, _ := s.player.status()
	answer(w, http.StatusOK, map[string]any{"status": "healthy", "state": state})
}

func (s *Server) start(w http.ResponseWriter, r *http.Request) {
	var o Override
	if err := decode(r, &o, `want {"episodes": N, "seed": N, "params": {…}}, all optional`); err != nil {
		fault(w, http.StatusBadRequest, err)
		return
	}
	var allowed []string
	if trainee, ok := world.As[part.Trainee](s.cfg.Kind); ok {
		allowed = trainee.Overridable()
	}
	for name := range o.Params {
		if !slices.Contains(allowed, name) {
			use := "set it in the plan"
			if len(allowed) > 0 {
				use = "use " + strings.Join(allowed, ", ")
			}
			fault(w, http.StatusBadRequest, errors.New("params."+short(name)+" is not for clients to set: "+use))
			return
		}
	}
	again, err := s.player.start(r.Context(), o)
	switch {
	case err != nil:
		fault(w, refusal(err), err)
	case again:
		s.answerStatus(w, r, http.StatusOK)
	default:
		s.answerStatus(w, r, http.StatusAccepted)
	}
}

// refusal returns the HTTP status of an error of start.
func refusal(err error) int {
	refused, ok := errors.AsType[refusedError](err)
	switch {
	case ok && refused.bad:
		return http.StatusBadRequest
	case ok:
		return http.StatusConflict
	default:
		return http.StatusServiceUnavailable
	}
}

func (s *Server) stop(w http.ResponseWriter, r *http.Request) {
	s.player.drain("stopped by the trainer")
	s.answerStatus(w, r, http.StatusAccepted)
}

// pause sends no more calls. Those in flight stay open, are finished before the answer, or are cut off.
func (s *Server) pause(w http.ResponseWriter, r *http.Request) {
	body := struct {
		Calls InFlight `json:"calls"`
		Wait  float64  `json:"wait"`
	}{Calls: HoldCalls, Wait: maxWait.Seconds()}
	want := `want {"calls": "hold", "finish" or "cut", "wait": SECONDS}, with at most 600 seconds, all optional`
	if err := decode(r, &body, want); err != nil {
		fault(w, http.StatusBadRequest, err)
		return
	}
	known := []InFlight{HoldCalls, FinishCalls, CutCalls}
	if !slices.Contains(known, body.Calls) || !(body.Wait >= 0 && body.Wait <= 600) {
		fault(w, http.StatusBadRequest, errors.New(want))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(body.Wait*float64(time.Second)))
	defer cancel()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.cfg.ClientTimeout + time.Duration(body.Wait*float64(time.Second)))) // only tests have a writer without deadlines
	s.answerPause(w, r, s.player.pause(ctx, body.Calls))
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request) {
	s.answerPause(w, r, s.player.unpause())
}

// answerPause answers after the run was paused or resumed.
func (s *Server) answerPause(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		fault(w, http.StatusGatewayTimeout, err)
	case errors.Is(err, errIdle):
		fault(w, http.StatusConflict, err)
	case err != nil:
		fault(w, http.StatusServiceUnavailable, err)
	default:
		s.answerStatus(w, r, http.StatusOK)
	}
}

// weights sets the version of the weights that the trainer has now, and the earlier ones that can be asked. A query's max_lag counts from it.
func (s *Server) weights(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Version *int  `json:"version"`
		Past    []int `json:"past"`
	}
	if err := decode(r, &body, ""); err != nil || body.Version == nil || *body.Version < 0 || len(body.Past) > maxPast ||
		slices.ContainsFunc(body.Past, func(v int) bool { return v < 0 || v >= *body.Version }) {
		fault(w, http.StatusBadRequest, fmt.Errorf(`want {"version": N, "past": [VERSION]}, with N from 0, and in past, which may be left out, at most %d versions below N`, maxPast))
		return
	}
	run, err := s.source.run(r.Context())
	if err == nil {
		err = s.memory.change(run, func(r *remembered) { r.Weights, r.Past = body.Version, body.Past }, func(now remembered) {
			s.version.Store(now.Weights)
			s.player.setPast(now.Past)
		})
	}
	if err != nil {
		fault(w, http.StatusInternalServerError, err)
		return
	}
	s.answerStatus(w, r, http.StatusOK)
}

// maxPast is how many earlier versions there may be: all of them must fit into the file of the memory.
const maxPast = 1000

// tasks changes the tasks that later stages of a refill draw from.
func (s *Server) tasks(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fault(w, http.StatusBadRequest, err)
		return
	}
	what := "tasks"
	if trainee, ok := world.As[part.Trainee](s.cfg.Kind); ok {
		if what, err = trainee.ReadChange(body); err != nil {
			fault(w, http.StatusBadRequest, err)
			return
		}
	}
	switch err := s.player.change(what, body); {
	case errors.Is(err, errNotBegun):
		fault(w, http.StatusServiceUnavailable, err)
		return
	case err != nil:
		fault(w, http.StatusConflict, err)
		return
	}
	s.answerStatus(w, r, http.StatusOK)
}

// decode reads a body strictly; an empty body is an empty object. want says what it should be.
func decode(r *http.Request, into any, want string) error {
	b, err := io.ReadAll(r.Body)
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return err
	}
	if err := world.DecodeStrict(b, into); err != nil {
		return errors.New("the body is not what it should be: " + short(err.Error()) + ": " + want)
	}
	return nil
}

// short returns the beginning of a text from outside.
func short(text string) string {
	if len(text) > 200 {
		text = text[:200]
	}
	return strings.ToValidUTF8(text, "")
}

func answer(w http.ResponseWriter, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		code, b = http.StatusInternalServerError, []byte(`{}`) // not reached: v is plain data
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(b, '\n')) // the client may be gone
}

func fault(w http.ResponseWriter, code int, err error) {
	answer(w, code, map[string]string{"error": err.Error()})
}

// deadlineWriter is a writer with a deadline for each piece.
type deadlineWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	wrote   int
}

func (s *Server) newDeadlineWriter(w http.ResponseWriter) *deadlineWriter {
	return &deadlineWriter{w: w, control: http.NewResponseController(w), timeout: s.cfg.ClientTimeout}
}

// Write implements io.Writer.
func (c *deadlineWriter) Write(b []byte) (int, error) {
	_ = c.control.SetWriteDeadline(time.Now().Add(c.timeout)) // only tests have a writer without deadlines
	n, err := c.w.Write(b)
	c.wrote += n
	return n, err
}

func (c *deadlineWriter) flush() error {
	_ = c.control.SetWriteDeadline(time.Now().Add(c.timeout))
	return c.control.Flush()
}

// abortAnswer ends an answer that cannot be completed, so that it is not taken for a whole one.
func abortAnswer() { panic(http.ErrAbortHandler) }
