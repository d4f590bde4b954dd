package script

import (
	"strings"
)

// checkFile is validation-rules.yaml.
type checkFile struct {
	Model  string `json:"validation_model"`
	Checks checks `json:"checks"`
	Each   *bool  `json:"run_after_each_turn"`
	Turns  *bool  `json:"generate_turn_reports"`
	Sum    *bool  `json:"generate_summary"`
	Halt   bool   `json:"halt_on_critical"`
	Issues *int   `json:"max_issues_before_halt"`
	Rules  any    `json:"scenario_specific_rules"`
}

type checks struct {
	Decisions   *check `json:"actor_decision_consistency"`
	World       *check `json:"world_state_coherence"`
	Information *check `json:"information_access_consistency"`
	Goals       *check `json:"goal_progress_tracking"`
}

type check struct {
	Enabled     *bool  `json:"enabled"`
	Severity    string `json:"severity" oneof:"low,medium,high,critical"`
	Description string `json:"description"`
}

func (r *reader) readChecks() {
	var f checkFile
	d, ok := r.yaml(checksFile, &f)
	if !ok || !value(r.off.Checks, true) {
		return
	}
	r.checks = d
	v := &r.script.Validation
	*v = Validation{
		Model: f.Model, LastOnly: !value(f.Each, true), Reports: value(f.Turns, true), Summary: value(f.Sum, true),
		HaltOnCritical: f.Halt, MaxIssues: value(f.Issues, 0), Rules: r.texts(d, "scenario_specific_rules", f.Rules),
	}
	if f.Issues != nil && *f.Issues < 1 {
		r.fail(d, "max_issues_before_halt", "wants 1 or more, found %d; leave it out to continue whatever is found", *f.Issues)
	}
	for _, one := range []struct {
		name string
		c    *check
	}{
		{CheckDecisions, f.Checks.Decisions}, {CheckWorld, f.Checks.World},
		{CheckInformation, f.Checks.Information}, {CheckGoals, f.Checks.Goals},
	} {
		if one.c == nil || !value(one.c.Enabled, true) {
			continue
		}
		severity := one.c.Severity
		if severity == "" {
			severity = "medium"
		}
		v.Checks = append(v.Checks, Check{Name: one.name, Severity: severity, Description: strings.TrimSpace(one.c.Description)})
	}
	if len(v.Rules) > 0 {
		v.Checks = append(v.Checks, Check{Name: CheckRules, Severity: "medium"})
	}
	if len(v.Checks) == 0 {
		r.advise(d, "checks", "nothing is checked: enable a check, or write scenario_specific_rules")
	}
}
