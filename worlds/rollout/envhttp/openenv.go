package envhttp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

// openEnvHost is an OpenEnv server: over a WebSocket for each session, or over plain HTTP, where a server has one
// environment. OpenEnv's actions and observations are the environment's own objects; a rules.OpenEnv says how
// they become a conversation.
type openEnvHost struct {
	*Client
	socket  string // empty: plain HTTP
	mapping rules.OpenEnv
	// toolless means that the server said that it has no tools.
	toolless atomic.Bool
}

// newOpenEnvHost returns the server at an address: ws:// and wss:// for sockets, http:// and https:// for plain HTTP.
// limit is the maximum number of sessions; 0: as many as the server allows.
func newOpenEnvHost(address string, m rules.OpenEnv) (h *openEnvHost, limit int) {
	address = strings.TrimRight(address, "/")
	if rest, ok := strings.CutPrefix(address, "ws"); ok {
		return &openEnvHost{Client: newClient("http"+rest, 1), socket: address + "/ws", mapping: m}, 0
	}
	return &openEnvHost{Client: newClient(address, 1), mapping: m}, 1
}

// New returns a session.
func (h *openEnvHost) New(id string, o rules.Opening) Session {
	s := &openEnvSession{host: h, id: id, params: o.Params}
	if h.socket != "" {
		s.peer = &socket{address: h.socket}
	} else {
		s.peer = httpPeer{h.Client}
	}
	return s
}

// Check asks whether the server is healthy. Sessions end with their sockets, so none are left behind.
func (h *openEnvHost) Check(ctx context.Context, _ func(string) bool) error {
	return h.Do(ctx, http.MethodGet, "/health", "", nil, nil)
}

// openEnvPeer is the server's side of a session.
type openEnvPeer interface {
	// send sends a message (reset, step) and returns the answer.
	send(ctx context.Context, what string, data any, key string) (openEnvAnswer, error)
	close(ctx context.Context) error
}

// openEnvAnswer is the answer to a reset or a step.
type openEnvAnswer struct {
	Observation json.RawMessage `json:"observation"`
	Reward      *rules.Rewards  `json:"reward"`
	Done        bool            `json:"done"`
	Result      json.RawMessage `json:"-"` // of a request to its MCP server
}

// openEnvSession is an environment and its conversation.
type openEnvSession struct {
	host   *openEnvHost
	peer   openEnvPeer
	id     string
	params json.RawMessage
	talk   []llm.Message
	tools  rules.ToolList
	done   bool
}

// Reset starts over. The params go to the environment's reset, which picks those it knows.
func (s *openEnvSession) Reset(ctx context.Context, seed int64) (json.RawMessage, error) {
	data := map[string]any{}
	var params map[string]any
	if json.Unmarshal(s.params, &params) == nil {
		maps.Copy(data, params)
	}
	data["seed"], data["episode_id"] = seed, s.id
	a, err := s.peer.send(ctx, "reset", data, "")
	if err != nil {
		return nil, err
	}
	s.talk, s.done = nil, a.Done
	if s.host.mapping.System != "" {
		s.talk = append(s.talk, llm.System(s.host.mapping.System))
	}
	s.talk = append(s.talk, s.shown(a.Observation))
	return nil, s.listTools(ctx)
}

// Prompt returns the conversation so far.
func (s *openEnvSession) Prompt(context.Context) (rules.Prompt, error) {
	if s.done {
		return nil, nil
	}
	return rules.Prompt{rules.DefaultAgent: {Messages: s.talk, Tools: s.tools}}, nil
}

