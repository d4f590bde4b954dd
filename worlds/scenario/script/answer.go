package script

import (
	"encoding/json"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
)

// This file has the schemas of what models are asked, and reads their answers. What models write is cleaned and cut to a
// bounded length.

// The limits of what is kept of an answer, in characters, and of a list. Later questions
// repeat what is kept.
const (
	maxLine  = 1_000
	MaxWords = 8_000
	maxState = 40_000
	maxItems = 20
)

// Opening is what an actor says before everybody decides.
type Opening struct {
	Statement string `json:"public_statement"`
	Messages  []struct {
		To   string `json:"to"`
		Text string `json:"text"`
	} `json:"messages"`
	Coalition struct {
		Members []string `json:"members"`
		Purpose string   `json:"purpose"`
	} `json:"coalition"`
}

// Invite is the answer to an invitation to a coalition.
type Invite struct {
	Accept bool   `json:"accept"`
	Answer string `json:"answer"`
}

// Joint is what the proposer of a coalition writes once it is formed.
type Joint struct {
	Agreement string `json:"agreement"`
	Statement string `json:"joint_statement"`
}

// Decision is what an actor does in a turn.
type Decision struct {
	Failed     llm.Kind `json:"-"` // why it is missing
	LongTerm   []string `json:"long_term_goals"`
	ShortTerm  []string `json:"short_term_goals"`
	Reasoning  string   `json:"reasoning"`
	Action     string   `json:"action"`
	Reflection string   `json:"reflection"`
}

// Update is the narrator's account of a turn.
type Update struct {
	State        string   `json:"state"`
	Changes      []string `json:"key_changes"`
	Consequences []string `json:"consequences"`
	Hidden       []string `json:"hidden"`
	BlackSwan    string   `json:"black_swan"`
}

type metricAnswer struct {
	Known    bool            `json:"known"`
	Value    json.RawMessage `json:"value"`
	Evidence string          `json:"evidence"`
}

// CheckAnswer is the result of a check.
type CheckAnswer struct {
	Issues []struct {
		Issue    string `json:"issue"`
		Severity string `json:"severity"`
	} `json:"issues"`
	Explanation string `json:"explanation"`
}

// structured decodes an answer. Whoever answers a call with a schema, the reply has valid JSON or has failed.
func structured(r world.Reply, into any) bool {
	return r.OK() && json.Unmarshal(r.JSON, into) == nil
}

// ReadOpening reads an opening. It is empty if the answer cannot be read.
func ReadOpening(r world.Reply) Opening {
	var o Opening
	if !structured(r, &o) {
		return Opening{}
	}
	o.Statement, o.Coalition.Purpose = clean(o.Statement, MaxWords), clean(o.Coalition.Purpose, maxLine)
	for i := range o.Messages {
		o.Messages[i].Text = clean(o.Messages[i].Text, MaxWords)
	}
	return o
}

// ReadText reads an answer that is one text under a key.
func ReadText(r world.Reply, key string) string {
	var m map[string]any
	if !structured(r, &m) {
		return ""
	}
	value, _ := m[key].(string)
	return clean(value, MaxWords)
}

// ReadInvite reads an answer to an invitation. It declines if the answer cannot be read.
func ReadInvite(r world.Reply) Invite {
	var a Invite
	if !structured(r, &a) {
		return Invite{}
	}
	a.Answer = clean(a.Answer, MaxWords)
	return a
}

// ReadJoint reads what a coalition agreed on. It is empty if the answer cannot be read.
func ReadJoint(r world.Reply) Joint {
	var a Joint
	if !structured(r, &a) {
		return Joint{}
	}
	return Joint{clean(a.Agreement, MaxWords), clean(a.Statement, MaxWords)}
}

// ReadDecision reads a decision. The actor does nothing if the answer cannot be read.
func ReadDecision(r world.Reply) Decision {
	var a Decision
	if !structured(r, &a) {
		return Decision{Failed: r.Failed}
	}
	return Decision{
		LongTerm: cleanLines(a.LongTerm), ShortTerm: cleanLines(a.ShortTerm),
		Reasoning: clean(a.Reasoning, MaxWords), Action: clean(a.Action, MaxWords), Reflection: clean(a.Reflection, maxLine),
	}
}

// ReadUpdate reads the narrator's account. It is empty if the answer cannot be read.
func ReadUpdate(r world.Reply) Update {
	var a Update
	if !structured(r, &a) {
		return Update{}
	}
	return Update{clean(a.State, maxState), cleanLines(a.Changes), cleanLines(a.Consequences), cleanLines(a.Hidden), clean(a.BlackSwan, MaxWords)}
}

// NoAnswer is the reason why a metric is unknown if its question was not answered.
const NoAnswer = "no answer"

// ReadMetric reads the value of a metric. A value outside its range
// is unknown.
func ReadMetric(r world.Reply, m *Metric) Reading {
	var a metricAnswer
	if !structured(r, &a) {
		return Reading{Unknown: NoAnswer}
	}
	evidence := clean(a.Evidence, maxLine)
	if !a.Known {
		return Reading{Unknown: "the text does not say", Evidence: evidence}
	}
	var value string
	if json.Unmarshal(a.Value, &value) != nil {
		value = string(a.Value)
	}
	if v, ok := m.Read(value); ok {
		return Reading{Value: v, Evidence: evidence}
	}
	return Reading{Unknown: "no value, or out of range: " + Cut(clean(value, maxLine), 60), Evidence: evidence}
}

