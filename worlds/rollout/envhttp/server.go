package envhttp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"parley/internal/kit/auth"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules"
)

// EnvServerConfig configures a Server.
type EnvServerConfig struct {
	Kinds []env.Kind
	// Sessions is the maximum number of sessions. Default: 100,000.
	Sessions int
	// Idle drops a session after so long without a request. Default: 1 hour.
	Idle time.Duration
	// Hosts are more names that clients may use for the server, as NAME or NAME:PORT. Default: only its
	// address and the loopback names.
	Hosts []string
	// Origins are web pages that may send requests, as http://NAME:PORT. Default: none.
	Origins []string
	// ClientTimeout bounds the time of a client to send a request. Default: 1 minute.
	ClientTimeout time.Duration
}

// Server serves environments written in Go over the v1 environment protocol, which docs/how-to/train.md
// describes. It is an http.Handler.
//
// Sessions do not wait for each other. A step that is sent again with the same Idempotency-Key is answered from
// memory and not taken again. A session that is not used for too long is dropped. An environment that panics is
// an error 500. The server needs no key, so only trusted programs should reach it; web pages are refused.
type Server struct {
	EnvServerConfig
	mux *http.ServeMux

	mu       sync.Mutex
	sessions map[string]*serverSession // by env/id
	swept    time.Time
}

// NewEnvServer returns a server.
func NewEnvServer(c EnvServerConfig) *Server {
	c.Sessions = cmp.Or(max(0, c.Sessions), 100_000)
	c.Idle = cmp.Or(max(0, c.Idle), time.Hour)
	s := &Server{EnvServerConfig: c, mux: http.NewServeMux(), sessions: map[string]*serverSession{}}
	s.mux.HandleFunc("GET /envs", s.list)
	s.mux.HandleFunc("POST /{env}/{id}/reset", s.reset)
	s.mux.HandleFunc("GET /{env}/{id}/get_task_prompt", s.withSession((*serverSession).prompt))
	s.mux.HandleFunc("POST /{env}/{id}/step", s.withSession((*serverSession).step))
	s.mux.HandleFunc("POST /{env}/{id}/close", s.close)
	s.mux.HandleFunc("DELETE /{env}/{id}", s.close)
	return s
}

// maxRequest limits a request, and maxID the name of a session.
const (
	maxRequest = 8 << 20
	maxID      = 1 << 10
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			writeError(w, http.StatusInternalServerError, fmt.Errorf("the environment panicked: %v", p))
		}
	}()
	s.mux.ServeHTTP(w, r)
}

// Serve serves on l until ctx is done, and then finishes requests in flight.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	guard := &auth.Guard{Access: auth.Access{Hosts: s.Hosts, Origins: s.Origins}, ClientTimeout: s.ClientTimeout, Refuse: func(w http.ResponseWriter, _ *http.Request, why auth.Refusal) {
		writeError(w, why.Status, errors.New(why.Message))
	}}
	h := guard.Server(s)
	stopped, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		<-stopped.Done()
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if h.Shutdown(patience) != nil {
			_ = h.Close() // cuts the rest off
		}
	})
	err := h.Serve(l)
	stop()
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}

// serverSession is an environment. It answers one request at a time.
type serverSession struct {
	kind env.Kind
	id   string

	mu     sync.Mutex
	env    env.Env
	key    string // of the last step, with its answer
	answer any
	used   time.Time // under the server's lock
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	type listed struct {
		EnvName string `json:"envname"`
		ID      string `json:"id"`
		State   string `json:"state"`
	}
	all := []listed{}
	for _, e := range s.sessions {
		all = append(all, listed{e.kind.Name, e.id, "ready"})
	}
	writeJSON(w, http.StatusOK, map[string]any{"envs": all})
}

// sweep drops sessions that are not used.
func (s *Server) sweep() {
	now := time.Now()
	if now.Sub(s.swept) < s.Idle/10 {
		return
	}
	s.swept = now
	for name, e := range s.sessions {
		if now.Sub(e.used) > s.Idle {
			delete(s.sessions, name)
		}
	}
}

