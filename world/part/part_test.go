package part_test

import (
	"context"
	"errors"
	"testing"

	"parley/world"
	"parley/world/part"
	"parley/world/worldtest"
)

// whole is a definition with every part that package world looks for.
type whole struct{ worldtest.Simple[struct{}] }

var (
	_ part.BotMaker                 = whole{}
	_ part.Loader[struct{}]         = whole{}
	_ part.ModelChooser[struct{}]   = whole{}
	_ part.Planner[struct{}]        = whole{}
	_ part.Nester[struct{}]         = whole{}
	_ part.ModelTrier[struct{}]     = whole{}
	_ part.UniformPlanner[struct{}] = whole{}
	_ part.TaskNamer[struct{}]      = whole{}
	_ part.StatusMaker[struct{}]    = whole{}
	_ part.Environment[struct{}]    = whole{}
	_ part.Restarter                = whole{}
	_ part.Starter[struct{}]        = whole{}
	_ part.Prober[struct{}]         = whole{}
	_ part.CodeUser[struct{}]       = whole{}
)

var errWhole = errors.New("whole")

type status struct{ world.Status }

func (whole) Bots() map[string]world.Bot                                   { return map[string]world.Bot{"b": nil} }
func (whole) Load(*struct{}, world.Files) ([]string, error)                { return nil, errWhole }
func (whole) Models(*struct{}) map[string]string                           { return map[string]string{"a": "m"} }
func (whole) Plan(*struct{}, world.Spec, uint64) (world.Stages, error)     { return nil, errWhole }
func (whole) Forecast(*struct{}, world.Spec, uint64) ([]world.Part, error) { return nil, errWhole }
func (whole) Nested(*struct{}) *world.NestedPlan                           { return &world.NestedPlan{File: "f"} }
func (whole) PlanNested(*struct{}, world.Kind, world.Spec, uint64) (world.Stages, error) {
	return nil, errWhole
}
func (whole) ForecastNested(*struct{}, world.Kind, world.Spec, uint64) ([]world.Part, error) {
	return nil, errWhole
}
func (whole) OtherModels(*struct{}) (models, seats []string)    { return []string{"m"}, nil }
func (whole) Uniform(*struct{}) bool                            { return true }
func (whole) TaskName(*struct{}) world.Task                     { return world.Task{Name: "t"} }
func (whole) Status(*struct{}) world.Status                     { return status{} }
func (whole) Actor(*struct{}, string) (world.Actor, error)      { return nil, errWhole }
func (whole) Outside() []string                                 { return []string{"o"} }
func (whole) Restarts() bool                                    { return true }
func (whole) Starts(*struct{}) world.Starts                     { return world.Starts{Seats: []string{"s"}} }
func (whole) Local(*struct{}) bool                              { return true }
func (whole) Probe(context.Context, *struct{}) []world.Presence { return []world.Presence{{}} }
func (whole) Code(*struct{}) []world.CodeName                   { return []world.CodeName{{}} }
func (whole) WithCode(world.Codes) world.Kind                   { return world.Kind{} }

// TestDefineFindsEveryPart: package world has these interfaces a second time, not exported, since it cannot import this package. A definition
// with the methods of these has those too.
func TestDefineFindsEveryPart(t *testing.T) {
	t.Parallel()
	k := world.Define(whole{})
	if err := part.Check(k); err != nil {
		t.Error(err)
	}
	p := k.Defaults()
	_, load := k.Load(p, nil)
	_, plan := k.Plan(p, world.Spec{}, 0)
	_, forecast := k.Forecast(p, world.Spec{}, 0)
	_, actor := k.Actor(p, "")
	for name, found := range map[string]bool{
		"BotMaker": len(k.Bots()) == 1, "Loader": errors.Is(load, errWhole), "ModelChooser": k.ChoosesModels() && len(k.Models(p)) == 1,
		"Planner": k.Plans() && errors.Is(plan, errWhole) && errors.Is(forecast, errWhole), "Nester": k.Nests() && k.Nested(p) != nil, "UniformPlanner": k.Uniform(p), "ModelTrier": trier(k, p), "TaskNamer": k.TaskName(p).Name == "t",
		"StatusMaker": k.Status(p) != nil, "Environment": k.External() && errors.Is(actor, errWhole), "Restarter": k.Restarts(), "Starter": len(k.Starts(p).Seats) == 1,
		"Prober": k.Local(p) && len(k.Probe(t.Context(), p)) == 1, "CodeUser": len(k.Code(p)) == 1 && k.WithCode(nil).Name == "",
	} {
		if !found {
			t.Errorf("Define does not find part.%s", name)
		}
	}
}

func trier(k world.Kind, p world.Params) bool {
	models, _ := k.OtherModels(p)
	return len(models) == 1
}
