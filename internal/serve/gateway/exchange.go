package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"parley/internal/kit/auth"
	"parley/internal/serve/gateway/format"
	"parley/internal/serve/telemetry"
	"parley/llm"
	"parley/world"
)

// exchange is one call of a client, from request to answer.
type exchange struct {
	g       *Gateway
	out     *client
	header  http.Header // of the request
	rt      *gatewayRoute
	began   time.Time
	body    []byte
	call    *format.Call
	client  *Conn // nil if not known
	session *Session
	note    string // for the record
	callID  int    // in the session, while in flight
	turn    int    // in the record; unused if served from there
	target  *target
	flight  *relayFlight
	span    *telemetry.Span
	patient *time.Timer // ends a call whose answer begins too late
	key     [32]byte    // in the cache
	end     end
}

// end is how a call ended.
type end int

const (
	endRefused  end = iota // it was not sent, or not recorded
	endRecorded            // with its answer
	endFailed              // with an error that is recorded
	endReplayed
	endKinds // number of ends
)

// takeFunc answers a call over its connection, taken over from the server, if possible. It does not wait for
// the answer.
type takeFunc func(x *exchange, w http.ResponseWriter, r *http.Request) bool

// serve answers a call. take gets the calls for a stream.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, rt *gatewayRoute, take takeFunc) {
	x := &exchange{g: g, out: newClient(w, g.cfg.Patience), header: r.Header, client: connOf(r.Context()), rt: rt, began: time.Now()}
	g.metrics.inFlight.Add(1)
	if !x.read(r) {
		x.count()
		return
	}
	if x.call.Stream && take(x, w, r) {
		return
	}
	defer x.count()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	if r.ProtoMajor == 1 {
		defer connWatch(ctx, func() { cancel(context.Canceled) })()
	}
	x.answer(ctx, cancel)
}

// answer answers the call. cancel ends it.
func (x *exchange) answer(ctx context.Context, cancel context.CancelCauseFunc) {
	if !x.enter(ctx, cancel) {
		return
	}
	defer x.g.sessions.Leave(x.session, x.callID)
	if x.replayed() {
		return
	}
	x.turn = x.session.Turn()
	if x.rt.API.Asks() {
		x.ask(ctx, cancel)
		return
	}
	x.fetch(ctx, cancel)
}

// count counts a call that is over.
func (x *exchange) count() {
	x.g.ends[x.end].Add(1)
	x.g.metrics.ended(x.rt.API, x.out.status, x.began)
}

// read reads and decodes the request.
func (x *exchange) read(r *http.Request) bool {
	var err error
	if x.body, err = x.out.read(r, x.g.cfg.MaxBody); err != nil {
		status, code := http.StatusBadRequest, "body_unreadable"
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status, code = http.StatusRequestEntityTooLarge, "body_too_large"
		}
		x.fail(status, code, err.Error())
		return false
	}
	if x.call, err = format.Decode(x.rt.API, x.body); err != nil {
		x.fail(http.StatusBadRequest, "body_invalid", err.Error())
		return false
	}
	if x.rt.API == format.Models { // it has no body to hash
		x.call.Digest = sha256.Sum256([]byte("models" + x.rt.Suffix))
	}
	return true
}

// enter finds the session of the call and enters it.
func (x *exchange) enter(ctx context.Context, cancel context.CancelCauseFunc) bool {
	id, err := sessionOf(x.rt, x.header)
	if err != nil {
		x.fail(http.StatusBadRequest, "session_invalid", err.Error())
		return false
	}
	var client Client
	if x.client != nil {
		client = x.client
	}
	x.session, x.note, err = x.g.sessions.Assign(ctx, Name{Owner: x.g.owner(x.header), ID: id}, x.call, client)
	if err == nil {
		x.callID, err = x.session.Enter(cancel)
	}
	switch _, closed := errors.AsType[closedError](err); {
	case err == nil:
		if !x.g.cfg.Replay {
			x.out.episode = x.session.Header
		}
		return true
	case errors.Is(err, errUnknown):
		x.fail(http.StatusNotFound, "session_unknown", "session "+id+" is not in the record that is served")
	case closed:
		x.fail(http.StatusConflict, "session_closed", err.Error())
	default:
		x.fail(http.StatusInternalServerError, "record_failed", err.Error())
	}
	return false
}

// fail answers a call that was not sent.
func (x *exchange) fail(status int, code, message string) {
	x.out.whole(status, x.rt.API.AppendError(nil, status, code, message), nil)
}

