package scenario

import (
	"encoding/json"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/world/part"
)

// The notes of a scenario, by kind.
type (
	// openingNote is the note scenario: what is played.
	openingNote struct {
		Name         string   `json:"name"`
		Author       string   `json:"author,omitempty"`
		Tags         []string `json:"tags,omitempty"`
		Turns        int      `json:"turns"`
		TurnDuration string   `json:"turn_duration"`
		Actors       []string `json:"actors"`
		Names        []string `json:"names"` // of the actors, for people
		State        string   `json:"state"`
	}
	// statementNote is the note statement, by the actor in its seat.
	statementNote struct {
		Turn int    `json:"turn"`
		Text string `json:"text"`
	}
	// messageNote is the note message, from one actor to another.
	messageNote struct {
		Turn int    `json:"turn"`
		To   string `json:"to"`
		Text string `json:"text"`
	}
	// coalitionNote is the note coalition, by the actor that proposed it.
	coalitionNote struct {
		Turn      int               `json:"turn"`
		Members   []string          `json:"members"`
		Purpose   string            `json:"purpose"`
		Answers   []coalitionAnswer `json:"answers"`
		Formed    bool              `json:"formed"`
		Agreed    string            `json:"agreed,omitempty"`    // for members
		Statement string            `json:"statement,omitempty"` // public
	}
	// coalitionAnswer is the answer of an actor that was invited to a coalition.
	coalitionAnswer struct {
		Actor   string `json:"actor"`
		Accepts bool   `json:"accepts"`
		Text    string `json:"text,omitempty"`
	}
	// decisionNote is the note decision, with the changes of the long-term goals.
	decisionNote struct {
		Turn       int      `json:"turn"`
		LongTerm   []string `json:"long_term_goals,omitempty"`
		ShortTerm  []string `json:"short_term_goals,omitempty"`
		Reasoning  string   `json:"reasoning,omitempty"`
		Action     string   `json:"action"`
		Reflection string   `json:"reflection,omitempty"`
		Added      []string `json:"goals_added,omitempty"`
		Dropped    []string `json:"goals_dropped,omitempty"`
	}
	// silenceNote is the note silence: an actor that decided nothing.
	silenceNote struct {
		Turn   int      `json:"turn"`
		Failed llm.Kind `json:"failed,omitempty"`
	}
	// eventNote is the note event: something happened from outside.
	eventNote struct {
		Turn        int    `json:"turn"`
		Name        string `json:"name"`
		Type        string `json:"type"`
		Description string `json:"description"`
	}
	// worldNote is the note world: the situation after a turn. If the narrator failed, it is Stale:
	// that of the turn before.
	worldNote struct {
		Turn         int      `json:"turn"`
		State        string   `json:"state"`
		Changes      []string `json:"key_changes,omitempty"`
		Consequences []string `json:"consequences,omitempty"`
		Hidden       []string `json:"hidden,omitempty"`
		Stale        bool     `json:"stale,omitempty"`
		Failed       llm.Kind `json:"failed,omitempty"`
	}
	// metricNote is the note metric. Value is nil if it is unknown, and Unknown says why.
	metricNote struct {
		Turn     int      `json:"turn"`
		Name     string   `json:"name"`
		Value    *float64 `json:"value"`
		Text     string   `json:"text,omitempty"`
		Unit     string   `json:"unit,omitempty"`
		Evidence string   `json:"evidence,omitempty"`
		Unknown  string   `json:"unknown,omitempty"`
		Failed   llm.Kind `json:"failed,omitempty"`
	}
	// thresholdNote is the note threshold: a metric has passed a threshold.
	thresholdNote struct {
		Turn  int     `json:"turn"`
		Name  string  `json:"name"`
		Level string  `json:"level"` // warning or critical
		Value float64 `json:"value"`
		Limit float64 `json:"limit"`
	}
	// checkNote is the note check. It is Unknown if the check got no usable answer.
	checkNote struct {
		Turn        int      `json:"turn"`
		Check       string   `json:"check"`
		Passed      bool     `json:"passed"`
		Unknown     bool     `json:"unknown,omitempty"`
		Issues      []Issue  `json:"issues,omitempty"`
		Explanation string   `json:"explanation,omitempty"`
		Failed      llm.Kind `json:"failed,omitempty"`
	}
	// summaryNote is the note summary: of the turns up to Turns, or of the private talk of the actor in its
	// seat until then.
	summaryNote struct {
		Turns  int      `json:"turns"`
		Text   string   `json:"text"`
		Failed llm.Kind `json:"failed,omitempty"`
	}
	// droppedNote is the note dropped: the decisions for a turn were dropped, because
	// a measurement ended the scenario.
	droppedNote struct {
		Turn int    `json:"turn"`
		Why  string `json:"why"`
	}
	// endNote is the note end.
	endNote struct {
		Turn int    `json:"turn"`
		Why  string `json:"why"`
	}
)

