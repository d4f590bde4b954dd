package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/cli/exit"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

// ending returns a kind that asks twice at once and then once, and ends as end says.
func ending(last string, end func(deal int, replies []world.Reply) world.Outcome) world.Kind {
	ask := func(seat, text string) world.Call {
		return world.Call{Seat: seat, Ask: llm.Request{Messages: []llm.Message{llm.User(text)}}}
	}
	return world.Define(worldtest.Simple[struct{}]{
		Kind: world.About{Name: "ending", Version: 1, Doc: "Asks."}, Sits: []string{"a", "b"},
		Play: func(_ *struct{}, t *world.Table) world.Outcome {
			said := t.Ask(ask("a", "Hello."), ask("b", "Hello."))
			said = append(said, t.One(ask("a", last+" "+said[0].Text)))
			return end(t.Deal().Number, said)
		},
	})
}

func good(int, []world.Reply) world.Outcome {
	return world.Outcome{Scores: []world.Score{{Name: "points", Value: 1}}}
}

func played(t *testing.T, kind world.Kind, want int, args ...string) (sum struct {
	Digest   string
	Episodes struct{ Complete, Failed int }
	Calls    struct{ Total, Earlier, Asked, Replayed, Failed int }
	Again    []journal.Again
	Cost     float64 `json:"cost_usd"`
}) {
	t.Helper()
	got := parleyOf(t, kind, append([]string{"run"}, append(args, "--json", "--quiet")...)...).want(t, want)
	if err := json.Unmarshal([]byte(got.stdout), &sum); err != nil {
		t.Fatalf("%v: %s%s", err, got.stdout, got.stderr)
	}
	return sum
}

func endingPlan(t *testing.T, model string) string {
	t.Helper()
	return write(t, "plan.yaml", fmt.Sprintf("kind: ending\nepisodes: 20\nagents: {x: {model: %s, max_tokens: 50}}\nlineup: {a: x, b: x}\n", model))
}

// TestPlayFailedAgain: a world with a mistake after its last call fails everywhere. Once it is mended, nothing is asked again. Where it asks
// something else, only that is asked.
func TestPlayFailedAgain(t *testing.T) {
	t.Parallel()
	broken := ending("And?", func(deal int, _ []world.Reply) world.Outcome {
		if deal%2 == 0 {
			panic("a mistake")
		}
		return good(0, nil)
	})
	plan := endingPlan(t, "sim/small")
	first := parleyOf(t, broken, "run", plan).want(t, exit.Failed)
	if want := "parley run " + plan + " --failed\n"; !strings.Contains(first.stdout, want) {
		t.Errorf("%q is not in\n%s", want, first.stdout)
	}
	if again := played(t, broken, exit.Failed, plan, "--failed"); again.Calls.Asked != 0 || again.Episodes.Failed != 10 || len(again.Again) != 1 {
		t.Errorf("with the same mistake: %+v", again)
	}
	fresh := endingPlan(t, "sim/small")
	whole := played(t, ending("And?", good), exit.OK, fresh)
	mended := played(t, ending("And?", good), exit.OK, plan, "--failed")
	if mended.Calls.Asked != 0 || mended.Calls.Total != mended.Calls.Earlier || mended.Episodes.Failed != 0 || mended.Digest != whole.Digest || mended.Cost != whole.Cost || len(mended.Again) != 2 || mended.Again[1].Episodes != 10 {
		t.Errorf("mended: %+v, want no calls and the outcomes of %+v", mended, whole)
	}
	if none := played(t, ending("And?", good), exit.OK, plan, "--failed"); none.Calls.Asked != 0 || len(none.Again) != 2 {
		t.Errorf("nothing had failed: %+v", none)
	}
	for _, args := range [][]string{{"show"}, {"report"}} {
		if got := parleyOf(t, broken, append(args, strings.TrimSuffix(plan, ".yaml")+".parley")...); !strings.Contains(got.stdout, "again") || !strings.Contains(got.stdout, "10 episodes") {
			t.Errorf("%v does not say it:\n%s", args, got.stdout)
		}
	}
	runFile := func(plan string) string { return strings.TrimSuffix(plan, ".yaml") + ".parley" }
	if got := parleyOf(t, broken, "compare", runFile(plan), runFile(fresh)); !strings.Contains(got.stdout, "played again") {
		t.Errorf("compare does not say it:\n%s%s", got.stdout, got.stderr)
	}

	plan = endingPlan(t, "sim/small")
	played(t, broken, exit.Failed, plan)
	if other := played(t, ending("Well?", good), exit.OK, plan, "--failed"); other.Calls.Asked != 10 || other.Episodes.Failed != 0 {
		t.Errorf("with another last question: %+v, want 10 calls", other)
	}
}

// TestPlayFailedCallsAgain: after a storm of errors, only the calls that failed, and what follows from them, are asked again.
func TestPlayFailedCallsAgain(t *testing.T) {
	t.Parallel()
	strict := ending("And?", func(_ int, replies []world.Reply) world.Outcome {
		for _, r := range replies {
			if r.Failed != "" {
				return world.Outcome{Failed: "no answer"}
			}
		}
		return good(0, nil)
	})
	var asked, storm atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if n := asked.Add(1); storm.Load() > 0 && n%storm.Load() == 0 {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"error":{"message":"a storm"}}`)
			return
		}
		fmt.Fprint(w, `{"model":"m","choices":[{"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`)
	}))
	t.Cleanup(server.Close)
	plan := write(t, "plan.yaml", fmt.Sprintf("kind: ending\nepisodes: 20\nproviders: {lab: {dialect: openai, base_url: %s/v1}}\n"+
		"agents: {x: {model: lab/m, max_tokens: 50}}\nlineup: {a: x, b: x}\nlimits: {concurrency: 1}\n", server.URL))
	storm.Store(7)
	first := played(t, strict, exit.Failed, plan)
	if first.Calls.Failed == 0 || first.Episodes.Failed == 0 || first.Episodes.Complete == 0 {
		t.Fatalf("no storm: %+v", first)
	}
	storm.Store(0)
	before := asked.Load()
	again := played(t, strict, exit.OK, plan, "--failed")
	// If a first answer is missing, the last question is another one.
	if limit := int64(2 * first.Calls.Failed); asked.Load()-before > limit || again.Calls.Asked < first.Calls.Failed || again.Episodes.Failed != 0 || again.Calls.Failed != 0 {
		t.Errorf("%+v after %+v; %d requests, want at most %d", again, first, asked.Load()-before, limit)
	}
}
