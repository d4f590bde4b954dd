// Part match compares requests with recorded ones that are not equal byte for byte.
//
// Rules say what to ignore: texts that match a regular expression, members at a JSON path, white space, the
// order of messages. Words measure how similar two requests are.
//
// It promises that nil Rules ignore nothing; that requests with equal digests differ only as the rules allow;
// and that the work for one request is bounded by maxText and the number of rules. It is safe for concurrent
// use.
//
// It is not for choosing a recorded call: package session does that.

package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/llm"
)

const (
	// maxText is the size in bytes of the largest request that rules apply to. A larger one is compared
	// exactly.
	maxText = 8 << 20

	maxRules = 32
	maxRule  = 1 << 10 // bytes of one rule
)

// Rules say what to ignore.
type Rules struct {
	texts []*regexp.Regexp
	paths []path
	space bool
	order bool
	model bool
}

// forms lists the forms of a rule, for help texts and errors.
const forms = "re:REGEXP, path:$.NAME.NAME[*], whitespace or order"

// Personal reports whether a member of a request only says whose call it is.
func Personal(name string) bool {
	switch name {
	case "user", "metadata", "safety_identifier", "prompt_cache_key", "session_id", "cache_salt":
		return true
	default:
		return false
	}
}

// Parse reads rules. It returns nil for an empty list.
func Parse(list []string) (*Rules, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if len(list) > maxRules {
		return nil, fmt.Errorf("match: %d rules: at most %d are allowed; join regular expressions with |", len(list), maxRules)
	}
	r := &Rules{}
	for _, rule := range list {
		if err := r.add(rule); err != nil {
			return nil, fmt.Errorf("match: %w", err)
		}
	}
	return r, nil
}

func (r *Rules) add(rule string) error {
	if len(rule) > maxRule {
		return fmt.Errorf("rule %q…: it has %d bytes; at most %d are allowed", rule[:40], len(rule), maxRule)
	}
	kind, value, _ := strings.Cut(rule, ":")
	switch {
	case rule == "whitespace":
		r.space = true
	case rule == "order":
		r.order = true
	case kind == "re" && value != "":
		re, err := regexp.Compile(value)
		if err != nil {
			return fmt.Errorf("rule %q: %w; the syntax is https://golang.org/s/re2syntax", rule, err)
		}
		r.texts = append(r.texts, re)
	case kind == "path" && value != "":
		p, err := parsePath(value)
		if err != nil {
			return fmt.Errorf("rule %q: %w", rule, err)
		}
		if len(p) == 1 && p[0].name == "model" {
			r.model = true
			return nil
		}
		r.paths = append(r.paths, p)
	default:
		return fmt.Errorf("unknown rule %q; want %s", rule, forms)
	}
	return nil
}

// AnyModel reports whether the model of a request is ignored.
func (r *Rules) AnyModel() bool { return r != nil && r.model }

// Digest hashes what the rules leave of a request, without its model. ok is false if the request is too large.
func (r *Rules) Digest(api string, q *llm.Request) (sum [sha256.Size]byte, ok bool) {
	if size(q) > maxText {
		return sum, false
	}
	doc := r.reduce(q)
	if list, ok := doc["messages"].([]any); ok && r != nil && r.order {
		slices.SortFunc(list, func(a, b any) int { return bytes.Compare(encode(a), encode(b)) })
	}
	h := sha256.New()
	h.Write([]byte(api + "\x00"))
	h.Write(encode(doc))
	h.Sum(sum[:0])
	return sum, true
}

// Continues reports whether a request begins with all messages of an earlier one and has more.
func (r *Rules) Continues(q, earlier *llm.Request) bool {
	n := len(earlier.Messages)
	if n == 0 || n >= len(q.Messages) || size(q) > maxText || size(earlier) > maxText {
		return false
	}
	for i := range n {
		a, b := &llm.Request{Messages: q.Messages[i : i+1]}, &llm.Request{Messages: earlier.Messages[i : i+1]}
		if q.Messages[i].Role != earlier.Messages[i].Role || !bytes.Equal(encode(r.reduce(a)), encode(r.reduce(b))) {
			return false
		}
	}
	return true
}

// reduce returns the members of a request without what the rules ignore.
func (r *Rules) reduce(q *llm.Request) map[string]any {
	c := *q
	c.Model, c.Extra, c.Sample = "", nil, 0
	doc, _ := decode(encode(c)).(map[string]any)
	if doc == nil {
		doc = map[string]any{} // not reached: a request is an object
	}
	for name, v := range q.Extra {
		if !Personal(name) {
			doc[name] = decode(v)
		}
	}
	if r == nil {
		return doc
	}
	for _, p := range r.paths {
		p.remove(doc)
	}
	for name, v := range doc {
		doc[name] = r.clean(v)
	}
	return doc
}

// clean applies the rules for texts to every string of a value, except roles.
func (r *Rules) clean(v any) any {
	switch v := v.(type) {
	case string:
		return r.text(v)
	case []any:
		for i := range v {
			v[i] = r.clean(v[i])
		}
	case map[string]any:
		for name := range v {
			if name != "role" {
				v[name] = r.clean(v[name])
			}
		}
	}
	return v
}

func (r *Rules) text(s string) string {
	for _, re := range r.texts {
		s = re.ReplaceAllLiteralString(s, "")
	}
	if r.space {
		s = strings.Join(strings.Fields(s), " ")
	}
	return s
}

// size returns the approximate amount of text in a request.
func size(q *llm.Request) (n int) {
	for i := range q.Messages {
		m := &q.Messages[i]
		for _, p := range m.Parts {
			n += len(p.Text)
			if p.Image != nil {
				n += len(p.Image.URL) + len(p.Image.Data)
			}
			if p.File != nil {
				n += len(p.File.URL) + len(p.File.Data)
			}
		}
		for _, t := range m.Thoughts {
			n += len(t.Text) + len(t.Opaque) + len(t.Signature)
		}
		for _, t := range m.ToolCalls {
			n += len(t.Arguments)
		}
	}
	for _, t := range q.Tools {
		n += len(t.Description) + len(t.Parameters)
	}
	for _, v := range q.Extra {
		n += len(v)
	}
	return n
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error()) // not reached: it was JSON before
	}
	return b
}

// decode reads a value and keeps its numbers as written.
func decode(b []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return string(b)
	}
	return v
}
