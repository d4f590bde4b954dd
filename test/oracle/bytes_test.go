package oracle

// The bytes below follow the vendors' documentation, with every field that either side reads.

const chatUsage = `{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":3,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`

func chatBody(message, rest, finish string) string {
	return `{"id":"chatcmpl-1","object":"chat.completion","created":1800000000,"model":"gpt-9","choices":[{"index":0,"message":{"role":"assistant",` + message +
		`,"annotations":[]},` + rest + `"finish_reason":"` + finish + `"}],"usage":` + chatUsage + `,"service_tier":"default","system_fingerprint":"fp"}`
}

const (
	chatLogprobs = `"logprobs":{"content":[{"token":"He","logprob":-0.25,"bytes":[72,101],"top_logprobs":[{"token":"He","logprob":-0.25,"bytes":null},{"token":"Ho","logprob":-2.5,"bytes":null}]},{"token":"llo","logprob":-0.5,"bytes":null,"top_logprobs":[]}],"refusal":null},`
	chatCalls    = `[{"id":"call_a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"call_b","type":"function","function":{"name":"g","arguments":"{}"}}]`
)

var (
	chatText    = chatBody(`"content":"Hello \"é\" \ud834\udd1e\n","refusal":null`, chatLogprobs, "stop")
	chatTools   = chatBody(`"content":null,"refusal":null,"tool_calls":`+chatCalls, `"logprobs":null,`, "tool_calls")
	chatRefusal = chatBody(`"content":null,"refusal":"I will not."`, `"logprobs":null,`, "stop")
	chatLength  = chatBody(`"content":"Once","refusal":null`, `"logprobs":null,`, "length")
)

func chunk(delta, rest, finish string) string {
	return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1800000000,"model":"gpt-9","service_tier":"default","choices":[{"index":0,"delta":{` + delta + `},` + rest + `"finish_reason":` + finish + `}],"usage":null}` + "\n\n"
}

func chatEnd(finish string) []string {
	return []string{
		chunk("", "", `"`+finish+`"`),
		`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1800000000,"model":"gpt-9","service_tier":"default","choices":[],"usage":` + chatUsage + "}\n\n",
		"data: [DONE]\n\n",
	}
}

func chatTextEvents() []string {
	return append([]string{
		chunk(`"role":"assistant","content":"","refusal":null`, "", "null"),
		chunk(`"content":"He"`, `"logprobs":{"content":[{"token":"He","logprob":-0.25,"bytes":null,"top_logprobs":[]}],"refusal":null},`, "null"),
		chunk(`"content":"llo é"`, `"logprobs":{"content":[{"token":"llo","logprob":-0.5,"bytes":null,"top_logprobs":[{"token":"x","logprob":-3,"bytes":null}]}],"refusal":null},`, "null"),
	}, chatEnd("stop")...)
}

func chatToolEvents() []string {
	return append([]string{
		chunk(`"role":"assistant","content":null`, "", "null"),
		chunk(`"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"f","arguments":""}}]`, "", "null"),
		chunk(`"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]`, "", "null"),
		chunk(`"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]`, "", "null"),
		chunk(`"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"g","arguments":"{}"}}]`, "", "null"),
	}, chatEnd("tool_calls")...)
}

func response(status, incomplete, output string) string {
	return `{"id":"resp_1","object":"response","created_at":1800000000,"model":"gpt-9","status":"` + status + `","error":null,"incomplete_details":` + incomplete +
		`,"instructions":null,"metadata":{},"output":[` + output + `],"parallel_tool_calls":true,"temperature":1,"tool_choice":"auto","tools":[],"top_p":1,"service_tier":"default","store":false,` +
		`"usage":{"input_tokens":19,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"output_tokens":10,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":29}}`
}

const (
	itemReasoning = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"First."},{"type":"summary_text","text":"Then."}],"encrypted_content":"enc"}`
	itemMessage   = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello é","annotations":[],"logprobs":[{"token":"Hello","logprob":-0.25,"bytes":[],"top_logprobs":[]}]}]}`
	itemCall      = `{"type":"function_call","id":"fc_1","call_id":"call_a","name":"f","arguments":"{\"x\":1}","status":"completed"}`
)

var (
	responsesAll = response("completed", "null", itemReasoning+","+itemMessage+","+itemCall)
	responsesCut = response("incomplete", `{"reason":"max_output_tokens"}`, itemMessage)
)

func responsesEvents() []string {
	event := func(name, data string) string {
		return "event: " + name + "\ndata: {\"type\":\"" + name + "\"," + data + "}\n\n"
	}
	return []string{
		event("response.created", `"sequence_number":0,"response":`+response("in_progress", "null", "")),
		event("response.output_text.delta", `"sequence_number":1,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"Hello","logprobs":[]`),
		event("response.output_text.delta", `"sequence_number":2,"item_id":"msg_1","output_index":1,"content_index":0,"delta":" é","logprobs":[]`),
		event("response.completed", `"sequence_number":3,"response":`+responsesAll),
	}
}

const messagesUsage = `"input_tokens":9,"cache_creation_input_tokens":10,"cache_read_input_tokens":20,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":6},"service_tier":"standard","inference_geo":"us","server_tool_use":null`

func message(content, stop string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-9","content":[` + content + `],"stop_reason":"` + stop + `","stop_sequence":null,"usage":{` + messagesUsage + `,"output_tokens":50,"output_tokens_details":{"thinking_tokens":30}}}`
}

var (
	messagesAll = message(`{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"redacted_thinking","data":"zz"},{"type":"text","text":"Hello é","citations":null},{"type":"tool_use","id":"toolu_1","name":"f","input":{"x":1}}`, "tool_use")
	messagesCut = message(`{"type":"text","text":"Once","citations":null}`, "max_tokens")
)

func messagesEvents() []string {
	event := func(name, data string) string {
		return "event: " + name + "\ndata: {\"type\":\"" + name + "\"" + data + "}\n\n"
	}
	piece := func(index, delta string) string {
		return event("content_block_delta", `,"index":`+index+`,"delta":{`+delta+`}`)
	}
	stop := func(index string) string { return event("content_block_stop", `,"index":`+index) }
	return []string{
		event("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-9","content":[],"stop_reason":null,"stop_sequence":null,"usage":{`+messagesUsage+`,"output_tokens":1}}`),
		event("content_block_start", `,"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`),
		event("ping", ""),
		piece("0", `"type":"thinking_delta","thinking":"Hm."`), piece("0", `"type":"signature_delta","signature":"sig"`), stop("0"),
		event("content_block_start", `,"index":1,"content_block":{"type":"redacted_thinking","data":"zz"}`), stop("1"),
		event("content_block_start", `,"index":2,"content_block":{"type":"text","text":""}`),
		piece("2", `"type":"text_delta","text":"Hello"`), piece("2", `"type":"text_delta","text":" é"`), stop("2"),
		event("content_block_start", `,"index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`),
		piece("3", `"type":"input_json_delta","partial_json":"{\"x\""`), piece("3", `"type":"input_json_delta","partial_json":":1}"`), stop("3"),
		event("message_delta", `,"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":50,"output_tokens_details":{"thinking_tokens":30}}`),
		event("message_stop", ""),
	}
}
