package openai

import (
	"fmt"

	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/simhttp/wire"
	"parley/llm"
)

// AppendResponse appends a whole response.
func AppendResponse(dst []byte, x *wire.Exchange) []byte {
	status := "completed"
	if x.Answer.Finish == llm.FinishLength {
		status = "incomplete"
	}
	return append(appendResponseObject(dst, x, status), '\n')
}

// appendResponseObject appends the response object: without output and usage while
// it is in progress.
func appendResponseObject(dst []byte, x *wire.Exchange, status string) []byte {
	done := status != "in_progress"
	dst = append(dst, `{"id":"resp_`...)
	dst = append(dst, x.ID...)
	dst = append(dst, `","object":"response","created_at":`...)
	dst = appendInt(dst, int(x.Created))
	dst = append(dst, `,"status":"`...)
	dst = append(dst, status...)
	dst = append(dst, `","background":false,"error":null,"incomplete_details":`...)
	if status == "incomplete" {
		dst = append(dst, `{"reason":"max_output_tokens"}`...)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"instructions":null,"max_output_tokens":`...)
	if x.Request.MaxTokens > 0 {
		dst = appendInt(dst, x.Request.MaxTokens)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"model":`...)
	dst = wire.AppendString(dst, x.Request.Model)
	dst = append(dst, `,"output":[`...)
	if done {
		for i, it := range outputItems(x) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = it.append(dst, x, itemStatus(status), true)
		}
	}
	dst = append(dst, `],"parallel_tool_calls":`...)
	dst = fmt.Appendf(dst, "%t", !x.Request.OneTool)
	dst = append(dst, `,"previous_response_id":null,"reasoning":{"effort":`...)
	dst = wire.AppendNullable(dst, string(x.Request.Effort))
	dst = append(dst, `,"summary":null},"service_tier":"`...)
	dst = append(dst, tierOf(x.Request.Tier)...)
	dst = append(dst, `","store":false,"temperature":`...)
	dst = append(dst, wire.Marshal(orOne(x.Request.Temperature))...)
	dst = append(dst, `,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":`...)
	dst = append(dst, wire.Marshal(orOne(x.Request.TopP))...)
	dst = append(dst, `,"truncation":"disabled","usage":`...)
	if done {
		dst = appendResponseUsage(dst, x.Usage)
	} else {
		dst = append(dst, "null"...)
	}
	return append(dst, `,"user":null,"metadata":{}}`...)
}

func orOne(f *float64) float64 {
	if f == nil {
		return 1
	}
	return *f
}

func itemStatus(status string) string {
	if status == "incomplete" {
		return "incomplete"
	}
	return "completed"
}

func appendResponseUsage(dst []byte, u llm.Usage) []byte {
	dst = append(dst, `{"input_tokens":`...)
	dst = appendInt(dst, u.Input)
	dst = append(dst, `,"input_tokens_details":{"cached_tokens":`...)
	dst = appendInt(dst, u.Cached)
	dst = append(dst, `},"output_tokens":`...)
	dst = appendInt(dst, u.Output)
	dst = append(dst, `,"output_tokens_details":{"reasoning_tokens":`...)
	dst = appendInt(dst, u.Reasoning)
	dst = append(dst, `},"total_tokens":`...)
	dst = appendInt(dst, u.Input+u.Output)
	return append(dst, '}')
}

// output is a piece of a response's output.
type output struct {
	kind string // reasoning, message or function_call
	id   string
	call llm.ToolCall
}

// outputItems lists what a response consists of, in order.
func outputItems(x *wire.Exchange) []output {
	var items []output
	if x.Answer.Reasoning > 0 {
		items = append(items, output{kind: "reasoning", id: "rs_" + x.ID})
	}
	for i, c := range x.Answer.ToolCalls {
		items = append(items, output{kind: "function_call", id: fmt.Sprintf("fc_%s%02d", x.ID, i), call: c})
	}
	if len(x.Answer.ToolCalls) == 0 {
		items = append(items, output{kind: "message", id: "msg_" + x.ID})
	}
	return items
}

// append appends the item; its content only where full.
func (o *output) append(dst []byte, x *wire.Exchange, status string, full bool) []byte {
	dst = append(dst, `{"id":"`...)
	dst = append(dst, o.id...)
	dst = append(dst, `","type":"`...)
	dst = append(dst, o.kind...)
	if o.kind == "reasoning" {
		return append(dst, `","summary":[]}`...)
	}
	dst = append(dst, `","status":"`...)
	dst = append(dst, status...)
	if o.kind == "function_call" {
		args := ""
		if full {
			args = o.call.Arguments
		}
		dst = append(dst, `","arguments":`...)
		dst = wire.AppendString(dst, args)
		dst = append(dst, `,"call_id":`...)
		dst = wire.AppendString(dst, callID(o.call))
		dst = append(dst, `,"name":`...)
		return append(wire.AppendString(dst, o.call.Name), '}')
	}
	dst = append(dst, `","role":"assistant","content":[`...)
	if full {
		dst = appendPart(dst, x, true)
	}
	return append(dst, "]}"...)
}

// appendPart appends the message's one part; its text only where full.
func appendPart(dst []byte, x *wire.Exchange, full bool) []byte {
	a := x.Answer
	if a.Refusal != "" {
		text := ""
		if full {
			text = a.Refusal
		}
		dst = append(dst, `{"type":"refusal","refusal":`...)
		return append(wire.AppendString(dst, text), '}')
	}
	text, lp := "", []llm.Logprob(nil)
	if full {
		text, lp = a.Text, logprobsOf(x)
	}
	dst = append(dst, `{"type":"output_text","annotations":[],"logprobs":`...)
	dst = appendLogprobs(dst, lp)
	dst = append(dst, `,"text":`...)
	return append(wire.AppendString(dst, text), '}')
}

