package scenario

import (
	"parley/llm"
	"parley/worlds/scenario/standin"
)

// StandIn plays for the simulated provider.
func (definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return standin.Play(model, req, seed)
}
