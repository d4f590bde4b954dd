package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"parley/internal/kit/text"
	"parley/llm"
)

const (
	// maxText is the size in bytes of the largest request that rules apply to. A larger one is compared
	// exactly.
	maxText = 8 << 20

	maxRules    = 32
	maxRuleSize = 1 << 10 // bytes of one rule
)

// Rules say what to ignore when a request is compared with a recorded one: texts that match a regular expression,
// members at a JSON path, white space, the order of messages. They are safe for concurrent use.
//
// Nil Rules ignore nothing. Requests with equal digests differ only as the rules allow. The work for one request is
// bounded by maxText and the number of rules.
type Rules struct {
	texts []*regexp.Regexp
	paths []jsonPath
	space bool
	order bool
	model bool
}

// ruleForms lists the forms of a rule, for help texts and errors.
const ruleForms = "re:REGEXP, path:$.NAME.NAME[*], whitespace or order"

// programRules are what known programs change each time they run. docs/how-to/gateway.md lists them.
func programRules() []string {
	return []string{
		"path:$.client_metadata", // Codex
		`re:Chunk ID: [0-9a-f]+\nWall time: [0-9.]+ seconds`,
		`re:Process running with session ID [0-9]+`,
		`re:<current_date>[0-9-]+</current_date>`,
		`re:x-anthropic-billing-header: [^\n]*`, // Claude Code
		`re:Today's date is [0-9-]+`,
		`re:running in background with ID: \w+\. Output is being written to: \S+`,
		`re:Today's date: \w+ \w+ [0-9]+ [0-9]+`,     // opencode
		`re:Today's date is \w+, \w+ [0-9]+, [0-9]+`, // Gemini CLI
	}
}

// personal reports whether a member of a request only says whose call it is.
func personal(name string) bool {
	switch name {
	case "user", "metadata", "safety_identifier", "prompt_cache_key", "session_id", "cache_salt":
		return true
	default:
		return false
	}
}

