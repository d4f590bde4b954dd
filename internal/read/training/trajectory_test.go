package training

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
	"parley/worlds/rollout"
	"parley/worlds/rollout/rules"
)

func rollouts() world.Kind { return rollout.Kind() }

// sessions is a kind of records, whose groups have the names of sessions.
type sessions struct{ nothing }

// nothing is a definition without parts.
type nothing struct{}

func (nothing) About() world.About                { return world.About{Name: "sessions", Version: 1} }
func (nothing) Defaults() *struct{}               { return &struct{}{} }
func (nothing) Seats(*struct{}) ([]string, error) { return []string{"client"}, nil }
func (nothing) World(*struct{}, world.Lineup) (world.World, error) {
	return nil, errors.New("it is a record")
}
func (sessions) Hidden(world.Note) bool      { return false }
func (sessions) Closed(world.Outcome) string { return "" }
func (sessions) Names() []string             { return []string{"session"} }
func (sessions) TrainingGroup(s world.Spec) (part.TrainingGroup, error) {
	var p struct{ Session string }
	err := json.Unmarshal(s.Params, &p)
	return part.TrainingGroup{Name: p.Session}, err
}

// episode is one of a run that is written by hand.
type episode struct {
	deal    int
	reward  float64
	failed  string
	version string
	running bool
}

// run writes a run of one-step episodes, in groups by their deal.
func run(t *testing.T, episodes ...episode) *memory {
	t.Helper()
	j := &memory{}
	var specs []world.Spec
	write := func(e journal.Entry) {
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	write(&journal.Begun{Run: "r1", Kind: "rollout"})
	for _, e := range episodes {
		specs = append(specs, world.Spec{Kind: "rollout", Params: json.RawMessage(`{"env":"maze"}`), Deal: e.deal})
	}
	write(&journal.Staged{Specs: world.List(specs...)})
	for n, e := range episodes {
		at := journal.Turn{Episode: n, Attempt: 1}
		write(&journal.Replied{Turn: journal.Turn{Episode: n}, Agent: "old", Seat: "agent", Response: &llm.Response{Text: "of an attempt before"}})
		write(&journal.Replied{Turn: at, Seat: "agent", Act: &world.Act{Name: "open"}, Response: &llm.Response{}})
		at.Turn = 3
		write(&journal.Replied{Turn: at, Seat: "agent", Agent: "x", Request: &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User("second?")}},
			At: time.Unix(9, 0), Response: &llm.Response{
				Text: "second", Finish: llm.FinishStop, WeightVersion: e.version, PromptTokenIDs: []int{5, 6}, TokenIDs: []int{7, 8, 9},
				Logprobs: []llm.Logprob{{Logprob: -1}, {Logprob: -2}, {Logprob: -3}},
			}})
		at.Turn = 1
		write(&journal.Replied{Turn: at, Seat: "agent", Agent: "x", Request: &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User("first?")}},
			At: time.Unix(8, 0), Response: &llm.Response{Text: "first", Finish: llm.FinishStop}})
		if e.running {
			continue
		}
		good := e.failed == ""
		d, err := json.Marshal(rules.Data{Env: "maze", Stop: rules.StopTerminated, Rows: []rules.Row{
			{Ask: 0, Step: 1, Seat: "agent", Weights: e.version},
			{Ask: 1, Step: 2, Seat: "agent", Weights: e.version, StepReward: e.reward, Reward: e.reward, Terminal: good, Completed: good, Trainable: good},
		}})
		if err != nil {
			t.Fatal(err)
		}
		o := world.Outcome{Data: json.RawMessage(d), Failed: e.failed}
		if good {
			o.Scores = []world.Score{{Seat: "agent", Name: "reward", Value: e.reward}}
		}
		write(&journal.Ended{Episode: n, Attempt: 1, Outcome: o})
	}
	return j
}