// Issue is something a check found.
type Issue struct {
	Turn     int    `json:"turn"`
	Check    string `json:"check"`
	Actor    string `json:"actor,omitempty"`
	Severity string `json:"severity"`
	Text     string `json:"text"`
}

// outcomeData is the data of an outcome.
type outcomeData struct {
	Name  string `json:"name"`
	Turns int    `json:"turns"` // turns played
	Ended string `json:"ended"` // why
	State string `json:"state"` // at the end
	// Metrics has the values by turn, from turn 0, the situation at the start; null if
	// unknown.
	Metrics []metricCurve `json:"metrics,omitempty"`
	Events  []eventNote   `json:"events,omitempty"`
	Issues  []Issue       `json:"issues,omitempty"`
	// Goals has the long-term goals at the end, by actor.
	Goals map[string][]string `json:"goals,omitempty"`
	// Actors counts what each actor did, in their order.
	Actors []actorTally `json:"actors"`
	// Coalitions has the proposed coalitions.
	Coalitions []proposedCoalition `json:"coalitions,omitempty"`
	// Checks counts the results of each check.
	Checks []checkTally `json:"checks,omitempty"`
	// NotNarrated is the number of turns that the narrator failed to tell, and Unanswered the number of questions for
	// metrics without an answer. Silences of actors are in Actors, unknown findings in Checks.
	NotNarrated int `json:"turns_not_narrated,omitempty"`
	Unanswered  int `json:"unanswered,omitempty"`
}

// actorTally counts what an actor did.
type actorTally struct {
	Actor      string `json:"actor"`
	Decisions  int    `json:"decisions"`
	Silences   int    `json:"silences,omitempty"`
	Statements int    `json:"statements,omitempty"`
	// Wrote is the number of private messages by recipient.
	Wrote        map[string]int `json:"wrote,omitempty"`
	GoalsAdded   int            `json:"goals_added,omitempty"`
	GoalsDropped int            `json:"goals_dropped,omitempty"`
}

// proposedCoalition is a coalition that was proposed.
type proposedCoalition struct {
	Turn    int      `json:"turn"`
	Members []string `json:"members"`
	Formed  bool     `json:"formed,omitempty"`
}

// checkTally counts the results of a check.
type checkTally struct {
	Check   string `json:"check"`
	Made    int    `json:"made"`
	Passed  int    `json:"passed,omitempty"`
	Unknown int    `json:"unknown,omitempty"`
}

// metricCurve is a metric over the turns.
type metricCurve struct {
	Name   string     `json:"name"`
	Actor  string     `json:"actor,omitempty"`
	Unit   string     `json:"unit,omitempty"`
	Values []*float64 `json:"values"`
	// Range is the smallest and the largest possible value.
	Range []float64 `json:"range,omitempty"`
	// Categories has the names of the values 0, 1, … of a categorical metric.
	Categories []string `json:"categories,omitempty"`
	Boolean    bool     `json:"boolean,omitempty"`
	Warning    *float64 `json:"warning_threshold,omitempty"`
	Critical   *float64 `json:"critical_threshold,omitempty"`
}

// categoryScore returns the name of the score of one category of a metric. Categories have no mean, so each has its
// own score: 1 if the metric is that category, otherwise 0. Its mean is the share of episodes.
func categoryScore(metric, category string) string { return metric + "=" + category }

// bounds returns the bounds of a metric that has a mean.
func bounds(within []float64, boolean bool) world.Bounds {
	switch {
	case boolean:
		return world.Share()
	case len(within) == 2:
		return world.Bounds{Low: within[0], High: within[1]}
	default:
		return world.Bounds{}
	}
}