// ParseRules reads rules, and adds those for known programs.
func ParseRules(list []string) (*Rules, error) {
	if len(list) > maxRules {
		return nil, fmt.Errorf("%d rules: at most %d are allowed; join regular expressions with |", len(list), maxRules)
	}
	r := &Rules{}
	for _, rule := range append(programRules(), list...) {
		if err := r.add(rule); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Rules) add(rule string) error {
	if len(rule) > maxRuleSize {
		return fmt.Errorf("rule %q…: it has %d bytes; at most %d are allowed", rule[:40], len(rule), maxRuleSize)
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
		return fmt.Errorf("unknown rule %q; want %s", rule, ruleForms)
	}
	return nil
}

// AnyModel reports whether the model of a request is ignored.
func (r *Rules) AnyModel() bool { return r != nil && r.model }

// Digest hashes what the rules leave of a request, without its model. ok is false if the request is too large.
func (r *Rules) Digest(api string, q *llm.Request) (sum [sha256.Size]byte, ok bool) {
	if textSize(q) > maxText {
		return sum, false
	}
	h := sha256.New()
	h.Write([]byte(api + "\x00"))
	h.Write(encodeJSON(r.reduce(q)))
	h.Sum(sum[:0])
	return sum, true
}

// reduce returns the members of a request without what the rules ignore.
func (r *Rules) reduce(q *llm.Request) map[string]any {
	c := *q
	c.Model, c.Extra, c.Sample = "", nil, 0
	doc, _ := decodeJSON(encodeJSON(c)).(map[string]any)
	if doc == nil {
		doc = map[string]any{} // not reached: a request is an object
	}
	for name, v := range q.Extra {
		if !personal(name) {
			doc[name] = decodeJSON(v)
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
	if list, ok := doc["messages"].([]any); ok && r.order {
		slices.SortFunc(list, func(a, b any) int { return bytes.Compare(encodeJSON(a), encodeJSON(b)) })
	}
	return doc
}

// Differences describes where two requests differ, messages first, in what the rules leave of them. It does not compare their models.
func (r *Rules) Differences(was, is *llm.Request) (out []string) {
	if max(textSize(was), textSize(is)) > maxText {
		r = nil
	}
	a, b := r.reduce(was), r.reduce(is)
	x, _ := a["messages"].([]any)
	y, _ := b["messages"].([]any)
	for i := range min(len(x), len(y)) {
		if d := difference(fmt.Sprintf("messages[%d]", i), x[i], y[i]); d != "" {
			out = append(out, d)
		}
	}
	if len(x) != len(y) {
		out = append(out, fmt.Sprintf("messages: there were %d, and are %d", len(x), len(y)))
	}
	delete(a, "messages")
	delete(b, "messages")
	for _, name := range names(a, b) {
		if x, y := encodeJSON(a[name]), encodeJSON(b[name]); !bytes.Equal(x, y) {
			out = append(out, name+": "+textDifference(string(x), string(y)))
		}
	}
	return out
}

// names returns the names of the members of two objects, in order.
func names(a, b map[string]any) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

// difference describes the first difference of two values, or returns "".
func difference(at string, a, b any) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		if was, ok := x["role"].(string); ok && was != y["role"] {
			return fmt.Sprintf("%s.role: it was %s, and is %v", at, was, y["role"])
		}
		for _, name := range names(x, y) {
			if d := difference(at+"."+name, x[name], y[name]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		y, ok := b.([]any)
		if !ok {
			break
		}
		for i := range min(len(x), len(y)) {
			if d := difference(fmt.Sprintf("%s[%d]", at, i), x[i], y[i]); d != "" {
				return d
			}
		}
		if len(x) == len(y) {
			return ""
		}
		return fmt.Sprintf("%s: there were %d, and are %d", at, len(x), len(y))
	case string:
		if y, ok := b.(string); ok && x != y {
			return at + ": " + textDifference(x, y)
		}
	}
	if x, y := encodeJSON(a), encodeJSON(b); !bytes.Equal(x, y) {
		return at + ": " + textDifference(string(x), string(y))
	}
	return ""
}

// textDifference shows two texts from shortly before they differ.
func textDifference(was, is string) string {
	at := 0
	for at < min(len(was), len(is)) && was[at] == is[at] {
		at++
	}
	from := max(0, at-20)
	return fmt.Sprintf("around byte %d it was %q, and is %q", at, text.Excerpt(was[from:], 60), text.Excerpt(is[from:], 60))
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

// textSize returns the approximate amount of text in a request.
func textSize(q *llm.Request) (n int) {
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

func encodeJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error()) // not reached: it was JSON before
	}
	return b
}

// decodeJSON reads a value and keeps its numbers as written.
func decodeJSON(b []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return string(b)
	}
	return v
}

// jsonPath selects members of a request. It is a subset of JSONPath.
type jsonPath []pathStep

// pathStep selects a member or an element of a value or, with all, every one.
type pathStep struct {
	name  string
	index int // -1: select by name
	all   bool
}

const maxPathSteps = 32

// recordedName returns the recorded name of a member that clients call differently.
func recordedName(name string) string {
	switch name {
	case "max_completion_tokens", "max_output_tokens":
		return "max_tokens"
	case "reasoning_effort":
		return "effort"
	case "response_format":
		return "schema"
	case "service_tier":
		return "tier"
	case "input":
		return "messages"
	default:
		return name
	}
}

// parsePath reads $.name, $['name'], $.list[0], $.list[*] and combinations of these.
func parsePath(s string) (jsonPath, error) {
	rest, ok := strings.CutPrefix(s, "$")
	if !ok {
		return nil, errors.New("a path begins with $, as $.metadata.user")
	}
	var p jsonPath
	for rest != "" {
		one, after, err := nextStep(rest)
		if err != nil {
			return nil, fmt.Errorf("at character %d: %w", len(s)-len(rest)+1, err)
		}
		p, rest = append(p, one), after
	}
	switch {
	case len(p) == 0:
		return nil, errors.New("it leads to the whole request; name a member, as $.metadata.user")
	case len(p) > maxPathSteps:
		return nil, fmt.Errorf("it has %d steps; at most %d are allowed", len(p), maxPathSteps)
	}
	p[0].name = recordedName(p[0].name)
	return p, nil
}

func nextStep(s string) (one pathStep, rest string, err error) {
	if name, ok := strings.CutPrefix(s, "."); ok {
		end := strings.IndexAny(name, ".[")
		if end < 0 {
			end = len(name)
		}
		if name, rest = name[:end], name[end:]; name == "" {
			return one, "", errors.New("a name is missing after the dot; $..name is not supported, write every step")
		}
		return pathStep{name: name, index: -1, all: name == "*"}, rest, nil
	}
	inside, ok := strings.CutPrefix(s, "[")
	if !ok {
		return one, "", fmt.Errorf("%q: want .name, [N] or [*]", s)
	}
	if quoted, ok := strings.CutPrefix(inside, "'"); ok {
		name, rest, ok := strings.Cut(quoted, "']")
		if !ok || name == "" {
			return one, "", errors.New("want ['name']")
		}
		return pathStep{name: name, index: -1}, rest, nil
	}
	inside, rest, ok = strings.Cut(inside, "]")
	if !ok {
		return one, "", errors.New("the bracket is not closed")
	}
	if inside == "*" {
		return pathStep{index: -1, all: true}, rest, nil
	}
	n, err := strconv.ParseUint(inside, 10, 31)
	if err != nil {
		return one, "", fmt.Errorf("[%s]: want a number from 0, *, or a name in single quotes; filters and slices are not supported", inside)
	}
	return pathStep{index: int(n)}, rest, nil
}

// remove removes what p selects from v. An element of a list becomes null, so that the others keep their
// index.
func (p jsonPath) remove(v any) {
	one, last := p[0], len(p) == 1
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			switch {
			case one.index >= 0 || !one.all && name != one.name:
			case last:
				delete(v, name)
			default:
				p[1:].remove(member)
			}
		}
	case []any:
		for i, element := range v {
			switch {
			case !one.all && i != one.index:
			case last:
				v[i] = nil
			default:
				p[1:].remove(element)
			}
		}
	}
}

