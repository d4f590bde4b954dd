package app

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/price"
	"parley/internal/run/growth"
	"parley/internal/run/planfile"
	"parley/journal"
)

// begun returns how the run begins. That of a run that has begun is not used.
func (p Play) begun(plan *planfile.Plan, prices *price.Table, head *journal.Head) (b journal.Begun) {
	if head.Begun != nil {
		return *head.Begun
	}
	return journal.Begun{
		Version: journal.Version, Run: newID(), Tool: p.Tool, At: time.Now(),
		Kind: plan.Kind.Name, KindVersion: plan.Kind.Version, Seed: plan.Seed, Agents: plan.Agents, Plan: plan.JSON(), Code: p.Code, Measures: growth.Measures(plan),
		Prices: prices.Digests(modelsOf(plan.Agents)),
	}
}

// newID returns a random name for a run. No seed decides it.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// repriced returns the models whose price is not that of the beginning of the run, and says so. What was spent stays as it
// was counted. A run that is done has none.
func (p Play) repriced(a *App, plan *planfile.Plan, head *journal.Head, done bool) []string {
	if head.Begun == nil || done {
		return nil
	}
	var models []string
	for model, now := range a.prices.Digests(modelsOf(plan.Agents)) {
		if then, known := head.Begun.Prices[model]; known && then != now {
			models = append(models, model)
		}
	}
	if slices.Sort(models); len(models) > 0 && p.Notices != nil {
		p.Notices(dispatch.Notice{Model: models[0], Text: "The price of " + strings.Join(models, ", ") +
			" has changed since the run began. The budget counts what was spent then, and counts calls from now on by the new price."})
	}
	return models
}