// TestRow: everything in a row is what was recorded.
func TestRow(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a, err := Write(t.Context(), &out, run(t, episode{deal: 4, reward: 2, version: "12"}), rollouts(), Filter{}, Rows, JSONL)
	if err != nil || a.Rows != 2 || a.Kept != 1 {
		t.Fatal(a, err)
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	var first, second Row
	for i, into := range []*Row{&first, &second} {
		if err := json.Unmarshal([]byte(got[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	if first.Response != "first" || string(first.Messages) != `[{"role":"user","content":"first?"},{"role":"assistant","content":"first"}]` || !first.IsTrainable || first.Tokens != nil || first.EnvState != "" {
		t.Errorf("%+v", first)
	}
	want := Row{
		JobID: "r1", SessionID: "r1-0-1", StepID: 2, Attempt: 1, EnvName: "maze", GroupID: "maze:5", GroupSize: 1, AgentID: "agent", PolicyID: "x", LLMModel: "m",
		Messages: json.RawMessage(`[{"role":"user","content":"second?"},{"role":"assistant","content":"second"}]`), Response: "second", FinishReason: "stop",
		StepReward: 2, Reward: 2, Return: 2, Advantage: new(float64), IsTerminal: true, IsSessionCompleted: true, IsTrainable: true, Status: "completed", Stop: "terminated",
		EnvState: `{"weight_version":"12"}`, WeightVersion: "12", Tokens: []int{5, 6, 7, 8, 9}, LossMask: []int{0, 0, 1, 1, 1}, Logprobs: []float64{0, 0, -1, -2, -3},
		Part: 1, Starts: []int{2}, Versions: []string{"12"}, Rewards: []float64{2},
		At: time.Unix(9, 0).UTC(),
	}
	if !reflect.DeepEqual(second, want) {
		t.Errorf("%+v\nwant %+v", second, want)
	}
}

// TestTrajectoryFilters: what is left out is counted, and every group is accounted for.
func TestTrajectoryFilters(t *testing.T) {
	t.Parallel()
	j := run(t,
		episode{deal: 0, reward: 1, version: "10"}, episode{deal: 0, reward: 0, version: "9"}, // differ; one lags
		episode{deal: 1, reward: 1, version: "10"}, episode{deal: 1, reward: 1, version: "10"}, // equal
		episode{deal: 2, reward: 1, version: "10"}, episode{deal: 2, failed: "lost"}, // one failed
		episode{deal: 3, reward: 1, version: "10"}, episode{deal: 3, running: true}, // not ended
		episode{deal: 4, failed: "lost"}, episode{deal: 4, failed: "lost"}, // all failed
	)
	for _, c := range []struct {
		name   string
		filter Filter
		groups string
		left   string
	}{
		{"all", Filter{}, "maze:1/2 maze:2/2 maze:3/2 maze:5/2", "map[unfinished:1]"},
		{"completed", Filter{Statuses: []Status{completed}}, "maze:1/2 maze:2/2 maze:3/1", "map[status:1 unfinished:1]"},
		{"whole", Filter{Statuses: []Status{completed}, Whole: true}, "maze:1/2 maze:2/2", "map[short:1 status:1 unfinished:1]"},
		{"unequal", Filter{Unequal: true}, "maze:1/2 maze:3/2", "map[equal reward:2 unfinished:1]"},
		{"lag", Filter{Statuses: []Status{completed}, Version: new(11), Lag: 1}, "maze:2/2 maze:3/1", "map[status:1 unfinished:1 weight lag:1]"},
		{"reward", Filter{MinReward: new(0.5)}, "maze:1/1 maze:2/2 maze:3/1", "map[reward:1 unfinished:1]"},
		{"whole reward", Filter{MinReward: new(0.5), Whole: true}, "maze:2/2", "map[reward:1 short:2 unfinished:1]"},
		// Rewards of 1 and 0 differ, also if only the episode with 1 is wanted.
		{"unequal reward", Filter{MinReward: new(0.5), Unequal: true}, "maze:1/1 maze:3/1", "map[equal reward:1 reward:1 unfinished:1]"},
		{"trainable", Filter{Trainable: true}, "maze:1/2 maze:2/2 maze:3/2", "map[no rows:1 unfinished:1]"},
	} {
		var groups []string
		a, err := Each(t.Context(), j, rollouts(), c.filter, func(g *Group) error {
			groups = append(groups, fmt.Sprintf("%s/%d", g.ID, len(g.Members)))
			if (g.Short != "") != (len(g.Members) < g.Size) {
				t.Errorf("%s: %+v", c.name, g)
			}
			for _, m := range g.Members {
				for _, r := range m.Rows {
					if c.filter.Trainable && !r.IsTrainable {
						t.Errorf("%s: %+v", c.name, r)
					}
				}
			}
			return nil
		})
		left := 0
		for _, n := range a.Left {
			left += n
		}
		if err != nil || strings.Join(groups, " ") != c.groups || fmt.Sprint(a.Left) != c.left || a.Groups != 5 || a.Kept+left != 5 {
			t.Errorf("%s: %v, %+v, %v", c.name, groups, a, err)
		}
	}
}

// TestUnmade: records that a shape does not have are counted by reason, and rows of agents with a smaller reward are dropped.
func TestUnmade(t *testing.T) {
	t.Parallel()
	j := run(t,
		episode{deal: 0, reward: 1}, episode{deal: 0, reward: 0}, episode{deal: 1, reward: 1}, episode{deal: 1, reward: 1},
		episode{deal: 2, failed: "lost"}, episode{deal: 2, failed: "lost"},
	)
	for _, c := range []struct {
		as      Shape
		filter  Filter
		records int
		unmade  string
	}{
		// Each episode has two parts.
		{TRLDPO, Filter{}, 0, "map[no rows:1 several parts:2]"}, {TRLGRPO, Filter{}, 0, "map[no rows:1 several parts:2]"}, {TRLSFT, Filter{}, 8, "map[no rows:1]"},
		{TRLSFT, Filter{MinReward: new(1.0)}, 6, "map[]"}, {OpenAIFT, Filter{MinReward: new(2.0)}, 0, "map[]"}, {Rows, Filter{MinReward: new(1.0)}, 6, "map[]"},
	} {
		a, err := Write(t.Context(), io.Discard, j, rollouts(), c.filter, c.as, JSONL)
		if err != nil || a.Rows != c.records || fmt.Sprint(a.Unmade) != c.unmade {
			t.Errorf("%s: %+v %v", c.as, a, err)
		}
	}
}

func TestParquet(t *testing.T) {
	t.Parallel()
	j := run(t, episode{reward: 1, version: "3"}, episode{deal: 1, reward: 0.5})
	var table, text bytes.Buffer
	if _, err := Write(t.Context(), &table, j, rollouts(), Filter{}, Rows, Parquet); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(t.Context(), &text, j, rollouts(), Filter{}, Rows, JSONL); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[Row](bytes.NewReader(table.Bytes()), int64(table.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range rows {
		r.At = r.At.UTC()
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	if want := strings.Split(strings.TrimSpace(text.String()), "\n"); !slices.Equal(lines, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// TestBroken: files that are wrong are errors.
func TestBroken(t *testing.T) {
	t.Parallel()
	broken := run(t, episode{})
	if err := broken.Append(t.Context(), &journal.Ended{Attempt: 1, Outcome: world.Outcome{Data: json.RawMessage(`{"rows":[{"ask":9}]}`)}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		j    *memory
		as   Format
		want string
	}{
		{&memory{}, JSONL, "holds no run"},
		{broken, JSONL, "a row is of ask 9"}, {broken, "csv", "unknown format"},
	} {
		if _, err := Write(t.Context(), &bytes.Buffer{}, c.j, rollouts(), Filter{}, Rows, c.as); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// compared writes a run of two groups of two episodes, whose judgements are episodes 4 and 5. Only the entries up to a
// number are written.
func compared(t *testing.T, upTo int) *memory {
	t.Helper()
	j := &memory{}
	written := 0
	write := func(e journal.Entry) {
		if written++; written <= upTo {
			if err := j.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	data := func(d rules.Data) json.RawMessage {
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	of := func(params string) (specs []world.Spec) {
		for deal := range 2 {
			specs = append(specs, world.Spec{Kind: "rollout", Params: json.RawMessage(fmt.Sprintf(`{"env":"maze","judge":{"questions":{"q":{"ask":"x"}},"compare":true}%s}`, params)), Deal: deal})
		}
		return specs
	}
	var groups []world.Specs
	for _, s := range of("") {
		list, err := world.Blocks(world.Block{Groups: []world.Group{{Spec: s, Size: 2}}, Rounds: 1})
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, list)
	}
	write(&journal.Begun{Run: "r1", Kind: "rollout"})
	write(&journal.Staged{Specs: world.Join(groups...)})
	for n := range 4 {
		write(&journal.Replied{Turn: journal.Turn{Episode: n, Turn: 1}, Seat: "agent", Agent: "x", Request: &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User("?")}}, Response: &llm.Response{Text: "!", Finish: llm.FinishStop}})
		row := rules.Row{Step: 1, Seat: "agent", StepReward: 1, Reward: 1, Terminal: true, Completed: true, Trainable: true}
		write(&journal.Ended{Episode: n, Outcome: world.Outcome{Data: data(rules.Data{Env: "maze", Stop: rules.StopTerminated, Rows: []rules.Row{row}, Record: "r"}), Scores: []world.Score{{Seat: "agent", Name: "environment_reward", Value: 1}}}})
	}
	write(&journal.Staged{Stage: 1, First: 4, Specs: world.List(of(`,"judgement":{"members":[]}`)...)})
	verdicts := []rules.Verdict{{Seat: "agent", Episode: 2, Environment: 1, Score: 1, Reward: 2}, {Seat: "agent", Episode: 3, Environment: 1, Score: 0, Reward: 1}}
	write(&journal.Ended{Episode: 5, Outcome: world.Outcome{Data: data(rules.Data{Env: "maze", Judgement: true, Verdicts: verdicts})}})
	write(&journal.Ended{Episode: 4, Outcome: world.Outcome{Data: data(rules.Data{Env: "maze", Judgement: true}), Failed: "judge: refused"}})
	return j
}

// TestJudged checks that a group that a judge compares is complete when it was judged, that its rows have the whole reward
// and its parts, and that a judgement that failed leaves rewards missing.
func TestJudged(t *testing.T) {
	t.Parallel()
	for upTo := 2; upTo <= 13; upTo++ { // 11: the stage of judgements; 12 and 13: their ends
		j := compared(t, upTo)
		g := &Index{Kind: rollouts()}
		if err := g.Update(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		planned, complete := g.Count()
		if planned != 2 || complete != max(0, upTo-11) {
			t.Errorf("after %d entries, %d of %d groups are complete", upTo, complete, planned)
		}
		if bound, ok := g.Bound(1); !ok || bound != 6 {
			t.Errorf("after %d entries, the first group and its judgement are below %d", upTo, bound)
		}
		kept := 0
		account, err := Each(t.Context(), j, rollouts(), Filter{}, func(*Group) error { kept++; return nil })
		if err != nil || account.Groups != 2 || kept != complete || account.Left[leftUnfinished] != 2-complete {
			t.Errorf("after %d entries: %+v, %v", upTo, account, err)
		}
	}
	var rows []string
	_, err := Each(t.Context(), compared(t, 100), rollouts(), Filter{}, func(g *Group) error {
		for _, m := range g.Members {
			for _, r := range m.Rows {
				text := fmt.Sprint(g.ID, " ", r.Episode, " ", r.StepReward, " ", r.Return, " ", r.Status, " ", r.IsTrainable, " ", r.Failed)
				if r.JudgeScore != nil {
					text += fmt.Sprint(*r.EnvironmentReward, "+", *r.JudgeScore)
				}
				rows = append(rows, text)
			}
		}
		return nil
	})
	want := []string{"maze:1 0 1 0 failed false judge: refused", "maze:1 1 1 0 failed false judge: refused", "maze:2 2 2 2 completed true 1+1", "maze:2 3 1 1 completed true 1+0"}
	if err != nil || !slices.Equal(rows, want) {
		t.Errorf("%v\n%q\n%q", err, rows, want)
	}
}

// TestSessions: the sessions of a record are trajectories: groups by their names, over all stages, answers joined to sequences, and the
// closing score is the reward.
func TestSessions(t *testing.T) {
	t.Parallel()
	j := &memory{}
	add := func(entries ...journal.Entry) {
		if err := j.Append(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
	}
	add(&journal.Begun{Version: journal.Version, Run: "r", Kind: "sessions"})
	call := func(episode, turn int, messages []llm.Message, prompt, answer []int) {
		at := journal.Turn{Episode: episode, Turn: turn}
		resp := &llm.Response{Text: "a", Finish: llm.FinishStop, WeightVersion: "4", PromptTokenIDs: prompt, TokenIDs: answer}
		if len(answer) > 1 { // it was cut off and continued
			resp.Spans = []llm.Span{{Tokens: 1, WeightVersion: "4"}, {Tokens: 1, WeightVersion: "5"}}
		}
		add(&journal.Turned{Turn: at, Calls: 1}, &journal.Replied{
			Turn: at, Seat: "client", Agent: "client", Request: &llm.Request{Model: "lab/m", Messages: messages},
			Response: resp,
		})
	}
	for i, name := range []string{"maze", "maze", "open", "unpaid", "aborted"} {
		add(&journal.Staged{Stage: i, First: i, Specs: world.List(world.Spec{Kind: "sessions", Params: json.RawMessage(fmt.Sprintf(`{"session":%q}`, name))})})
		call(i, 0, []llm.Message{llm.User("1?")}, []int{1}, []int{2})
	}
	call(0, 1, []llm.Message{llm.User("1?"), llm.Assistant("a"), llm.User("2?")}, []int{1, 2, 3}, []int{4, 5})
	failed := &journal.Replied{Turn: journal.Turn{Episode: 0, Turn: 2}, Seat: "client", Error: &llm.Error{Kind: llm.KindServer}}
	add(&journal.Turned{Turn: failed.Turn, Calls: 1}, failed)
	scored := func(reward float64) world.Outcome {
		return world.Outcome{Data: json.RawMessage(`{"mode":"complete"}`), Scores: []world.Score{{Name: "reward", Value: reward}}}
	}
	add(
		&journal.Ended{Episode: 0, Outcome: scored(1)}, &journal.Ended{Episode: 1, Outcome: scored(0)},
		&journal.Ended{Episode: 3, Outcome: world.Outcome{Data: json.RawMessage(`{}`)}},
		&journal.Ended{Episode: 4, Outcome: world.Outcome{Failed: "aborted", Data: json.RawMessage(`{}`)}},
	)
	var got []string
	account, err := Each(t.Context(), j, world.Define(sessions{}), Filter{Trainable: true, Unequal: true}, func(g *Group) error {
		for _, m := range g.Members {
			for _, r := range m.Rows {
				got = append(got, fmt.Sprint(r.GroupID, " ", r.Episode, " ", r.Status, " ", r.Return, " ", r.Tokens, r.LossMask, r.Starts, r.Versions, r.Rewards))
			}
		}
		return nil
	})
	want := "maze 0 completed 1 [1 2 3 4 5] [0 1 0 1 1] [1 3 4] [4 4 5] [0 0 1]\nmaze 1 completed 0 [1 2] [0 1] [1] [4] [0]"
	if err != nil || strings.Join(got, "\n") != want {
		t.Errorf("%v\n%s\nwant\n%s", err, strings.Join(got, "\n"), want)
	}
	if left := fmt.Sprint(account.Left); account.Groups != 4 || left != "map[equal reward:2 unfinished:1]" {
		t.Errorf("%d groups, left out: %s", account.Groups, left)
	}
	all, err := Each(t.Context(), j, world.Define(sessions{}), Filter{}, func(*Group) error { return nil })
	if err != nil || all.Rows != 5 {
		t.Errorf("%d rows, %v", all.Rows, err)
	}
	none, err := Each(t.Context(), j, world.Define(sessions{}), Filter{Trainable: true}, func(*Group) error { return nil })
	if err != nil || fmt.Sprint(none.Left) != "map[no rows:2 unfinished:1]" {
		t.Errorf("left out: %v, %v", none.Left, err)
	}
}
