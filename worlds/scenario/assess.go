package scenario

import (
	"fmt"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/script"
)

// question is a call about a turn, and the function that takes its reply.
type question struct {
	call world.Call
	take func(*assessment, world.Reply)
}

// assessment has the answers to the questions about a turn.
type assessment struct {
	values   []reading
	findings []finding

	summary       string
	summarized    int // the last turn of the summary; 0 without a summary
	summaryFailed llm.Kind
	asides        []aside
}

// aside is a summary of the private talk of one actor.
type aside struct {
	who    int
	text   string
	failed llm.Kind
}

// assessing returns the questions about the current turn: metrics and checks
// and, unless it is the last turn, a summary of the turn that is about to leave the window.
func (g *game) assessing(last bool) []question {
	asks := g.measuring(g.now())
	if !g.Validation.LastOnly {
		asks = append(asks, g.checking(g.now())...)
	}
	if turn := g.now() + 1 - g.Window; !last && turn > g.summarized && g.now()+2 <= g.Turns {
		asks = append(asks, question{g.summaryCall(turn), func(a *assessment, r world.Reply) {
			a.summarized, a.summaryFailed = turn, r.Failed
			if a.summary = script.ReadText(r, "summary"); a.summary == "" {
				a.summary = g.plainSummary(turn)
			}
		}})
		asks = append(asks, g.asides(turn)...)
	}
	return asks
}

// asides returns the questions for summaries of private talk that is about to leave the
// window. Each actor that took part summarizes its own talk, because no other may read it.
func (g *game) asides(turn int) []question {
	var asks []question
	for i := range g.cast {
		mem := g.cast[i].past[turn-1]
		if len(mem.exchanges)+len(mem.pacts) == 0 {
			continue
		}
		asks = append(asks, question{g.asideCall(i, turn), func(a *assessment, r world.Reply) {
			one := aside{who: i, text: script.ReadText(r, "summary"), failed: r.Failed}
			if one.text == "" {
				one.text = g.plainAside(i, turn)
			}
			a.asides = append(a.asides, one)
		}})
	}
	return asks
}

// assess asks all questions at once.
func (g *game) assess(t *world.Table, asks []question) assessment {
	var a assessment
	calls := make([]world.Call, len(asks))
	for i, q := range asks {
		calls[i] = q.call
	}
	for i, r := range t.Ask(calls...) {
		asks[i].take(&a, r)
	}
	return a
}

// plainSummary replaces a summary that failed: only what changed.
func (g *game) plainSummary(turn int) string {
	now := g.turns[turn]
	lines := append([]string{g.summary}, now.changes...)
	if len(now.changes) == 0 {
		lines = append(lines, script.Cut(now.state, 400))
	}
	return script.Tail(strings.Join(lines, "\n"), script.MaxWords)
}

// plainAside replaces a summary of private talk that failed: the beginning of
// what was said and agreed.
func (g *game) plainAside(i, turn int) string {
	mem := g.cast[i].past[turn-1]
	lines := []string{g.cast[i].aside}
	for _, x := range mem.exchanges {
		for _, l := range x.lines {
			lines = append(lines, fmt.Sprintf("Turn %d, %s to %s: %s", turn, g.cast[l.who].Name, g.cast[x.other(l.who)].Name, script.Cut(script.OneLine(l.text), 200)))
		}
	}
	for _, c := range mem.pacts {
		result := "nothing came of it"
		if c.formed {
			result = "agreed: " + script.Cut(script.OneLine(c.agreed), 200)
		}
		lines = append(lines, fmt.Sprintf("Turn %d, a coalition of %s, %s: %s", turn, g.names(c.members), script.Cut(script.OneLine(c.purpose), 200), result))
	}
	return script.Tail(strings.Join(lines, "\n"), script.MaxWords)
}

// series is one metric over the turns, of the world or of one actor.
type series struct {
	metric *script.Metric
	actor  int // -1 for the world
	values []reading
}

// reading is a metric after a turn.
type reading struct {
	script.Reading
	series int
	turn   int
	failed llm.Kind
}

func newSeries(s *script.Script) []series {
	var all []series
	for i := range s.Metrics {
		m := &s.Metrics[i]
		if !m.ActorSpecific {
			all = append(all, series{metric: m, actor: -1})
			continue
		}
		for a := range s.Actors {
			all = append(all, series{metric: m, actor: a})
		}
	}
	return all
}

// latest returns a metric after the last turn. It may be unknown.
func (g *game) latest(metric, actor string) script.Value {
	for _, s := range g.series {
		if s.metric.Name != metric || s.actor >= 0 && g.cast[s.actor].ShortName != actor || len(s.values) == 0 {
			continue
		}
		if v := s.values[len(s.values)-1]; v.turn == g.now() {
			return v.Value
		}
	}
	return script.Value{}
}

// measuring returns the questions for metrics of a turn. Before the first turn there are no
// decisions. For a turn that the narrator failed to tell, only decisions are measured.
func (g *game) measuring(turn int) []question {
	var asks []question
	for i, s := range g.series {
		seat := s.metric.Seat()
		if seat == "" || s.actor >= 0 && !g.decided(s.actor, turn) || s.actor < 0 && g.turns[turn].stale {
			continue
		}
		asks = append(asks, question{g.metricCall(seat, s, turn), func(a *assessment, r world.Reply) {
			a.values = append(a.values, reading{script.ReadMetric(r, s.metric), i, turn, r.Failed})
		}})
	}
	return asks
}

