package sim

import (
	"testing"
	"time"

	"parley/llm/llmtest"
)

// TestConformance runs the suite that every llm.Model passes.
func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Exercise(t, llmtest.Harness{
		Model: model(t, Config{MinTokens: 40}), Stall: model(t, Config{Latency: Fixed(time.Hour)}), Name: "sim/small",
	})
}
