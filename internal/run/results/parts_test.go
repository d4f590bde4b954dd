package results

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/journal"
	"parley/llm"
)

// TestTimelineKeepsCount: however long a run is, there are few parts, and every call is counted.
func TestTimelineKeepsCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var line Timeline
		var calls, tokens, failures int
		var cost llm.Money
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			at := time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "at"))
			failed := rapid.Bool().Draw(t, "failed")
			line.add(at, 1, count(failed), llm.Usage{Input: 2, Output: 1}, 5)
			calls, tokens, cost, failures = calls+1, tokens+3, cost+5, failures+count(failed)
			if int(at/line.Width) >= len(line.Parts) || line.Parts[at/line.Width].Calls == 0 {
				t.Fatalf("%v is not where it belongs: %d parts of %v", at, len(line.Parts), line.Width)
			}
		}
		var all TimelinePart
		for _, p := range line.Parts {
			all.plus(p)
		}
		if all != (TimelinePart{calls, failures, tokens, cost}) || len(line.Parts) > timelineParts {
			t.Fatalf("%+v in %d parts, want %d calls", all, len(line.Parts), calls)
		}
	})
}

// TestProcesses leaves out the time between processes, also after one that was cut off.
func TestProcesses(t *testing.T) {
	t.Parallel()
	r := fold(t, append(begin(1),
		ask(turn(0, 0), "left", 2, "a"), &journal.Closed{At: clockTime(3)},
		&journal.Opened{At: clockTime(5000)}, ask(turn(0, 1), "left", 5001, "b"),
		&journal.Opened{At: clockTime(90000)}, ask(turn(0, 2), "left", 90004, "c"))...)
	if r.Processes != 3 || r.Played != 8*time.Second {
		t.Errorf("%d processes, %v", r.Processes, r.Played)
	}
	if n := len(r.Timeline.Parts); time.Duration(n)*r.Timeline.Width > 10*time.Second {
		t.Errorf("%d parts of %v", n, r.Timeline.Width)
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	r := fold(t, append(begin(1),
		&journal.Batched{At: clockTime(1), Step: journal.BatchIntended, Key: "k1", Model: "lab/a", Lines: []string{"x", "y"}, Worst: 9},
		&journal.Batched{At: clockTime(2), Step: journal.BatchIntended, Key: "k2", Model: "lab/b"},
		&journal.Batched{At: clockTime(61), Step: journal.BatchClosed, Key: "k1", Why: "done"})...)
	if len(r.Batches) != 2 || r.Batches[0].Lines != 2 || r.Batches[0].Took != time.Minute || r.Batches[0].Closed != "done" || r.Batches[1].Closed != "" {
		t.Errorf("%+v", r.Batches)
	}
}
