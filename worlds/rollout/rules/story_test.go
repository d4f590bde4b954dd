package rules

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
)

// tells plays an episode against s and returns its story, a line a line.
func tells(t *testing.T, params string, s *script) string {
	t.Helper()
	p := Definition{}.Defaults()
	mustRead([]byte(params), p)
	w, err := Definition{}.World(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	strand := world.Begin(w, world.Deal{Seed: 1})
	var entries []world.TranscriptEntry
	var replies []world.Reply
	for {
		turn := strand.Next(replies)
		for _, n := range turn.Notes {
			entries = append(entries, world.TranscriptEntry{Note: &n})
		}
		if turn.Done {
			raw, err := json.Marshal(turn.Outcome.Data)
			if err != nil {
				t.Fatal(err)
			}
			turn.Outcome.Data = json.RawMessage(raw)
			return written(Definition{}.Story(world.Played{Outcome: turn.Outcome}, entries))
		}
		replies = nil
		for _, c := range turn.Calls {
			r := s.reply(c)
			replies = append(replies, r)
			entries = append(entries, world.TranscriptEntry{Seat: c.Seat, Agent: "policy", Label: c.Label, Act: c.Act, Reply: r})
		}
	}
}

func written(all []exhibit.Exhibit) string {
	var b strings.Builder
	for _, x := range all {
		for _, f := range x.Show.(exhibit.Replay).Frames {
			b.WriteString("# " + f.Title + "\n")
			for _, l := range f.Lines {
				b.WriteString(strings.TrimSpace(l.Who+" "+l.To) + ": " + l.Text + "\n")
			}
		}
	}
	return b.String()
}

// TestStory checks that every step shows the observation, the actions, the rewards and the end.
func TestStory(t *testing.T) {
	t.Parallel()
	got := tells(t, `{"env":"maze","seed":7,"env_params":{"size":3}}`, &script{steps: []Result{pay(0.5), ends(1)}})
	want := `# The start
: maze with seed 7, size: 3
# Step 1
environment: (to begin with) rules
environment: 1?
agent (policy): do 0
: reward 0.5, 0.5 so far; not done
# Step 2
environment: 2?
agent (policy): do 1
: reward 1, 1.5 so far; done: terminated
# The end
: terminated after 2 steps
: agent: reward 1.5 in all
`
	if got != want {
		t.Errorf("%s", got)
	}
	got = tells(t, `{"env":"maze","retries":1}`, &script{
		steps: []Result{pay(1), pay(1), pay(1)}, failAct: map[string]llm.Kind{"step 0/2": llm.KindTimeout, "step 1/1": llm.KindServer},
	})
	for _, want := range []string{
		"environment: failed: timeout", "The environment was lost (environment: step 2: timeout): the episode begins again", "# The start, try 2", "# Step 1, try 2",
		"failed: environment: step 1: server (2 tries)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	got = tells(t, `{"seats":["l","r"]}`, &script{
		steps: []Result{{Reward: Rewards{"l": 1, "r": -1}, Truncated: true}},
		prompts: func(int) Prompt {
			return Prompt{"l": {Messages: []llm.Message{llm.User("l?")}}, "r": {Messages: []llm.Message{llm.User("r?")}}}
		},
	})
	if !strings.Contains(got, "environment l: l?\nenvironment r: r?\nl (policy): do 0\nr (policy): do 1\n: l: reward 1, 1 so far; r: reward -1, -1 so far; done: truncated\n") {
		t.Errorf("%s", got)
	}
}

// TestStoryOfTurns checks that the total rewards of agents who act in turn are shown once for each.
func TestStoryOfTurns(t *testing.T) {
	t.Parallel()
	got := tells(t, `{"seats":["l","r"]}`, &script{
		steps: []Result{{}, {}, {}, {Reward: Rewards{"l": 0.25, "r": 0.75}, Terminated: true}},
		prompts: func(step int) Prompt {
			return Prompt{[]string{"r", "l"}[step%2]: {Messages: []llm.Message{llm.User("your turn")}}}
		},
	})
	_, end, _ := strings.Cut(got, "# The end\n")
	if want := ": terminated after 4 steps\n: l: reward 0.25 in all\n: r: reward 0.75 in all\n"; end != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestStoryOfAnything checks that data of any form has a story: a run file may come from anywhere.
func TestStoryOfAnything(t *testing.T) {
	t.Parallel()
	var entries []world.TranscriptEntry
	for _, body := range []string{"", "null", "3", `{"prompt":3}`, `{"prompt":{"a":{"keep":-9,"add":[{"role":"user","content":null}]}}}`} {
		for _, act := range []string{ActOpen, ActStep, ActClose, "dance"} {
			entries = append(entries, world.TranscriptEntry{Act: &world.Act{Name: act, Body: json.RawMessage(body)}, Reply: world.Reply{JSON: json.RawMessage(body)}})
		}
		entries = append(entries, world.TranscriptEntry{Note: &world.Note{Kind: "again", Data: json.RawMessage(body)}})
	}
	entries = append(entries, world.TranscriptEntry{Reply: world.Reply{Text: strings.Repeat("é", 10_000)}}, world.TranscriptEntry{Reply: world.Reply{Failed: llm.KindTimeout}})
	if got := written(Definition{}.Story(world.Played{Outcome: world.Outcome{Data: json.RawMessage("[]")}}, entries)); !strings.Contains(got, "failed: timeout") || len(got) > 8000 {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
	if got := (Definition{}).Story(world.Played{}, nil); got != nil {
		t.Errorf("nothing: %v", got)
	}
}

// TestStoryOfAJudge checks that a verdict is told in words, apart from the last step.
func TestStoryOfAJudge(t *testing.T) {
	t.Parallel()
	got := written(Definition{}.Story(world.Played{}, []world.TranscriptEntry{
		{Seat: "judge", Agent: "grader", Label: "judge", Reply: world.Reply{Text: `{"x":1}`, JSON: json.RawMessage(`{"reason":"It is \"right\".","score":5}`)}},
	}))
	if got != "# The judge\njudge (grader): reason: It is \"right\".\nscore: 5\n" {
		t.Error(got)
	}
}
