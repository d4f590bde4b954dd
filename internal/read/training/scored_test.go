package training

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// scored is a run of a kind that says nothing about training.
type scored struct {
	t *testing.T
	j *memory
}

// begin begins the run with a plan.
func begin(t *testing.T, plan string, specs ...world.Spec) *scored {
	t.Helper()
	s := &scored{t, &memory{}}
	s.write(&journal.Begun{
		Run: "r1", Kind: "duel", Plan: json.RawMessage(plan), Measures: []world.Measure{{Name: "length"}, {Name: "points", Seats: []string{"a", "b"}}},
		Agents: []world.Agent{{Name: "learner", Trainable: true, Fallbacks: []string{"lab/other"}}, {Name: "frozen"}},
	}, &journal.Staged{Specs: world.List(specs...)})
	return s
}

func (s *scored) write(entries ...journal.Entry) {
	s.t.Helper()
	if err := s.j.Append(s.t.Context(), entries...); err != nil {
		s.t.Fatal(err)
	}
}

// duel is the spec of an episode.
func duel(deal int, params string) world.Spec {
	return world.Spec{Kind: "duel", Params: json.RawMessage(params), Deal: deal, Lineup: map[string]string{"a": "learner", "b": "frozen"}}
}

// reply is an answer of a seat, with a version of weights.
func reply(at journal.Turn, index int, seat, agent, model, version string) *journal.Replied {
	return &journal.Replied{
		Turn: at, Index: index, Seat: seat, Agent: agent, Request: &llm.Request{Model: model, Messages: []llm.Message{llm.User("?")}},
		Response: &llm.Response{Text: "!", Provider: "lab", WeightVersion: version},
	}
}

// ended ends an episode in which the seats have points.
func ended(episode int, failed string, a, b float64) *journal.Ended {
	o := world.Outcome{Failed: failed}
	if failed == "" {
		o.Scores = []world.Score{{Name: "length", Value: 9}, {Seat: "a", Name: "points", Value: a}, {Seat: "b", Name: "points", Value: b}}
	}
	return &journal.Ended{Episode: episode, Outcome: o}
}

