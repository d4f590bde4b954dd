package price

import (
	"strings"
	"testing"
)

// TestChanges: a newer file is compared by provider, in our format or LiteLLM's.
func TestChanges(t *testing.T) {
	t.Parallel()
	old, err := Read(strings.NewReader(`{"models": {"lab/same": {"input": 1, "output": 2, "batch": 0.5}, "lab/dearer": {"input": 1, "output": 2}, "lab/gone": {"input": 1, "output": 2},
		"other/a": {"input": 1, "output": 2}, "lab/*": {"input": 9, "output": 9}}}`), "old")
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"own": `{"models": {"lab/same": {"input": 1, "output": 2, "batch": 0.5}, "lab/dearer": {"input": 3, "output": 2}, "lab/new": {"input": 1, "output": 2}, "strange/x": {"input": 1, "output": 2}}}`,
		"LiteLLM's": `{"same": {"litellm_provider": "lab", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "input_cost_per_token_batches": 5e-7, "cache_read_input_token_cost_batches": 5e-7, "output_cost_per_token_batches": 1e-6, "cache_creation_input_token_cost_batches": 5e-7, "cache_creation_input_token_cost_above_1hr_batches": 5e-7},
			"dearer": {"litellm_provider": "lab", "input_cost_per_token": 3e-6, "output_cost_per_token": 2e-6}, "new": {"litellm_provider": "lab", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
			"x": {"litellm_provider": "strange", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}`,
	} {
		newer, err := Read(strings.NewReader(file), name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range old.Changes(newer, func(p string) bool { return p == "lab" }) {
			what := "changed"
			if !c.Was {
				what = "new"
			} else if !c.Here {
				what = "gone"
			}
			got = append(got, c.Model+" "+what)
		}
		if all := strings.Join(got, ", "); all != "lab/dearer changed, lab/gone gone, lab/new new" {
			t.Errorf("%s: %s", name, all)
		}
	}
}
