package simhttp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/body"
)

// Content is Google's object of a stored prompt. Its parts are never shown again.
type Content struct {
	Name        string    `json:"name,omitempty"`
	Model       string    `json:"model"`
	DisplayName string    `json:"displayName,omitempty"`
	CreateTime  time.Time `json:"createTime,omitzero"`
	UpdateTime  time.Time `json:"updateTime,omitzero"`
	ExpireTime  time.Time `json:"expireTime,omitzero"`
	Usage       usage     `json:"usageMetadata,omitzero"`
}

type usage struct {
	Tokens int `json:"totalTokenCount"`
}

// creation is the request that stores a prompt.
type creation struct {
	Content
	TTL      string          `json:"ttl"`
	System   json.RawMessage `json:"systemInstruction"`
	Contents json.RawMessage `json:"contents"`
	Tools    json.RawMessage `json:"tools"`
	Choice   json.RawMessage `json:"toolConfig"`
}

const (
	least    = 1024 // tokens
	maxBytes = 32 << 20
	maxKept  = 1000
)

// Read reads the body of a request.
type Read func([]byte) (*Ask, *Error)

// promptStore simulates Gemini's cached contents: prompts that a client stores, and names in its
// requests. It keeps them in memory, and does not find those that have expired.
type promptStore struct {
	read  Read
	newID func(prefix string) string

	mu   sync.Mutex
	kept []*creation // by creation
}

// newPromptStore returns a promptStore for requests that read reads.
func newPromptStore(read Read, newID func(prefix string) string) *promptStore {
	return &promptStore{read: read, newID: newID}
}

// Routes adds the endpoints of stored prompts.
func (s *promptStore) Routes(handle func(pattern string, style sim.Style, e Func)) {
	handle("POST /v1beta/cachedContents", sim.Google, s.create)
	handle("GET /v1beta/cachedContents", sim.Google, s.list)
	handle("GET /v1beta/cachedContents/{id}", sim.Google, s.one(func(*creation) *Error { return nil }))
	handle("DELETE /v1beta/cachedContents/{id}", sim.Google, s.remove)
	handle("PATCH /v1beta/cachedContents/{id}", sim.Google, s.prolong)
}

// Read reads a request. If that names a stored prompt, it is read as if it had it.
func (s *promptStore) Read(b []byte) (*Ask, *Error) {
	if !bytes.Contains(b, []byte(`"cachedContent"`)) {
		return s.read(b)
	}
	var members map[string]json.RawMessage
	var name string
	if json.Unmarshal(b, &members) != nil || json.Unmarshal(members["cachedContent"], &name) != nil || name == "" {
		return s.read(b) // it says what is wrong
	}
	for _, member := range []string{"systemInstruction", "tools", "toolConfig"} {
		if !body.IsNull(members[member]) {
			return nil, &Error{Status: http.StatusBadRequest, Type: "INVALID_ARGUMENT", Message: "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config. Proposed fix: move those values to CachedContent from GenerateContent request."}
		}
	}
	c := s.find(name)
	if c == nil {
		return nil, missing()
	}
	a, err := s.joined(c, members)
	if err == nil {
		a.Stored = c.Usage.Tokens
	}
	return a, err
}

func missing() *Error {
	return &Error{Status: http.StatusForbidden, Type: "PERMISSION_DENIED", Message: "CachedContent not found (or permission denied)"}
}

// joined reads a request with the parts of a stored prompt.
func (s *promptStore) joined(c *creation, members map[string]json.RawMessage) (*Ask, *Error) {
	for name, v := range map[string]json.RawMessage{"systemInstruction": c.System, "tools": c.Tools, "toolConfig": c.Choice} {
		if !body.IsNull(v) {
			members[name] = v
		}
	}
	delete(members, "cachedContent")
	var before, after []json.RawMessage
	if !body.IsNull(c.Contents) && json.Unmarshal(c.Contents, &before) != nil || json.Unmarshal(members["contents"], &after) != nil {
		return nil, invalid("", "Invalid value at 'contents': expected an array")
	}
	turns, err := json.Marshal(append(before, after...))
	if err == nil {
		members["contents"] = turns
		turns, err = json.Marshal(members)
	}
	if err != nil {
		return nil, invalid("", "The request cannot be read: %s", err)
	}
	return s.read(turns)
}