// Step sends an answer as an action. If it is not a valid action, nothing changes and the agent gets the reason.
func (s *openEnvSession) Step(ctx context.Context, key string, a rules.Action) (rules.Result, error) {
	var answer llm.Message
	for _, answer = range a { // there is one agent, with any name
	}
	if len(answer.ToolCalls) > 0 {
		return s.callTools(ctx, key, answer)
	}
	text := answer.Text()
	action, ok := s.action(text)
	if !ok {
		return s.rejected(text, "That is no action: answer with one JSON object."), nil
	}
	got, err := s.peer.send(ctx, "step", action, key)
	if e := llm.AsError(err); e != nil && e.Code == codeValidation {
		why := "That is no action of this environment: " + e.Message
		if len(s.tools) > 0 {
			why += ". It has tools: call one of them."
		}
		r := s.rejected(text, why)
		r.Rejected = e.Message
		return r, nil
	}
	if err != nil {
		return rules.Result{}, err
	}
	s.done = got.Done
	s.talk = append(s.talk, llm.Assistant(text), s.shown(got.Observation))
	r := rules.Result{Observation: got.Observation, Reward: rules.Rewards{rules.DefaultAgent: 0}, Terminated: got.Done}
	if got.Reward != nil && len(*got.Reward) > 0 {
		r.Reward = *got.Reward
	}
	return r, nil
}

// rejected returns the result of a step that was not taken.
func (s *openEnvSession) rejected(text, why string) rules.Result {
	s.talk = append(s.talk, llm.Assistant(text), llm.User(why))
	return rules.Result{Reward: rules.Rewards{rules.DefaultAgent: 0}}
}

// Close ends the session.
func (s *openEnvSession) Close(ctx context.Context) error { return s.peer.close(ctx) }

// action returns the action of an answer.
func (s *openEnvSession) action(text string) (any, bool) {
	if field := s.host.mapping.Action; field != "" {
		return map[string]string{field: text}, true
	}
	raw := []byte(strings.TrimSpace(text))
	if rest, ok := bytes.CutPrefix(raw, []byte("```json")); ok {
		raw = bytes.TrimSpace(bytes.TrimSuffix(rest, []byte("```")))
	}
	if !json.Valid(raw) || raw[0] != '{' {
		return nil, false
	}
	return json.RawMessage(raw), true
}

// shown returns what an agent sees of an observation: a field as text, or all of it as JSON, and its picture.
func (s *openEnvSession) shown(observation json.RawMessage) llm.Message {
	var all map[string]json.RawMessage
	if json.Unmarshal(observation, &all) != nil {
		return llm.User(string(observation))
	}
	seen := all[s.host.mapping.Image]
	if len(seen) == 0 || string(seen) == "null" {
		return llm.User(s.read(all, observation))
	}
	delete(all, s.host.mapping.Image)
	rest, err := json.Marshal(all)
	if err != nil {
		return llm.User(string(observation))
	}
	m := llm.User(s.read(all, rest))
	image, err := readPicture(seen)
	if err != nil {
		m.Parts = append(m.Parts, llm.Part{Text: "\n(The picture cannot be shown: " + err.Error() + ")"})
		return m
	}
	m.Parts = append(m.Parts, llm.Part{Image: image})
	return m
}

// read returns the text of an observation.
func (s *openEnvSession) read(all map[string]json.RawMessage, observation json.RawMessage) string {
	if field := s.host.mapping.Observation; field != "" && len(all[field]) > 0 {
		return jsonText(all[field])
	}
	return string(observation)
}

// httpPeer is a peer over HTTP.
type httpPeer struct{ *Client }

func (p httpPeer) send(ctx context.Context, what string, data any, key string) (a openEnvAnswer, err error) {
	if what == "step" {
		data = map[string]any{"action": data, "request_id": key}
	}
	err = p.Do(ctx, http.MethodPost, "/"+what, key, data, &a)
	if e := llm.AsError(err); e != nil && e.Status == http.StatusUnprocessableEntity {
		e.Code = codeValidation
	}
	if err == nil && a.Observation == nil {
		err = noObservationError(p.Name(), what)
	}
	return a, err
}

// close does nothing: the server keeps its one environment.
func (httpPeer) close(context.Context) error { return nil }

func noObservationError(where, what string) error {
	return invalidError(where, errors.New(what+": the answer has no observation"))
}

var _ Host = (*openEnvHost)(nil)

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
	pingAfter = 30 * time.Second
	pongTime  = 10 * time.Second
)

// socket is a session's connection. The first message opens it. It is always read, so that pings are answered
// while a model thinks and a closed socket is noticed.
type socket struct {
	address   string
	conn      *websocket.Conn
	frames    chan []byte // closed when the socket ends
	stop      context.CancelFunc
	reader    sync.WaitGroup
	lastFrame time.Time
}

