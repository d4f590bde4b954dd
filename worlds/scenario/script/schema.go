// Part form has the schemas of answers in scenarios, and reads the answers.
//
// It also reads an answer that is not structured, if it has the expected sections. What models write is
// cleaned and cut to a bounded length.

package script

import (
	"encoding/json"
	"strings"

	"parley/llm"
)

// property is one member of an object. Members are in the order in which a model writes them:
// reasoning comes before the decision.
type property struct {
	name   string
	schema map[string]any
}

// schemaOf returns the schema of an object with these members. All are required: a text may be empty, and a list may
// have no items.
func schemaOf(name string, members ...property) *llm.Schema {
	return &llm.Schema{Name: name, JSON: object(members...)}
}

// object writes the members in their order, which a map would lose.
func object(members ...property) json.RawMessage {
	properties, required := make([]string, len(members)), make([]string, len(members))
	for i, m := range members {
		required[i] = written(m.name)
		properties[i] = required[i] + ":" + written(m.schema)
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") +
		`},"required":[` + strings.Join(required, ",") + `],"additionalProperties":false}`)
}

func written(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "true" // not reached: names, and maps of plain values
	}
	return string(b)
}

func word(name, doc string) property {
	return property{name, map[string]any{"type": "string", "description": doc}}
}

func texts(name, doc string) property {
	return property{name, map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "maxItems": 10, "description": doc}}
}

func truth(name, doc string) property {
	return property{name, map[string]any{"type": "boolean", "description": doc}}
}

func choice(name, doc string, of []string) property {
	return property{name, map[string]any{"type": "string", "enum": of, "description": doc}}
}

func listOf(name, doc string, limit int, members ...property) property {
	return property{name, map[string]any{"type": "array", "items": object(members...), "maxItems": limit, "description": doc}}
}

// OpeningSchema has only the ways to speak that the scenario allows, to the others.
func OpeningSchema(talk Talk, others []string) *llm.Schema {
	var members []property
	if talk.Statements {
		members = append(members, word("public_statement", "What you say in public, or an empty text."))
	}
	if talk.Bilateral && len(others) > 0 {
		members = append(members, listOf("messages", "Private messages, at most one to each; none is fine.", talk.Max,
			choice("to", "Whom it is for.", others), word("text", "What you write.")))
	}
	if talk.Coalitions {
		members = append(members, property{"coalition", map[string]any{
			"type": "object", "description": "A coalition that you propose; without members if you propose none.", "additionalProperties": false,
			"required": []string{"members", "purpose"},
			"properties": map[string]any{
				"members": map[string]any{"type": "array", "maxItems": len(others), "items": map[string]any{"type": "string", "enum": others}},
				"purpose": map[string]any{"type": "string"},
			},
		}})
	}
	return schemaOf("opening", members...)
}

// ReplySchema is the schema of an answer in an exchange.
func ReplySchema() *llm.Schema {
	return schemaOf("reply", word("reply", "What you write back; an empty text ends the exchange."))
}

// InviteSchema is the schema of Invite.
func InviteSchema() *llm.Schema {
	return schemaOf("invitation", word("answer", "What you write to the others who were invited."), truth("accept", "Whether you join."))
}

// JointSchema is the schema of Joint.
func JointSchema() *llm.Schema {
	return schemaOf("coalition",
		word("agreement", "What the members agreed on. Only they read it."),
		word("joint_statement", "What the coalition says in public, or an empty text to keep it secret."))
}

// DecisionSchema is the schema of Decision, with a reflection if actors reflect.
func DecisionSchema(reflect bool) *llm.Schema {
	members := []property{
		word("reasoning", "Why you do it. Nobody else reads this."),
		texts("long_term_goals", "Your long-term goals as they are now: keep, change or drop them as the situation asks."),
		texts("short_term_goals", "What matters most to you in the next turns."),
	}
	if reflect {
		members = append(members, word("reflection", "What you have learned so far, for yourself in later turns."))
	}
	return schemaOf("decision", append(members, word("action", "What you do in this turn: concrete, within your means."))...)
}

// UpdateSchema is the schema of Update, with an unforeseen event if there is one.
func UpdateSchema(swan bool) *llm.Schema {
	var members []property
	if swan {
		members = append(members, word("black_swan", "What happens that nobody foresaw."))
	}
	return schemaOf("update", append(members,
		word("state", "The situation after the turn, complete: it takes the place of the one before."),
		texts("key_changes", "What changed, a line each."),
		texts("consequences", "What is likely to follow, a line each."),
		texts("hidden", "What is true and not known in public, a line each: keep what still holds of the earlier ones."),
	)...)
}

// SummarySchema is the schema of a summary.
func SummarySchema() *llm.Schema {
	return schemaOf("summary", word("summary", "The summary, 200 to 400 words."))
}

// MetricSchema allows the values that a metric can have.
func MetricSchema(m *Metric) *llm.Schema {
	value := property{"value", map[string]any{"description": "The value. Where it is not known, any."}}
	switch m.Type {
	case Categorical:
		value.schema["type"], value.schema["enum"] = "string", m.Categories
	case Boolean:
		value.schema["type"] = "boolean"
	default:
		value.schema["type"], value.schema["minimum"], value.schema["maximum"] = "number", m.Range[0], m.Range[1]
	}
	return schemaOf("metric",
		word("evidence", "What in the text shows it, in a sentence."),
		truth("known", "Whether the text says enough to tell."), value)
}

// CheckSchema is the schema of Check.
func CheckSchema() *llm.Schema {
	return schemaOf("check",
		word("explanation", "What you looked at, in a sentence or two."),
		listOf("issues", "What is wrong; no items if nothing is.", 10,
			word("issue", "What is wrong, in a sentence."), choice("severity", "How bad it is.", Severities())))
}
