package diplomacy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// promptContext holds what a prompt depends on.
type promptContext struct {
	*game
	player   *player
	round    int
	messages string                    // the phase whose messages it shows
	only     rules.Set[rules.Province] // provinces that still need orders; empty: all
	wrong    string
	entries  string
}

// call returns a question to a player: first the text that all players share, then its own.
func (g *game) call(p *player, label, template string, form *llm.Schema, m promptContext) world.Call {
	value := g.values(p, m)
	own := p.set.fill(promptSelf, value) + "\n\n" + p.set.fill(template, value)
	return world.Call{Seat: p.seat, Label: label, Offer: g.offer(p, nil), Ask: llm.Request{
		Messages: []llm.Message{llm.System(p.shared), llm.User(own)}, Prefix: 1, Schema: form,
	}}
}

// values returns the values of template variables.
func (g *game) values(p *player, m promptContext) func(string) string {
	m.game, m.player = g, p
	all := variables()
	return func(name string) string {
		i := slices.IndexFunc(all, func(v templateVariable) bool { return v.Name == name })
		return all[i].value(m) // an unknown one was refused when the template was read
	}
}

// phaseText describes the phase: S1901M (spring 1901, movement).
func (g *game) phaseText() string {
	p := g.pos.Phase
	return fmt.Sprintf("%s (%s %d, %s)", p, p.Season, p.Year, p.Step)
}

// optionsText describes the legal orders of the units that need orders.
func (c promptContext) optionsText() string {
	if c.only.Empty() {
		return c.player.options
	}
	return c.brief.options(c.player.power, c.only)
}

// relationsText lists the relations of a player, if it has given any.
func (g *game) relationsText(p *player) string {
	if !p.started || !g.Diary {
		return ""
	}
	return p.relations.text(p.power, g.present())
}

func bullets(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "- " + strings.Join(lines, "\n- ")
}

// messageLines writes messages as w reads them, a line each. None is an observer.
func messageLines(w rules.Power, messages []pressMessage) string {
	lines := make([]string, len(messages))
	for i, m := range messages {
		from, to := m.From.Name(), m.To.Name()
		if m.From == w {
			from = "you"
		}
		switch {
		case m.public():
			to = "all"
		case m.To == w:
			to = "you"
		}
		lines[i] = fmt.Sprintf(messageFormat, from, to, m.Text)
	}
	return strings.Join(lines, "\n")
}

// unanswered lists the powers that have not answered p.
func (g *game) unanswered(p *player) string {
	open := g.mail.unanswered(p.power)
	var list []string
	for _, other := range g.alive() {
		if n := open[other.power]; n > 0 {
			list = append(list, fmt.Sprintf("%s (%d)", other.power.Name(), n))
		}
	}
	return strings.Join(list, ", ")
}

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
type messagesAnswer struct{ Messages []messageDraft }

// textAnswer has a plan, or the summary of years.
type textAnswer struct{ Text string }

// promisesAnswer has the promises that the judge found.
type promisesAnswer struct{ Promises []promiseDraft }

type promiseDraft struct{ From, To, Kind, Unit, Place, Quote string }

// decodeAnswer reads an answer. It reports false for a failed call and for another form.
func decodeAnswer[T any](r world.Reply) (answer T, ok bool) {
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

// answerSchema returns the schema of an object whose properties are all required.
func answerSchema(name string, properties ...property) *llm.Schema {
	return &llm.Schema{Name: "diplomacy_" + name, JSON: json.RawMessage(objectSchema(properties...))}
}

func objectSchema(properties ...property) string {
	var fields, names []string
	for _, p := range properties {
		fields = append(fields, fmt.Sprintf("%q:%s", p.name, p.form))
		names = append(names, fmt.Sprintf("%q", p.name))
	}
	return fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`, strings.Join(fields, ","), strings.Join(names, ","))
}

const textSchema = `{"type":"string"}`

func listSchema(of string) string { return `{"type":"array","items":` + of + `}` }

func enumSchema(values ...string) string {
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
	relation := objectSchema(property{"power", enumSchema(rules.PowerNames()...)}, property{"relation", enumSchema(relationLabels()...)})
	relations, goals := property{"relations", listSchema(relation)}, property{"goals", listSchema(textSchema)}
	reason, entry, orders := property{"reason", textSchema}, property{"diary", textSchema}, property{"orders", listSchema(textSchema)}
	to := property{"to", enumSchema(append(rules.PowerNames(), toAll)...)}
	vote := enumSchema(append([]string{voteContinue, voteDraw}, rules.PowerNames()...)...)
	promise := objectSchema(property{"from", enumSchema(rules.PowerNames()...)}, to, property{"kind", enumSchema(promiseKinds()...)}, property{"unit", textSchema}, property{"place", textSchema}, property{"quote", textSchema})
	f := &forms{
		diary:    answerSchema("diary", entry, relations, goals),
		start:    answerSchema("start", relations, goals),
		messages: answerSchema("messages", property{"messages", listSchema(objectSchema(to, property{"text", textSchema}))}),
		text:     answerSchema("text", property{"text", textSchema}),
		promises: answerSchema("promises", property{"promises", listSchema(promise)}),
	}
	f.orders = [2][2]*llm.Schema{
		{answerSchema("orders", reason, orders), answerSchema("orders_and_vote", reason, orders, property{"vote", vote})},
		{answerSchema("diary_and_orders", entry, relations, goals, orders), answerSchema("diary_orders_and_vote", entry, relations, goals, orders, property{"vote", vote})},
	}
	return f
}
