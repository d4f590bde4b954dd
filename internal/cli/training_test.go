package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/read/training"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds"
)

// talks is a kind of one's own: two agents talk twice at the same time, with the model of one of them as both. It declares no scores.
func talks() world.Kind {
	return world.Define(worldtest.Simple[struct{}]{Kind: world.About{Name: "talks", Version: 1}, Sits: []string{"a", "b"}, Play: func(_ *struct{}, t *world.Table) world.Outcome {
		said := make([]int, 2)
		t.Fork(2, func(i int, t *world.Table) {
			of := map[string][]llm.Message{}
			for turn := range 3 {
				for _, seat := range []string{"a", "b"} {
					of[seat] = append(of[seat], llm.User(fmt.Sprintf("talk %d, turn %d: what do you say?", i, turn)))
					reply := t.One(world.Call{Seat: seat, Label: "say", Ask: llm.Request{Messages: slices.Clone(of[seat])}})
					of[seat] = append(of[seat], llm.Assistant(reply.Text))
					said[i] += len(reply.Text)
				}
			}
		})
		if t.Deal().Number == 1 && said[0]%2 == 0 {
			return world.Outcome{Failed: "an odd number was wanted"}
		}
		return world.Outcome{Scores: []world.Score{{Seat: "a", Name: "reward", Value: float64(said[0])}, {Seat: "b", Name: "reward", Value: float64(said[1])}}}
	}})
}

// TestEveryKindIsTrained: whatever is played, a token is trained exactly if the model of a trained seat sampled it, at that position, and once;
// and advantages of a group and a seat are those of its episodes, however many parts they have.
func TestEveryKindIsTrained(t *testing.T) {
	t.Parallel()
	plans := map[string]string{
		"rollout": "kind: rollout\nepisodes: 2\nagents: {a: sim/any}\ntrain: {group: 2}\nparams: {env: maze, max_steps: 6}\n",
		"cut":     "kind: rollout\nepisodes: 2\nagents: {a: sim/any}\ntrain: {group: 2}\nparams: {env: maze, max_steps: 6, message_cut: 1}\n",
		"secrets": "kind: secrets\nepisodes: 3\nagents: {a: {model: sim/small, trainable: true}, b: sim/large}\nlineup: {first: a, second: b}\ntrain: {group: 4}\nparams: {messages: 3}\n",
		"self":    "kind: secrets\nepisodes: 2\nagents: {a: {model: sim/small, trainable: true}}\ntrain: {group: 3, reward: obtained}\n",
		"matrix":  "kind: secrets\nagents: {a: {model: sim/small, trainable: true}, b: sim/large}\nplan: {matrix: {agents: [a, b], repeat: 2}}\ntrain: {group: 2}\n",
		"powers":  "kind: diplomacy\nepisodes: 1\nagents: {a: {model: sim/small, trainable: true}, b: sim/large}\nlineup: {AUSTRIA: a, ENGLAND: b, FRANCE: a, GERMANY: b, ITALY: b, RUSSIA: b, TURKEY: b}\ntrain: {group: 2}\nparams: {max_year: 1901, rounds: 1, messages: 1}\n",
		"prompts": "kind: evolve\nepisodes: 1\nagents: {a: sim/solver}\ntrain: {}\nparams: {preset: quick, max_generations: 1}\n",
		"talks":   "kind: talks\nepisodes: 4\nagents: {a: {model: sim/small, trainable: true}, b: {model: sim/large, trainable: true}}\nlineup: {a: a, b: b}\ntrain: {group: 3}\n",
	}
	files := map[string][]string{
		"scenario": {"../../examples/scenario-factors.yaml", "--set", "plan.matrix.repeat=1", "--set", "train={group: 2}", "--set", "agents.large.trainable=true"},
	}
	if runtime.GOOS != "windows" {
		files["task"] = []string{"../../examples/task.yaml", "--set", "plan.matrix.repeat=2", "--set", "train={group: 2}", "--trust", "code=../../examples/tasks", "--trust", "program=shell"}
	}
	for name, text := range plans {
		files[name] = []string{write(t, name+".yaml", text)}
	}
	kinds := append(worlds.Standard(), talks())
	for name, args := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "run.parley")
			parley(t, State{Kinds: kinds}, slices.Concat([]string{"run", "--out", file, "--quiet"}, args)...).want(t, map[bool]int{true: exit.Failed}[name == "talks"]) // an episode of it fails
			checkTrained(t, kinds, file)
		})
	}
}

// sampled is an answer of a model.
type sampled struct {
	*llm.Response
	seat string
	used int // sequences that train on it
}

