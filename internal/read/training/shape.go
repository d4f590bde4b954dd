package training

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"parley/llm"
	"parley/world"
)

// Shape is what a record is: a row of ours, or what another program reads.
type Shape string

// The shapes. Those after Sequences are JSON lines only.
const (
	Rows      Shape = "rows"      // answers, as Row
	Sequences Shape = "sequences" // parts with token ids, as Sequence
	TRLSFT    Shape = "trl-sft"   // prompts and what follows, for TRL's SFTTrainer
	TRLDPO    Shape = "trl-dpo"   // the best and the worst of a group, for TRL's DPOTrainer
	TRLGRPO   Shape = "trl-grpo"  // the prompts of groups, for TRL's GRPOTrainer
	Slime     Shape = "slime"     // parts, with the names of slime's Sample
	VeRL      Shape = "verl"      // parts, with the names of veRL's AgentLoopOutput
	AReaL     Shape = "areal"     // parts, with the names of AReaL's trajectories
	OpenAIFT  Shape = "openai-ft" // conversations, for OpenAI's fine-tuning
)

// Shapes lists them.
func Shapes() []Shape {
	return []Shape{Rows, Sequences, TRLSFT, TRLDPO, TRLGRPO, Slime, VeRL, AReaL, OpenAIFT}
}

// Tokens reports whether records of this shape are made of token ids.
func (s Shape) Tokens() bool {
	return s == Sequences || s == Slime || s == VeRL || s == AReaL
}

// Sequence is a part of an episode for training: prompt and answers of one agent as tokens.
type Sequence struct {
	Run     string  `json:"run" parquet:"run,dict"`
	Group   string  `json:"group" parquet:"group,dict"`
	Episode int     `json:"episode" parquet:"episode"`
	Attempt int     `json:"attempt" parquet:"attempt"`
	Agent   string  `json:"agent" parquet:"agent,dict"`   // the seat
	Policy  string  `json:"policy" parquet:"policy,dict"` // the agent
	Part    int     `json:"part" parquet:"part"`
	Reward  float64 `json:"reward" parquet:"reward"` // of the seat, in all
	// EnvironmentReward and JudgeScore are the parts of Reward, if there is a judge.
	EnvironmentReward *float64 `json:"environment_reward,omitempty" parquet:"environment_reward,optional"`
	JudgeScore        *float64 `json:"judge_score,omitempty" parquet:"judge_score,optional"`
	Advantage         float64  `json:"advantage" parquet:"advantage"` // of the seat in the episode, as in Row
	Status            string   `json:"status" parquet:"status,dict"`
	// Tokens, LossMask and Logprobs have one length. Logprobs is missing if the server did not return them.
	Tokens   []int     `json:"tokens" parquet:"tokens,list"`
	LossMask []int     `json:"loss_mask" parquet:"loss_mask,list"`
	Logprobs []float64 `json:"logprobs,omitempty" parquet:"logprobs,list"`
	// Starts, Versions and Rewards have one value for each answer, or for each part of one that was continued.
	Starts   []int     `json:"answer_starts" parquet:"answer_starts,list"`
	Versions []string  `json:"weight_versions,omitempty" parquet:"weight_versions,list"`
	Rewards  []float64 `json:"step_rewards" parquet:"step_rewards,list"`
}

// sequences returns the parts of a group that have token ids.
func sequences(g *Group) (all []Sequence) {
	for _, r := range g.parts() {
		if len(r.Tokens) > 0 {
			s := Sequence{
				Run: r.JobID, Group: r.GroupID, Episode: r.Episode, Attempt: r.Attempt, Agent: r.AgentID, Policy: r.PolicyID, Part: r.Part,
				Reward: r.Return, EnvironmentReward: r.EnvironmentReward, JudgeScore: r.JudgeScore, Status: r.Status, Tokens: r.Tokens, LossMask: r.LossMask, Logprobs: r.Logprobs,
				Starts: r.Starts, Versions: r.Versions, Rewards: r.Rewards,
			}
			if r.Advantage != nil {
				s.Advantage = *r.Advantage
			}
			all = append(all, s)
		}
	}
	return all
}

