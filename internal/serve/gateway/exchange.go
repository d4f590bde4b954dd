package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"parley/internal/serve/auth"
	"parley/internal/serve/gateway/format"
	"parley/internal/serve/gateway/ledger"
	"parley/internal/serve/gateway/line"
	"parley/internal/serve/gateway/relay"
	"parley/internal/serve/gateway/session"
	"parley/internal/serve/gateway/trace"
	"parley/llm"
	"parley/world"
)

// exchange is one call of a client, from its request to its answer.
type exchange struct {
	g       *Gateway
	out     *client
	header  http.Header // of the request
	rt      *route
	began   time.Time
	body    []byte
	call    *format.Call
	client  *line.Conn // nil: it is not known
	session *session.Session
	note    string // for the record
	place   int    // in the session, while it is in flight
	turn    int    // in the record, unless it is served from there
	target  *target
	flight  *relay.Flight
	span    *trace.Span
	patient *time.Timer // ends a call whose answer does not begin in time
	key     [32]byte    // in the cache
	end     end
}

// end is what became of a call.
type end int

const (
	endRefused  end = iota // it was not made, or could not be recorded
	endRecorded            // with its answer
	endFailed              // and that is recorded
	endReplayed
	endKinds // how many there are
)

// takeFunc answers a call over the connection it came by, taken over from the server, if
// that can be done. It does not wait until it is answered.
type takeFunc func(x *exchange, w http.ResponseWriter, r *http.Request) bool

// serve answers a call. One for a stream is handed to take.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, rt *route, take takeFunc) {
	x := &exchange{g: g, out: newClient(w, g.cfg.Patience), header: r.Header, client: line.Of(r.Context()), rt: rt, began: time.Now()}
	g.metrics.inFlight.Inc()
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
		defer line.Watch(ctx, func() { cancel(context.Canceled) })()
	}
	x.answer(ctx, cancel)
}

// answer answers the call, which cancel ends.
func (x *exchange) answer(ctx context.Context, cancel context.CancelCauseFunc) {
	if !x.enter(ctx, cancel) {
		return
	}
	defer x.g.sessions.Leave(x.session, x.place)
	if x.replayed() {
		return
	}
	x.turn = x.session.Turn()
	if x.rt.api.Asks() {
		x.ask(ctx, cancel)
		return
	}
	x.fetch(ctx, cancel)
}

// count counts the call when it is over.
func (x *exchange) count() {
	x.g.became[x.end].Add(1)
	x.g.metrics.ended(x.rt.api, x.out.status, x.began)
}

// read reads the request and makes something of it.
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
	if x.call, err = format.Decode(x.rt.api, x.body); err != nil {
		x.fail(http.StatusBadRequest, "body_invalid", err.Error())
		return false
	}
	if x.rt.api == format.Models { // it has no body to be told apart by
		x.call.Digest = sha256.Sum256([]byte("models" + x.rt.suffix))
	}
	return true
}

// enter finds the session.
func (x *exchange) enter(ctx context.Context, cancel context.CancelCauseFunc) bool {
	id, err := sessionOf(x.rt, x.header)
	if err != nil {
		x.fail(http.StatusBadRequest, "session_invalid", err.Error())
		return false
	}
	if x.session, err = x.g.sessions.Find(ctx, ledger.Name{Owner: x.g.owner(x.header), ID: id}, true); err == nil {
		x.session, err = x.g.sessions.Place(ctx, x.session, x.call)
	}
	if err == nil && x.client != nil {
		x.session, x.note, err = x.g.sessions.Meet(x.session, x.call, x.client)
	}
	if err == nil {
		x.place, err = x.session.Enter(cancel)
	}
	switch _, closed := errors.AsType[session.ClosedError](err); {
	case err == nil:
		if !x.g.cfg.Replay {
			x.out.episode = x.session.Header
		}
		return true
	case errors.Is(err, session.ErrUnknown):
		x.fail(http.StatusNotFound, "session_unknown", "session "+id+" is not in the record that is served")
	case closed:
		x.fail(http.StatusConflict, "session_closed", err.Error())
	default:
		x.fail(http.StatusInternalServerError, "record_failed", err.Error())
	}
	return false
}

// fail tells the client that its call was not made.
func (x *exchange) fail(status int, code, message string) {
	x.out.whole(status, x.rt.api.AppendError(nil, status, code, message), nil)
}

