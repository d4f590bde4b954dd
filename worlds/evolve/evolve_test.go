package evolve

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/internal/kit/statmath"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

// TestExercise checks every kind of episode with the tests for all worlds.
func TestExercise(t *testing.T) {
	t.Parallel()
	small := `"problems": {"train": 4, "test": 2}`
	for name, params := range map[string]string{
		"trial":     `{` + small + `}`,
		"several":   `{` + small + `, "solvers": 2, "samples": 3, "ask": "{prompt}\n\nProblem: {question}"}`,
		"judge":     `{` + small + `, "checker": {"type": "judge"}}`,
		"breed":     `{"mutation": {"reflect": 1}, "episode": {"breed": {"operator": "reflect", "parents": [{"id": 3, "text": "Solve it."}], "cases": [{"question": "1+1?", "expected": "2", "response": "3"}], "most": 50}}}`,
		"verdict":   `{"episode": {"verdict": {"stopped": "stagnation", "winner": {"text": "Solve it."}}}}`,
		"no winner": `{"episode": {"verdict": {"stopped": "failures"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worldtest.Exercise(t, Kind(), worldtest.Options{Params: params, Answer: answered})
		})
	}
}

// answered returns a good reply to any call of the kind.
func answered(c world.Call, r *rand.Rand) world.Reply {
	switch {
	case c.Seat == judgeSeat:
		return world.Reply{JSON: fmt.Appendf(nil, `{"reason":"so","correct":%v}`, r.IntN(2) == 0)}
	case c.Seat == breederSeat:
		return world.Reply{JSON: json.RawMessage(`{"prompt":"Solve it well, and take the time that you need for it."}`)}
	}
	return world.Reply{Text: fmt.Sprint("#### ", r.IntN(50))}
}

// playOne plays one episode of params.
func playOne(t *testing.T, params string, answer func(c world.Call, i int) world.Reply) (world.Outcome, []world.Call) {
	t.Helper()
	w, err := definition{}.World(paramsOf(t, params), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := world.Begin(w, world.Deal{})
	defer s.Stop()
	var calls []world.Call
	turn := s.Next(nil)
	for !turn.Done {
		var replies []world.Reply
		for _, c := range turn.Calls {
			replies = append(replies, answer(c, len(calls)))
			calls = append(calls, c)
		}
		turn = s.Next(replies)
	}
	return turn.Outcome, calls
}

const threeProblems = `"episode": {"trial": {"id": 5, "text": "Think.", "purpose": "race", "problems": [
	{"id": "a", "question": "A?", "answer": "1"}, {"id": "b", "question": "B?", "answer": "2"}, {"id": "c", "question": "C?", "answer": "3"}]}}`

// TestFailuresAreApart checks that a failed call is neither right nor wrong.
func TestFailuresAreApart(t *testing.T) {
	t.Parallel()
	o, _ := playOne(t, `{`+threeProblems+`}`, func(_ world.Call, i int) world.Reply {
		return []world.Reply{{Text: "#### 1"}, {Failed: "timeout", Text: "#### 2"}, {Text: "no idea", Finish: "length"}}[i]
	})
	rec, _ := o.Data.(trialRecord)
	want := []Result{
		{Problem: "a", Asked: 1, Correct: 1, Length: 6, CorrectLength: 6},
		{Problem: "b", Asked: 1, Failed: 1},
		{Problem: "c", Asked: 1, Unread: 1, Cut: 1, Length: 7, Said: "no idea"},
	}
	if !reflect.DeepEqual(rec.Results, want) || rec.Parts.Accuracy != 0.5 || rec.Parts.Problems != 2 || rec.Calls != 3 {
		t.Errorf("%+v", rec)
	}
	if len(o.Scores) != 1 || o.Scores[0].Value != 0.5 || o.Failed != "" {
		t.Errorf("%+v", o)
	}
	if o, _ = playOne(t, `{`+threeProblems+`}`, func(world.Call, int) world.Reply { return world.Reply{Failed: "quota"} }); o.Failed == "" || len(o.Scores) > 0 {
		t.Errorf("nothing was answered: %+v", o)
	}
}

// TestJudge checks that the judge is asked about every answer, and that an answer it fails to judge does not count.
func TestJudge(t *testing.T) {
	t.Parallel()
	o, calls := playOne(t, `{"checker": {"type": "judge"}, `+threeProblems+`}`, func(c world.Call, i int) world.Reply {
		if c.Seat == solverSeat {
			return []world.Reply{{Text: "one"}, {Text: "two"}, {Text: ""}}[i]
		}
		if strings.Contains(c.Ask.Messages[1].Text(), "one") {
			return world.Reply{JSON: json.RawMessage(`{"reason":"","correct":true}`)}
		}
		return world.Reply{Failed: "timeout"}
	})
	rec, _ := o.Data.(trialRecord)
	if len(calls) != 5 || rec.Results[0].Correct != 1 || rec.Results[1].Failed != 1 || rec.Results[2].Unread != 1 || rec.Parts.Accuracy != 0.5 {
		t.Errorf("%d calls, %+v", len(calls), rec)
	}
}

// TestSeveralSolvers checks that each solver has a score, and that fitness is over all.
func TestSeveralSolvers(t *testing.T) {
	t.Parallel()
	o, calls := playOne(t, `{"solvers": 2, "samples": 2, `+threeProblems+`}`, func(c world.Call, _ int) world.Reply {
		if c.Seat == "solver1" {
			return world.Reply{Text: "#### 1"}
		}
		return world.Reply{Text: "#### 9"}
	})
	rec, _ := o.Data.(trialRecord)
	if len(calls) != 12 || rec.Results[0].Asked != 4 || rec.Results[0].Correct != 2 || len(o.Scores) != 2 || o.Scores[0].Value != 1.0/3 || o.Scores[1].Value != 0 {
		t.Errorf("%d calls, %+v", len(calls), o)
	}
}

// TestAsk checks the messages to solvers.
func TestAsk(t *testing.T) {
	t.Parallel()
	messages := func(params, prompt string) string {
		_, calls := playOne(t, `{`+params+` "episode": {"trial": {"text": "`+prompt+`", "purpose": "race", "problems": [{"question": "1? {prompt}", "answer": "1", "choices": ["x", "y"]}]}}}`,
			func(world.Call, int) world.Reply { return world.Reply{} })
		var all []string
		for _, m := range calls[0].Ask.Messages {
			all = append(all, string(m.Role)+" "+m.Text())
		}
		return strings.Join(all, "|")
	}
	for _, c := range []struct{ params, prompt, want string }{
		{"", "Think {question}.", "system Think {question}.|user 1? {prompt}\n(A) x\n(B) y"},
		{"", "", "user 1? {prompt}\n(A) x\n(B) y"},
		{`"ask": "{prompt}: {question}!",`, "Think", "user Think: 1? {prompt}\n(A) x\n(B) y!"},
		{`"ask": "Q: {question}",`, "Think", "system Think|user Q: 1? {prompt}\n(A) x\n(B) y"},
	} {
		if got := messages(c.params, c.prompt); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.params, c.prompt, got, c.want)
		}
	}
}

// TestExampleIsTheFile checks that the kind's example is the example file, and that it has every param.
func TestExampleIsTheFile(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "examples", "evolve.yaml"))
	if err != nil || string(b) != Kind().Example {
		t.Errorf("examples/evolve.yaml is not the kind's example (%v)", err)
	}
	shown(t, reflect.TypeFor[Params]())
}

// shown checks that the example has every param of a struct.
func shown(t *testing.T, params reflect.Type) {
	t.Helper()
	for f := range params.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "episode" || name == "set" || name == "nested":
		case f.Type.Kind() == reflect.Struct:
			shown(t, f.Type)
		case !strings.Contains(Kind().Example, name+": "):
			t.Errorf("the example does not show %s", name)
		}
	}
}

// TestSilentSolver checks that a solver with only empty answers has no score, that an empty answer among others is wrong,
// that a text without an answer is wrong, and that answers without a judgement do not count.
func TestSilentSolver(t *testing.T) {
	t.Parallel()
	small := `"problems": {"train": 4, "test": 2}`
	judged := `{` + small + `, "checker": {"type": "judge"}}`
	for _, c := range []struct {
		params string
		answer func(c world.Call, i int) world.Reply
		failed string
		score  float64
		unread int
	}{
		{`{` + small + `}`, func(world.Call, int) world.Reply { return world.Reply{Text: " \n"} }, "no answer holds any text", 0, 0},
		{`{` + small + `}`, func(_ world.Call, i int) world.Reply {
			if i == 0 {
				return world.Reply{Failed: llm.KindTimeout}
			}
			return world.Reply{}
		}, "no answer holds any text: timeout (1 of 4 calls)", 0, 0},
		{`{` + small + `}`, func(_ world.Call, i int) world.Reply { return world.Reply{Text: strings.Repeat("hi", 1-min(i, 1))} }, "", 0, 4},
		{`{` + small + `}`, func(world.Call, int) world.Reply { return world.Reply{Text: "hi"} }, "", 0, 4},
		{judged, func(c world.Call, _ int) world.Reply {
			if c.Seat == judgeSeat {
				return world.Reply{Failed: llm.KindInvalid}
			}
			return world.Reply{Text: "hi"}
		}, "no answer could be judged: invalid (4 of 4 calls)", 0, 0},
	} {
		o, _ := playOne(t, c.params, c.answer)
		unread := 0
		for _, r := range o.Data.(trialRecord).Results {
			unread += r.Unread
		}
		if o.Failed != c.failed || (c.failed == "") != (len(o.Scores) == 1) || unread != c.unread {
			t.Errorf("%s: failed %q, scores %v, %d unread; want %q, %d", c.params, o.Failed, o.Scores, unread, c.failed, c.unread)
		}
	}
}

// TestGainIsADifference checks that a gain is never treated as a share, even if it is 0 or 1. One evolution has no
// interval; several have Student's, within -1 and 1.
func TestGainIsADifference(t *testing.T) {
	t.Parallel()
	all := definition{}.Measures(definition{}.Defaults())
	gain := all[slices.IndexFunc(all, func(m world.Measure) bool { return m.Name == "gain" })]
	for _, c := range []struct {
		gains []float64
		want  statmath.Interval
	}{
		{[]float64{0}, statmath.Interval{Low: math.Inf(-1), High: math.Inf(1)}},
		{[]float64{1}, statmath.Interval{Low: math.Inf(-1), High: math.Inf(1)}},
		{[]float64{0, 0.1, 0.2, 0.3}, statmath.Mean([]float64{0, 0.1, 0.2, 0.3}, 0.95).Interval},
		{[]float64{0, 1}, statmath.Interval{Low: -1, High: 1}},
	} {
		s := world.Sample{Bounds: gain.Bounds}
		for _, g := range c.gains {
			s.Add(world.Unit{}, g)
		}
		got := s.Estimate(0.95)
		if math.Abs(got.Low-c.want.Low) > 1e-12 || math.Abs(got.High-c.want.High) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.gains, got, c.want)
		}
	}
}

// TestMainMeasure: the main result of a run is the first measure that has a value: the gain of an evolution that ended, and the
// accuracy on training problems before its verdict.
func TestMainMeasure(t *testing.T) {
	t.Parallel()
	var own []string
	for _, m := range measures(paramsOf(t, joinParams(smallParams))) {
		if len(m.Seats) > 0 { // of trials
			own = append(own, m.Name)
		} else if len(own) > 0 && m.Name != "generations" {
			t.Errorf("%s of the verdict comes after %q", m.Name, own)
		}
	}
	verdict := &Params{Episode: &Episode{Verdict: &Verdict{Measure: &Measured{Score: world.Measure{Name: "points"}}}}}
	if own[0] != trainAccuracy || measures(paramsOf(t, joinParams(smallParams)))[0].Name != "gain" || measures(verdict)[0].Name != "gain" {
		t.Errorf("trials have %q", own)
	}
}