// parts returns the trainable rows of an episode, in order: each has a conversation of one agent.
func (t *Trajectory) parts() (all []*Row) {
	for i := range t.Rows {
		if t.Rows[i].IsTrainable {
			all = append(all, &t.Rows[i])
		}
	}
	return all
}

// parts returns those of all episodes.
func (g *Group) parts() (all []*Row) {
	for _, m := range g.Members {
		all = append(all, m.parts()...)
	}
	return all
}

// written counts what was written before, for programs whose names are numbers.
type written struct{ groups, episodes, records int }

// shaped returns what another program reads of a group. It calls left with the reason for each record that is not made.
func shaped(g *Group, as Shape, before *written, left func(why string)) (all []any, err error) {
	switch as {
	case TRLSFT, OpenAIFT:
		return g.whole(as == OpenAIFT)
	case TRLDPO:
		return g.pairs(left)
	case TRLGRPO:
		return g.prompts(left)
	default:
		groups, episodes := map[string]int{}, map[string]int{}
		number := func(of map[string]int, key string, next *int) int {
			n, ok := of[key]
			if !ok {
				n = *next
				of[key], *next = n, n+1
			}
			return n
		}
		for _, s := range sequences(g) {
			at := written{
				groups: number(groups, s.Agent, &before.groups), records: before.records,
				episodes: number(episodes, fmt.Sprint(s.Episode, " ", s.Agent), &before.episodes),
			}
			before.records++
			all = append(all, s.shaped(as, at))
		}
	}
	return all, nil
}

// peers names what an episode is compared with: the same seat in the group's other episodes.
func peers(group, seat string) string { return group + "/" + seat }

// shaped returns s with the names of another program.
func (s *Sequence) shaped(as Shape, at written) any {
	from := s.Starts[0] // everything after the first prompt is the response
	tail := func(of []float64) []float64 { return of[min(from, len(of)):] }
	switch as {
	case Slime:
		return map[string]any{
			"group_index": at.groups, "index": at.records, "rollout_id": at.episodes, "tokens": s.Tokens, "response_length": len(s.Tokens) - from, "loss_mask": s.LossMask[from:],
			"rollout_log_probs": tail(s.Logprobs), "weight_versions": append([]string{}, s.Versions...), "reward": s.Reward, "status": s.Status,
			"metadata": map[string]any{"run": s.Run, "group": peers(s.Group, s.Agent), "episode": s.Episode, "agent": s.Agent, "part": s.Part, "advantage": s.Advantage},
		}
	case VeRL:
		return map[string]any{
			"prompt_ids": s.Tokens[:from], "response_ids": s.Tokens[from:], "response_mask": s.LossMask[from:], "response_logprobs": tail(s.Logprobs),
			"reward_score": s.Reward, "num_turns": 2 * s.answers(), "uid": peers(s.Group, s.Agent),
			"metrics":      map[string]any{"generate_sequences": 0.0, "tool_calls": 0.0, "compute_score": 0.0}, // it has no default
			"extra_fields": map[string]any{"run": s.Run, "episode": s.Episode, "agent": s.Agent, "part": s.Part, "weight_versions": s.Versions, "advantage": s.Advantage},
		}
	default: // AReaL
		return map[string]any{
			"input_ids": s.Tokens, "loss_mask": s.LossMask, "logprobs": s.Logprobs, "versions": s.versions(), "attention_mask": ones(len(s.Tokens)),
			"rewards": s.Reward, "advantage": s.Advantage, "group": peers(s.Group, s.Agent), "episode": s.Episode, "agent": s.Agent, "part": s.Part,
		}
	}
}

// answers counts the answers. What follows a token that the model wrote is a part of an answer that was continued.
func (s *Sequence) answers() (n int) {
	for _, at := range s.Starts {
		if at == 0 || s.LossMask[at-1] == 0 {
			n++
		}
	}
	return n
}