// find returns a prompt that has not expired, or nil.
func (s *promptStore) find(name string) *creation {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = slices.DeleteFunc(s.kept, func(c *creation) bool { return !time.Now().Before(c.ExpireTime) })
	for _, c := range s.kept {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (s *promptStore) create(w http.ResponseWriter, r *http.Request) *Error {
	var c creation
	if err := s.decode(w, r, &c); err != nil {
		return err
	}
	now := time.Now().UTC()
	c.CreateTime, c.UpdateTime = now, now
	if c.Model == "" {
		return invalid("", "* CreateCachedContentRequest.cached_content.model: model is not specified")
	}
	if err := c.expire(now); err != nil {
		return err
	}
	a, err := s.joined(&c, map[string]json.RawMessage{"contents": json.RawMessage(`[{"role":"user","parts":[{"text":"x"}]}]`)})
	if err != nil {
		return err
	}
	for _, m := range a.Request.Messages[:len(a.Request.Messages)-1] {
		c.Usage.Tokens += 2 + sim.CountTokens(m.Text())
	}
	if c.Usage.Tokens < least {
		return invalid("", "Cached content is too small. total_token_count=%d, min_total_token_count=%d", c.Usage.Tokens, least)
	}
	c.Name = "cachedContents/" + s.newID("c")
	s.find("") // forgets what has expired
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) >= maxKept {
		return invalid("", "The simulation keeps at most %d cached contents.", maxKept)
	}
	s.kept = append(s.kept, &c)
	writeJSON(w, c.Content)
	return nil
}

func (s *promptStore) decode(w http.ResponseWriter, r *http.Request, c *creation) *Error {
	var buf bytes.Buffer
	if err := readBody(w, r, &buf, maxBytes, sim.Google); err != nil {
		return err
	}
	return decodeBody(buf.Bytes(), c, false)
}

// expire sets the time until which the prompt is kept: an hour, if the client says nothing.
func (c *creation) expire(now time.Time) *Error {
	if c.TTL == "" && c.ExpireTime.IsZero() {
		c.TTL = "3600s"
	}
	if c.TTL != "" {
		d, err := time.ParseDuration(c.TTL)
		if err != nil || d <= 0 || !strings.HasSuffix(c.TTL, "s") {
			return invalid("", "Invalid value at 'cached_content.ttl': %q", c.TTL)
		}
		c.ExpireTime = now.Add(d)
	}
	return nil
}

func (s *promptStore) list(w http.ResponseWriter, _ *http.Request) *Error {
	s.find("")
	s.mu.Lock()
	defer s.mu.Unlock()
	var page struct {
		Contents []Content `json:"cachedContents,omitempty"`
	}
	for _, c := range s.kept {
		page.Contents = append(page.Contents, c.Content)
	}
	writeJSON(w, page)
	return nil
}

// one is an endpoint that does something with one prompt and shows it.
func (s *promptStore) one(do func(*creation) *Error) Func {
	return func(w http.ResponseWriter, r *http.Request) *Error {
		c := s.find("cachedContents/" + r.PathValue("id"))
		if c == nil {
			return missing()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := do(c); err != nil {
			return err
		}
		writeJSON(w, c.Content)
		return nil
	}
}

func (s *promptStore) remove(w http.ResponseWriter, r *http.Request) *Error {
	c := s.find("cachedContents/" + r.PathValue("id"))
	if c == nil {
		return missing()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = slices.DeleteFunc(s.kept, func(o *creation) bool { return o == c })
	writeJSON(w, struct{}{})
	return nil
}

// prolong changes the time until which a prompt is kept, and nothing else, as Google does.
func (s *promptStore) prolong(w http.ResponseWriter, r *http.Request) *Error {
	var with creation
	if err := s.decode(w, r, &with); err != nil {
		return err
	}
	return s.one(func(c *creation) *Error {
		now := time.Now().UTC()
		if err := with.expire(now); err != nil {
			return err
		}
		c.ExpireTime, c.UpdateTime = with.ExpireTime, now
		return nil
	})(w, r)
}