type frame struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data,omitempty"`
}

func (s *socket) send(ctx context.Context, what string, data any, _ string) (a openEnvAnswer, err error) {
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
		return a, interruptedError(ctx, s.address, err)
	}
	select {
	case text, ok := <-s.frames:
		s.lastFrame = time.Now()
		if !ok {
			return a, s.closedError(true)
		}
		return s.read(what, text)
	case <-ctx.Done():
		return a, interruptedError(ctx, s.address, ctx.Err())
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
	conn.SetReadLimit(maxAnswer)
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	frames := make(chan []byte, 1)
	s.conn, s.frames, s.stop, s.lastFrame = conn, frames, stop, time.Now()
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
			return s.closedError(false)
		}
		_, err := s.read("", text)
		return err
	default:
	}
	if time.Since(s.lastFrame) < pingAfter {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pongTime)
	defer cancel()
	if err := s.conn.Ping(ctx); err != nil {
		return s.closedError(false)
	}
	return nil
}

// read decodes an answer.
func (s *socket) read(what string, text []byte) (a openEnvAnswer, err error) {
	var f frame
	if err := json.Unmarshal(text, &f); err != nil {
		return a, decodeError(s.address, text, fmt.Errorf("%s: %w", what, describeDecode(text, err)))
	}
	switch f.Type {
	case "observation":
		if err := json.Unmarshal(f.Data, &a); err != nil {
			return a, invalidError(s.address, fmt.Errorf("%s: %w", what, describeDecode(f.Data, err)))
		}
		if a.Observation == nil {
			return a, noObservationError(s.address, what)
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
		return a, invalidError(s.address, fmt.Errorf("%s: a frame of type %.40q", what, f.Type))
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

// closedError returns the error of a connection that has ended; sent reports whether a message was on its way.
func (s *socket) closedError(sent bool) error {
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

// listTools asks for the tools of an environment that has an MCP server, over a socket. Other servers refuse, and are not
// asked again.
func (s *openEnvSession) listTools(ctx context.Context) error {
	if s.host.socket == "" || s.host.toolless.Load() {
		return nil
	}
	a, err := s.peer.send(ctx, "mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": map[string]any{}}, "")
	if e := llm.AsError(err); e != nil && e.Kind == llm.KindBadRequest {
		s.host.toolless.Store(true)
		return nil
	}
	if err != nil {
		return err
	}
	var listed struct {
		Tools rules.ToolList `json:"tools"`
	}
	if err := json.Unmarshal(a.Result, &listed); err != nil {
		return invalidError(s.host.Name(), fmt.Errorf("tools/list: %w", describeDecode(a.Result, err)))
	}
	s.tools = listed.Tools
	return nil
}

// callTools carries out the calls of an answer, each as a step of its own. Their rewards are added up.
func (s *openEnvSession) callTools(ctx context.Context, key string, answer llm.Message) (rules.Result, error) {
	s.talk = append(s.talk, answer)
	total, refused := 0.0, 0
	r := rules.Result{}
	for _, c := range answer.ToolCalls {
		if s.done {
			s.talk = append(s.talk, failedResult(c, "The episode has ended."))
			continue
		}
		arguments := json.RawMessage(c.Arguments)
		if strings.TrimSpace(c.Arguments) == "" {
			arguments = json.RawMessage("{}")
		}
		if !rules.IsObject(arguments) {
			refused, r.Rejected = refused+1, "the arguments are no JSON object"
			s.talk = append(s.talk, failedResult(c, "The arguments are no JSON object."))
			continue
		}
		got, err := s.peer.send(ctx, "step", map[string]any{"type": "call_tool", "tool_name": c.Name, "arguments": arguments}, key+"-"+c.ID)
		if e := llm.AsError(err); e != nil && e.Code == codeValidation {
			refused, r.Rejected = refused+1, e.Message
			s.talk = append(s.talk, failedResult(c, e.Message))
			continue
		}
		if err != nil {
			return rules.Result{}, err
		}
		s.done = got.Done
		if got.Reward != nil {
			for _, x := range *got.Reward {
				total += x
			}
		}
		r.Observation = got.Observation
		s.talk = append(s.talk, s.result(c, got.Observation))
	}
	if refused < len(answer.ToolCalls) {
		r.Rejected = ""
	}
	r.Reward, r.Terminated = rules.Rewards{rules.DefaultAgent: total}, s.done
	return r, nil
}

// result returns the message with the result of a tool.
func (s *openEnvSession) result(c llm.ToolCall, observation json.RawMessage) llm.Message {
	var got struct {
		Result json.RawMessage           `json:"result"`
		Error  *struct{ Message string } `json:"error"`
	}
	if json.Unmarshal(observation, &got) != nil || got.Result == nil && got.Error == nil {
		m := s.shown(observation)
		m.Role, m.ToolCallID = llm.RoleTool, c.ID
		return m
	}
	if got.Error != nil {
		return failedResult(c, got.Error.Message)
	}
	var inner struct {
		Content []struct{ Text string } `json:"content"`
		Data    json.RawMessage         `json:"data"`
	}
	text := jsonText(got.Result)
	if json.Unmarshal(got.Result, &inner) == nil && (len(inner.Content) > 0 || len(inner.Data) > 0) { // what MCP calls a result
		if text = jsonText(inner.Data); len(inner.Content) > 0 {
			text = ""
			for _, part := range inner.Content {
				text += part.Text
			}
		}
	}
	return llm.ToolResult(c.ID, text)
}

// jsonText returns a JSON text as what it says, and any other value as JSON.
func jsonText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// maxSide is the maximum width and height of a picture that is given as numbers.
const maxSide = 8192

// readPicture reads a picture of an observation: an address, a data: address, base64, or rows of pixels with one, three or
// four numbers from 0 to 255.
func readPicture(raw json.RawMessage) (*llm.Image, error) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return pixels(raw)
	}
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "data:") {
		return llm.ImageFrom(text)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("want an address, base64, or rows of pixels")
	}
	kind := http.DetectContentType(data)
	if !strings.HasPrefix(kind, "image/") {
		return nil, fmt.Errorf("its bytes are %s: want a PNG, JPEG, GIF or WebP", kind)
	}
	return &llm.Image{MediaType: kind, Data: data}, nil
}

