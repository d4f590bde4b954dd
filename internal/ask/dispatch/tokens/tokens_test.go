package tokens

import (
	"fmt"
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

// TestMadeUpModels checks that names of models that clients make up are not all kept, and that no count is lost.
func TestMadeUpModels(t *testing.T) {
	t.Parallel()
	e := NewEstimator()
	for i := range 3 * maxModels {
		e.Open(fmt.Sprint("lab/", i))
	}
	if len(e.models) != maxModels+1 || e.models[otherModels].open != 2*maxModels {
		t.Errorf("%d models are kept", len(e.models))
	}
	for i := range 3 * maxModels {
		e.Close(fmt.Sprint("lab/", i))
	}
	for name, g := range e.models {
		if g.open != 0 {
			t.Errorf("%q: %d are open", name, g.open)
		}
	}
}