// versions returns the version of each token: -1 for those that the model did not write, or whose version is no number.
func (s *Sequence) versions() []int {
	out := make([]int, len(s.Tokens))
	answer, version := -1, -1
	for i := range out {
		if answer+1 < len(s.Starts) && i == s.Starts[answer+1] {
			answer++
			version = -1
			if answer < len(s.Versions) {
				if v, err := strconv.Atoi(s.Versions[answer]); err == nil {
					version = v
				}
			}
		}
		if out[i] = -1; s.LossMask[i] == 1 {
			out[i] = version
		}
	}
	return out
}

func ones(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// Reasons why there is no record.
const (
	leftParts   = "several parts"     // no episode, or only one for a pair, is a single conversation
	leftEqual   = "equal reward"      // the best episode is no better than the worst
	leftPrompts = "different prompts" // the best and the worst episode do not answer the same
	leftSingle  = "one episode"       // there is nothing to compare it with
)

// single returns the only part of each episode, by seat, and how many episodes a seat has parts in. Episodes with several
// parts have no only one.
func (g *Group) single() (of map[string][]*Row, episodes map[string]int) {
	of, episodes = map[string][]*Row{}, map[string]int{}
	for _, m := range g.Members {
		by := map[string][]*Row{}
		for _, r := range m.parts() {
			by[r.AgentID] = append(by[r.AgentID], r)
		}
		for seat, all := range by {
			if episodes[seat]++; len(all) == 1 {
				of[seat] = append(of[seat], all[0])
			}
		}
	}
	return of, episodes
}

// pairs returns the best and the worst episode of each seat, for TRL. It calls left with the reason if a seat has no pair.
func (g *Group) pairs(left func(why string)) (all []any, err error) {
	of, episodes := g.single()
	for _, seat := range slices.Sorted(maps.Keys(episodes)) {
		record, why, err := pair(of[seat], episodes[seat])
		switch {
		case err != nil:
			return nil, err
		case why != "":
			left(why)
		default:
			all = append(all, record)
		}
	}
	return all, nil
}

// pair returns the best and the worst of the parts of a seat, or why there is no pair.
func pair(of []*Row, episodes int) (record map[string]any, why string, err error) {
	switch {
	case episodes < 2:
		return nil, leftSingle, nil
	case len(of) < 2:
		return nil, leftParts, nil
	}
	best, worst := slices.MaxFunc(of, byReturn), slices.MinFunc(of, byReturn)
	if best.Return == worst.Return {
		return nil, leftEqual, nil
	}
	prompt, chosen, err := best.split()
	if err != nil {
		return nil, "", err
	}
	same, rejected, err := worst.split()
	if err != nil {
		return nil, "", err
	}
	if string(prompt) != string(same) {
		return nil, leftPrompts, nil
	}
	record, err = best.record(false, map[string]json.RawMessage{"prompt": prompt, "chosen": chosen, "rejected": rejected})
	return record, "", err
}

func byReturn(a, b *Row) int { return cmp.Compare(a.Return, b.Return) }

// prompts returns the first prompt of each seat, with what names the task, for TRL. It calls left with the reason if a seat
// has none.
func (g *Group) prompts(left func(why string)) (all []any, err error) {
	of, episodes := g.single()
	for _, seat := range slices.Sorted(maps.Keys(episodes)) {
		if len(of[seat]) == 0 {
			left(leftParts)
			continue
		}
		first := of[seat][0]
		prompt, _, err := first.split()
		if err != nil {
			return nil, err
		}
		record, err := first.record(false, map[string]json.RawMessage{"prompt": prompt})
		if err != nil {
			return nil, err
		}
		record["group"], record["env"], record["agent"] = g.ID, first.EnvName, seat
		all = append(all, record)
	}
	return all, nil
}

// whole returns every part, for OpenAI or for TRL. Earlier parts have the answers of its first prompt: those are not trained
// on again. TRL has them in the prompt, and for OpenAI their weight is 0.
func (g *Group) whole(openAI bool) (all []any, err error) {
	for _, r := range g.parts() {
		prompt, rest, err := r.split()
		if err != nil {
			return nil, err
		}
		of := map[string]json.RawMessage{"prompt": prompt, "completion": rest}
		if openAI {
			of = map[string]json.RawMessage{"messages": r.Messages}
		}
		record, err := r.record(openAI, of)
		if err != nil {
			return nil, err
		}
		all = append(all, record)
	}
	return all, nil
}

// split returns the messages of the first prompt, and those after it.
func (r *Row) split() (prompt, rest json.RawMessage, err error) {
	var all []json.RawMessage
	if err := json.Unmarshal(r.Messages, &all); err != nil {
		return nil, nil, err
	}
	if prompt, err = json.Marshal(all[:r.prompt]); err != nil {
		return nil, nil, err
	}
	rest, err = json.Marshal(all[r.prompt:])
	return prompt, rest, err
}

// record returns a record of conversations by name, and the tools, as another program reads them. OpenAI has a list of tools.
// TRL has them as JSON in a text, because a table would give each tool the parameters of all others.
func (r *Row) record(openAI bool, conversations map[string]json.RawMessage) (map[string]any, error) {
	out := map[string]any{}
	for name, raw := range conversations {
		ms, err := r.conventional(raw, !openAI)
		if err != nil {
			return nil, err
		}
		out[name] = ms
	}
	switch {
	case len(r.Tools) == 0:
	case openAI:
		out["tools"] = r.Tools
	default:
		out["tools"] = string(r.Tools)
	}
	return out, nil
}

// conventional returns messages without what only Parley has. For a chat template, as TRL uses, the arguments of calls are objects, as chat templates
// want them, and every message has a content. For OpenAI, answers of the first prompt have the weight 0.
func (r *Row) conventional(raw json.RawMessage, template bool) (any, error) {
	answered := !template && bytes.Contains(raw, []byte(`"assistant"`))
	if !answered && !bytes.Contains(raw, []byte(`"tool`)) && !bytes.Contains(raw, []byte(`"thoughts"`)) {
		return raw, nil
	}
	var ms []struct {
		Role       string     `json:"role"`
		Content    any        `json:"content,omitempty"`
		ToolCalls  []wireCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
		Weight     *int       `json:"weight,omitempty"`
	}
	if err := json.Unmarshal(raw, &ms); err != nil {
		return nil, err
	}
	for i := range ms {
		if !template {
			if i < r.prompt && ms[i].Role == string(llm.RoleAssistant) {
				ms[i].Weight = new(int)
			}
			continue
		}
		if ms[i].Content == nil {
			ms[i].Content = ""
		}
		for k := range ms[i].ToolCalls {
			ms[i].ToolCalls[k].parse()
		}
	}
	return ms, nil
}

// wireCall is a call of a tool in a message.
type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // a text
	} `json:"function"`
}

