package export

import (
	"bytes"
	"context"
	"encoding/json"

	"parley/internal/store/sqlite"
	"parley/llm"
)

// call is a row of Calls.
type call struct {
	place
	answer llm.Response // of a failure too: as much as is known
	failed llm.Error
}

func (x *export) calls(ctx context.Context) error {
	columns := callColumns()
	var c call // one for all: it is large
	return x.replies(ctx, false, func(e sqlite.Recorded) error {
		c = call{place: place{x.run, e}}
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
	return append(placeColumns(func(c *call) *place { return &c.place }), []column[call]{
		few("agent", "who sat there, by name", func(c *call) cell { return text(c.Agent) }),
		few("kind", "`ask` of a model, `act` on the outside, or `bot`", func(c *call) cell { return text(c.kind()) }),
		few("asked", "the model that was asked, as provider/model", ofAsk(func(c *call) cell { return some(c.Request.Model) })),
		col("sample", Integer, "which draw it is of calls that ask the same", ofAsk(func(c *call) cell { return integer(c.Request.Sample) })),
		few("provider", "the provider that answered or failed", func(c *call) cell { return some(c.answer.Provider) }),
		few("model", "the model that did, as the server names it", func(c *call) cell { return some(c.answer.Model) }),
		col("text", Text, "the answer; empty where it is only tool calls or a refusal, null where the call failed", answered(func(c *call) cell { return text(c.answer.Text) })),
		col("json", JSON, "the answer as it was read, where one of a given form was asked for; what came of an act", func(c *call) cell { return some(string(c.answer.JSON)) }),
		col("refusal", Text, "the model's words for not answering", func(c *call) cell { return some(c.answer.Refusal) }),
		col("thoughts", JSON, "what it thought before, a list of objects with a `text`", func(c *call) cell { return list(c.answer.Thoughts) }),
		col("tool_calls", JSON, "the tools it wants called, a list of objects with `id`, `name` and `arguments`", func(c *call) cell { return list(c.answer.ToolCalls) }),
		col("logprobs", JSON, "log probabilities of its tokens", func(c *call) cell { return list(c.answer.Logprobs) }),
		col("token_ids", JSON, "the ids of its tokens, a list", func(c *call) cell { return list(c.answer.TokenIDs) }),
		col("prompt_token_ids", JSON, "the ids of the prompt's tokens, a list", func(c *call) cell { return list(c.answer.PromptTokenIDs) }),
		few("weight_version", "of the weights that answered, where the server says it", func(c *call) cell { return some(c.answer.WeightVersion) }),
		few("finish", "why the model stopped: `stop`, `length`, `tool_calls`, `refused`, `aborted`", func(c *call) cell { return some(string(c.answer.Finish)) }),
		few("error", "the kind of failure, as `rate_limited`; null: it did not fail", func(c *call) cell { return some(string(c.failed.Kind)) }),
		col("error_message", Text, "what the failure says; never part of an answer", func(c *call) cell { return some(c.failed.Message) }),
		col("error_status", Integer, "of HTTP, where there was one", func(c *call) cell { return cell{there: c.failed.Status != 0, n: int64(c.failed.Status)} }),
		few("error_code", "the provider's own name for the failure", func(c *call) cell { return some(c.failed.Code) }),
		col("input_tokens", Integer, "of the prompt in all", ofAsk(func(c *call) cell { return integer(c.answer.Usage.Input) })),
		col("cached_tokens", Integer, "of these, read from the provider's cache", ofAsk(func(c *call) cell { return integer(c.answer.Usage.Cached) })),
		col("written_tokens", Integer, "of these, written to the provider's cache", ofAsk(func(c *call) cell {
			return integer(llm.AddTokens(c.answer.Usage.CacheWrite, c.answer.Usage.CacheWriteLong))
		})),
		col("output_tokens", Integer, "of the answer in all", ofAsk(func(c *call) cell { return integer(c.answer.Usage.Output) })),
		col("reasoning_tokens", Integer, "of these, thought", ofAsk(func(c *call) cell { return integer(c.answer.Usage.Reasoning) })),
		col("dollars", Double, "what it cost this run, every try together; 0 where it was copied", ofAsk(func(c *call) cell { return double(c.Cost().Dollars()) })),
		col("seconds", Double, "the last try took", ofAsk(func(c *call) cell { return seconds(c.answer.Metadata.Latency) })),
		col("first_byte_seconds", Double, "until its first byte", ofAsk(func(c *call) cell { return seconds(c.answer.Metadata.FirstByte) })),
		col("waited_seconds", Double, "in queues and pauses, over all tries", ofAsk(func(c *call) cell { return seconds(c.answer.Metadata.Waited) })),
		col("tries", Integer, "how many it took", ofAsk(func(c *call) cell { return integer(c.answer.Metadata.Attempts) })),
		col("from_cache", Boolean, "answered from Parley's own cache", ofAsk(func(c *call) cell { return boolean(c.answer.Metadata.Cached) })),
		col("coalesced", Boolean, "shared the answer of an equal call in flight", ofAsk(func(c *call) cell { return boolean(c.answer.Metadata.Coalesced) })),
		col("copied", Boolean, "taken from the run that this one was forked from", func(c *call) cell { return boolean(c.Copied) }),
		few("parsed", "how a structured answer was read: `native`, `tolerant`, `repaired`", func(c *call) cell { return some(c.answer.Metadata.Parsed) }),
		few("tier", "the provider's service tier that was used", func(c *call) cell { return some(c.answer.Tier) }),
		few("act", "of an act: its name", func(c *call) cell { return some(c.act()) }),
		col("body", JSON, "of an act: what was sent", func(c *call) cell { return some(c.body()) }),
		{Column{Name: "settings", Type: JSON, Doc: "what was asked for beside the messages: parameters, tools, schema", few: true}, func(c *call) cell { return some(c.Settings) }},
		col("response_id", Text, "the provider's name for the answer", func(c *call) cell { return some(c.answer.ID) }),
		col("request_id", Text, "for the provider's support", func(c *call) cell { return some(c.answer.RequestID) }),
		col("replied_at", Time, "when the reply came", func(c *call) cell { return moment(c.At) }),
	}...)
}

// place is where a call was made.
type place struct {
	run string
	sqlite.Recorded
}

// placeColumns are the columns that say which call a row is of.
func placeColumns[T any](at func(*T) *place) []column[T] {
	return []column[T]{
		few("run", "the id of the run", func(v *T) cell { return text(at(v).run) }),
		col("call", Integer, "the number of the call in its run: the same in `calls` and `messages`", func(v *T) cell { return cell{there: true, n: at(v).Call} }),
		col("episode", Integer, "the number of its episode, from 0", func(v *T) cell { return integer(at(v).Episode) }),
		col("attempt", Integer, "the try at the episode, from 0", func(v *T) cell { return integer(at(v).Attempt) }),
		few("strand", "the line of play in the episode; empty: the main one", func(v *T) cell { return text(at(v).Strand) }),
		col("turn", Integer, "of the strand, from 0", func(v *T) cell { return integer(at(v).Turn.Turn) }),
		col("place", Integer, "of the call in its turn, from 0", func(v *T) cell { return integer(at(v).Index) }),
		few("seat", "who was asked", func(v *T) cell { return text(at(v).Seat) }),
		few("label", "for what", func(v *T) cell { return text(at(v).Label) }),
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

// ofAsk is a value that only calls of models have: a bot has used no tokens, not 0 tokens.
func ofAsk(of func(*call) cell) func(*call) cell {
	return func(c *call) cell {
		if c.Request == nil {
			return cell{}
		}
		return of(c)
	}
}

// answered is a value that only a call with an answer has.
func answered(of func(*call) cell) func(*call) cell {
	return func(c *call) cell {
		if c.Response == nil {
			return cell{}
		}
		return of(c)
	}
}

// list is a list as JSON. One that is empty is none.
func list[T any](all []T) cell {
	if len(all) == 0 {
		return cell{}
	}
	return encoded(all)
}

// encoded is v as JSON, without the escapes that only a web page needs. It was JSON in the
// run file too, so nothing in it can fail.
func encoded(v any) cell {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return cell{}
	}
	return text(string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))))
}
