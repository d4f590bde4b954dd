package llm

import "slices"

// Gap is what an answer lacks for training on its tokens.
type Gap string

// The gaps. Without usable ids there are no tokens to train on; the last two leave the tokens without log probabilities.
const (
	NoTokenIDs     Gap = "no token ids"
	NoPromptIDs    Gap = "no token ids of the prompt"
	NegativeIDs    Gap = "negative token ids"
	NoLogprobs     Gap = "no log probabilities"
	UnevenLogprobs Gap = "more or fewer log probabilities than tokens"
)

// Unusable reports whether there are no tokens to train on.
func (g Gap) Unusable() bool { return g == NoTokenIDs || g == NoPromptIDs || g == NegativeIDs }

// Of returns the first gap of an answer, or "".
func Of(r *Response) Gap {
	switch {
	case len(r.TokenIDs) == 0:
		return NoTokenIDs
	case len(r.PromptTokenIDs) == 0:
		return NoPromptIDs
	case negative(r.TokenIDs) || negative(r.PromptTokenIDs):
		return NegativeIDs
	case len(r.Logprobs) == 0:
		return NoLogprobs
	case len(r.Logprobs) != len(r.TokenIDs):
		return UnevenLogprobs
	default:
		return ""
	}
}

func negative(ids []int) bool { return slices.ContainsFunc(ids, func(id int) bool { return id < 0 }) }