// parse makes an object of the arguments, unless they are something else.
func (c *wireCall) parse() {
	var text string
	if json.Unmarshal(c.Function.Arguments, &text) == nil && isObject(text) {
		c.Function.Arguments = json.RawMessage(text)
	}
}

func isObject(text string) bool {
	b := bytes.TrimSpace([]byte(text))
	return json.Valid(b) && b[0] == '{'
}

// Format is a file format.
type Format string

// The formats. There is no CSV: a row has lists in it.
const (
	JSONL   Format = "jsonl"
	Parquet Format = "parquet"
)

// Formats lists them.
func Formats() []Format { return []Format{JSONL, Parquet} }

// Write writes what f selects of the run in j, as it is read.
func Write(ctx context.Context, w io.Writer, src Source, kind world.Kind, f Filter, as Shape, in Format) (Account, error) {
	unmade := map[string]int{}
	put, end, err := newWriter(w, as, in, func(why string) { unmade[why]++ })
	if err != nil {
		return Account{}, err
	}
	records := 0
	a, err := Each(ctx, src, kind, f, func(g *Group) error {
		if as != Rows && len(g.parts()) == 0 {
			unmade[leftEmpty]++
		}
		n, err := put(g)
		records += n
		return err
	})
	if a.Rows, a.Unmade = records, unmade; err != nil {
		return a, err
	}
	return a, end()
}