// replayed answers from the record, if the call is to be answered from there.
func (x *exchange) replayed() bool {
	p := x.session.Past()
	if p == nil {
		return false
	}
	was := p.Take(x.call)
	if was == nil {
		x.g.missed.Add(1)
		x.g.metrics.missed.Add(1)
		if x.g.cfg.Replay {
			x.fail(http.StatusConflict, "replay_diverged", "session "+x.session.ID+": "+p.Diverged(x.call)+"; parley gateway --ignore and --nearest allow differences")
			return true
		}
		if why := p.Missing(x.call); why != "" {
			x.g.tell("session %s: a call is not in the record and is asked now: %s; --ignore allows differences", x.session.ID, why)
		}
		return false // a call that is not recorded is sent
	}
	h := http.Header{
		"Content-Type": {was.Wire.Type}, "X-Parley-Replayed": {was.How},
		"X-Parley-Turn": {strconv.Itoa(was.Episode) + ":" + strconv.Itoa(was.Turn)},
	}
	if was.How == sessionNearest {
		share := strconv.FormatFloat(was.Share, 'f', 3, 64)
		h["X-Parley-Similarity"] = []string{share}
		x.g.tell("session %s: episode %d, turn %d is replayed for a call that differs (similarity %s): %s", x.session.ID, was.Episode, was.Turn, share, was.Difference)
	}
	x.g.served(was.How)
	x.end = endReplayed
	x.out.whole(was.Wire.Status, was.Wire.Body, h)
	return true
}

// served counts a call that was answered from the record.
func (g *Gateway) served(how string) {
	g.metrics.replayed.Add(1)
	switch how {
	case sessionLoose:
		g.loose.Add(1)
	case sessionNearest:
		g.nearest.Add(1)
	}
}

func (g *Gateway) tell(text string, args ...any) {
	if g.cfg.Tell != nil {
		g.cfg.Tell(fmt.Sprintf(text, args...))
	}
}

// fetch sends a call that no model answers.
func (x *exchange) fetch(ctx context.Context, cancel context.CancelCauseFunc) {
	t, e := x.g.target(x.rt.API, x.call.Request.Model)
	rec := &Call{Act: &world.Act{Name: string(x.rt.API) + x.rt.Suffix}}
	if e == nil && x.rt.API.Anthropic() && !t.upstream.Speaks(x.rt.API) {
		e = &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusNotFound, Message: "only a provider of Anthropic's format counts tokens, and " + t.model + " has another"}
	}
	if e == nil {
		x.prepare(t, cancel)
		_, model := llm.SplitModel(t.model)
		if e = t.upstream.Fetch(ctx, x.flight, model); e == nil {
			rec.Response = &llm.Response{Finish: llm.FinishStop, Provider: t.upstream.Provider().Name}
		}
	}
	x.finish(rec, e)
}

// prepare makes the flight of the call, and bounds the time until the answer begins.
func (x *exchange) prepare(t *target, cancel context.CancelCauseFunc) {
	f := &relayFlight{
		Call: x.call, Body: x.body, Suffix: x.rt.Suffix, Header: x.header, Out: x.out,
		Created: x.began.Unix(), Admitted: x.g.queue.admitted,
	}
	if x.session.ID != sessionDefault {
		f.Session = x.session.ID
	}
	if len(x.g.keys) == 0 && !t.upstream.OwnsKey() {
		f.OwnKey, f.Keys = true, auth.All(x.header) // the provider gets the client's keys
	}
	x.flight = f
	wait := x.g.cfg.Deadline
	if v := x.header.Get("X-Parley-Deadline"); v != "" {
		if d, err := time.ParseDuration(v); err == nil && d > 0 {
			wait = min(wait, d)
		}
	}
	x.patient = time.AfterFunc(wait, func() { cancel(&lateError{wait}) })
	x.out.begun = func() {
		x.patient.Stop()
		x.body, x.header, f.Body, f.Header = nil, nil, nil, nil // it is not sent again, and may last long
	}
}

// lateError ends a call whose answer did not begin in time.
type lateError struct{ after time.Duration }

func (e *lateError) Error() string {
	return "no answer began within " + e.after.String() + ", queueing and retries included"
}

// client is the receiver of an answer.
type client struct {
	w        http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
	begun    func()   // called when the answer begins; may be nil
	drop     func()   // closes the connection; nil: a panic does, as in net/http
	episode  []string // sent with the answer; may be nil
	status   int      // 0 until it is sent
	gone     bool
	stuck    bool // gone because it was too slow
}

func newClient(w http.ResponseWriter, patience time.Duration) *client {
	return &client{w: w, rc: http.NewResponseController(w), patience: patience}
}

// read reads the body of a request. The guard of the server bounds the time.
func (c *client) read(r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength == 0 || r.Body == http.NoBody {
		return nil, nil
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, errors.New("the body is compressed: send it as it is")
	}
	return readRelayAll(http.MaxBytesReader(c.w, r.Body, limit).Read, r.ContentLength)
}