// pixels makes a PNG of rows of pixels.
func pixels(raw json.RawMessage) (*llm.Image, error) {
	var rows [][][]uint8
	if json.Unmarshal(raw, &rows) != nil {
		var grey [][]uint8
		if err := json.Unmarshal(raw, &grey); err != nil {
			return nil, errors.New("want an address, base64, or rows of pixels with numbers from 0 to 255")
		}
		rows = nil // what the other form left
		for _, row := range grey {
			wide := make([][]uint8, len(row))
			for x, v := range row {
				wide[x] = []uint8{v}
			}
			rows = append(rows, wide)
		}
	}
	if len(rows) == 0 || len(rows) > maxSide || len(rows[0]) == 0 || len(rows[0]) > maxSide {
		return nil, fmt.Errorf("want 1 to %d rows and columns of pixels", maxSide)
	}
	out := image.NewNRGBA(image.Rect(0, 0, len(rows[0]), len(rows)))
	for y, row := range rows {
		if len(row) != len(rows[0]) {
			return nil, fmt.Errorf("row %d has %d pixels, and row 0 has %d", y, len(row), len(rows[0]))
		}
		for x, p := range row {
			c := color.NRGBA{A: 255}
			switch len(p) {
			case 1:
				c.R, c.G, c.B = p[0], p[0], p[0]
			case 3, 4:
				c.R, c.G, c.B = p[0], p[1], p[2]
				if len(p) == 4 {
					c.A = p[3]
				}
			default:
				return nil, fmt.Errorf("a pixel of %d numbers: want 1, 3 or 4", len(p))
			}
			out.SetNRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, out); err != nil {
		return nil, err
	}
	return &llm.Image{MediaType: "image/png", Data: b.Bytes()}, nil
}
