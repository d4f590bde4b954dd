// Part judge gives rewards by the verdict of a model: a score for an episode, or an order of the episodes of a group.
//
// It promises that a score is within the scale; that a judge that gives none leaves the reward missing, with a reason;
// that the text of agents cannot end the record that a judge reads; and that a plan with judgements is a pure fold over
// outcomes, as world.Plan demands.
//
// It is not for playing: package rules asks the judge after the last step. It is not for scores that are no rewards:
// parley score adds those to any run.

package rules

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
)

// JudgeParams say how a judge takes part in rewards.
type JudgeParams struct {
	Rubric  string    `json:"rubric" doc:"What the judge looks for. Empty: no judge, the environment alone gives rewards."`
	By      string    `json:"by" doc:"What is judged in one call: episode gives each agent that is trained a score; group puts the episodes of a group in order, when all have ended." oneof:"episode,group"`
	Seat    string    `json:"seat" doc:"Name of the judge's seat, for the lineup. It is not an agent of the environment."`
	Scale   []float64 `json:"scale" doc:"Lowest and highest score. In a group, the best episode gets the highest, the worst the lowest, and the others lie evenly between them."`
	Combine string    `json:"combine" doc:"How the reward is made of the environment's reward and weight times the score: add is their sum, multiply their product, replace the score alone." oneof:"add,multiply,replace"`
	Weight  float64   `json:"weight" doc:"The score is multiplied by this."`
	MaxText int       `json:"max_text" doc:"Maximum number of bytes that the judge reads, over all episodes of a call: 1000 to 1000000. The middle of longer records is left out."`
}

// What is judged in one call, and how rewards are combined.
const (
	ByEpisode = "episode"
	byGroup   = "group"

	Add      = "add"
	Multiply = "multiply"
	Replace  = "replace"
)

// judgeDefaults returns a judge that is off.
func judgeDefaults() JudgeParams {
	return JudgeParams{By: ByEpisode, Seat: "judge", Scale: []float64{0, 1}, Combine: Add, Weight: 1, MaxText: 60_000}
}

// On reports whether there is a judge.
func (p JudgeParams) On() bool { return p.Rubric != "" }

// OfGroups reports whether a judge compares the episodes of groups.
func (p JudgeParams) OfGroups() bool { return p.On() && p.By == byGroup }

// Seats returns the seats of the environment, and that of the judge.
func (p JudgeParams) Seats(seats []string) []string {
	if !p.On() {
		return seats
	}
	return append(slices.Clip(seats), p.Seat)
}

// Check reports wrong values. seats are those of the environment, and named checks the name of one.
func (p JudgeParams) Check(c *world.ParamErrors, seats []string, named func(string) bool) {
	c.OneOf("judge.by", p.By, []string{ByEpisode, byGroup})
	c.OneOf("judge.combine", p.Combine, []string{Add, Multiply, Replace})
	c.Between("judge.weight", p.Weight, -1e6, 1e6)
	c.IntRange("judge.max_text", p.MaxText, 1000, 1_000_000)
	if len(p.Scale) != 2 || !(p.Scale[0] < p.Scale[1]) || math.Abs(p.Scale[0]) > 1e6 || math.Abs(p.Scale[1]) > 1e6 {
		c.Addf("judge.scale", "%v: want the lowest and the highest score, such as [0, 1]", p.Scale)
	}
	if !p.On() {
		return
	}
	switch {
	case !named(p.Seat):
		c.Addf("judge.seat", "%.40q: want a name of letters, digits and _ . : -", p.Seat)
	case slices.Contains(seats, p.Seat):
		c.Addf("judge.seat", "%s is an agent of the environment: give the judge another name, and seat it in the lineup", p.Seat)
	}
	if p.By == byGroup && len(seats) > 1 {
		c.Addf("judge.by", "group compares episodes of one agent, and params.seats has %d: use episode", len(seats))
	}
}

// Reward returns the reward that a score makes of the environment's.
func (p JudgeParams) Reward(environment, score float64) float64 {
	switch p.Combine {
	case Multiply:
		return environment * p.Weight * score
	case Replace:
		return p.Weight * score
	default:
		return environment + p.Weight*score
	}
}

// Verdict is what a judge said about one seat of an episode.
type Verdict struct {
	Seat    string `json:"seat,omitempty"`
	Episode int    `json:"episode,omitempty"` // of a group
	// Environment is the environment's reward, and Reward what it and the score make together.
	Environment float64 `json:"environment"`
	Score       float64 `json:"score"`
	Reward      float64 `json:"reward"`
	Reason      string  `json:"reason,omitempty"`
}

// Score asks the judge about the seats of an episode and returns a score for each, and its reason. failed says why there
// are none.
func (p JudgeParams) Score(t *world.Table, record Record, seats []string) (scores map[string]float64, reason, failed string) {
	fields, required := map[string]any{"reason": map[string]any{"type": "string", "description": "Why, in a sentence or two."}}, []string{"reason"}
	names := map[string]string{} // of fields, by seat: names of seats may not be names of fields
	for i, seat := range seats {
		name := "score"
		if len(seats) > 1 {
			name = fmt.Sprintf("score_%d", i+1)
		}
		names[seat] = name
		fields[name] = map[string]any{"type": "number", "minimum": p.Scale[0], "maximum": p.Scale[1], "description": "The score of " + seat + "."}
		required = append(required, name)
	}
	text := fmt.Sprintf("Judge what %s did in the record.\n\n%s\n\n%s\n\nGive a reason, and then a score from %g to %g for %s, as JSON.",
		strings.Join(seats, " and "), p.Rubric, wrapped("record", record.Text(p.MaxText)), p.Scale[0], p.Scale[1], strings.Join(seats, ", for "))
	got, failed := ask[map[string]any](t, p.Seat, "judge", text, fields, required)
	if failed != "" {
		return nil, "", failed
	}
	scores = map[string]float64{}
	for _, seat := range seats {
		x, ok := got[names[seat]].(float64)
		if !ok || !(x >= p.Scale[0] && x <= p.Scale[1]) {
			return nil, "", fmt.Sprintf("it gave %s no score from %g to %g", seat, p.Scale[0], p.Scale[1])
		}
		scores[seat] = x
	}
	reason, _ = got["reason"].(string)
	return scores, world.Shorten(reason, maxReason), ""
}

// ask asks a judge for a JSON object with these fields.
func ask[T any](t *world.Table, seat, label, text string, fields map[string]any, required []string) (into T, failed string) {
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": fields, "required": required, "additionalProperties": false})
	if err != nil {
		return into, err.Error()
	}
	r := t.One(world.Call{Seat: seat, Label: label, Ask: llm.Request{
		Messages: []llm.Message{llm.User(text)}, Schema: &llm.Schema{Name: "verdict", JSON: schema},
	}})
	switch {
	case !r.OK():
		return into, strings.ReplaceAll(string(r.Failed), "_", " ")
	case json.Unmarshal(r.JSON, &into) != nil:
		return into, "its answer is no verdict"
	}
	return into, ""
}

// maxReason is how many bytes of a reason are kept: a model wrote it.
const maxReason = 1000