// replayed answers from the record, if that is how it is answered.
func (x *exchange) replayed() bool {
	p := x.session.Past()
	if p == nil {
		return false
	}
	was := p.Take(x.call)
	if was == nil {
		x.g.missed.Add(1)
		x.g.metrics.missed.Inc()
		if x.g.cfg.Replay {
			x.fail(http.StatusConflict, "replay_diverged", "session "+x.session.ID+": "+p.Diverged(x.call)+"; parley gateway --ignore and --nearest allow differences")
			return true
		}
		if why := p.Missing(x.call); why != "" {
			x.g.tell("session %s: a call is not in the record and is asked now: %s; --ignore allows differences", x.session.ID, why)
		}
		return false // what is not recorded is asked now
	}
	h := http.Header{
		"Content-Type": {was.Wire.Type}, "X-Parley-Replayed": {was.How},
		"X-Parley-Turn": {strconv.Itoa(was.Episode) + ":" + strconv.Itoa(was.Turn)},
	}
	if was.How == session.Nearest {
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
	g.metrics.replayed.Inc()
	switch how {
	case session.Loose:
		g.loose.Add(1)
	case session.Nearest:
		g.nearest.Add(1)
	}
}

func (g *Gateway) tell(text string, args ...any) {
	if g.cfg.Tell != nil {
		g.cfg.Tell(fmt.Sprintf(text, args...))
	}
}

// fetch hands on a call that no model answers.
func (x *exchange) fetch(ctx context.Context, cancel context.CancelCauseFunc) {
	t, e := x.g.target(x.rt.api, x.call.Request.Model)
	rec := &ledger.Call{Act: &world.Act{Name: string(x.rt.api) + x.rt.suffix}}
	if e == nil && x.rt.api.Anthropic() && !t.upstream.Anthropic() {
		e = &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusNotFound, Message: "tokens are counted by a provider of Anthropic's format, and " + t.model + " is none"}
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

// prepare makes the flight of the call, and bounds the time until it is answered.
func (x *exchange) prepare(t *target, cancel context.CancelCauseFunc) {
	f := &relay.Flight{
		Call: x.call, Body: x.body, Suffix: x.rt.suffix, Header: x.header, Out: x.out,
		Created: x.began.Unix(), Admitted: x.g.queue.admitted,
	}
	if x.session.ID != session.Default {
		f.Session = x.session.ID
	}
	if len(x.g.keys) == 0 && t.upstream.Provider().KeyEnv == "" {
		f.OwnKey, f.Keys = true, auth.All(x.header) // the client's keys are the provider's
	}
	x.flight = f
	wait := x.g.cfg.Deadline
	if v := x.header.Get("X-Parley-Deadline"); v != "" {
		if d, err := time.ParseDuration(v); err == nil && d > 0 {
			wait = min(wait, d)
		}
	}
	x.patient = time.AfterFunc(wait, func() { cancel(&lateError{wait}) })
	x.out.begun = func() { x.patient.Stop() }
}

// lateError is the cause with which a call ends whose answer does not begin in time.
type lateError struct{ after time.Duration }

func (e *lateError) Error() string {
	return "no answer began within " + e.after.String() + ", queueing and retries included"
}

// client is the other side of a call.
type client struct {
	w        http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
	begun    func()   // told when the answer begins; may be nil
	drop     func()   // ends the connection; nil: a panic does, as net/http wants it
	episode  []string // that is told with the answer; nil: none
	status   int      // that was sent; 0: none was
	gone     bool
	stuck    bool // gone because it did not take what it was sent in time
}

func newClient(w http.ResponseWriter, patience time.Duration) *client {
	return &client{w: w, rc: http.NewResponseController(w), patience: patience}
}

// read reads the body of a request. The guard of the server bounds the time it may take.
func (c *client) read(r *http.Request, most int64) ([]byte, error) {
	if r.ContentLength == 0 || r.Body == http.NoBody {
		return nil, nil
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, errors.New("the body is compressed: send it as it is")
	}
	in := http.MaxBytesReader(c.w, r.Body, most)
	size := r.ContentLength + 1 // one more, so that its end is seen
	if size <= 0 {
		size = 512
	}
	b := make([]byte, 0, min(size, 1<<20))
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := in.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
