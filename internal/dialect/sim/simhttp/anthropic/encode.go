package anthropic

import (
	"encoding/json"
	"fmt"
	"strconv"

	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/simhttp/wire"
	"parley/llm"
)

// AppendError appends the body of an error.
func AppendError(dst []byte, e *wire.Error, requestID string) []byte {
	dst = append(dst, `{"type":"error","error":{"type":`...)
	dst = wire.AppendString(dst, e.Type)
	dst = append(dst, `,"message":`...)
	dst = wire.AppendString(dst, e.Message)
	dst = append(dst, `},"request_id":`...)
	dst = wire.AppendNullable(dst, requestID)
	return append(dst, '}')
}

// AppendErrorEvent appends the event of a failure in the middle of a stream.
func AppendErrorEvent(dst []byte, e *wire.Error, requestID string) []byte {
	dst = AppendError(append(dst, "event: error\ndata: "...), e, requestID)
	return append(dst, "\n\n"...)
}

// Append appends a whole message.
func Append(dst []byte, x *wire.Exchange) []byte {
	a := x.Answer
	dst = head(dst, x)
	comma := ""
	if a.Thought != "" {
		dst = append(dst, `{"type":"thinking","thinking":`...)
		dst = wire.AppendString(dst, a.Thought)
		dst = append(dst, `,"signature":"`...)
		dst = append(append(dst, signature(x)...), `"}`...)
		comma = ","
	}
	if a.Text != "" {
		dst = append(append(dst, comma...), `{"type":"text","text":`...)
		dst = append(wire.AppendString(dst, a.Text), '}')
		comma = ","
	}
	for _, c := range a.ToolCalls {
		dst = append(append(dst, comma...), `{"type":"tool_use","id":`...)
		dst = wire.AppendString(dst, toolID(c))
		dst = append(dst, `,"name":`...)
		dst = wire.AppendString(dst, c.Name)
		dst = append(dst, `,"input":`...)
		dst = append(append(dst, whole(c.Arguments)...), '}')
		comma = ","
	}
	dst = append(dst, `],"stop_reason":`...)
	dst = wire.AppendString(dst, stopReason(x))
	dst = append(dst, `,"stop_sequence":`...)
	dst = wire.AppendNullable(dst, a.Stop)
	dst = append(dst, `,"usage":`...)
	dst = appendUsage(dst, x, x.Usage.Output)
	return append(dst, '}')
}

// head begins a message up to the opening of its content.
func head(dst []byte, x *wire.Exchange) []byte {
	dst = append(dst, `{"id":"msg_`...)
	dst = append(dst, x.ID...)
	dst = append(dst, `","type":"message","role":"assistant","model":`...)
	dst = wire.AppendString(dst, x.Request.Model)
	return append(dst, `,"content":[`...)
}

func toolID(c llm.ToolCall) string { return "toolu_" + c.ID }

func signature(x *wire.Exchange) string {
	return "c2lt" + strconv.FormatUint(x.Case.Digest, 16) // it begins with "sim" in base64
}

// whole returns arguments that were cut off as an empty object: a message that is
// not streamed holds a JSON value there, never a part of one.
func whole(arguments string) string {
	if !json.Valid([]byte(arguments)) {
		return "{}"
	}
	return arguments
}

func stopReason(x *wire.Exchange) string {
	switch a := x.Answer; {
	case x.NoOutput:
		return "max_tokens"
	case a.Finish == llm.FinishLength:
		return "max_tokens"
	case a.Finish == llm.FinishTools:
		return "tool_use"
	case a.Finish == llm.FinishRefused:
		return "refusal"
	case a.Stop != "":
		return "stop_sequence"
	default:
		return "end_turn"
	}
}

func appendUsage(dst []byte, x *wire.Exchange, output int) []byte {
	u := x.Usage
	tier := "standard"
	if x.Batch {
		tier = "batch"
	}
	return fmt.Appendf(dst, `{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,`+
		`"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d},"output_tokens":%d,"service_tier":"%s"}`,
		u.Input-u.Cached-u.CacheWrite-u.CacheWriteLong, u.CacheWrite+u.CacheWriteLong, u.Cached, u.CacheWrite, u.CacheWriteLong, output, tier)
}

// stream writes the events of a message.
type stream struct {
	x     *wire.Exchange
	out   []byte
	marks []int
	index int
}

// AppendStream appends the events of a streamed message, and returns where each
// ends. The last says that the message is whole.
func AppendStream(dst []byte, x *wire.Exchange) ([]byte, []int) {
	s := stream{x: x, out: dst}
	a := x.Answer
	s.open("message_start")
	s.out = head(append(s.out, `,"message":`...), x)
	s.out = append(s.out, `],"stop_reason":null,"stop_sequence":null,"usage":`...)
	s.out = append(appendUsage(s.out, x, 1), '}')
	s.close()
	if a.Thought != "" {
		s.block(`{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking", a.Thought, signature(x))
	}
	if a.Text != "" {
		s.block(`{"type":"text","text":""}`, "text_delta", "text", a.Text, "")
	}
	for _, c := range a.ToolCalls {
		start := append([]byte(`{"type":"tool_use","id":`), wire.AppendString(nil, toolID(c))...)
		start = wire.AppendString(append(start, `,"name":`...), c.Name)
		s.block(string(start)+`,"input":{}}`, "input_json_delta", "partial_json", c.Arguments, "")
	}
	s.open("message_delta")
	s.out = append(s.out, `,"delta":{"stop_reason":`...)
	s.out = wire.AppendString(s.out, stopReason(x))
	s.out = append(s.out, `,"stop_sequence":`...)
	s.out = append(wire.AppendNullable(s.out, a.Stop), `},"usage":`...)
	s.out = appendUsage(s.out, x, x.Usage.Output)
	s.close()
	s.open("message_stop")
	s.close()
	return s.out, s.marks
}

func (s *stream) open(event string) {
	s.out = append(s.out, "event: "...)
	s.out = append(s.out, event...)
	s.out = append(s.out, "\ndata: {\"type\":\""...)
	s.out = append(s.out, event...)
	s.out = append(s.out, '"')
}

func (s *stream) close() {
	s.out = append(s.out, "}\n\n"...)
	s.marks = append(s.marks, len(s.out))
}

// block writes a content block piece by piece, with a ping after its start if it is the first.
func (s *stream) block(start, delta, member, text, signature string) {
	at := func(event string) {
		s.open(event)
		s.out = strconv.AppendInt(append(s.out, `,"index":`...), int64(s.index), 10)
	}
	at("content_block_start")
	s.out = append(append(s.out, `,"content_block":`...), start...)
	s.close()
	if s.index == 0 {
		s.open("ping")
		s.close()
	}
	for piece := range sim.Chunks(text, s.x.Chunk) {
		at("content_block_delta")
		s.out = fmt.Appendf(s.out, `,"delta":{"type":"%s","%s":`, delta, member)
		s.out = append(wire.AppendString(s.out, piece), '}')
		s.close()
	}
	if signature != "" {
		at("content_block_delta")
		s.out = fmt.Appendf(s.out, `,"delta":{"type":"signature_delta","signature":"%s"}`, signature)
		s.close()
	}
	at("content_block_stop")
	s.close()
	s.index++
}