func (g *game) decided(who, turn int) bool {
	return turn > 0 && g.cast[who].past[turn-1].decision.Action != ""
}

// measureTexts records the metrics that need no model.
func (g *game) measureTexts(t *world.Table) {
	turn := g.now()
	for i, s := range g.series {
		if s.metric.Seat() != "" {
			continue
		}
		words := g.turns[turn].state
		if s.actor < 0 && g.turns[turn].stale {
			g.record(t, reading{Reading: script.Reading{Unknown: "the narrator wrote nothing"}, series: i, turn: turn})
			continue
		}
		if s.actor >= 0 {
			if !g.decided(s.actor, turn) {
				continue
			}
			d := g.cast[s.actor].past[turn-1].decision
			words = d.Reasoning + "\n" + d.Action
		}
		g.record(t, reading{Reading: s.metric.Measure(words, turn), series: i, turn: turn})
	}
}

// record keeps a reading, and notes when it passes a threshold.
func (g *game) record(t *world.Table, v reading) {
	s := &g.series[v.series]
	s.values = append(s.values, v)
	m, seat, name := s.metric, "", s.metric.Name
	if s.actor >= 0 {
		seat = g.cast[s.actor].ShortName
		name = seat + "." + name
	}
	note := metricNote{Turn: v.turn, Name: m.Name, Unit: m.Unit, Evidence: v.Evidence, Unknown: v.Unknown, Failed: v.failed}
	if v.Value.Known {
		note.Value, note.Text = &v.Value.Number, v.Value.Text
	}
	t.Note("metric", seat, note)
	level, limit := passed(m, v.Value)
	if level != "" && level != g.warned[name] {
		t.Note("threshold", seat, thresholdNote{Turn: v.turn, Name: m.Name, Level: level, Value: v.Value.Number, Limit: limit})
	}
	g.warned[name] = level
}

// passed returns the threshold that a value has passed. Thresholds are passed upwards unless the
// critical one is lower than the warning.
func passed(m *script.Metric, v script.Value) (level string, limit float64) {
	down := m.Warning != nil && m.Critical != nil && *m.Critical < *m.Warning
	for _, one := range []struct {
		level string
		limit *float64
	}{{"critical", m.Critical}, {"warning", m.Warning}} {
		if v.Known && one.limit != nil && (v.Number >= *one.limit && !down || v.Number <= *one.limit && down) {
			return one.level, *one.limit
		}
	}
	return "", 0
}

// finding is the result of a check of a turn.
type finding struct {
	turn    int
	check   string
	actor   int // -1 if it is about the world
	unknown bool
	failed  llm.Kind
	answer  script.CheckAnswer
}

// checking returns the checks of a turn: checks of decisions for each actor
// that decided, checks of the world once.
func (g *game) checking(turn int) []question {
	if turn == 0 {
		return nil
	}
	var asks []question
	for _, c := range g.Validation.Checks {
		who := []int{-1}
		if c.Name == script.CheckDecisions || c.Name == script.CheckInformation || c.Name == script.CheckGoals {
			who = nil
			for i := range g.cast {
				if g.decided(i, turn) {
					who = append(who, i)
				}
			}
		}
		for _, i := range who {
			asks = append(asks, question{g.checkCall(c, i, turn), func(a *assessment, r world.Reply) {
				f := finding{turn: turn, check: c.Name, actor: i, failed: r.Failed}
				f.answer, f.unknown = script.ReadCheck(r, c.Severity)
				a.findings = append(a.findings, f)
			}})
		}
	}
	return asks
}

// noteFinding notes a finding, and halts the scenario if the script says so.
func (g *game) noteFinding(t *world.Table, f finding) {
	seat := ""
	if f.actor >= 0 {
		seat = g.cast[f.actor].ShortName
	}
	note := checkNote{Turn: f.turn, Check: f.check, Unknown: f.unknown, Failed: f.failed, Explanation: f.answer.Explanation}
	for _, i := range f.answer.Issues {
		issue := Issue{Turn: f.turn, Check: f.check, Actor: seat, Severity: i.Severity, Text: i.Issue}
		note.Issues = append(note.Issues, issue)
		g.issues = append(g.issues, issue)
	}
	note.Passed = !f.unknown && len(note.Issues) == 0
	g.tally(f.check, note)
	if g.Validation.Reports || !note.Passed {
		t.Note("check", seat, note)
	}
	critical := slices.ContainsFunc(note.Issues, func(i Issue) bool { return i.Severity == "critical" })
	switch {
	case g.Validation.HaltOnCritical && critical:
		g.fail("halted: %s found a critical issue in turn %d", f.check, f.turn)
	case g.Validation.MaxIssues > 0 && len(g.issues) >= g.Validation.MaxIssues:
		g.fail("halted: %d issues were found by turn %d", len(g.issues), f.turn)
	}
}

func (g *game) tally(check string, f checkNote) {
	for i := range g.checks {
		c := &g.checks[i]
		if c.Check != check {
			continue
		}
		c.Made++
		if f.Passed {
			c.Passed++
		}
		if f.Unknown {
			c.Unknown++
		}
	}
}
