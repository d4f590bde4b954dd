package scenario

import (
	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/script"
)

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
	note := recordMetric{Turn: v.turn, Name: m.Name, Unit: m.Unit, Evidence: v.Evidence, Unknown: v.Unknown, Failed: v.failed}
	if v.Value.Known {
		note.Value, note.Text = &v.Value.Number, v.Value.Text
	}
	t.Note("metric", seat, note)
	level, limit := passed(m, v.Value)
	if level != "" && level != g.warned[name] {
		t.Note("threshold", seat, threshold{Turn: v.turn, Name: m.Name, Level: level, Value: v.Value.Number, Limit: limit})
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