// checkTrained compares the sequences of a run with what models sampled.
func checkTrained(t *testing.T, kinds []world.Kind, file string) {
	t.Helper()
	answers, groups := map[int][]*sampled{}, map[string]map[int]float64{}
	store, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	begun, _, err := store.Plan(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	kind := kinds[slices.IndexFunc(kinds, func(k world.Kind) bool { return k.Name == begun.Kind })]
	trained := 0
	account, err := training.Each(t.Context(), store, kind, training.Filter{Trainable: true}, func(g *training.Group) error {
		for _, m := range g.Members {
			if m.Status == "failed" && len(m.Rows) > 0 {
				t.Errorf("episode %d failed, and is trained on", m.Episode)
			}
			if answers[m.Episode] == nil {
				answers[m.Episode] = sampledIn(t, store, m)
			}
			for _, r := range m.Rows {
				peers := fmt.Sprint(g.ID, "/", r.AgentID)
				if groups[peers] == nil {
					groups[peers] = map[int]float64{}
				}
				groups[peers][m.Episode] = r.Return
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(parley(t, State{Kinds: kinds}, "trajectories", file, "--shape", "sequences").want(t, exit.OK).stdout) {
		var s training.Sequence
		if err := json.Unmarshal([]byte(line), &s); err != nil || len(s.LossMask) != len(s.Tokens) || len(s.Logprobs) != len(s.Tokens) || s.Attempt < 0 {
			t.Fatal(err, line)
		}
		at := 0
		for _, a := range answers[s.Episode] {
			from, to := len(a.PromptTokenIDs), len(a.PromptTokenIDs)+len(a.TokenIDs)
			if a.seat != s.Agent || to > len(s.Tokens) || slices.Contains(s.LossMask[from:to], 0) || !slices.Equal(s.Tokens[:from], a.PromptTokenIDs) || !slices.Equal(s.Tokens[from:to], a.TokenIDs) {
				continue
			}
			for i, p := range a.Logprobs {
				if s.Logprobs[from+i] != p.Logprob {
					t.Fatalf("episode %d: a token has another log probability", s.Episode)
				}
			}
			a.used++
			at += to - from
		}
		n := 0
		for i, m := range s.LossMask {
			n += m
			if m == 0 && s.Logprobs[i] != 0 {
				t.Fatalf("episode %d: token %d was not sampled and has %v", s.Episode, i, s.Logprobs[i])
			}
		}
		if trained += n; n == 0 || at < n { // equal answers to equal prompts are found in each other's place
			t.Fatalf("episode %d, %s: %d tokens are trained, and %d of them were sampled there", s.Episode, s.Agent, n, at)
		}
		if want := advantageOf(groups[s.Group+"/"+s.Agent], s.Episode); math.Abs(s.Advantage-want) > 1e-9 {
			t.Errorf("episode %d, %s: advantage %v, want %v", s.Episode, s.Agent, s.Advantage, want)
		}
	}
	wrote := 0
	for episode, all := range answers {
		for _, a := range all {
			if wrote += len(a.TokenIDs); a.used == 0 {
				t.Fatalf("episode %d: an answer of %s is not trained on", episode, a.seat)
			}
		}
	}
	if wrote != trained || wrote == 0 || account.Kept == 0 {
		t.Errorf("%d tokens were sampled, %d are trained; %+v", wrote, trained, account)
	}
}

// sampledIn returns what the models of seats that are trained sampled in an episode.
func sampledIn(t *testing.T, j journal.Journal, m *training.Trajectory) (all []*sampled) {
	t.Helper()
	entries, err := journal.Episode(t.Context(), j, m.Episode)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		r, ok := e.(*journal.Replied)
		if !ok || r.Attempt != m.Attempt || r.Act != nil || r.Response == nil || len(r.Response.TokenIDs) == 0 {
			continue
		}
		if _, trains := m.Advantage[r.Seat]; trains && r.Response.Metadata.Parsed != "repaired" {
			all = append(all, &sampled{Response: r.Response, seat: r.Seat})
		}
	}
	return all
}

// advantageOf computes the advantage of an episode among the returns of a group.
func advantageOf(returns map[int]float64, episode int) float64 {
	n, mean, squares := float64(len(returns)), 0.0, 0.0
	for _, r := range returns {
		mean += r / n
	}
	for _, r := range returns {
		squares += (r - mean) * (r - mean)
	}
	if squares < 1e-18 {
		return 0
	}
	return (returns[episode] - mean) / (math.Sqrt(squares/(n-1)) + 1e-6)
}

// TestTrainKeys: what does not fit together in train is refused with its place, and rollouts play the same group by either name.
func TestTrainKeys(t *testing.T) {
	t.Parallel()
	const game = "kind: secrets\nagents: {a: sim/small}\n"
	for _, c := range []struct{ plan, want string }{
		{game + "train: {reward: point}\n", `train.reward: secrets has no score "point"; did you mean points?`},
		{game + "train: {group: 2}\nplan: {until: {score: points, seat: first, width: 1}}\n", "train.group: cannot be combined with plan.until"},
		{game + "episodes: 2147483647\ntrain: {group: 10000}\n", "train.group: makes groups of 10000 of 2147483647 deals, and at most 2147483647 episodes are possible"},
		{game + "train: {groups: 2}\n", "train.groups: unknown key; did you mean group?"},
		{"kind: evolve\nagents: {a: sim/solver}\ntrain: {group: 2}\n", "train.group: evolve decides by itself what to play"},
		{"kind: rollout\nagents: {a: sim/any}\ntrain: {group: 2}\nparams: {group: 3}\n", "params.group: is 3, and train.group is 2"},
		{"kind: secrets\nagents: {a: {model: sim/small@past, trainable: true}}\n", "agents.a.model: is an earlier version"},
		{"kind: secrets\nagents: {a: sim/small@past:1.5}\n", "want a share of deals from 0 to 1 after @past:"},
	} {
		parley(t, State{}, "check", write(t, "plan.yaml", c.plan)).want(t, exit.Misuse).wantErr(t, c.want)
	}
	digest := func(keys string) string {
		plan := write(t, "plan.yaml", "kind: rollout\nepisodes: 2\nagents: {a: sim/any}\n"+keys)
		var sum struct{ Digest string }
		out := parley(t, State{}, "run", plan, "--out", filepath.Join(t.TempDir(), "run.parley"), "--json").want(t, exit.OK).stdout
		if err := json.Unmarshal([]byte(out), &sum); err != nil || sum.Digest == "" {
			t.Fatal(err, out)
		}
		return sum.Digest
	}
	if a, b := digest("train: {group: 2, max_staleness: 3}\nparams: {env: maze}\n"), digest("params: {env: maze, group: 2, max_staleness: 3}\n"); a != b {
		t.Errorf("%s, and as params %s", a, b)
	}
}
