package scenario

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/worlds/scenario/script"
)

// TestModelMetrics checks that a value outside its range, an unknown category, a failure and "not known" are
// all unknown, and never 0.
func TestModelMetrics(t *testing.T) {
	t.Parallel()
	level := script.Metric{Name: "level", Description: "How.", Type: script.Categorical, Categories: []string{"low", "high"}, Extraction: script.Extraction{Type: script.ByModel}}
	truth := script.Metric{Name: "truth", Description: "Whether.", Type: script.Boolean, Extraction: script.Extraction{Type: script.ByModel}}
	for _, c := range []struct {
		metric  script.Metric
		reply   any
		want    float64
		unknown string
	}{
		{numeric("n"), `{"evidence":"e","known":true,"value":7}`, 7, ""},
		{numeric("n"), `{"evidence":"e","known":true,"value":0}`, 0, ""},
		{numeric("n"), `{"evidence":"e","known":true,"value":"7.5"}`, 7.5, ""},
		{numeric("n"), `{"evidence":"e","known":false,"value":0}`, 0, "the text does not say"},
		{numeric("n"), `{"evidence":"e","known":true,"value":11}`, 0, "out of range: 11"},
		{numeric("n"), `{"evidence":"e","known":true,"value":null}`, 0, "no value"},
		{numeric("n"), `{"evidence":"e","known":true}`, 0, "no value"},
		{numeric("n"), `[1]`, 0, "no answer"},
		{numeric("n"), llm.KindMalformed, 0, "no answer"},
		{level, `{"evidence":"e","known":true,"value":"HIGH"}`, 1, ""},
		{level, `{"evidence":"e","known":true,"value":"medium"}`, 0, "no value"},
		{truth, `{"evidence":"e","known":true,"value":true}`, 1, ""},
		{truth, `{"evidence":"e","known":true,"value":false}`, 0, ""},
	} {
		s := stage(1, 1, func(s *script.Script) { s.Metrics = []script.Metric{c.metric} })
		out := playScript(s, 0, answers(map[string]any{"metric": c.reply}))
		notes := of[recordMetric](t, out, "metric")
		last := notes[len(notes)-1]
		if (last.Value == nil) != (c.unknown != "") || last.Value != nil && *last.Value != c.want || !strings.Contains(last.Unknown, c.unknown) {
			t.Errorf("%s %v: %+v, want %v %s", c.metric.Type, c.reply, last, c.want, c.unknown)
		}
		scored := false
		for _, sc := range out.outcome.Scores {
			name, want := c.metric.Name, c.want
			if len(c.metric.Categories) > 0 { // the share of each
				name, want = categoryScore(name, c.metric.Categories[int(c.want)]), 1
			}
			scored = scored || sc.Name == name && sc.Value == want
		}
		if scored != (c.unknown == "") {
			t.Errorf("%s %v: scores %v", c.metric.Type, c.reply, out.outcome.Scores)
		}
	}
}

func TestActorMetricsAndThresholds(t *testing.T) {
	t.Parallel()
	warn, critical := 5.0, 2.0
	s := stage(2, 4, func(s *script.Script) {
		own, shared := numeric("effort"), numeric("health")
		own.ActorSpecific = true
		shared.Warning, shared.Critical = &warn, &critical
		s.Metrics = []script.Metric{own, shared}
	})
	values := []string{"9", "null", "5", "4", "1"} // from turn 0; null is not known
	turn := 0
	out := playScript(s, 0, func(c world.Call) world.Reply {
		switch c.Label {
		case "metric health":
			turn++
			return answers(map[string]any{"metric": `{"evidence":"","known":true,"value":` + values[turn-1] + `}`})(c)
		case "metric effort":
			value := map[bool]string{true: "3", false: "8"}[strings.Contains(c.Ask.Messages[0].Text(), "Actor 0")]
			return answers(map[string]any{"metric": `{"evidence":"","known":true,"value":` + value + `}`})(c)
		}
		return good(c)
	})
	var got []string
	for _, th := range of[threshold](t, out, "threshold") {
		got = append(got, fmt.Sprint(th.Turn, th.Level, th.Limit))
	}
	if want := []string{"2warning5", "4critical2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("thresholds %v, want %v", got, want)
	}
	scores := fmt.Sprint(out.outcome.Scores)
	if want := "[{a0 effort 3} {a1 effort 8} { health 1} { turns 4}]"; scores != want {
		t.Errorf("scores %s, want %s", scores, want)
	}
	if n := out.count("metric"); n != 5+2*4 {
		t.Errorf("%d metrics were asked for", n)
	}
}
