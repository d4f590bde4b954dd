package scenario

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/world/worldtest"
	"parley/worlds/scenario/script"
)

func TestScenarioIsAWorld(t *testing.T) {
	t.Parallel()
	s := stage(3, 3, func(s *script.Script) {
		own := numeric("own")
		own.ActorSpecific = true
		words := numeric("words")
		words.Extraction = script.Extraction{Type: script.ByKeyword, Keywords: []string{"a"}, Scoring: "density"}
		s.Metrics = []script.Metric{own, words}
		s.Talk = script.Talk{Statements: true, Bilateral: true, Coalitions: true, Max: 2, Rounds: 2}
		s.Window, s.Reflect, s.BlackSwan = 1, true, 0.5
		s.Events = []script.Event{{Name: "e", Description: "It happens.", Type: script.Random, Probability: new(0.5)}}
		s.Validation = script.Validation{Checks: []script.Check{{Name: script.CheckWorld, Severity: "low"}}, MaxIssues: 25}
	})
	params, err := json.Marshal(Params{Set: map[string]any{}, Script: s})
	if err != nil {
		t.Fatal(err)
	}
	worldtest.Exercise(t, Kind(), worldtest.Options{Params: string(params), Deals: 1, Answer: follow})
}

// TestExampleIsTheFolder checks that the example of the kind is the one in examples/.
func TestExampleIsTheFolder(t *testing.T) {
	t.Parallel()
	files := exampleFiles()
	files["plan.yaml"] = Kind().Example
	n := 0
	root := filepath.Join("..", "..", "examples", "scenario")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		rel, _ := filepath.Rel(root, path)
		if b, err := os.ReadFile(path); err != nil || string(b) != files[filepath.ToSlash(rel)] {
			t.Errorf("examples/scenario/%s is not the kind's own (%v)", rel, err)
		}
		return nil
	})
	if err != nil || n != len(files) || n < 8 {
		t.Errorf("%d files there, %d here (%v)", n, len(files), err)
	}
}

// TestExamplesPlay: every example plays to its end with answers that follow the schemas.
func TestExamplesPlay(t *testing.T) {
	t.Parallel()
	plans, err := filepath.Glob(filepath.Join("..", "..", "examples", "scenario*", "plan.yaml"))
	if err != nil || len(plans) < 3 {
		t.Fatalf("%v, %v", plans, err)
	}
	for _, plan := range plans {
		p, s := loaded(t, plan)
		if len(p.Advice) > 0 {
			t.Errorf("%s: %v", plan, p.Advice)
		}
		out := playScript(s, 0, nil)
		if out.failure != "" || out.outcome.Failed != "" {
			t.Errorf("%s: %s%s", plan, out.failure, out.outcome.Failed)
		}
		if worlds := of[recordWorld](t, out, "world"); len(worlds) == 0 || worlds[0].State == "" {
			t.Errorf("%s: nothing happened", plan)
		}
	}
}

// TestLatency counts dependent calls: with 7 actors, 9 metrics and a check a turn takes two of them, since
// measuring runs in parallel with the next decisions.
func TestLatency(t *testing.T) {
	t.Parallel()
	shape := func(turns int) *script.Script {
		return stage(7, turns, func(s *script.Script) {
			for name := range strings.FieldsSeq("m1 m2 m3 m4 m5 m6 m7 m8 m9") {
				s.Metrics = append(s.Metrics, numeric(name))
			}
			s.Validation.Checks = []script.Check{{Name: script.CheckWorld, Severity: "medium"}}
		})
	}
	const turns = 20
	out := playScript(shape(turns), 0, nil)
	if per := float64(out.ticks) / turns; per > 2.1 {
		t.Errorf("%d turns take %d latencies: %.2f a turn", turns, out.ticks, per)
	}
	if steady := out.ticks - playScript(shape(turns-1), 0, nil).ticks; steady != 2 {
		t.Errorf("one more turn takes %d latencies", steady)
	}
	// 7 decisions, an account, 9 metrics, a check; 9 metrics more at the start, and summaries.
	if n := len(out.calls) - out.count("summary") - 9; n != turns*18 {
		t.Errorf("%d calls in %d turns", n, turns)
	}
}

// TestLatencyWithTalk: with exchanges and coalitions a turn takes its critical path:
// opening, the longest strand of talk, decision, account.
func TestLatencyWithTalk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		rounds     int
		coalitions bool
		want       int
	}{
		{"one round", 1, false, 4},
		{"three rounds", 3, false, 6},
		{"a coalition", 1, true, 5},
		{"a coalition beside three rounds", 3, true, 6},
	} {
		s := stage(4, 10, func(s *script.Script) {
			s.Talk = script.Talk{Statements: true, Bilateral: true, Coalitions: c.coalitions, Max: 2, Rounds: c.rounds}
			s.Metrics = []script.Metric{numeric("m")}
			s.Window = 100
		})
		out := playScript(s, 0, answers(map[string]any{
			"opening": `{"public_statement":"Hello","messages":[{"to":"a1","text":"Hi"},{"to":"a2","text":"Hi"}],"coalition":{"members":["a2","a3"],"purpose":"Peace"}}`,
			"answer":  `{"reply":"Yes."}`, "coalition": `{"answer":"Yes.","accept":true}`, "joint": `{"agreement":"So be it.","joint_statement":"We agree."}`,
		}))
		if out.ticks != 10*c.want+1 { // and the metrics of the last turn
			t.Errorf("%s: 10 turns take %d latencies, want %d a turn", c.name, out.ticks, c.want)
		}
	}
}
