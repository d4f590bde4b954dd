package format

import (
	"bytes"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
)

// SetModel returns the body b with another model and every other byte unchanged.
func SetModel(b []byte, model string) []byte {
	return replace(b, "model", body.String(nil, model))
}

// AskUsage returns the body b of a streamed chat completion with a request for the usage and every other byte
// unchanged.
func AskUsage(b []byte) []byte {
	const ask = `{"include_usage":true}`
	if options := request.Member(b, "stream_options"); options != nil {
		if request.Member(options, "include_usage") != nil {
			return replace(b, "stream_options", replace(options, "include_usage", []byte("true")))
		}
		return replace(b, "stream_options", insert(options, `"include_usage":true`))
	}
	if has(b, "stream_options") { // null
		return replace(b, "stream_options", []byte(ask))
	}
	return insert(b, `"stream_options":`+ask)
}

// ForVertex returns the body b of messages as Vertex AI wants it: with its version and without the model, which is in the address.
func ForVertex(b []byte) []byte {
	members := make([]byte, 0, len(b)+48)
	members = append(members, `{"anthropic_version":"`+provider.VertexVersion+`"`...)
	body.Members(b, func(key, value []byte) bool {
		if string(key) != "model" && string(key) != "anthropic_version" {
			members = append(append(append(members, ',', '"'), key...), '"', ':')
			members = append(members, value...)
		}
		return true
	})
	return append(members, '}')
}

// CutIDs returns the body b with each id of a tool call and of its result cut off before mark, and every other byte unchanged.
func CutIDs(b []byte, mark string) []byte {
	if !bytes.Contains(b, []byte(mark)) {
		return b
	}
	out, from := make([]byte, 0, len(b)), 0
	cut := func(id []byte) {
		if end := bytes.Index(id, []byte(mark)); end > 0 && id[0] == '"' {
			at := cap(b) - cap(id) // id is a slice of b
			out = append(append(out, b[from:at+end]...), '"')
			from = at + len(id)
		}
	}
	body.Members(b, func(key, list []byte) bool {
		if string(key) == "messages" || string(key) == "input" {
			body.Elements(list, func(message []byte) bool {
				idsOf(message, cut)
				return true
			})
		}
		return true
	})
	return append(out, b[from:]...)
}

// idsOf calls each with the ids of the tool calls and their results in a message of any format, in their order.
func idsOf(message []byte, each func(id []byte)) {
	body.Members(message, func(key, value []byte) bool {
		switch string(key) {
		case "tool_call_id", "call_id":
			each(value)
		case "tool_calls":
			body.Elements(value, func(call []byte) bool {
				return body.Members(call, func(key, value []byte) bool {
					if string(key) == "id" {
						each(value)
					}
					return true
				})
			})
		case "content":
			body.Elements(value, func(block []byte) bool {
				kind := request.Str(block, "type")
				return body.Members(block, func(key, value []byte) bool {
					if string(key) == "id" && kind == "tool_use" || string(key) == "tool_use_id" && kind == "tool_result" {
						each(value)
					}
					return true
				})
			})
		}
		return true
	})
}

func has(b []byte, name string) (found bool) {
	body.Members(b, func(key, _ []byte) bool {
		found = found || string(key) == name
		return true
	})
	return found
}

// insert adds a first member to the object b.
func insert(b []byte, member string) []byte {
	for i, c := range b {
		if c != '{' {
			continue
		}
		out := append(make([]byte, 0, len(b)+len(member)+1), b[:i+1]...)
		out = append(out, member...)
		if empty := body.Members(b, func(_, _ []byte) bool { return false }); !empty {
			out = append(out, ',')
		}
		return append(out, b[i+1:]...)
	}
	return b
}

// replace sets the value of a member, wherever it occurs.
func replace(b []byte, name string, value []byte) []byte {
	out, from := make([]byte, 0, len(b)+len(value)), 0
	body.Members(b, func(key, old []byte) bool {
		if string(key) == name {
			at := cap(b) - cap(old) // old is a slice of b
			out = append(append(out, b[from:at]...), value...)
			from = at + len(old)
		}
		return true
	})
	return append(out, b[from:]...)
}
