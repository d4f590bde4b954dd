package script

import (
	"encoding/json"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
)

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

// FormCheck is the result of a check.
type FormCheck struct {
	Issues []struct {
		Issue    string `json:"issue"`
		Severity string `json:"severity"`
	} `json:"issues"`
	Explanation string `json:"explanation"`
}

// structured decodes a structured answer, or the JSON object in a text.
func structured(r world.Reply, into any) bool {
	if !r.OK() {
		return false
	}
	if len(r.JSON) > 0 {
		return json.Unmarshal(r.JSON, into) == nil
	}
	from, to := strings.IndexByte(r.Text, '{'), strings.LastIndexByte(r.Text, '}')
	return from >= 0 && to > from && json.Unmarshal([]byte(r.Text[from:to+1]), into) == nil
}

// ReadOpening reads an opening. It is empty if the answer cannot be read.
func ReadOpening(r world.Reply) Opening {
	var o Opening
	if !structured(r, &o) {
		return Opening{}
	}
	o.Statement, o.Coalition.Purpose = textClean(o.Statement, MaxWords), textClean(o.Coalition.Purpose, maxLine)
	for i := range o.Messages {
		o.Messages[i].Text = textClean(o.Messages[i].Text, MaxWords)
	}
	return o
}

// ReadText reads an answer that is one text under a key.
func ReadText(r world.Reply, key string) string {
	var m map[string]any
	if structured(r, &m) {
		value, _ := m[key].(string)
		return textClean(value, MaxWords)
	}
	if r.OK() && len(r.JSON) == 0 {
		return textClean(r.Text, MaxWords)
	}
	return ""
}

// ReadInvite reads an answer to an invitation. It declines if the answer cannot be read.
func ReadInvite(r world.Reply) Invite {
	var a Invite
	if !structured(r, &a) {
		return Invite{}
	}
	a.Answer = textClean(a.Answer, MaxWords)
	return a
}

// ReadJoint reads what a coalition agreed on. It is empty if the answer cannot be read.
func ReadJoint(r world.Reply) Joint {
	var a Joint
	if !structured(r, &a) {
		return Joint{}
	}
	return Joint{textClean(a.Agreement, MaxWords), textClean(a.Statement, MaxWords)}
}

// ReadDecision reads a decision, structured or in sections.
func ReadDecision(r world.Reply) Decision {
	var a Decision
	if !structured(r, &a) {
		a = Decision{}
		if r.OK() && len(r.JSON) == 0 {
			s := sections(r.Text, "long term goals", "short term priorities", "reasoning", "action")
			a = Decision{LongTerm: points(s["long term goals"]), ShortTerm: points(s["short term priorities"]), Reasoning: s["reasoning"], Action: s["action"]}
		}
	}
	return Decision{
		Failed: r.Failed, LongTerm: items(a.LongTerm), ShortTerm: items(a.ShortTerm),
		Reasoning: textClean(a.Reasoning, MaxWords), Action: textClean(a.Action, MaxWords), Reflection: textClean(a.Reflection, maxLine),
	}
}

// ReadUpdate reads the narrator's account. A text without structure or sections is the state itself.
func ReadUpdate(r world.Reply) Update {
	var a Update
	if !structured(r, &a) {
		a = Update{}
		if r.OK() && len(r.JSON) == 0 {
			s := sections(r.Text, "updated state", "key changes", "consequences")
			a = Update{State: s["updated state"], Changes: points(s["key changes"]), Consequences: points(s["consequences"])}
			if a.State == "" {
				a.State = r.Text
			}
		}
	}
	return Update{textClean(a.State, maxState), items(a.Changes), items(a.Consequences), items(a.Hidden), textClean(a.BlackSwan, MaxWords)}
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
	evidence := textClean(a.Evidence, maxLine)
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
	return Reading{Unknown: "no value, or out of range: " + Cut(textClean(value, maxLine), 60), Evidence: evidence}
}

// ReadCheck reads the result of a check. It is unknown if the answer cannot be read.
func ReadCheck(r world.Reply, severity string) (_ FormCheck, unknown bool) {
	var a FormCheck
	if !structured(r, &a) {
		return FormCheck{}, true
	}
	a.Explanation = textClean(a.Explanation, maxLine)
	a.Issues = a.Issues[:min(len(a.Issues), maxItems)]
	kept := a.Issues[:0]
	for _, i := range a.Issues {
		if i.Issue = textClean(i.Issue, maxLine); i.Issue == "" {
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

// items cleans a list of lines.
func items(lines []string) []string {
	var out []string
	for _, line := range lines {
		if line = textClean(line, maxLine); line != "" && len(out) < maxItems {
			out = append(out, line)
		}
	}
	return out
}
