package app

import (
	"slices"
	"strings"

	"parley/internal/config"
	"parley/internal/dispatch"
	"parley/journal"
)

// repriced returns the models whose price is not that of the beginning of the run, and says so. What was spent stays as it
// was counted.
func (p Play) repriced(a *App, plan *config.Plan, begun *journal.Begun) []string {
	if begun == nil {
		return nil
	}
	var models []string
	for model, now := range a.prices.Digests(modelsOf(plan.Agents)) {
		if then, known := begun.Prices[model]; known && then != now {
			models = append(models, model)
		}
	}
	if slices.Sort(models); len(models) > 0 && p.Notices != nil {
		p.Notices(dispatch.Notice{Model: models[0], Text: "The price of " + strings.Join(models, ", ") +
			" has changed since the run began. The budget counts what was spent then, and counts calls from now on by the new price."})
	}
	return models
}