// text describes the rows of the run.
func (s *scored) text(f Filter) (string, Account) {
	s.t.Helper()
	var rows []string
	account, err := Each(s.t.Context(), s.j, world.Kind{}, f, func(g *Group) error {
		for _, m := range g.Members {
			for _, r := range m.Rows {
				text := fmt.Sprintf("%s %d%s %s %g/%g %s", g.ID, r.Episode, r.AgentID, r.LLMModel, r.StepReward, r.Return, r.Status)
				if r.IsTrainable {
					text += fmt.Sprintf(" %+.2f", *r.Advantage)
				}
				rows = append(rows, text)
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(rows, "\n"), account
}

// TestScores: the score of a seat, the plan's or the kind's own, is the reward of the last answer of a trained seat. Groups have one deal
// and the same params; failed and unfinished episodes are not trained on.
func TestScores(t *testing.T) {
	t.Parallel()
	played := func(plan string) *scored {
		s := begin(t, plan, duel(0, `{}`), duel(0, `{}`), duel(0, `{"n":1}`), duel(1, `{}`), duel(2, `{}`), duel(2, `{}`))
		for n := range 6 {
			at := journal.Turn{Episode: n}
			s.write(reply(at, 0, "a", "learner", "lab/m", ""), reply(at, 1, "b", "frozen", "lab/f", ""))
			at.Turn = 1
			s.write(reply(at, 0, "a", "learner", "lab/m", ""), &journal.Replied{Turn: at, Index: 1, Seat: "b", Agent: "frozen", Error: &llm.Error{Kind: llm.KindServer}})
		}
		s.write(ended(0, "", 1, 5), ended(1, "", 3, 5), ended(2, "", 7, 5), ended(3, "lost", 0, 0), ended(4, "", 1, 1))
		return s
	}
	hash := regexp.MustCompile(`#[0-9a-f]{8}`)
	for _, c := range []struct{ plan, want string }{
		{`{}`, `duel:1# 0a m 0/1 completed -0.71
duel:1# 0b f 5/5 completed
duel:1# 0a m 1/1 completed -0.71
duel:1# 1a m 0/3 completed +0.71
duel:1# 1b f 5/5 completed
duel:1# 1a m 3/3 completed +0.71
duel:1# 2a m 0/7 completed +0.00
duel:1# 2b f 5/5 completed
duel:1# 2a m 7/7 completed +0.00
duel:2# 3a m 0/0 failed
duel:2# 3b f 0/0 failed
duel:2# 3a m 0/0 failed`},
		{`{"train":{"reward":"length"}}`, `duel:1# 0a m 0/9 completed +0.00
duel:1# 0b f 9/9 completed
duel:1# 0a m 9/9 completed +0.00
duel:1# 1a m 0/9 completed +0.00
duel:1# 1b f 9/9 completed
duel:1# 1a m 9/9 completed +0.00
duel:1# 2a m 0/9 completed +0.00
duel:1# 2b f 9/9 completed
duel:1# 2a m 9/9 completed +0.00
duel:2# 3a m 0/0 failed
duel:2# 3b f 0/0 failed
duel:2# 3a m 0/0 failed`},
	} {
		got, account := played(c.plan).text(Filter{})
		if got = hash.ReplaceAllString(got, "#"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.plan, got, c.want)
		}
		if account.Groups != 4 || account.Kept != 3 || account.Left[leftUnfinished] != 1 || account.Unpaid != 0 {
			t.Errorf("%s: %+v", c.plan, account)
		}
	}
	if _, account := played(`{"train":{"reward":"charm"}}`).text(Filter{Trainable: true}); account.Kept != 0 || account.Left[leftEmpty] != 3 {
		t.Errorf("a score that no episode has: %+v", account)
	}
	if _, account := played(`{"train":{"reward":"charm"}}`).text(Filter{}); account.Unpaid != 3 || account.Reward != "charm" {
		t.Errorf("a score that no episode has: %+v", account)
	}
}

// TestNotSampled: what the agent's model did not say to the recorded prompt is in rows, and is not trained on.
func TestNotSampled(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`, duel(0, `{}`))
	at := func(turn int) journal.Turn { return journal.Turn{Turn: turn} }
	fallback, other, repaired := reply(at(1), 0, "a", "learner", "lab/m", ""), reply(at(2), 0, "a", "learner", "lab/m", ""), reply(at(3), 0, "a", "learner", "lab/m", "")
	fallback.Response.Model, other.Response.Provider, repaired.Response.Metadata.Parsed = "other", "elsewhere", "repaired"
	s.write(reply(at(0), 0, "a", "learner", "lab/m", ""), fallback, other, repaired, reply(at(4), 0, "a", "learner", "lab/m", ""), ended(0, "", 1, 1))
	got, account := s.text(Filter{})
	want := "duel:1 0a m 0/1 completed +0.00\nduel:1 0a other 0/1 completed\nduel:1 0a m 0/1 completed\nduel:1 0a m 0/1 completed\nduel:1 0a m 1/1 completed +0.00"
	if got != want || account.Joins.Foreign != 3 || account.Joins.History != 1 {
		t.Errorf("%s\nwant\n%s\n%+v", got, want, account)
	}
}

// TestPrograms: the calls of a program are what was sampled, and the last has the reward. If it was started again, it is not known which of
// them count.
func TestPrograms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		calls int // of the start that counts
		want  string
	}{
		{2, "duel:1 0a m 0/4 completed +0.00\nduel:1 0a m 4/4 completed +0.00"},
		{1, "duel:1 0a m 0/4 completed\nduel:1 0a m 4/4 completed"},
	} {
		s := begin(t, `{}`, duel(0, `{}`))
		asked := reply(journal.Turn{}, 0, "a", "learner", "program/shell", "")
		asked.Response.JSON = json.RawMessage(fmt.Sprintf(`{"exit":0,"calls":%d}`, c.calls))
		strand := journal.ProgramStrand(asked.Turn, 0)
		failed := reply(journal.Turn{Strand: strand, Turn: 1}, 0, "a", "learner", "lab/m", "")
		failed.Response, failed.Error = nil, &llm.Error{Kind: llm.KindServer}
		s.write(reply(journal.Turn{Strand: strand}, 0, "a", "learner", "lab/m", ""), reply(journal.Turn{Strand: strand, Turn: 2}, 0, "a", "learner", "lab/m", ""))
		if c.calls == 1 {
			s.write(failed)
		}
		s.write(asked, ended(0, "", 4, 1))
		if got, _ := s.text(Filter{}); got != c.want {
			t.Errorf("%d calls:\n%s\nwant\n%s", c.calls, got, c.want)
		}
	}
}

// TestStaleness: an episode in which the weights of trained seats are too far apart is not trained on.
func TestStaleness(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plan string
		want Status
	}{{`{}`, completed}, {`{"train":{"max_staleness":-1}}`, completed}, {`{"train":{"max_staleness":2}}`, completed}, {`{"train":{"max_staleness":1}}`, failed}} {
		s := begin(t, c.plan, duel(0, `{}`))
		for turn, version := range []string{"3", "x", "5"} {
			at := journal.Turn{Turn: turn}
			s.write(reply(at, 0, "a", "learner", "lab/m", version), reply(at, 1, "b", "frozen", "lab/f", "0"))
		}
		s.write(ended(0, "", 1, 1))
		rows := 0
		_, err := Each(t.Context(), s.j, world.Kind{}, Filter{Trainable: true}, func(g *Group) error {
			for _, m := range g.Members {
				rows += len(m.Rows)
			}
			return nil
		})
		if err != nil || (rows > 0) != (c.want == completed) {
			t.Errorf("%s: %d rows, %v", c.plan, rows, err)
		}
	}
}

// TestHugeRewards: rewards of any size give advantages that are numbers and right, and a reward that is no number is none.
func TestHugeRewards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		points [3]float64
		want   string
	}{
		{[3]float64{math.MaxFloat64, -math.MaxFloat64, 0}, "+1.00 -1.00 +0.00"},
		{[3]float64{1e200, 0, 2e200}, "+0.00 -1.00 +1.00"},
		{[3]float64{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}, "+0.00 +0.00 +0.00"},
		{[3]float64{math.NaN(), 1, 3}, "- -0.71 +0.71"},
		{[3]float64{math.Inf(1), 1, math.Inf(-1)}, "- +0.00 -"},
	} {
		s := begin(t, `{}`, duel(0, `{}`), duel(0, `{}`), duel(0, `{}`))
		for n, points := range c.points {
			s.write(reply(journal.Turn{Episode: n}, 0, "a", "learner", "lab/m", ""), ended(n, "", points, 1))
		}
		var got []string
		_, err := Each(t.Context(), s.j, world.Kind{}, Filter{}, func(g *Group) error {
			for _, m := range g.Members {
				for i := range m.Rows {
					if _, err := m.Rows[i].JSON(); err != nil {
						t.Errorf("%v: %v", c.points, err)
					}
					if m.Rows[i].IsTrainable {
						got = append(got, fmt.Sprintf("%+.2f", *m.Rows[i].Advantage))
					} else {
						got = append(got, "-")
					}
				}
			}
			return nil
		})
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%v: %q, want %s: %v", c.points, got, c.want, err)
		}
	}
}

// TestHostileVersions: a server may report anything as the version of its weights. Only numbers from 0 are compared.
func TestHostileVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		versions [2]string
		stale    bool   // for max_staleness: 1
		lag      string // for version 9 and lag 1
	}{
		{[2]string{"9223372036854775807", "-9223372036854775808"}, false, leftVersion},
		{[2]string{"9223372036854775807", "0"}, true, leftLag},
		{[2]string{"-9223372036854775808", "9"}, false, leftVersion},
		{[2]string{"99999999999999999999", "9"}, false, leftVersion},
		{[2]string{"NaN", "\x00"}, false, leftVersion},
		{[2]string{"8", "9"}, false, ""},
	} {
		played := func(plan string) *scored {
			s := begin(t, plan, duel(0, `{}`))
			for turn, version := range c.versions {
				s.write(reply(journal.Turn{Turn: turn}, 0, "a", "learner", "lab/m", version))
			}
			s.write(ended(0, "", 1, 1))
			return s
		}
		if _, a := played(`{"train":{"max_staleness":1}}`).text(Filter{Trainable: true}); (a.Kept == 0) != c.stale {
			t.Errorf("%q: %+v", c.versions, a)
		}
		nine := 9
		if _, a := played(`{}`).text(Filter{Version: &nine, Lag: 1}); c.lag == "" && a.Kept != 1 || c.lag != "" && a.Left[c.lag] != 1 {
			t.Errorf("%q: %+v, want %q", c.versions, a, c.lag)
		}
	}
}
