package cli

import (
	"testing"

	"parley/internal/read/training"
	"parley/llm"
)

// TestLeftOut checks that what is missing is counted by its reason.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	lacks := func(gap llm.Gap) training.Account {
		return training.Account{Joins: training.Joins{Gaps: map[llm.Gap]int{gap: 3}}}
	}
	for _, c := range []struct {
		of   training.Account
		as   training.Shape
		want string
	}{
		{lacks(llm.NoTokenIDs), training.Sequences, "3 answers have no token ids; play with tokens: true, and a server that returns them"},
		{lacks(llm.NoTokenIDs), training.TRLSFT, ""},
		{lacks(llm.NoPromptIDs), training.VeRL, "3 answers have no token ids of the prompt (prompt_token_ids), so they are in no sequence; use a server that returns them"},
		{lacks(llm.NegativeIDs), training.Slime, "3 answers have negative token ids, so they are in no sequence; check the server"},
		{lacks(llm.NoLogprobs), training.AReaL, "3 answers have no log probabilities, so their sequences have no logprobs; use a server that returns one for each token"},
		{lacks(llm.UnevenLogprobs), training.Sequences, "3 answers have more or fewer log probabilities than tokens, so their sequences have no logprobs; use a server that returns one for each token"},
		{training.Account{Unpaid: 2, Reward: "points"}, training.Rows, "2 episodes have no score points, so nothing in them is trained on; name another in train.reward of the plan"},
		{training.Account{Joins: training.Joins{Foreign: 1}}, training.Rows, "1 answers are not trained on, because another model gave them, they were repaired, or their program was started again"},
		{training.Account{Unmade: map[string]int{"several parts": 20, "equal reward": 5}}, training.TRLDPO, "pairs not made: 5 equal reward, 20 several parts"},
		{training.Account{Unmade: map[string]int{"no rows": 1}}, training.TRLSFT, "groups whose records were not made: 1 no rows"},
	} {
		if got := leftOut(c.of, c.as); got != c.want {
			t.Errorf("%s: %q, want %q", c.as, got, c.want)
		}
	}
}