// JSON returns the row as one line without a newline.
func (r *Row) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // what models write is full of < and >
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("trajectory: episode %d: %w", r.Episode, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// newWriter returns a function that writes a group and says how many records that were, and one that writes what
// is buffered. left is called with the reason for each record that is not made.
func newWriter(w io.Writer, as Shape, in Format, left func(why string)) (put func(*Group) (int, error), end func() error, err error) {
	switch {
	case !slices.Contains(Shapes(), as):
		return nil, nil, fmt.Errorf("trajectory: unknown shape %q; want one of %s", as, Shapes())
	case in == JSONL:
		put, end = newLines(w, as, left)
	case in == Parquet && as == Rows:
		put, end = newColumns(w, rowsOf, (*Row).size)
	case in == Parquet && as == Sequences:
		put, end = newColumns(w, sequences, (*Sequence).size)
	case in == Parquet:
		return nil, nil, fmt.Errorf("trajectory: %s is written as jsonl only", as)
	default:
		return nil, nil, fmt.Errorf("trajectory: unknown format %q; want one of jsonl, parquet", in)
	}
	return put, end, nil
}

func rowsOf(g *Group) (all []Row) {
	for _, m := range g.Members {
		all = append(all, m.Rows...)
	}
	return all
}

// newLines writes JSON lines.
func newLines(w io.Writer, as Shape, left func(why string)) (put func(*Group) (int, error), end func() error) {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false) // what models write is full of < and >
	var before written
	put = func(g *Group) (int, error) {
		var all []any
		var err error
		switch as {
		case Rows:
			for _, r := range rowsOf(g) {
				all = append(all, r)
			}
		case Sequences:
			for _, s := range sequences(g) {
				all = append(all, s)
			}
		default:
			if all, err = shaped(g, as, &before, left); err != nil {
				return 0, err
			}
		}
		for _, one := range all {
			if err := e.Encode(one); err != nil {
				return 0, fmt.Errorf("trajectory: group %s: %w", g.ID, err)
			}
		}
		return len(all), nil
	}
	return put, out.Flush
}

const (
	// groupBytes is the approximate size of a Parquet row group before compression: the maximum that is held
	// in memory.
	groupBytes = 32 << 20
	// dictionaryBytes is the size at which a column stops using a dictionary.
	dictionaryBytes = 1 << 20
)

// newColumns writes Parquet, in row groups of bounded size.
func newColumns[T any](w io.Writer, of func(*Group) []T, size func(*T) int) (put func(*Group) (int, error), end func() error) {
	out := parquet.NewGenericWriter[T](w,
		parquet.Compression(&parquet.Zstd), parquet.CreatedBy("parley", "", ""), parquet.DictionaryMaxBytes(dictionaryBytes),
		parquet.ColumnPageBuffers(parquet.NewBufferPool()),
		// Bounds of what models say are long and of no use.
		parquet.SkipPageBounds("messages"), parquet.SkipPageBounds("response"), parquet.SkipPageBounds("reasoning"),
	)
	held := 0 // bytes in this row group
	put = func(g *Group) (int, error) {
		all := of(g)
		for i := range all {
			if _, err := out.Write(all[i : i+1]); err != nil {
				return i, fmt.Errorf("trajectory: parquet: %w", err)
			}
			if held += size(&all[i]); held < groupBytes {
				continue
			}
			held = 0
			if err := out.Flush(); err != nil {
				return i, fmt.Errorf("trajectory: parquet: %w", err)
			}
		}
		return len(all), nil
	}
	end = func() error {
		if err := out.Close(); err != nil {
			return fmt.Errorf("trajectory: parquet: %w", err)
		}
		return nil
	}
	return put, end
}

// size is about how many bytes a row takes before compression.
func (r *Row) size() int {
	return 300 + len(r.Messages) + len(r.Tools) + len(r.Info) + len(r.Dataset) + len(r.Sampling) + len(r.Response) + len(r.Reasoning) + 8*(len(r.Tokens)+len(r.LossMask)+len(r.Logprobs)+4*len(r.Rewards))
}

func (s *Sequence) size() int { return 200 + 8*(3*len(s.Tokens)+4*len(s.Rewards)) }
