package diplomacy

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// The answers of players. Their forms never change within a game, so that providers can cache
// them; the rules check whether an order is legal.

// diaryAnswer has an entry, the relations that changed, and the goals.
type diaryAnswer struct {
	Diary     string
	Relations []struct{ Power, Relation string }
	Goals     []string
}

// ordersAnswer has orders, the reason for them, and a vote where there is one. After talks it
// has a diary entry instead of the reason.
type ordersAnswer struct {
	diaryAnswer
	Reason string
	Orders []string
	Vote   string
}

// messagesAnswer has the messages of a power in a round.
type messagesAnswer struct{ Messages []Draft }

// textAnswer has a plan, or the summary of years.
type textAnswer struct{ Text string }

// promisesAnswer has the promises that the judge found.
type promisesAnswer struct{ Promises []promiseDraft }

type promiseDraft struct{ From, To, Kind, Unit, Place, Quote string }

// decode reads an answer. It reports false for a failed call and for another form.
func decode[T any](r world.Reply) (answer T, ok bool) {
	if !r.OK() || len(r.JSON) == 0 {
		return answer, false
	}
	var v T
	if json.Unmarshal(r.JSON, &v) != nil {
		return answer, false
	}
	return v, true
}

// property is a field of an answer and its schema.
type property struct{ name, form string }

// schema returns the schema of an object whose properties are all required.
func schema(name string, properties ...property) *llm.Schema {
	return &llm.Schema{Name: "diplomacy_" + name, JSON: json.RawMessage(object(properties...))}
}

func object(properties ...property) string {
	var fields, names []string
	for _, p := range properties {
		fields = append(fields, fmt.Sprintf("%q:%s", p.name, p.form))
		names = append(names, fmt.Sprintf("%q", p.name))
	}
	return fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`, strings.Join(fields, ","), strings.Join(names, ","))
}

const text = `{"type":"string"}`

func list(of string) string { return `{"type":"array","items":` + of + `}` }

func oneOf(values ...string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = fmt.Sprintf("%q", v)
	}
	return `{"type":"string","enum":[` + strings.Join(quoted, ",") + `]}`
}

// forms are the schemas of a game.
type forms struct {
	diary, start, messages, text, promises *llm.Schema
	orders                                 [2][2]*llm.Schema // after talks or not, with a vote or not
}

func newForms() *forms {
	relation := object(property{"power", oneOf(rules.PowerNames()...)}, property{"relation", oneOf(labels()...)})
	relations, goals := property{"relations", list(relation)}, property{"goals", list(text)}
	reason, entry, orders := property{"reason", text}, property{"diary", text}, property{"orders", list(text)}
	to := property{"to", oneOf(append(rules.PowerNames(), pressAll)...)}
	vote := oneOf(append([]string{voteContinue, voteDraw}, rules.PowerNames()...)...)
	promise := object(property{"from", oneOf(rules.PowerNames()...)}, to, property{"kind", oneOf(promiseKinds()...)}, property{"unit", text}, property{"place", text}, property{"quote", text})
	f := &forms{
		diary:    schema("diary", entry, relations, goals),
		start:    schema("start", relations, goals),
		messages: schema("messages", property{"messages", list(object(to, property{"text", text}))}),
		text:     schema("text", property{"text", text}),
		promises: schema("promises", property{"promises", list(promise)}),
	}
	f.orders = [2][2]*llm.Schema{
		{schema("orders", reason, orders), schema("orders_and_vote", reason, orders, property{"vote", vote})},
		{schema("diary_and_orders", entry, relations, goals, orders), schema("diary_orders_and_vote", entry, relations, goals, orders, property{"vote", vote})},
	}
	return f
}
