package diplomacy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/world"
	"parley/world/worldtest"
)

// TestStandIn checks that the stand-in understands every prompt of a game: its power, its options, the
// other powers and the promises.
func TestStandIn(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	understood := func(c world.Call, r world.Reply) error {
		var a struct {
			Orders    []string
			Messages  []struct{ To string }
			Relations []struct{ Power string }
			Promises  []struct{ Kind string }
		}
		if err := json.Unmarshal(r.JSON, &a); err != nil {
			return err
		}
		seen["messages"] += len(a.Messages)
		seen["promises"] += len(a.Promises)
		switch {
		case slices.Contains([]string{"orders", "again", "retreats", "builds"}, c.Label) && len(a.Orders) == 0:
			return fmt.Errorf("no orders: %s", r.Text)
		case slices.Contains([]string{"start", "results"}, c.Label) && len(a.Relations) == 0:
			return fmt.Errorf("no relations: %s", r.Text)
		}
		for _, m := range a.Messages {
			if m.To == c.Seat {
				return fmt.Errorf("a message to itself: %s", r.Text)
			}
		}
		return nil
	}
	worldtest.StandIn(t, Kind(), []string{"start", "plan", "message", "orders", "again", "retreats", "builds", "results", "years", "promises"},
		worldtest.Options{Params: `{"rounds":2,"end_phase":"S1904M","planning":true,"judge":true,"draw_from":1904,` + threePowers + `}`, Understood: understood},
		worldtest.Options{Params: `{"rounds":1,"max_year":1903}`, Deals: 1, Understood: understood},
		worldtest.Options{Params: `{"rounds":0,"max_year":1902,"diary":false,"draw_from":1901}`, Deals: 1, Understood: understood},
	)
	if seen["messages"] == 0 || seen["promises"] == 0 {
		t.Errorf("no messages or no promises: %v", seen)
	}
}

// TestTemplatesHaveSigns checks that the templates have the texts by which the stand-in recognises
// them.
func TestTemplatesHaveSigns(t *testing.T) {
	t.Parallel()
	fill := func(name string) string {
		return standard().Fill(name, func(variable string) string { return variable })
	}
	for _, c := range []struct{ template, sign string }{
		{self, youAre + "power."}, {promptTalk, "\n" + standinRound + "round of"}, {promptTalk, standinSaid}, {promptDecide, standinSaid},
	} {
		if text := fill(c.template); !strings.Contains("\n"+text, c.sign) {
			t.Errorf("the template %s does not have %q:\n%s", c.template, c.sign, text)
		}
	}
}
