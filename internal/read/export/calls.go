package export

import (
	"bytes"
	"context"
	"encoding/json"

	"parley/internal/run/runfile"
	"parley/llm"
)

// call is a row of Calls.
type call struct {
	callID
	answer llm.Response // or as much of it as a failure has
	failed llm.Error
}

func (x *export) calls(ctx context.Context) error {
	columns := callColumns()
	var c call // one for all, because it is large
	return x.replies(ctx, false, func(e runfile.Recorded) error {
		c = call{callID: callID{x.run, e}}
		if r := e.Response; r != nil {
			c.answer = *r
		}
		if f := e.Error; f != nil {
			c.failed = *f
			c.answer = llm.Response{Model: f.Model, Provider: f.Provider, RequestID: f.RequestID, Usage: f.Usage, Metadata: f.Metadata}
		}
		return put(x, columns, &c)
	})
}

func callColumns() []column[call] {
	return append(callIDColumns(func(c *call) *callID { return &c.callID }), []column[call]{
		few("agent", "the name of the agent in the seat", func(c *call) cell { return text(c.Agent) }),
		few("kind", "`ask` of a model, `act` on the outside, or `bot`", func(c *call) cell { return text(c.kind()) }),
		few("asked", "the model that was asked, as provider/model", ofAsk(func(c *call) cell { return some(c.Request.Model) })),
		col("sample", Integer, "the number of the sample among equal calls", ofAsk(func(c *call) cell { return integer(c.Request.Sample) })),
		few("provider", "the provider that answered or failed", func(c *call) cell { return some(c.answer.Provider) }),
		few("model", "the server's name of the model that answered", func(c *call) cell { return some(c.answer.Model) }),
		col("text", Text, "the answer; empty if it has only tool calls or a refusal, null if the call failed", answered(func(c *call) cell { return text(c.answer.Text) })),
		col("json", JSON, "the structured answer, if the call asked for one; the result of an act", func(c *call) cell { return some(string(c.answer.JSON)) }),
		col("refusal", Text, "the model's refusal", func(c *call) cell { return some(c.answer.Refusal) }),
		col("thoughts", JSON, "its reasoning, a list of objects with a `text`", func(c *call) cell { return list(c.answer.Thoughts) }),
		col("tool_calls", JSON, "the tools it wants called, a list of objects with `id`, `name` and `arguments`", func(c *call) cell { return list(c.answer.ToolCalls) }),
		col("logprobs", JSON, "log probabilities of its tokens", func(c *call) cell { return list(c.answer.Logprobs) }),
		col("token_ids", JSON, "the ids of its tokens, a list", func(c *call) cell { return list(c.answer.TokenIDs) }),
		col("prompt_token_ids", JSON, "the ids of the prompt's tokens, a list", func(c *call) cell { return list(c.answer.PromptTokenIDs) }),
		few("weight_version", "the version of the weights that answered, if the server reports it", func(c *call) cell { return some(c.answer.WeightVersion) }),
		col("dropped", JSON, "the names of parameters that were not sent, since the model does not take them, a list", func(c *call) cell { return list(c.answer.Dropped) }),
		few("finish", "why the model stopped: `stop`, `length`, `tool_calls`, `refused`, `aborted`", func(c *call) cell { return some(string(c.answer.Finish)) }),
		few("error", "the kind of failure, as `rate_limited`; null: it did not fail", func(c *call) cell { return some(string(c.failed.Kind)) }),
		col("error_message", Text, "the message of the failure; never part of an answer", func(c *call) cell { return some(c.failed.Message) }),
		col("error_status", Integer, "the HTTP status, if there was one", func(c *call) cell { return cell{there: c.failed.Status != 0, n: int64(c.failed.Status)} }),
		few("error_code", "the provider's own name for the failure", func(c *call) cell { return some(c.failed.Code) }),
		col("input_tokens", Integer, "all tokens of the prompt", ofAsk(func(c *call) cell { return integer(c.answer.Usage.Input) })),
		col("cached_tokens", Integer, "of these, read from the provider's cache", ofAsk(func(c *call) cell { return integer(c.answer.Usage.Cached) })),
		col("written_tokens", Integer, "of these, written to the provider's cache", ofAsk(func(c *call) cell {
			return integer(llm.AddTokens(c.answer.Usage.CacheWrite, c.answer.Usage.CacheWriteLong))
		})),
		col("output_tokens", Integer, "all tokens of the answer", ofAsk(func(c *call) cell { return integer(c.answer.Usage.Output) })),
		col("reasoning_tokens", Integer, "of these, reasoning", ofAsk(func(c *call) cell { return integer(c.answer.Usage.Reasoning) })),
		col("dollars", Double, "the cost to this run of all tries; 0 if it was copied", ofAsk(func(c *call) cell { return double(c.Cost().Dollars()) })),
		col("seconds", Double, "the time of the last try", ofAsk(func(c *call) cell { return seconds(c.answer.Metadata.Latency) })),
		col("first_byte_seconds", Double, "the time until its first byte", ofAsk(func(c *call) cell { return seconds(c.answer.Metadata.FirstByte) })),
		col("waited_seconds", Double, "the time in queues and pauses, of all tries", ofAsk(func(c *call) cell { return seconds(c.answer.Metadata.Waited) })),
		col("tries", Integer, "the number of tries", ofAsk(func(c *call) cell { return integer(c.answer.Metadata.Attempts) })),
		col("from_cache", Boolean, "answered from Parley's own cache", ofAsk(func(c *call) cell { return boolean(c.answer.Metadata.Cached) })),
		col("coalesced", Boolean, "shared the answer of an equal call in flight", ofAsk(func(c *call) cell { return boolean(c.answer.Metadata.Coalesced) })),
		col("copied", Boolean, "taken from the run that this one was forked from", func(c *call) cell { return boolean(c.Copied) }),
		few("parsed", "how a structured answer was read: `native`, `tolerant`, `repaired`", func(c *call) cell { return some(c.answer.Metadata.Parsed) }),
		few("tier", "the provider's service tier that was used", func(c *call) cell { return some(c.answer.Tier) }),
		few("act", "of an act: its name", func(c *call) cell { return some(c.act()) }),
		col("body", JSON, "of an act: what was sent", func(c *call) cell { return some(c.body()) }),
		{Column{Name: "settings", Type: JSON, Doc: "the request without its messages: parameters, tools, schema", few: true}, func(c *call) cell { return some(c.Settings) }},
		col("response_id", Text, "the provider's name for the answer", func(c *call) cell { return some(c.answer.ID) }),
		col("request_id", Text, "for the provider's support", func(c *call) cell { return some(c.answer.RequestID) }),
		col("replied_at", Time, "when the reply arrived", func(c *call) cell { return moment(c.At) }),
	}...)
}