// ReadCheck reads the result of a check. It is unknown if the answer cannot be read.
func ReadCheck(r world.Reply, severity string) (_ CheckAnswer, unknown bool) {
	var a CheckAnswer
	if !structured(r, &a) {
		return CheckAnswer{}, true
	}
	a.Explanation = clean(a.Explanation, maxLine)
	a.Issues = a.Issues[:min(len(a.Issues), maxItems)]
	kept := a.Issues[:0]
	for _, i := range a.Issues {
		if i.Issue = clean(i.Issue, maxLine); i.Issue == "" {
			continue
		}
		if !slices.Contains(Severities(), i.Severity) {
			i.Severity = severity
		}
		kept = append(kept, i)
	}
	a.Issues = kept
	return a, false
}

// cleanLines cleans a list of lines.
func cleanLines(lines []string) []string {
	var out []string
	for _, line := range lines {
		if line = clean(line, maxLine); line != "" && len(out) < maxItems {
			out = append(out, line)
		}
	}
	return out
}

// property is one member of an object. Members are in the order in which a model writes them:
// reasoning comes before the decision.
type property struct {
	name   string
	schema map[string]any
}

// schemaOf returns the schema of an object with these members. All are required: a text may be empty, and a list may
// have no items.
func schemaOf(name string, members ...property) *llm.Schema {
	return &llm.Schema{Name: name, JSON: objectSchema(members...)}
}

// objectSchema writes the members in their order, which a map would lose.
func objectSchema(members ...property) json.RawMessage {
	properties, required := make([]string, len(members)), make([]string, len(members))
	for i, m := range members {
		required[i] = marshal(m.name)
		properties[i] = required[i] + ":" + marshal(m.schema)
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") +
		`},"required":[` + strings.Join(required, ",") + `],"additionalProperties":false}`)
}

func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "true" // not reached: names, and maps of plain values
	}
	return string(b)
}

func textProperty(name, doc string) property {
	return property{name, map[string]any{"type": "string", "description": doc}}
}

func textsProperty(name, doc string) property {
	return property{name, map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "maxItems": 10, "description": doc}}
}

func boolProperty(name, doc string) property {
	return property{name, map[string]any{"type": "boolean", "description": doc}}
}

func enumProperty(name, doc string, of []string) property {
	return property{name, map[string]any{"type": "string", "enum": of, "description": doc}}
}

func listProperty(name, doc string, limit int, members ...property) property {
	return property{name, map[string]any{"type": "array", "items": objectSchema(members...), "maxItems": limit, "description": doc}}
}

// OpeningSchema has only the ways to speak that the scenario allows, to the others.
func OpeningSchema(talk Talk, others []string) *llm.Schema {
	var members []property
	if talk.Statements {
		members = append(members, textProperty("public_statement", "What you say in public, or an empty text."))
	}
	if talk.Bilateral && len(others) > 0 {
		members = append(members, listProperty("messages", "Private messages, at most one to each; none is fine.", talk.Max,
			enumProperty("to", "Whom it is for.", others), textProperty("text", "What you write.")))
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
	return schemaOf("reply", textProperty("reply", "What you write back; an empty text ends the exchange."))
}

// InviteSchema is the schema of Invite.
func InviteSchema() *llm.Schema {
	return schemaOf("invitation", textProperty("answer", "What you write to the others who were invited."), boolProperty("accept", "Whether you join."))
}

// JointSchema is the schema of Joint.
func JointSchema() *llm.Schema {
	return schemaOf("coalition",
		textProperty("agreement", "What the members agreed on. Only they read it."),
		textProperty("joint_statement", "What the coalition says in public, or an empty text to keep it secret."))
}

// DecisionSchema is the schema of Decision, with a reflection if actors reflect.
func DecisionSchema(reflect bool) *llm.Schema {
	members := []property{
		textProperty("reasoning", "Why you do it. Nobody else reads this."),
		textsProperty("long_term_goals", "Your long-term goals as they are now: keep, change or drop them as the situation asks."),
		textsProperty("short_term_goals", "What matters most to you in the next turns."),
	}
	if reflect {
		members = append(members, textProperty("reflection", "What you have learned so far, for yourself in later turns."))
	}
	return schemaOf("decision", append(members, textProperty("action", "What you do in this turn: concrete, within your means."))...)
}

// UpdateSchema is the schema of Update, with an unforeseen event if there is one.
func UpdateSchema(swan bool) *llm.Schema {
	var members []property
	if swan {
		members = append(members, textProperty("black_swan", "What happens that nobody foresaw."))
	}
	return schemaOf("update", append(members,
		textProperty("state", "The situation after the turn, complete: it takes the place of the one before."),
		textsProperty("key_changes", "What changed, a line each."),
		textsProperty("consequences", "What is likely to follow, a line each."),
		textsProperty("hidden", "What is true and not known in public, a line each: keep what still holds of the earlier ones."),
	)...)
}

// SummarySchema is the schema of a summary.
func SummarySchema() *llm.Schema {
	return schemaOf("summary", textProperty("summary", "The summary, 200 to 400 words."))
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
		textProperty("evidence", "What in the text shows it, in a sentence."),
		boolProperty("known", "Whether the text says enough to tell."), value)
}

// CheckSchema is the schema of Check.
func CheckSchema() *llm.Schema {
	return schemaOf("check",
		textProperty("explanation", "What you looked at, in a sentence or two."),
		listProperty("issues", "What is wrong; no items if nothing is.", 10,
			textProperty("issue", "What is wrong, in a sentence."), enumProperty("severity", "How bad it is.", Severities())))
}