// responseStream writes the events of a response.
type responseStream struct {
	x     *wire.Exchange
	out   []byte
	marks []int
	seq   int
}

// AppendResponseStream appends the events of a streamed response, and returns where
// each ends. The last says that the response is whole.
func AppendResponseStream(dst []byte, x *wire.Exchange) ([]byte, []int) {
	s := responseStream{x: x, out: dst}
	for _, event := range []string{"response.created", "response.in_progress"} {
		s.open(event)
		s.out = append(s.out, `,"response":`...)
		s.out = appendResponseObject(s.out, x, "in_progress")
		s.close()
	}
	for i, it := range outputItems(x) {
		s.item(i, &it)
	}
	status := "completed"
	if x.Answer.Finish == llm.FinishLength {
		status = "incomplete"
	}
	s.open("response." + status)
	s.out = append(s.out, `,"response":`...)
	s.out = appendResponseObject(s.out, x, status)
	s.close()
	return s.out, s.marks
}

func (s *responseStream) open(event string) {
	s.out = append(s.out, "event: "...)
	s.out = append(s.out, event...)
	s.out = append(s.out, "\ndata: {\"type\":\""...)
	s.out = append(s.out, event...)
	s.out = append(s.out, `","sequence_number":`...)
	s.out = appendInt(s.out, s.seq)
	s.seq++
}

func (s *responseStream) close() {
	s.out = append(s.out, "}\n\n"...)
	s.marks = append(s.marks, len(s.out))
}

func (s *responseStream) item(i int, it *output) {
	s.open("response.output_item.added")
	s.out = append(s.out, `,"output_index":`...)
	s.out = append(appendInt(s.out, i), `,"item":`...)
	s.out = it.append(s.out, s.x, "in_progress", false)
	s.close()
	switch it.kind {
	case "function_call":
		s.pieces("response.function_call_arguments", it.id, i, -1, it.call.Arguments, "arguments")
	case "message":
		s.message(i, it)
	}
	s.open("response.output_item.done")
	s.out = append(s.out, `,"output_index":`...)
	s.out = append(appendInt(s.out, i), `,"item":`...)
	s.out = it.append(s.out, s.x, "completed", true)
	s.close()
}

func (s *responseStream) message(i int, it *output) {
	s.at("response.content_part.added", it.id, i, 0)
	s.out = append(s.out, `,"part":`...)
	s.out = appendPart(s.out, s.x, false)
	s.close()
	if r := s.x.Answer.Refusal; r != "" {
		s.pieces("response.refusal", it.id, i, 0, r, "refusal")
	} else {
		s.pieces("response.output_text", it.id, i, 0, s.x.Answer.Text, "text")
	}
	s.at("response.content_part.done", it.id, i, 0)
	s.out = append(s.out, `,"part":`...)
	s.out = appendPart(s.out, s.x, true)
	s.close()
}

// at opens an event that belongs to an item, and to its content unless that is below zero.
func (s *responseStream) at(event, id string, output, content int) {
	s.open(event)
	s.out = append(s.out, `,"item_id":"`...)
	s.out = append(s.out, id...)
	s.out = append(s.out, `","output_index":`...)
	s.out = appendInt(s.out, output)
	if content >= 0 {
		s.out = append(s.out, `,"content_index":`...)
		s.out = appendInt(s.out, content)
	}
}

// pieces writes text bit by bit in events name.delta, then whole in name.done.
func (s *responseStream) pieces(name, id string, output, content int, text, member string) {
	lp, at := []llm.Logprob(nil), 0
	if name == "response.output_text" {
		lp = logprobsOf(s.x)
	}
	for piece := range sim.Chunks(text, s.x.Chunk) {
		s.at(name+".delta", id, output, content)
		s.out = append(s.out, `,"delta":`...)
		s.out = wire.AppendString(s.out, piece)
		if name == "response.output_text" {
			n := min(len(lp), at+sim.CountTokens(piece))
			s.out = append(s.out, `,"logprobs":`...)
			s.out = appendLogprobs(s.out, lp[at:n])
			at = n
		}
		s.close()
	}
	s.at(name+".done", id, output, content)
	s.out = fmt.Appendf(s.out, `,"%s":`, member)
	s.out = wire.AppendString(s.out, text)
	if name == "response.output_text" {
		s.out = append(s.out, `,"logprobs":`...)
		s.out = appendLogprobs(s.out, lp)
	}
	s.close()
}

// AppendChatErrorEvent appends the event of a failure in the middle of a chat stream.
func AppendChatErrorEvent(dst []byte, e *wire.Error, id string) []byte {
	dst = AppendError(append(dst, "data: "...), e, id)
	return append(dst, '\n')
}

// AppendResponseErrorEvent appends the event of a failure in the middle of a response.
func AppendResponseErrorEvent(dst []byte, e *wire.Error, _ string) []byte {
	dst = append(dst, "event: error\ndata: {\"type\":\"error\",\"code\":"...)
	dst = wire.AppendNullable(dst, e.Code)
	dst = append(dst, `,"message":`...)
	dst = wire.AppendString(dst, e.Message)
	return append(dst, `,"param":null,"sequence_number":99}`+"\n\n"...)
}
