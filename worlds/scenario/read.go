package scenario

import (
	"encoding/json"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/scenario/script"
)

// The most that is kept of what a model writes, in characters, and of a list. What is
// said once stands in every later question.
const (
	mostLine  = 1_000
	mostWords = 8_000
	mostState = 40_000
	mostItems = 20
)

type openingAnswer struct {
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

type inviteAnswer struct {
	Accept bool   `json:"accept"`
	Answer string `json:"answer"`
}

type jointAnswer struct {
	Agreement string `json:"agreement"`
	Statement string `json:"joint_statement"`
}

type decisionAnswer struct {
	LongTerm   []string `json:"long_term_goals"`
	ShortTerm  []string `json:"short_term_goals"`
	Reasoning  string   `json:"reasoning"`
	Action     string   `json:"action"`
	Reflection string   `json:"reflection"`
}

type updateAnswer struct {
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

type checkAnswer struct {
	Issues []struct {
		Issue    string `json:"issue"`
		Severity string `json:"severity"`
	} `json:"issues"`
	Explanation string `json:"explanation"`
}

// structured decodes an answer that follows a schema, or one that stands in a text.
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

func readOpening(r world.Reply) openingAnswer {
	var o openingAnswer
	if !structured(r, &o) {
		return openingAnswer{}
	}
	o.Statement, o.Coalition.Purpose = clean(o.Statement, mostWords), clean(o.Coalition.Purpose, mostLine)
	for i := range o.Messages {
		o.Messages[i].Text = clean(o.Messages[i].Text, mostWords)
	}
	return o
}

// readText reads an answer that is one text under a key.
func readText(r world.Reply, key string) string {
	var m map[string]any
	if structured(r, &m) {
		text, _ := m[key].(string)
		return clean(text, mostWords)
	}
	if r.OK() && len(r.JSON) == 0 {
		return clean(r.Text, mostWords)
	}
	return ""
}

func readInvite(r world.Reply) inviteAnswer {
	var a inviteAnswer
	if !structured(r, &a) {
		return inviteAnswer{}
	}
	a.Answer = clean(a.Answer, mostWords)
	return a
}

func readJoint(r world.Reply) jointAnswer {
	var a jointAnswer
	if !structured(r, &a) {
		return jointAnswer{}
	}
	return jointAnswer{clean(a.Agreement, mostWords), clean(a.Statement, mostWords)}
}

// readDecision reads a decision, written by the schema or, where it is none, in sections.
func readDecision(r world.Reply) decision {
	var a decisionAnswer
	if !structured(r, &a) {
		a = decisionAnswer{}
		if r.OK() && len(r.JSON) == 0 {
			s := sections(r.Text, "long term goals", "short term priorities", "reasoning", "action")
			a = decisionAnswer{LongTerm: points(s["long term goals"]), ShortTerm: points(s["short term priorities"]), Reasoning: s["reasoning"], Action: s["action"]}
		}
	}
	return decision{
		failed: r.Failed, long: items(a.LongTerm), short: items(a.ShortTerm),
		reasoning: clean(a.Reasoning, mostWords), action: clean(a.Action, mostWords), reflection: clean(a.Reflection, mostLine),
	}
}

// readUpdate reads the narrator's account. A text without any form is the state itself.
func readUpdate(r world.Reply) updateAnswer {
	var a updateAnswer
	if !structured(r, &a) {
		a = updateAnswer{}
		if r.OK() && len(r.JSON) == 0 {
			s := sections(r.Text, "updated state", "key changes", "consequences")
			a = updateAnswer{State: s["updated state"], Changes: points(s["key changes"]), Consequences: points(s["consequences"])}
			if a.State == "" {
				a.State = r.Text
			}
		}
	}
	return updateAnswer{clean(a.State, mostState), items(a.Changes), items(a.Consequences), items(a.Hidden), clean(a.BlackSwan, mostWords)}
}

// noAnswer is why a metric is unknown whose question was not answered.
const noAnswer = "no answer"

// readMetric reads what a metric is said to be. Whatever is not a value within its range
// is not known.
func readMetric(r world.Reply, m *script.Metric) reading {
	var a metricAnswer
	if !structured(r, &a) {
		return reading{unknown: noAnswer, failed: r.Failed}
	}
	evidence := clean(a.Evidence, mostLine)
	if !a.Known {
		return reading{unknown: "the text does not say", evidence: evidence}
	}
	var text string
	if json.Unmarshal(a.Value, &text) != nil {
		text = string(a.Value)
	}
	if v, ok := m.Read(text); ok {
		return reading{value: v, evidence: evidence}
	}
	return reading{unknown: "no value, or out of range: " + cut(clean(text, mostLine), 60), evidence: evidence}
}

// readCheck reads what a check found. One that cannot be read is not known to be passed.
func readCheck(r world.Reply, severity string) (_ checkAnswer, unknown bool) {
	var a checkAnswer
	if !structured(r, &a) {
		return checkAnswer{}, true
	}
	a.Explanation = clean(a.Explanation, mostLine)
	a.Issues = a.Issues[:min(len(a.Issues), mostItems)]
	kept := a.Issues[:0]
	for _, i := range a.Issues {
		if i.Issue = clean(i.Issue, mostLine); i.Issue == "" {
			continue
		}
		if !slices.Contains(script.Severities(), i.Severity) {
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
		if line = clean(line, mostLine); line != "" && len(out) < mostItems {
			out = append(out, line)
		}
	}
	return out
}

// clean makes a text of a model fit to be kept: valid, without white space around it, of
// a bounded length.
func clean(text string, most int) string {
	return cut(strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")), most)
}

// cut shortens a text to a number of characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// tail keeps the end of a text.
func tail(text string, most int) string {
	text = strings.TrimSpace(text)
	if runes := []rune(text); len(runes) > most {
		return "…" + string(runes[len(runes)-most:])
	}
	return text
}