// Words is the set of words of a request, with counts. It measures how similar two requests are.
type Words struct {
	count map[uint64]int32
	all   int
}

// maxWords is how many words of a request are counted, starting with its last message.
const maxWords = 1 << 14

// Words counts the words of a request's messages that the rules leave.
func (r *Rules) Words(q *llm.Request) *Words {
	w := &Words{count: map[uint64]int32{}}
	if textSize(q) > maxText {
		return w
	}
	for i := len(q.Messages) - 1; i >= 0 && w.all < maxWords; i-- {
		m := &q.Messages[i]
		for _, p := range m.Parts {
			w.add(r, p.Text)
		}
		for _, t := range m.ToolCalls {
			w.add(r, t.Name)
			w.add(r, t.Arguments)
		}
	}
	return w
}

// add counts the words of a text: runs of letters and digits. In scripts without spaces between words, each
// character is a word.
func (w *Words) add(r *Rules, s string) {
	if r != nil {
		s = r.text(s)
	}
	const seed, prime = 14695981039346656037, 1099511628211 // of FNV-1a
	hash, inside := uint64(seed), false
	end := func() {
		if inside {
			w.count[hash]++
			w.all++
		}
		hash, inside = seed, false
	}
	for _, c := range s {
		if w.all >= maxWords {
			return
		}
		word := unicode.IsLetter(c) || unicode.IsDigit(c)
		if !word || c >= 0x2e80 {
			end()
		}
		if word {
			hash, inside = (hash^uint64(c))*prime, true
		}
		if c >= 0x2e80 {
			end()
		}
	}
	end()
}

// Share returns the share of words that both have in common, from 0 to 1.
func (w *Words) Share(other *Words) float64 {
	if w.all+other.all == 0 {
		return 1
	}
	same := 0
	for hash, n := range w.count {
		same += int(min(n, other.count[hash]))
	}
	return 2 * float64(same) / float64(w.all+other.all)
}
