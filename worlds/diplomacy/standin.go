package diplomacy

import (
	"parley/llm"
	"parley/worlds/diplomacy/standin"
)

// StandIn plays for the simulated provider.
func (d *definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return standin.Play(model, req, seed)
}