// callID identifies a call: its run, and the recorded reply.
type callID struct {
	run string
	runfile.Recorded
}

// callIDColumns returns the columns that identify a call.
func callIDColumns[T any](at func(*T) *callID) []column[T] {
	return []column[T]{
		few("run", "the id of the run", func(v *T) cell { return text(at(v).run) }),
		col("call", Integer, "the number of the call in its run: the same in `calls` and `messages`", func(v *T) cell { return cell{there: true, n: at(v).Call} }),
		col("episode", Integer, "the number of its episode, from 0", func(v *T) cell { return integer(at(v).Episode) }),
		col("attempt", Integer, "the attempt at the episode, from 0", func(v *T) cell { return integer(at(v).Attempt) }),
		few("strand", "the strand of the episode; empty for the main one", func(v *T) cell { return text(at(v).Strand) }),
		col("turn", Integer, "the number of the turn in its strand, from 0", func(v *T) cell { return integer(at(v).Turn.Turn) }),
		col("place", Integer, "the index of the call in its turn, from 0", func(v *T) cell { return integer(at(v).Index) }),
		few("seat", "the seat that was asked", func(v *T) cell { return text(at(v).Seat) }),
		few("label", "the label of the call", func(v *T) cell { return text(at(v).Label) }),
	}
}

func (c *call) kind() string {
	switch {
	case c.Act != nil:
		return "act"
	case c.Request != nil:
		return "ask"
	default:
		return "bot"
	}
}

func (c *call) act() string {
	if c.Act == nil {
		return ""
	}
	return c.Act.Name
}

func (c *call) body() string {
	if c.Act == nil {
		return ""
	}
	return string(c.Act.Body)
}

// ofAsk returns a value that only calls of models have. A bot uses no tokens, which is not 0 tokens.
func ofAsk(of func(*call) cell) func(*call) cell {
	return func(c *call) cell {
		if c.Request == nil {
			return cell{}
		}
		return of(c)
	}
}

// answered returns a value that only a call with an answer has.
func answered(of func(*call) cell) func(*call) cell {
	return func(c *call) cell {
		if c.Response == nil {
			return cell{}
		}
		return of(c)
	}
}

// list returns a list as JSON. An empty list is null.
func list[T any](all []T) cell {
	if len(all) == 0 {
		return cell{}
	}
	return encoded(all)
}

// encoded returns v as JSON, without HTML escapes. The values were JSON in the run file, so it
// cannot fail.
func encoded(v any) cell {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return cell{}
	}
	return text(string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))))
}
