package estimate

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"parley/llm"
)

// files notes a file that the model of an agent does not take.
func (t *trial) files(agent string, req *llm.Request) {
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			if p.File == nil || t.unfit[agent] != "" {
				continue
			}
			a := t.account(req.Model)
			_, model := llm.SplitModel(req.Model)
			if why := a.Capability(model).Unfit(a.Dialect, p.File); why != "" {
				t.unfit[agent] = fmt.Sprintf("agents.%s: a message of the plan holds %v, which cannot be sent to %s: %s", agent, p.File, req.Model, why)
			}
		}
	}
}

// misfit returns an error if agents are sent files that their models do not take.
func (t *trial) misfit() error {
	for _, agent := range slices.Sorted(maps.Keys(t.unfit)) {
		return errors.New(t.unfit[agent])
	}
	return nil
}
