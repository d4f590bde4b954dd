package envhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/llm"
)

// Error codes of servers.
const (
	codeValidation = "VALIDATION_ERROR"
	codeCapacity   = "CAPACITY_REACHED"
	codeBadJSON    = "INVALID_JSON"
	codeUnknown    = "UNKNOWN_TYPE"
)

// A socket is pinged after idle without a message before an action is sent, so that a lost peer is noticed
// while nothing is at stake.
const (
	idle     = 30 * time.Second
	pongTime = 10 * time.Second
)

// socket is a session's connection. The first message opens it.
type socket struct {
	address string
	conn    *websocket.Conn
	frames  chan []byte // closed when the socket ends
	stop    context.CancelFunc
	reader  sync.WaitGroup
	heard   time.Time
}

type frame struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data,omitempty"`
}

func (s *socket) send(ctx context.Context, what string, data any, _ string) (a answer, err error) {
	if s.conn == nil {
		if err := s.dial(ctx); err != nil {
			return a, err
		}
	}
	if err := s.alive(ctx); err != nil {
		return a, err
	}
	raw, err := json.Marshal(data)
	if err == nil {
		raw, err = json.Marshal(frame{Type: what, Data: raw})
	}
	if err != nil {
		return a, &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Provider: s.address, Message: err.Error()}
	}
	if err := s.conn.Write(ctx, websocket.MessageText, raw); err != nil {
		return a, exchangeBroken(ctx, s.address, err)
	}
	select {
	case text, ok := <-s.frames:
		s.heard = time.Now()
		if !ok {
			return a, s.gone(true)
		}
		return s.read(what, text)
	case <-ctx.Done():
		return a, exchangeBroken(ctx, s.address, ctx.Err())
	}
}

// dial opens the connection and starts reading it, which also answers pings.
func (s *socket) dial(ctx context.Context) error {
	conn, resp, err := websocket.Dial(ctx, s.address, nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // there is nothing in it
	}
	if err != nil {
		if ctx.Err() != nil {
			return llm.ContextError(ctx)
		}
		return &llm.Error{Kind: llm.KindTransport, Provider: s.address, Message: err.Error(), Err: err}
	}
	conn.SetReadLimit(maxExchangeBody)
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	frames := make(chan []byte, 1)
	s.conn, s.frames, s.stop, s.heard = conn, frames, stop, time.Now()
	s.reader.Go(func() {
		defer close(frames)
		for {
			kind, text, err := conn.Read(reading)
			if err != nil {
				return
			}
			if kind != websocket.MessageText {
				continue
			}
			select {
			case frames <- text:
			case <-reading.Done():
				return
			}
		}
	})
	return nil
}

// alive checks that the server is there before something is sent. It first reads messages that were not asked
// for, such as why the server closes.
func (s *socket) alive(ctx context.Context) error {
	select {
	case text, ok := <-s.frames:
		if !ok {
			return s.gone(false)
		}
		_, err := s.read("", text)
		return err
	default:
	}
	if time.Since(s.heard) < idle {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pongTime)
	defer cancel()
	if err := s.conn.Ping(ctx); err != nil {
		return s.gone(false)
	}
	return nil
}

// read decodes an answer.
func (s *socket) read(what string, text []byte) (a answer, err error) {
	var f frame
	if err := json.Unmarshal(text, &f); err != nil {
		return a, wrongForm(s.address, text, fmt.Errorf("%s: %w", what, exchangeDescribe(text, err)))
	}
	switch f.Type {
	case "observation":
		if err := json.Unmarshal(f.Data, &a); err != nil {
			return a, invalid(s.address, fmt.Errorf("%s: %w", what, exchangeDescribe(f.Data, err)))
		}
		if a.Observation == nil {
			return a, unobserved(s.address, what)
		}
		return a, nil
	case "mcp":
		var rpc struct {
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(f.Data, &rpc); err != nil || rpc.Error != nil || rpc.Result == nil {
			return a, &llm.Error{Kind: llm.KindBadRequest, Provider: s.address, Message: "it has no MCP server"}
		}
		a.Result = rpc.Result
		return a, nil
	case "error":
		return a, s.refused(f.Data)
	default:
		return a, invalid(s.address, fmt.Errorf("%s: a frame of type %.40q", what, f.Type))
	}
}

// refused returns the error of an error frame.
func (s *socket) refused(data json.RawMessage) error {
	var said struct{ Message, Code string }
	_ = json.Unmarshal(data, &said) // the message may be missing
	e := &llm.Error{Kind: llm.KindServer, Provider: s.address, Code: fmt.Sprintf("%.40s", said.Code), Message: fmt.Sprintf("%.300s", said.Message)}
	switch said.Code {
	case codeCapacity:
		e.Kind = llm.KindOverloaded
	case codeValidation, codeBadJSON, codeUnknown:
		e.Kind, e.Status = llm.KindBadRequest, http.StatusUnprocessableEntity
	default:
		e.Uncertain = true
	}
	return e
}

// gone returns the error of a connection that has ended; sent reports whether a message was on its way.
func (s *socket) gone(sent bool) error {
	return &llm.Error{Kind: llm.KindTransport, Uncertain: sent, Provider: s.address, Message: "the server has closed the session"}
}

// close closes the session and the connection.
func (s *socket) close(ctx context.Context) error {
	if s.conn == nil {
		return nil
	}
	goodbye, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = s.conn.Write(goodbye, websocket.MessageText, []byte(`{"type":"close"}`)) // who is gone needs no goodbye
	select {
	case <-s.frames:
	case <-goodbye.Done():
	}
	_ = s.conn.CloseNow() // or it was closed already
	s.stop()
	s.reader.Wait()
	s.conn = nil
	return nil
}