// scores returns the scores of a value: one for each category if the metric has categories.
func (c metricCurve) scores(value float64) []world.Score {
	if len(c.Categories) == 0 {
		return []world.Score{{Seat: c.Actor, Name: c.Name, Value: value}}
	}
	out := make([]world.Score, len(c.Categories))
	for i, category := range c.Categories {
		out[i] = world.Score{Seat: c.Actor, Name: categoryScore(c.Name, category)}
		if value == float64(i) {
			out[i].Value = 1
		}
	}
	return out
}

// noteTables are the tables of scenarios: events, statements and metrics.
func noteTables() []part.NoteTable {
	turn := part.NoteColumn{Name: "turn", Type: part.NoteInteger, Doc: "the turn, from 1"}
	word := func(name, doc string) part.NoteColumn {
		return part.NoteColumn{Name: name, Type: part.NoteText, Doc: doc}
	}
	return []part.NoteTable{
		{
			Name: "events", Doc: "something that happened from outside",
			Columns: []part.NoteColumn{turn, word("name", "the name of the event"), word("type", "trend, random, conditional, scheduled or black_swan"), word("description", "what happened")},
			Rows:    eventRows,
		},
		{
			Name: "statements", Doc: "something that an actor said: in public, to another actor, or with a coalition",
			Columns: []part.NoteColumn{
				turn, word("actor", "who said it"), word("agent", "the agent in its seat"), word("how", "public, private, proposal, agreement or joint"),
				word("recipients", "who could read it, with commas; null for everybody"), word("text", "the words"),
			},
			Rows: statementRows,
		},
		{
			Name: "metrics", Doc: "a metric after a turn; turn 0 is the start",
			Columns: []part.NoteColumn{
				{Name: "turn", Type: part.NoteInteger, Doc: "the turn, from 0"}, word("metric", "the name of the metric"),
				word("actor", "whose metric it is; null: the scenario's"), {Name: "value", Type: part.NoteDouble, Doc: "its value; null: it is unknown"},
				word("text", "the value as people read it, such as the name of a category"), word("unit", "the unit of the value"),
				word("threshold", "warning or critical, if the value passed that threshold"), word("unknown", "why there is no value"), word("evidence", "the words it was read from"),
			},
			Rows: metricRows,
		},
	}
}

func eventRows(_ world.Played, notes []world.Note) (all [][]any) {
	for _, n := range notes {
		var e eventNote
		if n.Kind == "event" && json.Unmarshal(n.Data, &e) == nil {
			all = append(all, []any{e.Turn, e.Name, e.Type, e.Description})
		}
	}
	return all
}

func metricRows(_ world.Played, notes []world.Note) (all [][]any) {
	for _, at := range readChronicle(notes).chapters {
		passed := map[string]string{}
		for _, t := range notesOf[thresholdNote](at, "threshold") {
			passed[t.seat+"."+t.note.Name] = t.note.Level
		}
		for _, m := range notesOf[metricNote](at, "metric") {
			var value any
			if m.note.Value != nil {
				value = *m.note.Value
			}
			all = append(all, []any{at.number, m.note.Name, m.seat, value, m.note.Text, m.note.Unit, passed[m.seat+"."+m.note.Name], m.note.Unknown, m.note.Evidence})
		}
	}
	return all
}

func statementRows(p world.Played, notes []world.Note) (all [][]any) {
	for _, n := range notes {
		add := func(turn int, how, to, text string) {
			if text != "" {
				all = append(all, []any{turn, n.Seat, p.Spec.Lineup[n.Seat], how, to, text})
			}
		}
		switch n.Kind {
		case "statement":
			var s statementNote
			if json.Unmarshal(n.Data, &s) == nil {
				add(s.Turn, "public", "", s.Text)
			}
		case "message":
			var m messageNote
			if json.Unmarshal(n.Data, &m) == nil {
				add(m.Turn, "private", m.To, m.Text)
			}
		case "coalition":
			var c coalitionNote
			if json.Unmarshal(n.Data, &c) == nil {
				members := strings.Join(c.Members, ",")
				add(c.Turn, "proposal", members, c.Purpose)
				add(c.Turn, "agreement", members, c.Agreed)
				add(c.Turn, "joint", "", c.Statement)
			}
		}
	}
	return all
}
