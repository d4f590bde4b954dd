package export

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"parley/internal/run/label"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

// callRow is a row of Calls.
type callRow struct {
	callID
	answer llm.Response // or as much of it as a failure has
	failed llm.Error
}

func (x *export) writeCalls(ctx context.Context) error {
	columns := callColumns()
	var c callRow // one for all, because it is large
	return x.replies(ctx, false, func(e runfile.Recorded) error {
		c = callRow{callID: callID{x.run, e}}
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

func callColumns() []column[callRow] {
	return append(callIDColumns(func(c *callRow) *callID { return &c.callID }), []column[callRow]{
		few("agent", "the name of the agent in the seat", func(c *callRow) cell { return text(c.Agent) }),
		few("kind", "`ask` of a model, `act` on the outside, `bot`, or `program`", func(c *callRow) cell { return text(c.Kind()) }),
		few("asked", "the model that was asked, as provider/model", ofAsk(func(c *callRow) cell { return textOrNull(c.Request.Model) })),
		col("sample", Integer, "the number of the sample among equal calls", ofAsk(func(c *callRow) cell { return integer(c.Request.Sample) })),
		few("provider", "the provider that answered or failed", func(c *callRow) cell { return textOrNull(c.answer.Provider) }),
		few("model", "the server's name of the model that answered", func(c *callRow) cell { return textOrNull(c.answer.Model) }),
		col("text", Text, "the answer; empty if it has only tool calls or a refusal, null if the call failed", answered(func(c *callRow) cell { return text(c.answer.Text) })),
		col("json", JSON, "the structured answer, if the call asked for one; the result of an act", func(c *callRow) cell { return textOrNull(string(c.answer.JSON)) }),
		col("refusal", Text, "the model's refusal", func(c *callRow) cell { return textOrNull(c.answer.Refusal) }),
		col("thoughts", JSON, "its reasoning, a list of objects with a `text`", func(c *callRow) cell { return list(c.answer.Thoughts) }),
		col("tool_calls", JSON, "the tools it wants called, a list of objects with `id`, `name` and `arguments`", func(c *callRow) cell { return list(c.answer.ToolCalls) }),
		col("logprobs", JSON, "log probabilities of its tokens", func(c *callRow) cell { return list(c.answer.Logprobs) }),
		col("token_ids", JSON, "the ids of its tokens, a list", func(c *callRow) cell { return list(c.answer.TokenIDs) }),
		col("prompt_token_ids", JSON, "the ids of the prompt's tokens, a list", func(c *callRow) cell { return list(c.answer.PromptTokenIDs) }),
		few("weight_version", "the version of the weights that answered, if the server reports it", func(c *callRow) cell { return textOrNull(c.answer.WeightVersion) }),
		col("dropped", JSON, "the names of parameters that were not sent, since the model does not take them, a list", func(c *callRow) cell { return list(c.answer.Dropped) }),
		few("finish", "why the model stopped: `stop`, `length`, `tool_calls`, `refused`, `aborted`", func(c *callRow) cell { return textOrNull(string(c.answer.Finish)) }),
		few("error", "the kind of failure, as `rate_limited`; null: it did not fail", func(c *callRow) cell { return textOrNull(string(c.failed.Kind)) }),
		col("error_message", Text, "the message of the failure; never part of an answer", func(c *callRow) cell { return textOrNull(c.failed.Message) }),
		col("error_status", Integer, "the HTTP status, if there was one", func(c *callRow) cell { return cell{there: c.failed.Status != 0, n: int64(c.failed.Status)} }),
		few("error_code", "the provider's own name for the failure", func(c *callRow) cell { return textOrNull(c.failed.Code) }),
		col("input_tokens", Integer, "all tokens of the prompt", ofAsk(func(c *callRow) cell { return integer(c.answer.Usage.Input) })),
		col("cached_tokens", Integer, "of these, read from the provider's cache", ofAsk(func(c *callRow) cell { return integer(c.answer.Usage.Cached) })),
		col("written_tokens", Integer, "of these, written to the provider's cache", ofAsk(func(c *callRow) cell {
			return integer(llm.AddTokens(c.answer.Usage.CacheWrite, c.answer.Usage.CacheWriteLong))
		})),
		col("output_tokens", Integer, "all tokens of the answer", ofAsk(func(c *callRow) cell { return integer(c.answer.Usage.Output) })),
		col("reasoning_tokens", Integer, "of these, reasoning", ofAsk(func(c *callRow) cell { return integer(c.answer.Usage.Reasoning) })),
		col("dollars", Double, "the cost to this run of all tries; 0 if it was copied", ofAsk(func(c *callRow) cell { return double(c.Cost().Dollars()) })),
		col("seconds", Double, "the time of the last try", ofAsk(func(c *callRow) cell { return seconds(c.answer.Metadata.Latency) })),
		col("first_byte_seconds", Double, "the time until its first byte", ofAsk(func(c *callRow) cell { return seconds(c.answer.Metadata.FirstByte) })),
		col("waited_seconds", Double, "the time in queues and pauses, of all tries", ofAsk(func(c *callRow) cell { return seconds(c.answer.Metadata.Waited) })),
		col("tries", Integer, "the number of tries", ofAsk(func(c *callRow) cell { return integer(c.answer.Metadata.Attempts) })),
		col("from_cache", Boolean, "answered from Parley's own cache", ofAsk(func(c *callRow) cell { return boolean(c.answer.Metadata.Cached) })),
		col("coalesced", Boolean, "shared the answer of an equal call in flight", ofAsk(func(c *callRow) cell { return boolean(c.answer.Metadata.Coalesced) })),
		col("copied", Boolean, "taken from the run that this one was forked from", func(c *callRow) cell { return boolean(c.Copied) }),
		few("parsed", "how a structured answer was read: `native`, `tolerant`, `repaired`", func(c *callRow) cell { return textOrNull(c.answer.Metadata.Parsed) }),
		few("tier", "the provider's service tier that was used", func(c *callRow) cell { return textOrNull(c.answer.Tier) }),
		few("act", "of an act: its name", func(c *callRow) cell { return textOrNull(c.act()) }),
		col("body", JSON, "of an act: what was sent", func(c *callRow) cell { return textOrNull(c.body()) }),
		{Column{Name: "settings", Type: JSON, Doc: "the request without its messages: parameters, tools, schema", few: true}, func(c *callRow) cell { return textOrNull(c.Settings) }},
		col("response_id", Text, "the provider's name for the answer", func(c *callRow) cell { return textOrNull(c.answer.ID) }),
		col("request_id", Text, "for the provider's support", func(c *callRow) cell { return textOrNull(c.answer.RequestID) }),
		col("replied_at", Time, "when the reply arrived", func(c *callRow) cell { return moment(c.At) }),
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

func (c *callRow) act() string {
	if c.Act == nil {
		return ""
	}
	return c.Act.Name
}

func (c *callRow) body() string {
	if c.Act == nil {
		return ""
	}
	return string(c.Act.Body)
}

// ofAsk returns a value that only calls of models have. A bot uses no tokens, which is not 0 tokens.
func ofAsk(of func(*callRow) cell) func(*callRow) cell {
	return func(c *callRow) cell {
		if c.Request == nil {
			return cell{}
		}
		return of(c)
	}
}

// answered returns a value that only a call with an answer has.
func answered(of func(*callRow) cell) func(*callRow) cell {
	return func(c *callRow) cell {
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

// messageRow is a row of Messages.
type messageRow struct {
	callID
	n int
	*llm.Message
}

func (x *export) writeMessages(ctx context.Context) error {
	columns := messageColumns()
	m := &messageRow{}
	return x.replies(ctx, true, func(e runfile.Recorded) error {
		if e.Request == nil {
			return nil
		}
		m.callID = callID{x.run, e}
		for i := range e.Request.Messages {
			m.n, m.Message = i, &e.Request.Messages[i]
			if err := put(x, columns, m); err != nil {
				return err
			}
		}
		return nil
	})
}

func messageColumns() []column[messageRow] {
	return append(callIDColumns(func(m *messageRow) *callID { return &m.callID }), []column[messageRow]{
		col("n", Integer, "its index in the prompt, from 0", func(m *messageRow) cell { return integer(m.n) }),
		few("role", "`system`, `user`, `assistant` or `tool`", func(m *messageRow) cell { return text(string(m.Role)) }),
		col("text", Text, "its text, all parts together", func(m *messageRow) cell { return text(m.Message.Text()) }),
		col("whole", JSON, "the whole message, if it has more than a text: images, files, tool calls, reasoning", func(m *messageRow) cell {
			if isPlainText(m.Message) {
				return cell{}
			}
			return encoded(m.Message)
		}),
	}...)
}

// isPlainText reports whether a message is one text with a role, and nothing else.
func isPlainText(m *llm.Message) bool {
	return len(m.Parts) == 1 && m.Parts[0].IsText() && len(m.Thoughts) == 0 && len(m.ToolCalls) == 0 && m.ToolCallID == "" && !m.ToolFailed
}

// listAtOnce is how many episodes are read at once.
const listAtOnce = 1024

// episodeRow is a row of Episodes.
type episodeRow struct {
	run string
	*runfile.Listed
	spent journal.Spending
	tags  map[string]string // of its variation
}

// each calls f with every episode, in order.
func (x *export) each(ctx context.Context, f func(*runfile.Listed) error) error {
	for from := 0; ; {
		list, err := x.Store.List(ctx, runfile.Listing{From: from, Limit: listAtOnce})
		if x.salvaged(ctx, err) {
			continue
		}
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			if x.Without[list[i].Episode] {
				continue
			}
			if err := f(&list[i]); err != nil {
				return err
			}
		}
		from = list[len(list)-1].Episode + 1
	}
}

func (x *export) writeEpisodes(ctx context.Context) error {
	spent, err := x.spent(ctx)
	if err != nil {
		return err
	}
	columns := episodeColumns()
	return x.each(ctx, func(l *runfile.Listed) error {
		e := episodeRow{run: x.run, Listed: l, tags: x.variation(l.Spec.Cell)}
		if l.Episode < len(spent) { // otherwise the plan asked for it since
			e.spent = spent[l.Episode]
		}
		return put(x, columns, &e)
	})
}

// spent adds up the spending of each episode. Only this needs memory for each episode: a few numbers.
func (x *export) spent(ctx context.Context) ([]journal.Spending, error) {
	out := make([]journal.Spending, x.episodes)
	err := x.Store.Brief(ctx, func(entry journal.Entry) error {
		if r, ok := entry.(*journal.Replied); ok && r.Episode >= 0 && r.Episode < len(out) {
			out[r.Episode].Add(r)
		}
		return nil
	})
	if x.salvaged(ctx, err) {
		return x.spent(ctx)
	}
	return out, err
}

func episodeColumns() []column[episodeRow] {
	return []column[episodeRow]{
		few("run", "the id of the run", func(e *episodeRow) cell { return text(e.run) }),
		col("episode", Integer, "its number, from 0", func(e *episodeRow) cell { return integer(e.Episode) }),
		col("stage", Integer, "the stage of the plan, from 0", func(e *episodeRow) cell { return integer(e.Stage) }),
		few("kind", "the kind of the world", func(e *episodeRow) cell { return text(e.Spec.Kind) }),
		few("cell", "the cell of the matrix that it repeats", func(e *episodeRow) cell { return textOrNull(e.Spec.Cell) }),
		col("deal", Integer, "what its random draws depend on: episodes with the same deal draw the same", func(e *episodeRow) cell { return integer(e.Spec.Deal) }),
		{Column{Name: "params", Type: JSON, Doc: "the params of the world", few: true}, func(e *episodeRow) cell { return textOrNull(string(e.Spec.Params)) }},
		{Column{Name: "lineup", Type: JSON, Doc: "seat to agent", few: true}, func(e *episodeRow) cell { return encoded(e.Spec.Lineup) }},
		{Column{Name: "tags", Type: JSON, Doc: "the tags of its variation, an object", few: true}, func(e *episodeRow) cell { return tagsCell(e.tags) }},
		few("state", "`waiting`, `playing`, `ended` or `failed`", func(e *episodeRow) cell { return text(e.State()) }),
		col("attempt", Integer, "the number of the attempt, from 0; null: it did not begin", func(e *episodeRow) cell { return cell{there: e.Begun, n: int64(e.Attempt)} }),
		col("failed", Text, "why it failed", ofEnded(func(e *journal.Ended) cell { return textOrNull(e.Outcome.Failed) })),
		col("scores", JSON, "the scores of its outcome, a list; the table `scores` has them one by one", ofEnded(func(e *journal.Ended) cell {
			if len(e.Outcome.Scores) == 0 {
				return cell{}
			}
			return encoded(results.Scores(e.Outcome.Scores))
		})),
		col("data", JSON, "the world's own data in the outcome", ofEnded(func(e *journal.Ended) cell {
			data, _ := e.Outcome.Data.(json.RawMessage)
			return textOrNull(string(data))
		})),
		col("calls", Integer, "calls of models and people that were answered or failed, in all attempts", func(e *episodeRow) cell { return integer(e.spent.Calls) }),
		col("acts", Integer, "requests to environments, and to other things outside of the world, in all attempts", func(e *episodeRow) cell { return integer(e.spent.Acts) }),
		col("failed_calls", Integer, "of the calls, those that failed", func(e *episodeRow) cell { return integer(e.spent.FailedCalls) }),
		col("failed_acts", Integer, "of the acts, those that failed", func(e *episodeRow) cell { return integer(e.spent.FailedActs) }),
		col("input_tokens", Integer, "tokens of all its prompts that a model read for this run: none of calls that were copied, or answered from Parley's own cache", func(e *episodeRow) cell { return integer(e.spent.Usage.Input) }),
		col("cached_tokens", Integer, "of these, read from the provider's cache", func(e *episodeRow) cell { return integer(e.spent.Usage.Cached) }),
		col("output_tokens", Integer, "tokens of all its answers", func(e *episodeRow) cell { return integer(e.spent.Usage.Output) }),
		col("reasoning_tokens", Integer, "of these, reasoning", func(e *episodeRow) cell { return integer(e.spent.Usage.Reasoning) }),
		col("dollars", Double, "its cost to this run", func(e *episodeRow) cell { return double(e.spent.Cost.Dollars()) }),
		col("ended_at", Time, "when it ended", ofEnded(func(e *journal.Ended) cell { return moment(e.At) })),
	}
}

// ofEnded returns a value that only an episode that ended has.
func ofEnded(of func(*journal.Ended) cell) func(*episodeRow) cell {
	return func(e *episodeRow) cell {
		if e.Ended == nil {
			return cell{}
		}
		return of(e.Ended)
	}
}

// scoreRow is a row of Scores.
type scoreRow struct {
	run string
	*runfile.Listed
	agent     *world.Agent
	variation map[string]string // tags
	unit      world.Unit
	world.Score
}

func (x *export) writeScores(ctx context.Context) error {
	columns := scoreColumns()
	units, err := x.units(ctx)
	if err != nil {
		return err
	}
	return x.each(ctx, func(l *runfile.Listed) error {
		if l.Ended == nil {
			return nil
		}
		var unit world.Unit
		if l.Episode < len(units) { // otherwise it ended since
			unit = units[l.Episode]
		}
		for _, s := range slices.Concat(l.Ended.Outcome.Scores, x.Added[l.Episode]) {
			row := scoreRow{run: x.run, Listed: l, Score: s, unit: unit, agent: x.agent(l.Spec.Lineup[s.Seat]), variation: x.variation(l.Spec.Cell)}
			if err := put(x, columns, &row); err != nil {
				return err
			}
		}
		return nil
	})
}

// units returns what decides whether episodes are independent, by episode: as every mean is computed with.
func (x *export) units(ctx context.Context) ([]world.Unit, error) {
	head, err := x.Store.Head(ctx)
	if x.salvaged(ctx, err) {
		return x.units(ctx)
	}
	if err != nil || head.Begun == nil {
		return nil, err
	}
	var out []world.Unit
	results.Outcomes(head, x.Kind).Each(func(p world.Played) {
		out = append(out, make([]world.Unit, max(0, p.Episode+1-len(out)))...)
		out[p.Episode] = p.Unit
	})
	return out, nil
}

// agent returns the agent with a name.
func (x *export) agent(name string) *world.Agent {
	for i := range x.agents {
		if x.agents[i].Name == name {
			return &x.agents[i]
		}
	}
	return &world.Agent{Name: name}
}

// tagsCell returns tags as JSON, or null without any.
func tagsCell(of ...map[string]string) cell {
	if all := results.JoinTags(of...); all != nil {
		return encoded(all)
	}
	return cell{}
}

func scoreColumns() []column[scoreRow] {
	return []column[scoreRow]{
		few("run", "the id of the run", func(s *scoreRow) cell { return text(s.run) }),
		col("episode", Integer, "the number of its episode, from 0", func(s *scoreRow) cell { return integer(s.Episode) }),
		few("kind", "the kind of the world", func(s *scoreRow) cell { return text(s.Spec.Kind) }),
		few("cell", "the cell of the matrix that the episode repeats", func(s *scoreRow) cell { return textOrNull(s.Spec.Cell) }),
		col("deal", Integer, "what the episode's random draws depend on: compare episodes with the same deal", func(s *scoreRow) cell { return integer(s.Spec.Deal) }),
		col("unit", Integer, "scores with the same unit are not independent: their episodes have one deal, or score episodes of one deal, or are of one evolution. null: no other has it", func(s *scoreRow) cell { return integerOrNull(s.unit.Deal) }),
		col("play", Integer, "episodes with the same play are copies, word for word. null: it is not a copy", func(s *scoreRow) cell { return integerOrNull(s.unit.Play) }),
		few("state", "the state of the episode: `ended` or `failed`", func(s *scoreRow) cell { return text(s.State()) }),
		few("seat", "the seat that has the score; null for the whole episode", func(s *scoreRow) cell { return textOrNull(s.Seat) }),
		few("agent", "the name of the agent in the seat", func(s *scoreRow) cell { return textOrNull(s.agent.Name) }),
		few("model", "the model of the agent, as provider/model; null for a bot", func(s *scoreRow) cell { return textOrNull(s.agent.Model) }),
		{Column{Name: "tags", Type: JSON, Doc: "the tags of the agent and of the variation, an object", few: true}, func(s *scoreRow) cell { return tagsCell(s.agent.Tags, s.variation) }},
		few("name", "the name of the score", func(s *scoreRow) cell { return text(s.Name) }),
		col("value", Double, "its value", func(s *scoreRow) cell { return double(s.Value) }),
	}
}

// writeLabels writes the labels of the run, in the order in which people gave them.
func (x *export) writeLabels(ctx context.Context) error {
	set, err := label.Read(ctx, x.Store.Path(), x.run)
	if err != nil {
		return err
	}
	columns := labelColumns()
	for i := range set.All {
		if x.Without[set.All[i].Episode] {
			continue
		}
		if err := put(x, columns, &set.All[i]); err != nil {
			return err
		}
	}
	return nil
}

func labelColumns() []column[label.Label] {
	return []column[label.Label]{
		few("run", "the id of the run", func(l *label.Label) cell { return text(l.Run) }),
		col("episode", Integer, "the number of its episode, from 0", func(l *label.Label) cell { return integer(l.Episode) }),
		col("call", Text, "the message that it is about, as TURN:CALL; null for the whole episode", func(l *label.Label) cell { return textOrNull(l.Call) }),
		few("tag", "a word for what the person saw", func(l *label.Label) cell { return textOrNull(l.Tag) }),
		few("verdict", "`pass`, `fail` or `unsure`", func(l *label.Label) cell { return textOrNull(string(l.Verdict)) }),
		col("note", Text, "a text", func(l *label.Label) cell { return textOrNull(l.Note) }),
		few("by", "the person, if they gave a name", func(l *label.Label) cell { return textOrNull(l.By) }),
		col("at", Time, "when it was given", func(l *label.Label) cell { return moment(l.At) }),
	}
}

// AllTables lists the tables of a run of a kind: Tables, and those that the kind makes.
func AllTables(kind world.Kind) []Table { return append(tables(), TablesOf(kind)...) }

// TablesOf lists the tables that a kind makes.
func TablesOf(kind world.Kind) (all []Table) {
	for _, t := range noteTables(kind) {
		all = append(all, Table(t.Name))
	}
	return all
}

// noteTables returns the tables that a kind makes.
func noteTables(kind world.Kind) []part.NoteTable {
	var all []part.NoteTable
	for _, k := range kind.All() {
		maker, ok := world.As[part.Tabulator](k)
		if !ok {
			continue
		}
		for _, t := range maker.Tables() {
			rows := t.Rows
			t.Rows = func(p world.Played, notes []world.Note) [][]any {
				if kind.Of(p.Spec).Name != k.Name {
					return nil
				}
				return rows(p, notes)
			}
			all = append(all, t)
		}
	}
	return all
}

// noteTable returns a table that a kind makes, or nil.
func noteTable(kind world.Kind, name Table) *part.NoteTable {
	all := noteTables(kind)
	if i := slices.IndexFunc(all, func(t part.NoteTable) bool { return t.Name == string(name) }); i >= 0 {
		return &all[i]
	}
	return nil
}

// noteRow is a row of a table that a kind makes.
type noteRow struct {
	run string
	world.Played
	cells []any
}

// writeNotes writes a table that the kind makes from the notes of each episode that ended.
func (x *export) writeNotes(ctx context.Context, t *part.NoteTable) error {
	run, err := results.Fold(ctx, x.Store, x.Store.Path())
	if err != nil {
		return err
	}
	run.Know(x.Kind)
	run.Everything = true // an export has the data, and computes nothing
	columns := noteColumns(t)
	return run.EachWithData(ctx, x.Store, func(p world.Played) error {
		if x.Without[p.Episode] {
			return nil
		}
		episode, err := results.ReadTranscript(ctx, x.Store, run.Head, x.Kind, p.Episode)
		if err != nil {
			return err
		}
		var rows [][]any
		if err := results.CallKind(x.Kind, "Tables", func() error { rows = t.Rows(p, episode.Notes); return nil }); err != nil {
			return fmt.Errorf("the table %s of episode %d: %w", t.Name, p.Episode, err)
		}
		for _, cells := range rows {
			if err := t.Check(cells); err != nil {
				return fmt.Errorf("the kind %s: a row of the table %s, of episode %d: %w", x.Kind.Name, t.Name, p.Episode, err)
			}
			if err := put(x, columns, &noteRow{run: x.run, Played: p, cells: cells}); err != nil {
				return err
			}
		}
		return nil
	})
}

// noteColumns returns the columns of a table that a kind makes.
func noteColumns(t *part.NoteTable) []column[noteRow] {
	all := []column[noteRow]{
		few("run", "the id of the run", func(r *noteRow) cell { return text(r.run) }),
		col("episode", Integer, "the number of its episode, from 0", func(r *noteRow) cell { return integer(r.Episode) }),
		few("cell", "the cell of the matrix that the episode repeats", func(r *noteRow) cell { return textOrNull(r.Spec.Cell) }),
		col("deal", Integer, "what the episode's random draws depend on", func(r *noteRow) cell { return integer(r.Spec.Deal) }),
	}
	for i, c := range t.Columns {
		all = append(all, col(c.Name, Type(c.Type), c.Doc, func(r *noteRow) cell { return noteCell(r.cells[i]) }))
	}
	return all
}

func noteCell(v any) cell {
	switch v := v.(type) {
	case string:
		return textOrNull(v)
	case int:
		return integer(v)
	case float64:
		return double(v)
	case bool:
		return boolean(v)
	}
	return cell{}
}
