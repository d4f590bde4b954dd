package scenario

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/script"
)

// series is one metric over the turns, of the world or of one actor.
type series struct {
	metric *script.Metric
	actor  int // -1: of the world
	values []reading
}

// reading is what a metric was found to be after a turn.
type reading struct {
	series   int
	turn     int
	value    script.Value
	evidence string
	unknown  string // why it is not known
	failed   llm.Kind
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

// latest is a metric after the last turn that was told. It may not be known (yet).
func (g *game) latest(metric, actor string) script.Value {
	for _, s := range g.series {
		if s.metric.Name != metric || s.actor >= 0 && g.cast[s.actor].ShortName != actor || len(s.values) == 0 {
			continue
		}
		if v := s.values[len(s.values)-1]; v.turn == g.now() {
			return v.value
		}
	}
	return script.Value{}
}

// measuring lists what is asked of models about a turn. Before the first turn there is a
// world, and nobody has decided anything. Of a turn that was not told nothing is known but what
// actors decided.
func (g *game) measuring(turn int) []question {
	var asks []question
	for i, s := range g.series {
		seat := s.metric.Seat()
		if seat == "" || s.actor >= 0 && !g.decided(s.actor, turn) || s.actor < 0 && g.turns[turn].stale {
			continue
		}
		asks = append(asks, question{g.metricCall(seat, s, turn), func(a *assessment, r world.Reply) {
			v := readMetric(r, s.metric)
			v.series, v.turn = i, turn
			a.values = append(a.values, v)
		}})
	}
	return asks
}

func (g *game) decided(who, turn int) bool {
	return turn > 0 && g.cast[who].past[turn-1].decision.action != ""
}

// measureTexts takes the metrics that no model is asked for.
func (g *game) measureTexts(t *world.Table) {
	turn := g.now()
	for i, s := range g.series {
		if s.metric.Seat() != "" {
			continue
		}
		text := g.turns[turn].state
		if s.actor < 0 && g.turns[turn].stale {
			g.record(t, reading{series: i, turn: turn, unknown: "the narrator wrote nothing"})
			continue
		}
		if s.actor >= 0 {
			if !g.decided(s.actor, turn) {
				continue
			}
			d := g.cast[s.actor].past[turn-1].decision
			text = d.reasoning + "\n" + d.action
		}
		v := measureText(s.metric, text, turn)
		v.series, v.turn = i, turn
		g.record(t, v)
	}
}

// record keeps a reading, and warns where it passes a threshold.
func (g *game) record(t *world.Table, v reading) {
	s := &g.series[v.series]
	s.values = append(s.values, v)
	m, seat, name := s.metric, "", s.metric.Name
	if s.actor >= 0 {
		seat = g.cast[s.actor].ShortName
		name = seat + "." + name
	}
	note := Metric{Turn: v.turn, Name: m.Name, Unit: m.Unit, Evidence: v.evidence, Unknown: v.unknown, Failed: v.failed}
	if v.value.Known {
		note.Value, note.Text = &v.value.Number, v.value.Text
	}
	t.Note("metric", seat, note)
	level, limit := passed(m, v.value)
	if level != "" && level != g.warned[name] {
		t.Note("threshold", seat, Threshold{Turn: v.turn, Name: m.Name, Level: level, Value: v.value.Number, Limit: limit})
	}
	g.warned[name] = level
}

// passed says which threshold a value has passed. They are passed upwards unless the
// critical one is the lesser.
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

// measureText measures a text by words, by a pattern, or takes what was given by hand.
func measureText(m *script.Metric, text string, turn int) reading {
	switch e := m.Extraction; e.Type {
	case script.ByKeyword:
		return inRange(m, countWords(text, e.Keywords, e.Scoring))
	case script.ByPattern:
		found, ok := matched(e.Pattern, text)
		if !ok {
			return reading{unknown: "nothing matches the pattern"}
		}
		if v, ok := m.Read(found); ok {
			return reading{value: v, evidence: cut(found, 200)}
		}
		if n, ok := number(found); ok {
			return inRange(m, n)
		}
		return reading{unknown: "what matches is no value", evidence: cut(found, 200)}
	default:
		if i := turn - 1; i >= 0 && i < len(e.Values) {
			if v, ok := m.Read(e.Values[i]); ok {
				return reading{value: v}
			}
		}
		return reading{unknown: "none was given by hand"}
	}
}

// inRange takes a number for a metric, unless it is outside of what it can be.
func inRange(m *script.Metric, n float64) reading {
	if v, ok := m.Number(n); ok {
		return reading{value: v}
	}
	return reading{unknown: "out of range", evidence: strconv.FormatFloat(n, 'g', -1, 64)}
}

// countWords counts keywords wherever they stand, as a count, as presence (0 or 1), or by
// the hundred words of the text.
func countWords(text string, keywords []string, scoring string) float64 {
	n, lower := 0, strings.ToLower(text)
	for _, k := range keywords {
		n += strings.Count(lower, strings.ToLower(k))
	}
	switch words := len(strings.Fields(text)); {
	case scoring == "presence":
		return float64(min(n, 1))
	case scoring == "density" && words == 0:
		return 0
	case scoring == "density":
		return 100 * float64(n) / float64(words)
	}
	return float64(n)
}

// matched returns the last match of a pattern: its first group that is not empty, or all.
func matched(pattern, text string) (string, bool) {
	re, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return "", false // checked before play
	}
	all := re.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return "", false
	}
	last := all[len(all)-1]
	for _, group := range last[1:] {
		if group != "" {
			return group, true
		}
	}
	return last[0], last[0] != ""
}

var power = regexp.MustCompile(`^([-+]?[\d.]+)\s*\^\s*([-+]?\d+)$`)

// number reads 1,200, 45%, 3.5e6 and 10^25.
func number(text string) (float64, bool) {
	text = strings.TrimSuffix(strings.ReplaceAll(strings.TrimSpace(text), ",", ""), "%")
	if m := power.FindStringSubmatch(text); m != nil {
		base, err := strconv.ParseFloat(m[1], 64)
		exponent, err2 := strconv.Atoi(m[2])
		f := math.Pow(base, float64(exponent))
		return f, err == nil && err2 == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}
