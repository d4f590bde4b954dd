package evolve

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// TestFitness checks the parts of fitness against their documentation.
func TestFitness(t *testing.T) {
	t.Parallel()
	f := Fitness{By: "weighted", Accuracy: 0.7, Consistency: 0.15, Efficiency: 0.1, Diversity: 0.05, FreeWords: 30, WordPenalty: 0.01, MaxPenalty: 0.5}
	even := []Result{{Asked: 1, Correct: 1, Length: 100, CorrectLength: 100}, {Asked: 1, Length: 100, Unread: 1}}
	got := f.Parts(even, "Think.")
	if got.Accuracy != 0.5 || got.Consistency != 0.7+0.3*0.5 || got.Efficiency != 1 || got.Diversity != 0 || got.Penalty != 0 {
		t.Errorf("%+v", got)
	}
	if want := 0.7*0.5 + 0.15*0.85 + 0.1; got.Fitness < want-1e-12 || got.Fitness > want+1e-12 {
		t.Errorf("fitness %v, want %v", got.Fitness, want)
	}
	if got := f.Parts(even, strings.Repeat("word ", 40)); got.Penalty < 0.0999 || got.Penalty > 0.1001 {
		t.Errorf("40 words cost %v", got.Penalty)
	}
	if got := f.Parts(even, strings.Repeat("word ", 400)); got.Penalty != 0.5 {
		t.Errorf("400 words cost %v", got.Penalty)
	}
	long := []Result{{Asked: 2, Correct: 2, Length: 650, CorrectLength: 650}}
	if got := f.Parts(long, ""); got.Efficiency != 0.5 {
		t.Errorf("right answers of 650 characters: %+v", got)
	}
	f.By = "accuracy"
	if got := f.Parts(even, strings.Repeat("word ", 400)); got.Fitness != 0.5 {
		t.Errorf("accuracy alone: %+v", got)
	}
	if got := f.Parts([]Result{{Asked: 1, Failed: 1}}, "x"); got != (Parts{}) {
		t.Errorf("nothing is known: %+v", got)
	}
}

// TestEstimateOfAnything: an interval without ends is recorded and read.
func TestEstimateOfAnything(t *testing.T) {
	t.Parallel()
	for _, want := range []Estimate{{1, math.Inf(-1), math.Inf(1), 3}, {1, 0, math.Inf(1), 3}, {0.5, 0.25, 0.75, 9}} {
		var got struct{ Gain *Estimate }
		b, err := json.Marshal(map[string]any{"gain": &want})
		if err != nil || json.Unmarshal(b, &got) != nil || *got.Gain != want {
			t.Errorf("%s: %+v, want %+v: %v", b, got.Gain, want, err)
		}
	}
}
