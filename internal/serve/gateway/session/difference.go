package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/internal/serve/gateway/match"
	"parley/llm"
)

// maxDifferences is how many differences of two requests are told.
const maxDifferences = 3

// differences says where two requests differ, or "". Models come last: the record has the
// one that was really asked, by its provider's name, and a request may have an alias of it.
func differences(was, is *llm.Request, aliases map[string]string) string {
	var all []string
	for i := range min(len(was.Messages), len(is.Messages)) {
		if d := differ(&was.Messages[i], &is.Messages[i]); d != "" {
			all = append(all, fmt.Sprintf("messages[%d]%s", i, d))
		}
	}
	if len(was.Messages) != len(is.Messages) {
		all = append(all, fmt.Sprintf("messages: there were %d, and are %d", len(was.Messages), len(is.Messages)))
	}
	a, b := fields(was), fields(is)
	names := append(keysOf(a), keysOf(b)...)
	slices.Sort(names)
	for _, key := range slices.Compact(names) {
		if !bytes.Equal(a[key], b[key]) {
			all = append(all, fmt.Sprintf("%s: %s", key, texts(string(a[key]), string(b[key]))))
		}
	}
	if !sameModel(was.Model, is.Model, aliases) {
		all = append(all, fmt.Sprintf("model: %s was asked, and %q is", was.Model, is.Model))
	}
	if n := len(all) - maxDifferences; n > 0 {
		all = append(all[:maxDifferences], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, "; ")
}

// sameModel says whether a client that asks for a model means the one that was asked, which
// the record has with its provider's name.
func sameModel(was, is string, aliases map[string]string) bool {
	return is == was || aliases[is] == was || strings.HasSuffix(was, "/"+is)
}

// differ says where two messages differ first, or "".
func differ(a, b *llm.Message) string {
	if a.Role != b.Role {
		return fmt.Sprintf(".role: it was %s, and is %s", a.Role, b.Role)
	}
	if x, y := a.Text(), b.Text(); x != y {
		return ".content: " + texts(x, y)
	}
	if x, y := marshal(a), marshal(b); !bytes.Equal(x, y) {
		return ": " + texts(string(x), string(y))
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
	for name, v := range extra {
		if !match.Personal(name) { // it may differ
			out[name] = v
		}
	}
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
