package envhttp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"parley/internal/kit/sse"
	"parley/llm"
	"parley/worlds/rollout/rules"
)

const (
	mcpVersion = "2025-06-18"
	// maxMCPBody is the maximum size of an answer, and maxText how much of a result an agent gets.
	maxMCPBody  = 2 << 20
	maxToolText = 100_000
	// maxPages is the maximum number of pages of a list of tools, and maxTools that of tools.
	maxPages, maxTools = 10, 1000
)

// MCPServer is an MCP server over streamable HTTP, of which it uses what tools need: no prompts, no resources, and
// no requests of the server to the client, which are left unanswered. It is not for environments that speak MCP:
// openEnvSession calls the tools of those. It is safe for concurrent use.
//
// A call is sent at most once. No answer is read beyond its limit. Every failure is an *llm.Error that says
// whether the server may have acted; a tool that fails is a result, not a failure.
type MCPServer struct {
	address   string
	transport *http.Transport
}

// NewMCP returns the server at an address.
func NewMCP(address string) *MCPServer {
	return &MCPServer{address: address, transport: newTransport(1024)} // many episodes call at once
}

// Close closes idle connections.
func (s *MCPServer) Close() { s.transport.CloseIdleConnections() }

// MCPSession is a client's session with a server. One goroutine at a time may use it.
type MCPSession struct {
	server  *MCPServer
	id      string // empty: the server keeps no sessions
	version string
	sent    int
}

// Open begins a session.
func (s *MCPServer) Open(ctx context.Context) (*MCPSession, error) {
	session := &MCPSession{server: s}
	var hello struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	about := map[string]any{"protocolVersion": mcpVersion, "capabilities": map[string]any{}, "clientInfo": map[string]string{"name": "parley", "version": "1"}}
	if err := session.call(ctx, "initialize", about, &hello); err != nil {
		return nil, err
	}
	session.version = hello.ProtocolVersion
	return session, session.notify(ctx, "notifications/initialized")
}

