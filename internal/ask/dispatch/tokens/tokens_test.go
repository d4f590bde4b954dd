package tokens

import (
	"testing"

	"parley/llm"
)

// TestShortAnswersFirst: the answers that come first are the short ones. While many calls are open, they do not lower the guess much;
// when all are answered, they do.
func TestShortAnswersFirst(t *testing.T) {
	t.Parallel()
	e, req := NewEstimator(), &llm.Request{Model: "lab/any", Messages: []llm.Message{llm.User("Who?")}}
	size := SizeOf(req)
	for range 400 {
		e.Open(req.Model)
	}
	answer := func(n, tokens int) {
		for range n {
			e.Learn(req, size, llm.Usage{Input: 5, Output: tokens})
			e.Close(req.Model)
		}
	}
	answer(40, 20)
	if _, output := e.Guess(req, size); output < 200 {
		t.Errorf("with 360 calls open, %.0f tokens", output)
	}
	answer(360, 100)
	if _, output := e.Guess(req, size); output < 95 || output > 105 {
		t.Errorf("with all answered, %.0f tokens", output)
	}
}