// find returns a session, or nil. With make it makes one that does not exist.
func (s *Server) find(r *http.Request, make func() *serverSession) (*serverSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	name := r.PathValue("env") + "/" + r.PathValue("id")
	e := s.sessions[name]
	if e == nil && make != nil {
		if len(s.sessions) >= s.Sessions {
			return nil, fmt.Errorf("there are %d sessions already", s.Sessions)
		}
		e = make()
		s.sessions[name] = e
	}
	if e != nil {
		e.used = time.Now()
	}
	return e, nil
}

func (s *Server) drop(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.PathValue("env") + "/" + r.PathValue("id")
	_, ok := s.sessions[name]
	delete(s.sessions, name)
	return ok
}

// defaultSeed is the seed of a reset without one, as clients of the protocol expect.
const defaultSeed = 123

func (s *Server) reset(w http.ResponseWriter, r *http.Request) {
	kind, err := env.Find(s.Kinds, r.PathValue("env"))
	var in struct {
		EnvParam json.RawMessage `json:"env_param"`
		Seed     *int64          `json:"seed"`
	}
	if err == nil && len(r.PathValue("id")) > maxID {
		err = fmt.Errorf("the id of the session has more than %d bytes", maxID)
	}
	if err == nil {
		err = readBody(r, &in)
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	var text string // params may also be JSON in a string
	if json.Unmarshal(in.EnvParam, &text) == nil && text != "" {
		in.EnvParam = json.RawMessage(text)
	}
	if string(in.EnvParam) == "null" {
		in.EnvParam = nil
	}
	made, err := kind.New(in.EnvParam)
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	e, err := s.find(r, func() *serverSession { return &serverSession{kind: kind, id: r.PathValue("id")} })
	if err != nil {
		writeError(w, http.StatusServiceUnavailable, err)
		return
	}
	seed := int64(defaultSeed)
	if in.Seed != nil {
		seed = *in.Seed
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	made.Reset(seed)
	e.env, e.key, e.answer = made, "", nil
	writeJSON(w, http.StatusOK, map[string]any{"observation": map[string]any{}, "info": map[string]any{}})
}

// withSession answers from a session that exists.
func (s *Server) withSession(answer func(*serverSession, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e, _ := s.find(r, nil) // only making can fail
		if e == nil {
			writeError(w, http.StatusNotFound, errors.New("there is no such session: reset makes it"))
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.env == nil {
			writeError(w, http.StatusNotFound, errors.New("the session is not reset yet"))
			return
		}
		out, err := answer(e, r)
		if err != nil {
			writeError(w, http.StatusBadRequest, err)
			return
		}
		writeJSON(w, http.StatusOK, out)
	}
}

func (e *serverSession) prompt(*http.Request) (any, error) {
	if p := e.env.Prompt(); p != nil {
		return p, nil
	}
	return rules.Prompt{}, nil
}

func (e *serverSession) step(r *http.Request) (any, error) {
	key := r.Header.Get(keyHeader)
	if key != "" && key == e.key {
		return e.answer, nil
	}
	var in struct {
		Action *rules.Action `json:"action"`
	}
	if err := readBody(r, &in); err != nil {
		return nil, err
	}
	if in.Action == nil {
		return nil, errors.New("action: is missing")
	}
	out := e.env.Step(*in.Action)
	if len(out.Observation) == 0 {
		out.Observation = json.RawMessage("{}")
	}
	if len(out.Info) == 0 {
		out.Info = json.RawMessage("{}")
	}
	e.key, e.answer = key, out
	return out, nil
}

func (s *Server) close(w http.ResponseWriter, r *http.Request) {
	if !s.drop(r) {
		writeError(w, http.StatusNotFound, errors.New("there is no such session"))
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"status": "ok", "envname": r.PathValue("env"), "id": r.PathValue("id")})
}

// readBody decodes the body of a request.
func readBody(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if err == nil && len(body) > 0 {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("the body is not what it should be: %w", err)
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		writeError(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client may be gone
}

func writeError(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, map[string]string{"detail": err.Error()})
}
