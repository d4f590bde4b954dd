package diplomacy

import (
	"math/rand/v2"
	"testing"

	"parley/world"
	"parley/world/worldtest"
)

// threePowers starts in a fall in which a unit is dislodged and a power may build, so that a short
// game has every kind of phase.
const threePowers = `"position":{"name":"F1903M","units":{"FRANCE":["A PAR","A BUR","F BRE"],"GERMANY":["A MUN","A RUH"],"ITALY":["A MAR","A TYR"]},` +
	`"centers":{"FRANCE":["PAR","BRE","BEL","SPA"],"GERMANY":["MUN","KIE"],"ITALY":["MAR","VEN","ROM"]}}`

func TestKind(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]string{
		"press":    `{"rounds":2,"end_phase":"S1904M","planning":true,"judge":true,"draw_from":1904,` + threePowers + `}`,
		"no press": `{"rounds":0,"end_phase":"S1904M",` + threePowers + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worldtest.Exercise(t, Kind(), worldtest.Options{Params: params, Deals: 1, Answer: func(c world.Call, _ *rand.Rand) world.Reply {
				return simulated(c)
			}})
		})
	}
}
