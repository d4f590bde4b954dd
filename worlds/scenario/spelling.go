package scenario

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"parley/world"
)

// earlierKeys returns keys that only the earlier Scenario Lab had, by pattern of file.
func earlierKeys() map[string][]string {
	return map[string][]string{
		"scenario.yaml": {"num_turns", "context_window", "max_per_turn", "enabled"},
		"actors/*":      {"llm_model", "decision_making_style", "response_format"},
		"*metrics.yaml": {
			"extraction_model", "thresholds", "data_type", "options", "extraction_type", "extraction_method", "extraction_prompt", "prompt_template",
			"regex", "patterns", "min_value", "max_value", "aggregation", "export_format", "auto_export", "export_path",
		},
		"validation-rules.yaml": {
			"prompt_template", "run_at_scenario_end", "generate_summary_report", "reporting", "severity_thresholds", "report_format", "include_in_costs", "rules",
		},
		"*events.yaml": {
			"events", "trends", "random_events", "conditional_events", "scheduled_events", "id", "effect", "effects", "impact", "schedule",
			"probability_per_turn", "chance", "interval", "start_turn", "end_turn", "trigger",
		},
	}
}

// converterHint returns an error that names the converter, if a folder has keys of the earlier Scenario Lab.
func converterHint(files world.Files, folder string) error {
	dir := strings.TrimSuffix(path.Clean(folder), "/scenario.yaml")
	keys := earlierKeys()
	for _, pattern := range slices.Sorted(maps.Keys(keys)) {
		for _, file := range files.Match(dir + "/" + pattern) {
			all := map[string]any{}
			if d, err := files.YAML(file, &all); err != nil || d == nil {
				continue // it is reported anyway
			}
			if key := anyKey(all, keys[pattern]); key != "" {
				return fmt.Errorf("params.folder: %q has the key %s of the earlier Scenario Lab: convert the folder with parley init scenario --from FOLDER", folder, key)
			}
		}
	}
	return nil
}

// anyKey returns the first of the keys that a value has at any depth, or "".
func anyKey(v any, keys []string) string {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if k := anyKey(item, keys); k != "" {
				return k
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains(keys, name) {
				return name
			}
			if k := anyKey(v[name], keys); k != "" {
				return k
			}
		}
	}
	return ""
}
