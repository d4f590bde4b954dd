package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/internal/kit/text"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// maxDifferences is how many differences of two requests are reported.
const maxDifferences = 3

// differences describes how two requests differ, or returns "". Models come last: the record has the model
// that was asked, with its provider, and a request may have an alias.
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
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	for _, key := range slices.Compact(names) {
		if !bytes.Equal(a[key], b[key]) {
			all = append(all, fmt.Sprintf("%s: %s", key, texts(string(a[key]), string(b[key]))))
		}
	}
	if !sameModel(was.Model, is.Model, aliases) {
		all = append(all, fmt.Sprintf("model: it was %s, and is %q", was.Model, is.Model))
	}
	if n := len(all) - maxDifferences; n > 0 {
		all = append(all[:maxDifferences], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, "; ")
}

// sameModel reports whether a request for a model means the recorded one, which has its provider's name.
func sameModel(was, is string, aliases map[string]string) bool {
	return is == was || aliases[is] == was || strings.HasSuffix(was, "/"+is)
}

// differ describes the first difference of two messages, or returns "".
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

// fields returns the members of a request except its messages.
func fields(r *llm.Request) map[string]json.RawMessage {
	c := *r
	c.Messages, c.Model = nil, ""
	extra := c.Extra
	c.Extra = nil
	out := map[string]json.RawMessage{}
	_ = json.Unmarshal(marshal(c), &out) // just encoded
	for name, v := range extra {
		if !format.Personal(name) { // it does not count
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

// texts shows two texts from shortly before they differ.
func texts(was, is string) string {
	at := 0
	for at < min(len(was), len(is)) && was[at] == is[at] {
		at++
	}
	from := max(0, at-20)
	return fmt.Sprintf("from character %d on it was %q, and is %q", at, text.Excerpt(was[from:], 60), text.Excerpt(is[from:], 60))
}
