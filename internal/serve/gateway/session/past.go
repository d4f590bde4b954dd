package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"parley/internal/serve/gateway/format"
	"parley/internal/serve/gateway/ledger"
	"parley/llm"
)

// Past is what is recorded of a session, to be served again: each call once, to whoever
// asks the same.
type Past struct {
	mu     sync.Mutex
	calls  []ledger.Call
	served []bool
	same   map[[16]byte][]int
}

// newPast returns the past of calls. To replay, failures are a part of it; to go on, they
// are not, since asking again may do better. What a client did not stay for is never served.
func newPast(calls []ledger.Call, failures bool) *Past {
	p := &Past{same: map[[16]byte][]int{}}
	for i := range calls {
		c := &calls[i]
		if c.Wire.Status == 0 || c.Wire.Cut || c.Error != nil && !failures {
			continue
		}
		p.same[c.Digest] = append(p.same[c.Digest], len(p.calls))
		p.calls = append(p.calls, *c)
	}
	p.served = make([]bool, len(p.calls))
	return p
}

// Take returns the recorded call that asks the same, or nil. Each is taken once.
func (p *Past) Take(digest [16]byte) *ledger.Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.same[digest] {
		if !p.served[i] {
			p.served[i] = true
			return &p.calls[i]
		}
	}
	return nil
}

// Diverged says where a call that is not recorded differs from the one that would have
// come next.
func (p *Past) Diverged(c *format.Call) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := slices.Index(p.served, false)
	if next < 0 {
		return fmt.Sprintf("all %d recorded calls of it were served, and this is one more", len(p.calls))
	}
	was := &p.calls[next]
	place := fmt.Sprintf("turn %d differs from what was recorded: ", was.Turn)
	switch {
	case was.Label != string(c.API):
		return place + fmt.Sprintf("it was a call of %s, and is one of %s", was.Label, c.API)
	case was.Request == nil:
		return place + "something else was asked for"
	}
	if where := differ(was.Request, &c.Request); where != "" {
		return place + where
	}
	return place + "in something that is not a part of the record"
}

// differ says where two requests differ first, or "". Models come last: the record has the
// one that was really asked, by its provider's name, and a request may have an alias of it.
func differ(was, is *llm.Request) string {
	for i := range min(len(was.Messages), len(is.Messages)) {
		a, b := &was.Messages[i], &is.Messages[i]
		if a.Role != b.Role {
			return fmt.Sprintf("messages[%d].role: it was %s, and is %s", i, a.Role, b.Role)
		}
		if x, y := a.Text(), b.Text(); x != y {
			return fmt.Sprintf("messages[%d].content: %s", i, texts(x, y))
		}
		if x, y := marshal(a), marshal(b); !bytes.Equal(x, y) {
			return fmt.Sprintf("messages[%d]: %s", i, texts(string(x), string(y)))
		}
	}
	if len(was.Messages) != len(is.Messages) {
		return fmt.Sprintf("messages: there were %d, and are %d", len(was.Messages), len(is.Messages))
	}
	a, b := fields(was), fields(is)
	for _, key := range append(keysOf(a), keysOf(b)...) {
		if !bytes.Equal(a[key], b[key]) {
			return fmt.Sprintf("%s: %s", key, texts(string(a[key]), string(b[key])))
		}
	}
	if is.Model != was.Model && !strings.HasSuffix(was.Model, "/"+is.Model) {
		return fmt.Sprintf("model: %s was asked, and %q is", was.Model, is.Model)
	}
	return ""
}

// fields are what a request says beside its messages.
func fields(r *llm.Request) map[string]json.RawMessage {
	c := *r
	c.Messages, c.Model = nil, ""
	extra := c.Extra
	c.Extra = nil
	out := map[string]json.RawMessage{}
	_ = json.Unmarshal(marshal(c), &out) // what was just written can be read
	maps.Copy(out, extra)
	return out
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

func keysOf(m map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// texts shows two texts from a little before where they part.
func texts(was, is string) string {
	at := 0
	for at < min(len(was), len(is)) && was[at] == is[at] {
		at++
	}
	from := max(0, at-20)
	return fmt.Sprintf("from character %d on it was %q, and is %q", at, excerpt(was, from), excerpt(is, from))
}

func excerpt(s string, from int) string {
	const most = 60
	s = s[min(from, len(s)):]
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