// Tools lists the tools of the server.
func (s *MCPSession) Tools(ctx context.Context) (all rules.ToolList, err error) {
	cursor := ""
	for range maxPages {
		params := map[string]string{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		var page struct {
			Tools      rules.ToolList `json:"tools"`
			NextCursor string         `json:"nextCursor"`
		}
		if err := s.call(ctx, "tools/list", params, &page); err != nil {
			return nil, err
		}
		if all = append(all, page.Tools...); len(all) > maxTools {
			return nil, s.malformed(fmt.Errorf("more than %d tools", maxTools))
		}
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
	return nil, s.malformed(fmt.Errorf("more than %d pages of tools", maxPages))
}

// Call calls a tool and returns the message with its result, or with why it failed.
func (s *MCPSession) Call(ctx context.Context, c llm.ToolCall) (llm.Message, error) {
	arguments := json.RawMessage(c.Arguments)
	if strings.TrimSpace(c.Arguments) == "" {
		arguments = json.RawMessage("{}")
	}
	if !rules.IsObject(arguments) {
		return failedResult(c, "The arguments are no JSON object."), nil
	}
	var r mcpResult
	err := s.call(ctx, "tools/call", map[string]any{"name": c.Name, "arguments": arguments}, &r)
	if refused, ok := errors.AsType[*rpcError](err); ok {
		return failedResult(c, cutResult(refused.Message)), nil
	}
	if err != nil {
		return llm.Message{}, err
	}
	m := llm.ToolResult(c.ID, cutResult(r.text()))
	m.ToolFailed = r.IsError
	return m, nil
}

// failedResult returns the message about a call that was not carried out.
func failedResult(c llm.ToolCall, why string) llm.Message {
	m := llm.ToolResult(c.ID, why)
	m.ToolFailed = true
	return m
}

// mcpResult is the result of a call.
type mcpResult struct {
	Content []struct {
		Type     string
		Text     string
		Resource struct{ URI, Text string }
		URI      string
	}
	StructuredContent json.RawMessage
	IsError           bool
}

// text returns what an agent sees of a result.
func (r mcpResult) text() string {
	var parts []string
	for _, c := range r.Content {
		switch {
		case c.Type == "text":
			parts = append(parts, c.Text)
		case c.Type == "resource" && c.Resource.Text != "":
			parts = append(parts, c.Resource.Text)
		case c.URI+c.Resource.URI != "":
			parts = append(parts, "("+c.URI+c.Resource.URI+")")
		default:
			parts = append(parts, fmt.Sprintf("(%.40s, which cannot be shown)", c.Type))
		}
	}
	if len(parts) == 0 && len(r.StructuredContent) > 0 {
		parts = []string{string(r.StructuredContent)}
	}
	return strings.Join(parts, "\n")
}

func cutResult(text string) string {
	if text = strings.ToValidUTF8(text, "\uFFFD"); len(text) > maxToolText {
		return strings.ToValidUTF8(text[:maxToolText], "") + "\n(cut off: the result is longer)"
	}
	return text
}

// End ends the session.
func (s *MCPSession) End(ctx context.Context) {
	if s.id == "" {
		return
	}
	if resp, err := s.send(ctx, http.MethodDelete, nil); err == nil {
		_ = resp.Body.Close() // it may refuse, and forget the session later
	}
}

// rpcError is the error of a server that understood the request.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// mcpMessage is what a server sends.
type mcpMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"` // of a request or a notification of the server
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

// call sends a request and reads its result.
func (s *MCPSession) call(ctx context.Context, method string, params, into any) error {
	s.sent++
	id := s.sent
	resp, err := s.post(ctx, map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Mcp-Session-Id"); got != "" && method == "initialize" {
		s.id = got
	}
	m, err := s.answer(ctx, resp, id)
	switch {
	case err != nil:
		return err
	case m.Error != nil:
		return m.Error
	}
	if err := json.Unmarshal(m.Result, into); err != nil {
		return s.malformed(fmt.Errorf("%s: %w", method, err))
	}
	return nil
}

// notify sends a notification.
func (s *MCPSession) notify(ctx context.Context, method string) error {
	resp, err := s.post(ctx, map[string]any{"jsonrpc": "2.0", "method": method})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// answer reads the answer to a request: a JSON object, or one of the events of a stream.
func (s *MCPSession) answer(ctx context.Context, resp *http.Response, id int) (found mcpMessage, err error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // or it is unknown
	body := io.LimitReader(resp.Body, maxMCPBody+1)
	if kind != "text/event-stream" {
		text, err := io.ReadAll(body)
		if err != nil {
			return found, s.broken(ctx, err)
		}
		if len(text) > maxMCPBody {
			return found, s.malformed(fmt.Errorf("an answer of more than %d bytes", maxMCPBody))
		}
		if err := json.Unmarshal(text, &found); err != nil || !found.answers(id) {
			return found, s.malformed(errors.New("not an answer of an MCP server"))
		}
		return found, nil
	}
	there := false
	_, err = sse.Read(bufio.NewReader(body), maxMCPBody, func() {}, func(e sse.Event) (bool, error) {
		var m mcpMessage
		if err := json.Unmarshal(e.Data, &m); err != nil {
			return false, nil // a comment of some sort
		}
		if m.answers(id) {
			found, there = m, true
		}
		return there, nil
	})
	switch {
	case there:
		return found, nil
	case err != nil:
		return found, s.broken(ctx, err)
	}
	return found, s.broken(ctx, io.ErrUnexpectedEOF)
}

// answers reports whether m is the answer to the request with this id.
func (m mcpMessage) answers(id int) bool {
	return m.Method == "" && string(bytes.TrimSpace(m.ID)) == fmt.Sprint(id) && (m.Error != nil || len(m.Result) > 0)
}

// post sends a message.
func (s *MCPSession) post(ctx context.Context, body any) (*http.Response, error) {
	payload, err := json.Marshal(body)
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindBadRequest, Provider: s.server.address, Message: err.Error(), Err: err}
	}
	resp, err := s.send(ctx, http.MethodPost, payload)
	if err != nil {
		return nil, s.broken(ctx, err)
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // what was read is enough
		return nil, s.refused(resp.StatusCode, strings.ToValidUTF8(strings.TrimSpace(string(text)), ""))
	}
	return resp, nil
}

func (s *MCPSession) send(ctx context.Context, method string, payload []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.server.address, nil)
	if err != nil {
		return nil, err
	}
	setBody(req, payload)
	req.Header = http.Header{"User-Agent": {"parley"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
	}
	if s.version != "" {
		req.Header.Set("Mcp-Protocol-Version", s.version)
	}
	return s.server.transport.RoundTrip(req)
}

// refused returns the error of a status that is no success.
func (s *MCPSession) refused(status int, text string) error {
	e := refusedError(s.server.address, status, fmt.Sprintf("status %d: %s", status, text))
	if status == http.StatusNotFound && s.id != "" { // the session is gone
		e.Kind, e.Uncertain = llm.KindServer, true
	}
	return e
}

func (s *MCPSession) broken(ctx context.Context, err error) error {
	return interruptedError(ctx, s.server.address, err)
}

func (s *MCPSession) malformed(err error) error { return malformedError(s.server.address, err) }
