package script

import (
	"strings"

	"parley/world"
)

// metricFile is metrics.yaml.
type metricFile struct {
	Metrics []metric `json:"metrics"`
}

type metric struct {
	Name          string      `json:"name"`
	Description   string      `json:"description"`
	Type          string      `json:"type" oneof:"continuous,categorical,boolean"`
	Range         []float64   `json:"range"`
	Categories    any         `json:"categories"`
	Extraction    *extraction `json:"extraction"`
	Unit          string      `json:"unit"`
	ActorSpecific bool        `json:"actor_specific"`
	Warning       *float64    `json:"warning_threshold"`
	Critical      *float64    `json:"critical_threshold"`
}

type extraction struct {
	Type     string `json:"type" oneof:"llm,keyword,pattern,manual"`
	Prompt   string `json:"prompt"`
	Model    string `json:"model"`
	Keywords any    `json:"keywords"`
	Scoring  string `json:"scoring" oneof:"count,presence,density"`
	Pattern  string `json:"pattern"`
	Values   any    `json:"values"`
}

func (r *reader) readMetrics() {
	var f metricFile
	d, ok := r.yaml(metricsFile, &f)
	if !ok || !value(r.off.Metrics, true) {
		return
	}
	r.metrics = d
	for i, m := range f.Metrics {
		here := at("metrics", i)
		out := Metric{
			Name: m.Name, Description: strings.TrimSpace(m.Description), Type: m.Type, Range: m.Range, Unit: m.Unit,
			Categories: r.texts(d, here+".categories", m.Categories), ActorSpecific: m.ActorSpecific, Warning: m.Warning, Critical: m.Critical,
		}
		if m.Type == "" {
			r.fail(d, here+".type", "is missing: one of continuous, categorical, boolean")
			out.Type = Boolean // avoids further errors
		}
		out.Extraction = r.extraction(d, here, m)
		r.script.Metrics = append(r.script.Metrics, out)
	}
}

func (r *reader) extraction(d world.Document, here string, m metric) Extraction {
	e := m.Extraction
	if e == nil {
		r.fail(d, here+".extraction", "is missing: how it is measured, as {type: llm}")
		return Extraction{Type: byHand}
	}
	here += ".extraction"
	if e.Type == "" {
		r.fail(d, here+".type", "is missing: one of llm, keyword, pattern, manual")
		return Extraction{Type: byHand}
	}
	out := Extraction{
		Type: e.Type, Prompt: strings.TrimSpace(e.Prompt), Model: e.Model, Keywords: r.texts(d, here+".keywords", e.Keywords),
		Scoring: e.Scoring, Pattern: e.Pattern, Values: r.manual(d, here, e.Values),
	}
	if out.Scoring == "" && out.Type == ByKeyword {
		out.Scoring = "count"
	}
	if out.Model != "" && out.Type != ByModel {
		r.advise(d, here+".model", "has no effect: no model is asked for a metric of type %s", out.Type)
		out.Model = ""
	}
	if out.Type == byHand && len(out.Values) == 0 {
		r.advise(d, here+".type", "manual without values, so it stays unknown: write values: [..], the first for turn 1")
	}
	return out
}

// manual reads values given by hand. An empty value is unknown.
func (r *reader) manual(d world.Document, here string, v any) []string {
	if v == nil {
		return nil
	}
	items, ok := v.([]any)
	if !ok {
		r.fail(d, here+".values", "wants a list, the value of turn 1 first")
		return nil
	}
	out := make([]string, len(items))
	for i, item := range items {
		text, ok := plain(item)
		if !ok && item != nil {
			r.fail(d, at(here+".values", i), "wants a single value, or nothing if it is unknown")
		}
		out[i] = text
	}
	return out
}
