package openai

import (
	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/simhttp/wire"
	"parley/llm"
)

// AppendChat appends a whole chat completion.
func AppendChat(dst []byte, x *wire.Exchange) []byte {
	a := x.Answer
	dst = chatHead(dst, x, "chat.completion")
	dst = append(dst, `"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if a.Refusal != "" || (a.Text == "" && len(a.ToolCalls) > 0) {
		dst = append(dst, "null"...)
	} else {
		dst = wire.AppendString(dst, a.Text)
	}
	dst = append(dst, `,"refusal":`...)
	dst = wire.AppendNullable(dst, a.Refusal)
	if len(a.ToolCalls) > 0 {
		dst = append(dst, `,"tool_calls":[`...)
		for i, c := range a.ToolCalls {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendCall(append(dst, '{'), c, c.Arguments), '}')
		}
		dst = append(dst, ']')
	}
	if x.Request.TokenIDs && a.Thought != "" {
		dst = append(dst, `,"reasoning_content":`...)
		dst = wire.AppendString(dst, a.Thought)
	}
	dst = append(dst, `,"annotations":[]},"logprobs":`...)
	if lp := logprobsOf(x); lp != nil {
		dst = append(dst, `{"content":`...)
		dst = append(appendLogprobs(dst, lp), `,"refusal":null}`...)
	} else {
		dst = append(dst, "null"...)
	}
	if x.Request.TokenIDs {
		dst = append(dst, `,"token_ids":`...)
		dst = wire.AppendInts(dst, a.IDs())
	}
	dst = append(dst, `,"finish_reason":"`...)
	dst = append(dst, finishReason(a)...)
	dst = append(dst, `"}],"usage":`...)
	dst = appendChatUsage(dst, x.Usage)
	if x.Request.TokenIDs {
		dst = append(dst, `,"prompt_token_ids":`...)
		dst = wire.AppendInts(dst, x.Case.PromptIDs())
	}
	return append(dst, "}\n"...)
}

// chatHead begins an object up to its choices.
func chatHead(dst []byte, x *wire.Exchange, object string) []byte {
	dst = append(dst, `{"id":"chatcmpl-`...)
	dst = append(dst, x.ID...)
	dst = append(dst, `","object":"`...)
	dst = append(dst, object...)
	dst = append(dst, `","created":`...)
	dst = appendInt(dst, int(x.Created))
	dst = append(dst, `,"model":`...)
	dst = wire.AppendString(dst, x.Request.Model)
	dst = append(dst, `,"service_tier":"`...)
	dst = append(dst, tierOf(x.Request.Tier)...)
	dst = append(dst, `","system_fingerprint":"fp_sim",`...)
	if x.WeightVersion != "" { // as SGLang tells it
		dst = append(dst, `"metadata":{"weight_version":`...)
		dst = append(wire.AppendString(dst, x.WeightVersion), `},`...)
	}
	return dst
}

// tierOf returns the tier a request was served in.
func tierOf(asked string) string {
	switch asked {
	case "", "auto":
		return "default"
	case "fast":
		return "priority"
	default:
		return asked
	}
}

// appendCall appends the members of a tool call, without the braces around them.
func appendCall(dst []byte, c llm.ToolCall, arguments string) []byte {
	dst = append(dst, `"id":`...)
	dst = wire.AppendString(dst, callID(c))
	dst = append(dst, `,"type":"function","function":{"name":`...)
	dst = wire.AppendString(dst, c.Name)
	dst = append(dst, `,"arguments":`...)
	dst = wire.AppendString(dst, arguments)
	return append(dst, '}')
}

func finishReason(a *sim.Answer) string {
	switch a.Finish {
	case llm.FinishLength:
		return "length"
	case llm.FinishTools:
		return "tool_calls"
	default: // a refusal stops like any other answer
		return "stop"
	}
}

func appendChatUsage(dst []byte, u llm.Usage) []byte {
	dst = append(dst, `{"prompt_tokens":`...)
	dst = appendInt(dst, u.Input)
	dst = append(dst, `,"completion_tokens":`...)
	dst = appendInt(dst, u.Output)
	dst = append(dst, `,"total_tokens":`...)
	dst = appendInt(dst, u.Input+u.Output)
	dst = append(dst, `,"prompt_tokens_details":{"cached_tokens":`...)
	dst = appendInt(dst, u.Cached)
	dst = append(dst, `,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":`...)
	dst = appendInt(dst, u.Reasoning)
	return append(dst, `,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`...)
}

// chatStream writes the events of a chat completion.
type chatStream struct {
	x     *wire.Exchange
	out   []byte
	marks []int
	lp    []llm.Logprob
	at    int // tokens written
}

// AppendChatStream appends the events of a streamed chat completion, and returns
// where each ends. The last is the [DONE] that says the stream is whole.
func AppendChatStream(dst []byte, x *wire.Exchange) ([]byte, []int) {
	s := chatStream{x: x, out: dst, lp: logprobsOf(x)}
	a := x.Answer
	s.open()
	s.out = append(s.out, `{"role":"assistant","content":"","refusal":null}`...)
	extra := ""
	if x.Request.TokenIDs {
		extra = `,"prompt_token_ids":` + string(wire.AppendInts(nil, x.Case.PromptIDs()))
	}
	s.close("", nil, extra)
	for piece := range sim.Chunks(a.Refusal, x.Chunk) {
		s.delta(`{"refusal":`, piece, "}", false)
	}
	for piece := range sim.Chunks(a.Text, x.Chunk) {
		s.delta(`{"content":`, piece, "}", true)
	}
	for i, c := range a.ToolCalls {
		s.call(i, c)
	}
	s.end()
	if x.IncludeUsage {
		s.out = chatHead(append(s.out, "data: "...), x, "chat.completion.chunk")
		s.out = append(s.out, `"choices":[],"usage":`...)
		s.out = append(appendChatUsage(s.out, x.Usage), "}\n\n"...)
		s.marks = append(s.marks, len(s.out))
	}
	s.out = append(s.out, "data: [DONE]\n\n"...)
	return s.out, append(s.marks, len(s.out))
}

// end writes the chunk with the reason to finish, and with the token that says so.
func (s *chatStream) end() {
	s.open()
	s.out = append(s.out, "{}"...)
	var lp []llm.Logprob
	if last := (&sim.Answer{Finish: s.x.Answer.Finish}).IDs(); s.x.Request.TokenIDs && len(last) > 0 {
		s.out = append(s.out, `,"token_ids":`...)
		s.out = wire.AppendInts(s.out, last)
		if len(s.lp) > 0 {
			lp = s.lp[len(s.lp)-1:]
		}
	}
	s.close(finishReason(s.x.Answer), lp, "")
}

func (s *chatStream) open() {
	s.out = chatHead(append(s.out, "data: "...), s.x, "chat.completion.chunk")
	s.out = append(s.out, `"choices":[{"index":0,"delta":`...)
}

// close ends a chunk: extra is put after the choices.
func (s *chatStream) close(finish string, lp []llm.Logprob, extra string) {
	s.out = append(s.out, `,"logprobs":`...)
	if lp != nil {
		s.out = append(s.out, `{"content":`...)
		s.out = append(appendLogprobs(s.out, lp), `,"refusal":null}`...)
	} else {
		s.out = append(s.out, "null"...)
	}
	s.out = append(s.out, `,"finish_reason":`...)
	s.out = wire.AppendNullable(s.out, finish)
	s.out = append(s.out, "}]"...)
	s.out = append(s.out, extra...)
	if s.x.IncludeUsage {
		s.out = append(s.out, `,"usage":null`...)
	}
	s.out = append(s.out, "}\n\n"...)
	s.marks = append(s.marks, len(s.out))
}

func (s *chatStream) delta(before, piece, after string, text bool) {
	s.open()
	s.out = append(s.out, before...)
	s.out = wire.AppendString(s.out, piece)
	s.out = append(s.out, after...)
	if !text {
		s.close("", nil, "")
		return
	}
	n := sim.CountTokens(piece)
	if s.x.Request.TokenIDs {
		ids := (&sim.Answer{Text: piece, Finish: llm.FinishLength}).IDs()
		s.out = append(s.out, `,"token_ids":`...)
		s.out = wire.AppendInts(s.out, ids)
	}
	var lp []llm.Logprob
	if s.lp != nil {
		lp = s.lp[min(s.at, len(s.lp)):min(s.at+n, len(s.lp))]
	}
	s.at += n
	s.close("", lp, "")
}

// call writes a tool call: first its name, then its arguments piece by piece.
func (s *chatStream) call(i int, c llm.ToolCall) {
	s.open()
	s.out = append(s.out, `{"tool_calls":[{"index":`...)
	s.out = append(appendInt(s.out, i), ',')
	s.out = append(appendCall(s.out, c, ""), "}]}"...)
	s.close("", nil, "")
	for piece := range sim.Chunks(c.Arguments, s.x.Chunk) {
		s.open()
		s.out = append(s.out, `{"tool_calls":[{"index":`...)
		s.out = appendInt(s.out, i)
		s.out = append(s.out, `,"function":{"arguments":`...)
		s.out = append(wire.AppendString(s.out, piece), "}}]}"...)
		s.close("", nil, "")
	}
}
