package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
	"parley/world/worldtest"
)

// quiz returns a kind whose episodes are about a question, or depend on chance if there is none.
func quiz() world.Kind {
	return world.Define(asking{worldtest.Simple[question]{Kind: world.About{Name: "quiz"}}})
}

type (
	asking   struct{ worldtest.Simple[question] }
	question struct {
		Question string `json:"question"`
	}
)

func (asking) TaskName(q *question) (string, bool) { return q.Question, q.Question != "" }

// quizzed returns a run of n questions of a book, the first of which has deal number first. A
// question is equally hard for all agents.
func quizzed(t *testing.T, kind, book string, seed uint64, first, n int) *results.Run {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var specs []world.Spec
	var ends []journal.Entry
	for i := range n {
		specs = append(specs, world.Spec{Kind: kind, Params: json.RawMessage(fmt.Sprintf(`{"question":%q}`, book+strings.Repeat("?", i))), Lineup: map[string]string{"s": "a"}, Deal: first + i})
		if book == "" {
			specs[i].Params = json.RawMessage(`{}`)
		}
		ends = append(ends, &journal.Ended{Episode: i, Outcome: world.Outcome{Scores: []world.Score{{Seat: "s", Name: "right", Value: float64(10*i) + r.NormFloat64()}}}})
	}
	j := &journal.Memory{}
	begun := &journal.Begun{Version: 1, Run: fmt.Sprint(book, seed), Kind: kind, KindVersion: 1, Seed: seed, Agents: []world.Agent{{Name: "a", Model: "lab/a"}}}
	if err := j.Append(t.Context(), append([]journal.Entry{begun, &journal.Opened{}, &journal.Staged{Specs: world.List(specs...)}}, ends...)...); err != nil {
		t.Fatal(err)
	}
	out, err := results.Fold(t.Context(), j, "x")
	if err != nil {
		t.Fatal(err)
	}
	out.Know(quiz())
	return out
}

// TestTaskName checks that only episodes with the same deal are paired. If a kind says what the deal
// is, seed and number do not matter; otherwise they decide.
func TestTaskName(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		a, b   *results.Run
		paired bool
		note   string
	}{
		{"the same questions, another seed", quizzed(t, "quiz", "maths", 1, 0, 9), quizzed(t, "quiz", "maths", 2, 5, 9), true, ""},
		{"other questions, the same seed", quizzed(t, "quiz", "maths", 1, 0, 9), quizzed(t, "quiz", "words", 1, 0, 9), false, "had no deals in common"},
		{"chance, the same seed", quizzed(t, "quiz", "", 1, 0, 9), quizzed(t, "quiz", "", 1, 0, 9), true, ""},
		{"chance, another seed", quizzed(t, "quiz", "", 1, 0, 9), quizzed(t, "quiz", "", 2, 0, 9), false, ""},
		{"other kinds, the same seed", quizzed(t, "quiz", "", 1, 0, 9), quizzed(t, "duel", "", 1, 0, 9), false, "had no deals in common"},
	} {
		c := one(t, []*results.Run{test.a, test.b}, []string{"x", "y"}, Config{})
		if c.Paired != test.paired || c.N != 9 || !strings.Contains(c.Note, test.note) || test.note == "" && c.Note != "" {
			t.Errorf("%s: %+v", test.name, c)
		}
	}
}

// TestNoise checks that nothing is planned for a difference that is likely noise, and that the result says how large
// a difference can be.
func TestNoise(t *testing.T) {
	t.Parallel()
	even := func(gain float64) (out []episode) {
		for d := range 20 {
			out = append(out, episode{"", d, "a", "b", gain + float64(d%2), float64((d / 2) % 2)})
		}
		return out
	}
	for _, test := range []struct {
		gain float64
		open bool
	}{{0.01, false}, {0.25, true}} {
		res, err := Runs([]*results.Run{run(t, 1, even(test.gain))}, []string{"x"}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		c := res.Comparisons[0]
		if c.Differs() || (c.More > 0) != test.open {
			t.Errorf("%v: %+v", test.gain, c)
		}
		text := fmt.Sprint(res.Document("").Sections[0].Blocks)
		if open := strings.Contains(text, "would show it"); open != test.open {
			t.Errorf("%v: %s", test.gain, text)
		}
		if bound := "no difference larger than " + short(c.Difference.High) + " is likely"; strings.Contains(text, bound) == test.open {
			t.Errorf("%v: %q in %s", test.gain, bound, text)
		}
	}
}
