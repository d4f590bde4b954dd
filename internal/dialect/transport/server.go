package transport

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"parley/internal/provider"
	"parley/internal/replica"
	"parley/internal/wire/fault"
	"parley/llm"
)

// session says in call which session req is of, in the way that the provider wants. It
// returns req, without a session where the provider is not to know.
func (m *Model) session(call *Call, req *llm.Request) (*llm.Request, error) {
	if req.Session == "" {
		return req, nil
	}
	switch m.p.Session {
	case provider.SessionHeader:
		call.Header = http.Header{"X-Session-Id": {fault.Clean(req.Session, maxSession)}}
	case provider.SessionPath:
		at, err := sessionPath(req.Session)
		if err != nil {
			return nil, err
		}
		call.Path = at + call.Path
	default:
		c := *req
		c.Session = ""
		return &c, nil
	}
	return req, nil
}

// maxSession is the longest name of a session that is sent.
const maxSession = 200

// sessionPath is where a session is, below the base URL: one step of a path, whatever its
// name holds.
func sessionPath(session string) (string, error) {
	if session == "" || session == "." || session == ".." || len(session) > maxSession {
		return "", fault.BadRequest("%q cannot be the name of a session in an address", fault.Clean(session, 50))
	}
	return "/" + url.PathEscape(session), nil
}

// Alive says whether the server can be reached: see Client.
func (m *Model) Alive(ctx context.Context) error { return m.c.Alive(ctx) }

// Alive says whether the server can be reached: whether it answers at all, and not with a
// failure of its own.
func (c *Client) Alive(ctx context.Context) error {
	a, err := c.Do(ctx, Call{Method: http.MethodGet, Path: "/models"})
	if err == nil {
		a.Drain()
		a.Close()
		return nil
	}
	if e := llm.AsError(err); e.Status == 0 || e.Status >= http.StatusInternalServerError {
		return c.Fail(err, "", nil)
	}
	return nil
}

// Load reads how busy the server is from its page for Prometheus.
func (m *Model) Load(ctx context.Context) (replica.Load, error) {
	var r replica.Reader
	if err := m.small(ctx, Call{Method: http.MethodGet, Path: m.p.Metrics, Root: true}, r.Line); err != nil {
		return replica.Load{}, err
	}
	return r.Load()
}

// End closes a session at its address.
func (m *Model) End(ctx context.Context, session string, whole bool) error {
	at, err := sessionPath(session)
	if err != nil {
		return err
	}
	said := map[string]string{"reason": "the episode ended", "completion_mode": "complete"}
	if !whole {
		said = map[string]string{"reason": "the episode was given up", "completion_mode": "abort"}
	}
	body, err := json.Marshal(said)
	if err != nil {
		return err
	}
	return m.small(ctx, Call{Path: at + "/close", Body: body}, nil)
}

// small makes an exchange beside the answers, and hands the lines that come to each.
func (m *Model) small(ctx context.Context, call Call, each func(line []byte)) error {
	a, err := m.c.Do(ctx, call)
	if err != nil {
		return m.c.Fail(err, "", nil)
	}
	defer a.Close()
	if each == nil {
		a.Drain()
		return nil
	}
	err = a.Lines(ctx, func(line []byte) error {
		each(line)
		return nil
	})
	if err != nil {
		return m.c.Fail(err, "", a)
	}
	return nil
}

var _ replica.Server = (*Model)(nil)
