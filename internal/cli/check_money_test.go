package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// TestCheckSaysFewAtOnce checks that check says how few calls a budget has room for, and what would make more room.
func TestCheckSaysFewAtOnce(t *testing.T) {
	t.Parallel()
	prices := write(t, "prices.json", `{"as_of": "2026-11-15", "models": {"lab/any": {"input": 0, "output": 5}, "lab/short": {"input": 0, "output": 5, "context": 8000}}}`)
	plan := write(t, "plan.yaml", `kind: secrets
episodes: 20
prices: `+prices+`
providers: {lab: {dialect: openai, base_url: "http://10.0.0.1:8000/v1"}}
agents: {quiet: {model: lab/any, max_tokens: 60, tier: standard}}
`)
	const few = "the server of lab/any is not known to stop at max_tokens: with this budget about %s at a time, since its longest answer could cost $0.64, until one has ended at max_tokens; " +
		"give context of the model in the price file, or a budget of %s, which has room for %s\n"
	for name, c := range map[string]struct {
		sets string
		want []string
	}{
		"one":          {"budget=0.1", []string{"1 call", "$10.24", "16"}},
		"two and one":  {"budget=1.3", []string{"3 calls", "$10.24", "16"}},
		"concurrency":  {"budget=0.1 limits.concurrency=4", []string{"1 call", "$2.56", "4"}},
		"enough":       {"budget=10.24", nil},
		"no more live": {"budget=1.3 limits.live=2", nil},
		"context":      {"budget=1 agents.quiet.model=lab/short", nil},
		"no budget":    {"seed=2", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"check", plan, "--episodes", "2", "--allow-files", filepath.Dir(prices)}
			for set := range strings.FieldsSeq(c.sets) {
				args = append(args, "--set", set)
			}
			got := parley(t, State{}, args...).want(t, exit.OK).stdout
			want := few
			for _, part := range c.want {
				want = strings.Replace(want, "%s", part, 1)
			}
			if strings.Contains(got, "is not known to stop") != (c.want != nil) || c.want != nil && !strings.Contains(got, want) {
				t.Errorf("want %q in\n%s", want, got)
			}
		})
	}
}

// TestCheckSaysWhatIsCovered checks that a budget that covers the estimate, but not the longest answers, is not said to cover it.
func TestCheckSaysWhatIsCovered(t *testing.T) {
	t.Parallel()
	plan := write(t, "plan.yaml", "kind: secrets\nepisodes: 100\nagents: {a: {model: openai/gpt-5-mini, max_tokens: 2000}}\nbudget: 0.2\n")
	for set, want := range map[string]string{
		"budget=0.2":          "  $0.20 covers the estimate; if every answer is as long as max_tokens, the run needs about $2.44\n",
		"budget=3":            "  $3.00 covers it\n",
		"agents.a.max_tokens": "  $9.00 covers the estimate; more could be needed, since answers are not bounded\n",
	} {
		args := []string{"check", plan, "--set", set}
		if !strings.Contains(set, "=") {
			args = []string{"check", plan, "--set", set + "=", "--set", "budget=9"}
		}
		if got := parley(t, State{}, args...).want(t, exit.OK).stdout; !strings.Contains(got, want) {
			t.Errorf("%s: want %q in\n%s", set, want, got)
		}
	}
}

// TestNoPriceForBudget checks that check and run say the same about a model without a price, with its line, and that check does not
// say to run the plan.
func TestNoPriceForBudget(t *testing.T) {
	t.Parallel()
	for agent, at := range map[string]string{"{model: openaj/gpt-5-mini}": ":4:21: ", "openaj/gpt-5-mini": ":4:13: "} {
		for _, key := range []string{"budget", "episode_budget"} {
			plan := write(t, "plan.yaml", `kind: secrets
episodes: 2
providers: {openaj: {dialect: openai, base_url: "http://10.0.0.1:8000/v1"}}
agents: {a: `+agent+`}
`+key+`: 1
`)
			want := plan + at + "agents.a.model: no price is known for openaj/gpt-5-mini (did you mean openai/gpt-5-mini?), so a budget cannot be kept: " +
				"give its price in a file, and name the file under prices in a plan, or with --prices in ask\n"
			got := parley(t, State{}, "check", plan).want(t, exit.OK).stdout
			if strings.Count(got, "no price is known") != 1 || !strings.Contains(got, "warning  "+want) || !strings.Contains(got, "\nnext:  give a price of openaj/gpt-5-mini, or no budget, then parley run ") {
				t.Errorf("want %q in\n%s", want, got)
			}
			if got := parley(t, State{}, "run", plan).want(t, exit.Misuse).stderr; got != "parley: "+want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}
