// Package rollout is the kind of rollouts: agents act in environments, step by step, for rewards. It joins
// the rules of an episode (package rules) with where environments run (env, envhttp).
//
// Its own files have the command env, the part of a report that is special to
// rollouts (exhibit.go), and a player for the simulated provider (standin.go).
package rollout

import (
	"context"

	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
	"parley/world/program"
	"parley/worlds/rollout/envhttp"
	"parley/worlds/rollout/rules"
)

// Kind is the family of rollouts.
func Kind() world.Kind { return world.Define(definition{}) }

// definition adds to the rules what reaches outside an episode.
type definition struct {
	rules.Definition
	codes world.Codes // the environments in Python; nil: none
}

// Code lists the environments in Python.
func (definition) Code(p *rules.Params) []world.CodeName { return envhttp.CodeNames(p) }

// WithCode returns the kind with its environments in Python.
func (definition) WithCode(codes world.Codes) world.Kind {
	return world.Define(definition{codes: codes})
}

// Actor connects to the environments.
func (d definition) Actor(p *rules.Params, run string) (world.Actor, error) {
	actor, err := envhttp.New(p, run, d.codes)
	if err != nil {
		return nil, err
	}
	return actor, nil
}

// Outside returns the params that say where environments and tools are and how they are held.
func (definition) Outside() []string { return []string{"servers", "pool", "tools"} }

// Local reports whether the environments run in this process or its workers, and no server has tools.
func (definition) Local(p *rules.Params) bool { return len(p.Servers) == 0 && p.Tools.MCP == "" }

// Probe asks the servers whether they are there.
func (definition) Probe(ctx context.Context, p *rules.Params) []world.Presence {
	return envhttp.Probe(ctx, p)
}

// Exhibitor returns the part of a report that is special to rollouts.
func (definition) Exhibitor() exhibit.Exhibitor {
	return newExhibits(rules.Definition{}.Defaults().MaxSteps)
}

// StandIn plays for the simulated provider.
func (d definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	if d.codes != nil {
		for _, code := range d.codes.All() {
			if text, ok := code.StandIn(model, req, seed); ok {
				return text, true
			}
		}
	}
	return standInText(model, req, seed)
}

// StandInCalls calls tools for the simulated provider.
func (d definition) StandInCalls(model string, req *llm.Request, seed uint64) ([]llm.ToolCall, bool) {
	if d.codes != nil {
		for _, code := range d.codes.All() {
			if caller, ok := code.(part.ToolCaller); ok {
				if calls, ok := caller.StandInCalls(model, req, seed); ok {
					return calls, true
				}
			}
		}
	}
	return standInCalls(model, req, seed)
}

// Commands serve environments.
func (definition) Commands() []program.Command {
	return []program.Command{{Name: "env", Doc: "List the built-in environments, or serve them over HTTP.", Verb: &envCommand{}}}
}
