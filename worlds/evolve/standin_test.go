package evolve

import (
	"fmt"
	"testing"

	"parley/world/worldtest"
)

// TestStandIn checks that the stand-in answers the requests to solvers, breeders and judges.
func TestStandIn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it computes: there is nothing for the race detector")
	}
	plays := []worldtest.Options{
		{Params: `{"problems": {"train": 20, "test": 2}}`},
		{Params: `{"problems": {"train": 20, "test": 2}, "ask": "{prompt}\n\nProblem: {question}", "checker": {"type": "judge"}}`},
	}
	labels := []string{"solve", "judge"}
	for parents, operators := range map[int][]string{1: {rewrite, playReflect}, 2: {byModel}, 4: {difference}} {
		for _, operator := range operators {
			text, cases := "", "[]"
			for i := range parents {
				text += fmt.Sprintf(`,{"id": %d, "text": "Solve it.\nTake care."}`, i+1)
			}
			if operator == playReflect {
				cases = `[{"question": "1+1?", "expected": "2", "response": "3"}]`
			}
			labels = append(labels, operator)
			plays = append(plays, worldtest.Options{Params: fmt.Sprintf(`{"mutation": {"rewrite": 1}, "episode": {"breed": {"operator": %q, "parents": [%s], "cases": %s, "most": 500}}}`, operator, text[1:], cases)})
		}
	}
	worldtest.StandIn(t, Kind(), labels, plays...)
}
