package transport

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/provider"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// session adds the session of req to call, in the way that the provider wants. It returns req,
// without the session if the provider must not see it.
func (m *Model) session(call *Request, req *llm.Request) (*llm.Request, error) {
	if req.Session == "" {
		return req, nil
	}
	switch m.p.Session {
	case provider.SessionHeader:
		if call.Header == nil {
			call.Header = http.Header{}
		}
		call.Header.Set("X-Session-Id", fault.Clean(req.Session, maxSession))
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

// maxSession is the maximum length of a session's name.
const maxSession = 200

// sessionPath returns the path of a session below the base URL. It is always one path segment.
func sessionPath(session string) (string, error) {
	if session == "" || session == "." || session == ".." || len(session) > maxSession {
		return "", fault.BadRequest("%q cannot be the name of a session in a URL", fault.Clean(session, 50))
	}
	return "/" + url.PathEscape(session), nil
}

// Alive returns an error if the server cannot be reached: see Client.
func (m *Model) Alive(ctx context.Context) error { return m.c.Alive(ctx) }

// Alive returns an error if the server cannot be reached, or answers with a server error.
func (c *Client) Alive(ctx context.Context) error {
	a, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/models"})
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

// Load reads the server's load from its Prometheus metrics.
func (m *Model) Load(ctx context.Context) (replica.Load, error) {
	var r replica.Reader
	if err := m.small(ctx, Request{Method: http.MethodGet, Path: m.p.Metrics, Root: true}, r.Line); err != nil {
		return replica.Load{}, err
	}
	return r.Load()
}

// End closes a session.
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
	return m.small(ctx, Request{Path: at + "/close", Body: body}, nil)
}

// small makes a small exchange, and calls each with the lines of its answer.
func (m *Model) small(ctx context.Context, call Request, each func(line []byte)) error {
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
