package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
)

// shelf has files of lessons. Names that end in .parley are run files.
type shelf struct{ disk }

func (s shelf) Match(pattern string) (names []string) {
	for name := range s.disk {
		if name == pattern || pattern == "*" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s shelf) Lessons(name string) (rows []json.RawMessage, err error) {
	if s.disk[name] == "" {
		return nil, errors.New("teaches nothing")
	}
	for row := range s.Rows(name) {
		rows = append(rows, row)
	}
	return rows, nil
}

func learned(t *testing.T, x string, files disk) *Params {
	t.Helper()
	p := Definition{}.Defaults()
	mustRead([]byte(`{"env":"maze","experience":`+x+`}`), p)
	if _, err := (Definition{}).Load(p, shelf{files}); err != nil {
		t.Fatal(err)
	}
	return p
}

// picked lists the lessons that the episodes of each of n tasks get.
func picked(t *testing.T, p *Params, n int) (all []string) {
	t.Helper()
	for deal := range n {
		for _, spec := range episodes(t, p, world.Spec{Kind: "rollout", Deal: deal, Lineup: map[string]string{"agent": "x"}}) {
			var one Params
			mustRead(spec.Params, &one)
			if one.Experience.Lessons != "" {
				t.Error("an episode holds all lessons")
			}
			all = append(all, strings.Join(one.Experience.pickedNames(), "+"))
		}
	}
	return all
}

const lessonsFile = `{"name":"a","text":"A","reward":0.9,"uses":50}
{"name":"b","text":"B","reward":0.5,"uses":50}
{"name":"c","text":"C","reward":0.7}
{"name":"d","env":"word","text":"D","reward":5}
`

// TestPick: lessons are the same for the same seed, for all episodes of a task, and only
// about the environment that is played.
func TestPick(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, experience string
		want             string // of four tasks
	}{
		{"the best", `{"from":"l.jsonl","count":2}`, "a+c a+c a+c a+c"},
		{"no more than there are", `{"from":"l.jsonl","count":9}`, "a+c+b a+c+b a+c+b a+c+b"},
		{"ucb: lessons without uses first, then those with few", `{"from":"l.jsonl","pick":"ucb"}`, "c c c c"},
	} {
		got := strings.Join(picked(t, learned(t, c.experience, disk{"l.jsonl": lessonsFile}), 4), " ")
		if got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	p := learned(t, `{"from":"l.jsonl","pick":"random"}`, disk{"l.jsonl": lessonsFile})
	p.Group = 3
	drawn := picked(t, p, 20)
	if !slices.Equal(drawn, picked(t, p, 20)) || !slices.Contains(drawn, "a") || !slices.Contains(drawn, "b") || !slices.Contains(drawn, "c") || slices.Contains(drawn, "d") {
		t.Errorf("random: %v", drawn)
	}
	for i := 0; i < len(drawn); i += 3 {
		if drawn[i] != drawn[i+1] || drawn[i] != drawn[i+2] {
			t.Errorf("task %d: %v", i/3, drawn[i:i+3])
		}
	}
}

// TestUCB checks the choice against the formula, and that every lesson is tried soon.
func TestUCB(t *testing.T) {
	t.Parallel()
	var all []Lesson
	for i := range 5 {
		all = append(all, Lesson{Name: fmt.Sprint(i), Text: "x", Reward: float64(i), Uses: 4})
	}
	counts := map[string]int{}
	for round := range 200 {
		counts[ucb(all, 1, round)[0].Name]++
	}
	for i := 1; i < 5; i++ {
		if counts[fmt.Sprint(i)] <= counts[fmt.Sprint(i-1)] || counts["0"] == 0 {
			t.Errorf("lessons with higher rewards are not picked more often: %v", counts)
		}
	}
	if got := ucb(all, 1, 0)[0].Name; got != "4" {
		t.Errorf("equal uses: %s is picked first", got)
	}
	all[1].Uses = 0
	if got := ucb(all, 2, 0); got[0].Name != "1" || got[1].Name != "4" {
		t.Errorf("never picked: %v", got)
	}
}

// TestLessonsJoin checks that the uses of one lesson in several files are combined.
func TestLessonsJoin(t *testing.T) {
	t.Parallel()
	p := learned(t, `{"from":"*","count":3}`, disk{
		"1.parley": `{"name":"a","env":"maze","text":"A","reward":1,"uses":1}` + "\n" + `{"name":"b","text":"B","reward":0.25}` + "\n",
		"2.parley": `{"name":"a","env":"maze","text":"A","reward":0.2,"uses":3}` + "\n" + `{"name":"b","text":"B","reward":0.5,"uses":2}` + "\n",
		"3.jsonl":  `{"text":"nameless"}` + "\n",
	})
	all, err := p.Experience.lessons("maze")
	want := []Lesson{
		{Name: "b", Text: "B", Uses: 2, Reward: 0.5}, {Name: "a", Env: "maze", Text: "A", Uses: 4, Reward: 0.4}, {Name: "3.jsonl row 1", Text: "nameless"},
	}
	if err != nil || len(all) != 3 || all[0] != want[0] || all[1].Uses != 4 || all[1].Reward-0.4 > 1e-9 || all[2] != want[2] {
		t.Errorf("%+v %v", all, err)
	}
}

// TestLessonsInPrompt: lessons follow the system message of agents that are trained, at every
// step, and the outcome says which they were.
func TestLessonsInPrompt(t *testing.T) {
	t.Parallel()
	s := &script{steps: []Result{pay(1), ends(1)}}
	params := `{"message_cut":1,"experience":{"template":"Know: {lessons}!","lessons_used":[{"name":"a","text":"go north"},{"name":"b","text":"go east"}]}}`
	_, d := play(t, params, nil, s)
	for i, c := range s.asked {
		if ms := c.Ask.Messages; ms[0].Role != llm.RoleSystem || ms[0].Text() != "rules\n\nKnow: go north\n\ngo east!" || len(ms) != 2 {
			t.Errorf("ask %d: %v", i, ms)
		}
	}
	if !slices.Equal(d.Experience, []string{"a", "b"}) || len(s.asked) != 2 {
		t.Errorf("%+v", d)
	}
	none := Experience{Template: "{lessons}"}
	ms := []llm.Message{llm.User("hi")}
	if got := none.addTo(ms); len(got) != 1 {
		t.Errorf("nothing to tell: %v", got)
	}
	none.Picked = []Lesson{{Text: "x"}}
	if got := none.addTo(ms); len(got) != 2 || got[0].Role != llm.RoleSystem || got[0].Text() != "x" {
		t.Errorf("no system message: %v", got)
	}
	s = &script{steps: []Result{ends(1)}, prompts: func(int) Prompt {
		return Prompt{"l": {Messages: []llm.Message{llm.User("l?")}}, "r": {Messages: []llm.Message{llm.User("r?")}}}
	}}
	play(t, `{"seats":["l","r"],"experience":{"lessons_used":[{"name":"a","text":"go north"}]}}`, world.Lineup{"r": {Name: "x", Trainable: true}}, s)
	if len(s.asked) != 2 || len(s.asked[0].Ask.Messages) != 1 || len(s.asked[1].Ask.Messages) != 2 {
		t.Errorf("an agent that is not trained got lessons: %+v", s.asked)
	}
}

func TestBadExperience(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ experience, file, want string }{
		{`{"from":"none.jsonl"}`, "", "params.experience.from: no file matches none.jsonl"},
		{`{"from":"l.jsonl"}`, `{"txt":"x"}`, `l.jsonl: row 1: unknown key "txt" (did you mean text?): use name, env, text, reward, uses`},
		{`{"from":"l.jsonl"}`, `{"name":"x","text":" "}`, "row 1: has no text"},
		{`{"from":"l.jsonl"}`, `{"text":3}`, "row 1: want name, env and text as text"},
		{`{"from":"l.jsonl"}`, `[1]`, "row 1: want an object"},
		{`{"from":"l.jsonl"}`, `{"text":"x","uses":-1}`, "uses: -1"},
		{`{"from":"l.jsonl"}`, `{"text":"` + strings.Repeat("x", 9000) + `"}`, "at most 8000"},
		{`{"from":"run.parley"}`, "", "no file matches"},
	} {
		p := Definition{}.Defaults()
		mustRead([]byte(`{"experience":`+c.experience+`}`), p)
		files := disk{}
		if c.file != "" {
			files["l.jsonl"] = c.file + "\n"
		}
		if _, err := (Definition{}).Load(p, shelf{files}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.experience, c.file, err)
		}
	}
	for params, want := range map[string]string{
		`{"experience":{"pick":"first"}}`:               "experience.pick: \"first\": want one of best, ucb, random",
		`{"experience":{"count":0}}`:                    "experience.count: 0: want 1 to 20",
		`{"experience":{"template":"nothing to tell"}}`: "experience.template",
	} {
		p := Definition{}.Defaults()
		mustRead([]byte(params), p)
		if err := p.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", params, err)
		}
	}
	p := Definition{}.Defaults()
	p.Experience.Lessons = "{\n"
	if _, err := (Definition{}).Plan(p, world.Spec{}, 1); err == nil || !strings.Contains(err.Error(), "experience.lessons: line 1") {
		t.Errorf("%v", err)
	}
}
