package folder

import (
	"maps"
	"slices"
	"strings"

	"parley/world"
)

// oldMetrics reports whether metrics.yaml has the format of the first version of Scenario Lab,
// and what to write instead of each of its keys. Otherwise every line of such a file would be an error.
func (r *reader) oldMetrics() bool {
	name := r.path(metricsFile)
	if len(r.files.Match(name)) == 0 {
		return false
	}
	var file map[string]any
	d, err := r.files.YAML(name, &file)
	if err != nil || d == nil || !isOld(file) {
		return false // other errors are reported when it is read
	}
	if file["extraction_model"] != nil {
		r.fail(d, "extraction_model", "belongs to version 1: leave it out; the analyst answers, or set a model for a metric, extraction: {model: …}")
	}
	if file["thresholds"] != nil {
		r.fail(d, "thresholds", "belongs to version 1: write warning_threshold and critical_threshold at each metric")
	}
	switch metrics := file["metrics"].(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(metrics))
		if len(names) > 0 {
			r.fail(d, "metrics", "is a mapping, as in version 1: write a list, each with its name: `- name: %s`", names[0])
		}
		for _, name := range names {
			r.oldMetric(d, "metrics."+name, metrics[name])
		}
	case []any:
		for i, m := range metrics {
			r.oldMetric(d, at("metrics", i), m)
		}
	}
	return true
}

// isOld reports whether a file has a key that only the first version had.
func isOld(file map[string]any) bool {
	var all []any
	switch metrics := file["metrics"].(type) {
	case map[string]any:
		return true
	case []any:
		all = metrics
	}
	if file["extraction_model"] != nil || file["thresholds"] != nil {
		return true
	}
	return slices.ContainsFunc(all, func(m any) bool {
		keys, _ := m.(map[string]any)
		return slices.ContainsFunc([]string{"data_type", "extraction_type", "extraction_prompt", "aggregation"}, func(k string) bool { return keys[k] != nil })
	})
}

// oldMetric reports what to write instead of the keys of one metric.
func (r *reader) oldMetric(d world.Document, here string, m any) {
	keys, _ := m.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if advice := newSpelling(key, keys[key]); advice != "" {
			r.fail(d, here+"."+key, "belongs to version 1: %s", advice)
		}
	}
}

func newSpelling(key string, value any) string {
	word, _ := plain(value)
	switch key {
	case "data_type":
		switch strings.ToLower(word) {
		case "string", "str":
			return "write type: categorical, and categories in ascending order"
		case "bool", "boolean":
			return "write type: boolean"
		}
		return "write type: continuous, and a range, as [0, 10]"
	case "extraction_type":
		return "write extraction: {type: " + word + "}"
	case "extraction_prompt", "prompt":
		return "write it as extraction: {prompt: …}"
	case "keywords", "scoring", "pattern", "model":
		return "write it as extraction: {" + key + ": …}"
	case "aggregation":
		return "leave it out: every turn is measured separately, and a report shows all of them"
	}
	return ""
}
