package training

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/internal/kit/auth"
	"parley/world"
	"parley/world/program"
	"parley/worlds/rollout/rules"
)

// guard returns who may use the server.
func (s *Server) guard() *auth.Guard {
	return &auth.Guard{
		Access: auth.Access{Hosts: s.cfg.Hosts, Origins: s.cfg.Origins}, Keys: s.keys, Patience: s.cfg.Patience,
		Public: func(r *http.Request) bool { return r.URL.Path == "/health" },
		Refuse: func(w http.ResponseWriter, _ *http.Request, why auth.Refusal) {
			fault(w, why.Status, errors.New(why.Message))
		},
	}
}

// whole reads the body of a request, within its limit, before the handler runs.
func whole(then http.HandlerFunc) http.HandlerFunc {
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

// reader limits how many requests read at once.
func (s *Server) reader(then http.HandlerFunc) http.HandlerFunc {
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

func nowhere(w http.ResponseWriter, r *http.Request) {
	fault(w, http.StatusNotFound, errors.New("there is no "+r.Method+" "+r.URL.Path+
		": use POST /v1/start, POST /v1/stop, POST /v1/pause, POST /v1/resume, POST /v1/weights, POST /v1/tasks, GET /v1/status, GET /v1/groups, GET /v1/stream, POST /start_rollout, POST /get_rollout_data, GET /health"))
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

func (s *Server) now(r *http.Request) (out status, err error) {
	out.State, out.Reason = s.player.status()
	out.Paused, out.WeightVersion = s.player.isPaused(), s.version.Load()
	out.Groups, out.Complete, out.Cursor, err = s.source.count(r.Context())
	out.Read = s.source.taken()
	return out, err
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) { s.tell(w, r, http.StatusOK) }

// tell answers with the status.
func (s *Server) tell(w http.ResponseWriter, r *http.Request, code int) {
	st, err := s.now(r)
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
	for name := range o.Params {
		if !slices.Contains(overridable(), name) {
			fault(w, http.StatusBadRequest, errors.New("params."+short(name)+" is not for clients to set: use "+strings.Join(overridable(), ", ")))
			return
		}
	}
	again, err := s.player.start(r.Context(), o)
	switch {
	case err != nil:
		fault(w, refusal(err), err)
	case again:
		s.tell(w, r, http.StatusOK)
	default:
		s.tell(w, r, http.StatusAccepted)
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
	s.tell(w, r, http.StatusAccepted)
}

// pause sends no more calls. Those in flight stay open, are finished before the answer, or are cut off.
func (s *Server) pause(w http.ResponseWriter, r *http.Request) {
	body := struct {
		Calls program.InFlight `json:"calls"`
		Wait  float64          `json:"wait"`
	}{Calls: program.HoldCalls, Wait: maxWait.Seconds()}
	want := `want {"calls": "hold", "finish" or "cut", "wait": SECONDS}, with at most 600 seconds, all optional`
	if err := decode(r, &body, want); err != nil {
		fault(w, http.StatusBadRequest, err)
		return
	}
	known := []program.InFlight{program.HoldCalls, program.FinishCalls, program.CutCalls}
	if !slices.Contains(known, body.Calls) || !(body.Wait >= 0 && body.Wait <= 600) {
		fault(w, http.StatusBadRequest, errors.New(want))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(body.Wait*float64(time.Second)))
	defer cancel()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.cfg.Patience + time.Duration(body.Wait*float64(time.Second)))) // only tests have a writer without deadlines
	s.held(w, r, s.player.pause(ctx, body.Calls))
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request) { s.held(w, r, s.player.unpause()) }

// held answers after the run was paused or resumed.
func (s *Server) held(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		fault(w, http.StatusGatewayTimeout, err)
	case errors.Is(err, errIdle):
		fault(w, http.StatusConflict, err)
	case err != nil:
		fault(w, http.StatusServiceUnavailable, err)
	default:
		s.tell(w, r, http.StatusOK)
	}
}

// weights sets the version of the weights that the trainer has now. A query's max_lag counts from it.
func (s *Server) weights(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Version *int `json:"version"`
	}
	if err := decode(r, &body, ""); err != nil || body.Version == nil || *body.Version < 0 {
		fault(w, http.StatusBadRequest, errors.New(`want {"version": N}, with N from 0`))
		return
	}
	run, err := s.source.run(r.Context())
	if err == nil {
		err = s.position.saveWeights(*body.Version, run)
	}
	if err != nil {
		fault(w, http.StatusInternalServerError, err)
		return
	}
	s.version.Store(body.Version)
	s.tell(w, r, http.StatusOK)
}

// tasks changes the tasks that later stages of a refill draw from.
func (s *Server) tasks(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fault(w, http.StatusBadRequest, err)
		return
	}
	c, err := rules.ReadChange(body)
	if err != nil {
		fault(w, http.StatusBadRequest, err)
		return
	}
	if err := s.player.change(c, body); err != nil {
		fault(w, http.StatusConflict, err)
		return
	}
	s.tell(w, r, http.StatusOK)
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

// slow is a writer with a deadline for each piece.
type slow struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	wrote    int
}

func (s *Server) slow(w http.ResponseWriter) *slow {
	return &slow{w: w, control: http.NewResponseController(w), patience: s.cfg.Patience}
}

// Write implements io.Writer.
func (c *slow) Write(b []byte) (int, error) {
	_ = c.control.SetWriteDeadline(time.Now().Add(c.patience)) // only tests have a writer without deadlines
	n, err := c.w.Write(b)
	c.wrote += n
	return n, err
}

func (c *slow) flush() error {
	_ = c.control.SetWriteDeadline(time.Now().Add(c.patience))
	return c.control.Flush()
}

// cut ends an answer that cannot be completed, so that it is not taken for a whole one.
func cut() { panic(http.ErrAbortHandler) }
