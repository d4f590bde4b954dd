package score

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley/internal/run/results"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/rubric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// talk is an episode of two seats.
func talk() *Episode {
	call := func(seat, label, text, answer string) Call {
		return Call{Turn: "0", Seat: seat, Label: label, Reply: world.Reply{Text: text, JSON: json.RawMessage(answer)}}
	}
	failed := Call{Seat: "b", Reply: world.Reply{Failed: llm.KindTimeout}}
	acted := Call{Seat: "b", Act: &world.Act{Name: "step"}, Reply: world.Reply{Text: "deal?"}}
	return &Episode{
		Run: "r", Episode: 7, Kind: "talk", Params: json.RawMessage(`{"rounds":2}`), Cell: "x",
		Lineup: map[string]string{"a": "one", "b": "two"}, Models: map[string]string{"one": "lab/one"},
		Outcome: world.Outcome{Scores: []world.Score{{Seat: "a", Name: "points", Value: 3}, {Seat: "b", Name: "points", Value: 1}, {Name: "length", Value: 4}}, Data: json.RawMessage(`{"winner":"a"}`)},
		Notes:   []Note{{Turn: "0", Note: world.Note{Kind: "board", Data: json.RawMessage(`{"size":9}`)}}},
		Calls: []Call{
			call("a", "message", "A deal? Really?", ""), call("b", "message", "No.", ""), failed, acted,
			call("a", "bid", `{"bid":{"price":4}}`, `{"bid":{"price":4}}`), call("b", "bid", `{"bid":{"price":2}}`, `{"bid":{"price":2}}`),
			call("a", "bid", `{"bid":{"price":6}}`, `{"bid":{"price":6}}`),
		},
	}
}

// TestRules checks every kind of rule, by seat and for the episode.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, want string }{
		{`{"match":"(?i)deal"}`, "a=1 b=0"},
		{`{"match":"(?i)deal","per":"episode"}`, "=1"},
		{`{"count":"\\?"}`, "a=2 b=0"},
		{`{"count":"\\?","label":"bid"}`, "a=0 b=0"},
		{`{"count":"\\?","label":"other"}`, ""},
		{`{"field":"bid.price"}`, "a=6 b=2"},
		{`{"field":"bid.price","take":"first"}`, "a=4 b=2"},
		{`{"field":"bid.price","take":"mean","per":"episode"}`, "=4"},
		{`{"field":"bid.price","take":"sum","per":"episode"}`, "=12"},
		{`{"field":"bid.price","take":"min","per":"episode"}`, "=2"},
		{`{"field":"bid.price","take":"max"}`, "a=6 b=2"},
		{`{"field":"bid.0"}`, ""},
		{`{"field":"bid.price.x"}`, ""},
		{`{"expr":"scores[\"points\"] - 1"}`, "a=2 b=0"},
		{`{"expr":"scores[\"length\"] > 3","per":"episode"}`, "=1"},
		{`{"expr":"data.winner == seat"}`, "a=1 b=0"},
		{`{"expr":"params.rounds * notes[0].data.size","per":"episode"}`, "=18"},
		{`{"expr":"len(answers)"}`, "a=3 b=2"},
		{`{"expr":"count(calls, .ok && .seat == seat)"}`, "a=3 b=2"},
		{`{"expr":"model == \"lab/one\" ? 1 : nil"}`, "a=1"},
		{`{"expr":"agent == seats[\"b\"]"}`, "a=0 b=1"},
		{`{"expr":"\"text\""}`, "failed: the rule r: the value is string: want a number, true, false or nil"},
		{`{"expr":"1 / (scores[\"points\"] - 3)"}`, "b=-0.5"},
		{`{"expr":"notes[9].data"}`, "failed: the rule r: "},
	} {
		var r Rule
		if err := json.Unmarshal([]byte(c.rule), &r); err != nil {
			t.Fatal(err)
		}
		out := play(t, &Params{Rubric: rubric.Default(), Rules: map[string]Rule{"r": r}}, nil)
		if got := rubricWritten(out); got != c.want && !(strings.HasSuffix(c.want, ": ") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %s, want %s", c.rule, got, c.want)
		}
	}
}

// TestFailedRule: a rule that fails leaves out its own score, and the report says where and why.
func TestFailedRule(t *testing.T) {
	t.Parallel()
	p := &Params{Rubric: rubric.Default(), Rules: map[string]Rule{"bad": {Expr: `1 / (scores["points"] - 3)`}, "worse": {Expr: "notes[9].data"}, "good": {Count: `\?`, Per: "episode"}}}
	out := play(t, p, nil)
	if got := rubricWritten(out); got != "b=-0.5 =2" {
		t.Errorf("scores %s", got)
	}
	raw, err := json.Marshal(out.Data)
	if err != nil {
		t.Fatal(err)
	}
	params, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	e := (&definition{}).Exhibitor()
	for range 2 {
		e.Add(world.Played{Spec: world.Spec{Params: params}, Outcome: world.Outcome{Data: json.RawMessage(raw)}})
	}
	rows := e.Exhibits()[0].Show.(exhibit.Grid).Rows
	if len(rows) != 2 || fmt.Sprint(rows[0]) != "[bad 2 2 episode 0 a the value is +Inf, as after a division by 0: want a finite number, or nil for no score]" || fmt.Sprint(rows[1][:3]) != "[worse 2 4]" {
		t.Errorf("rows %v", rows)
	}
}

// TestInterview: a seat answers after what it was told and said itself. What the other seat was told is not in its messages.
func TestInterview(t *testing.T) {
	t.Parallel()
	of := talk()
	for i := range of.Calls {
		c := &of.Calls[i]
		c.Agent = of.Lineup[c.Seat]
		c.Messages = []llm.Message{llm.System("You are " + c.Seat + "."), llm.User("private to " + c.Seat)}
	}
	of.Calls[len(of.Calls)-1].Tools = []llm.Tool{{Name: "look"}}
	p := asking(map[string]rubric.Question{
		"sure": {Ask: "Are you sure, {seat}?", By: rubric.BySeat}, "why": {Ask: "Why?", By: rubric.BySeat, Text: true}, "fair": {Ask: "Fair?", Per: "episode"},
	})
	p.Agents = []string{"one", "two"}
	seen := map[string]llm.Request{}
	out := playOf(t, of, p, func(c world.Call) world.Reply {
		seen[c.Seat] = c.Ask
		if c.Seat == rubric.Judge {
			return world.Reply{JSON: json.RawMessage(`{"fair":true}`)}
		}
		return world.Reply{JSON: json.RawMessage(`{"reason":"so","sure":true,"why":"because of ` + c.Seat + `"}`)}
	})
	if got := rubricWritten(out); got != "=1 a=1 b=1" {
		t.Errorf("scores %s", got)
	}
	a, b := seen[InterviewSeat("one")], seen[InterviewSeat("two")]
	if len(seen) != 3 || len(a.Messages) != 4 || a.Messages[1].Text() != "private to a" || a.Messages[2].Text() != `{"bid":{"price":6}}` || a.Messages[2].Role != llm.RoleAssistant ||
		!strings.Contains(a.Messages[3].Text(), "Are you sure, a?") || a.ToolChoice != "none" || len(b.Tools) > 0 {
		t.Errorf("asked %+v", seen)
	}
	for _, m := range a.Messages {
		if strings.Contains(m.Text(), "private to b") || strings.Contains(m.Text(), "No.") {
			t.Errorf("a reads what b was told or said: %s", m.Text())
		}
	}
	texts := []string{}
	for _, r := range out.Data.(Data).Ratings {
		texts = append(texts, r.Seat+r.Text)
	}
	if got := strings.Join(texts, ","); got != ",a,abecause of interview one,b,bbecause of interview two" {
		t.Errorf("ratings %s", got)
	}
	p.Agents = []string{"two"} // one is a bot
	clear(seen)
	playOf(t, of, p, func(c world.Call) world.Reply { seen[c.Seat] = c.Ask; return world.Reply{Failed: llm.KindTimeout} })
	if _, asked := seen[InterviewSeat("one")]; asked || len(seen) != 2 {
		t.Errorf("asked %v", seen)
	}
}

func rubricWritten(out world.Outcome) string {
	if out.Failed != "" {
		return "failed: " + out.Failed
	}
	var all []string
	for _, s := range out.Scores {
		all = append(all, fmt.Sprintf("%s=%v", s.Seat, s.Value))
	}
	return strings.Join(all, " ")
}

// play scores the talk. answer answers a judge.
func play(t *testing.T, p *Params, answer func(c world.Call) world.Reply) world.Outcome {
	t.Helper()
	return playOf(t, talk(), p, answer)
}

// playOf scores an episode.
func playOf(t *testing.T, of *Episode, p *Params, answer func(c world.Call) world.Reply) world.Outcome {
	t.Helper()
	w, err := (&definition{func(int) (*Episode, error) { return of, nil }, anyRun}).World(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := world.Begin(w, world.Deal{Seed: 1})
	var replies []world.Reply
	for {
		turn := s.Next(replies)
		if turn.Done {
			return turn.Outcome
		}
		replies = nil
		for _, c := range turn.Calls {
			replies = append(replies, answer(c))
		}
	}
}

func asking(questions map[string]rubric.Question, judges ...string) *Params {
	return &Params{Rubric: rubric.Rubric{Questions: questions, Judges: judges, Intro: rubric.Intro, MaxText: 1000}}
}

// TestJudges: each judge gets the record and the questions, and scores are the means of their answers. What a judge does
// not answer is left out.
func TestJudges(t *testing.T) {
	t.Parallel()
	p := asking(map[string]rubric.Question{
		"kind":  {Ask: "How kind is {seat}?", Scale: []int{1, 5}},
		"fair":  {Ask: "Fair?", Per: "episode"},
		"style": {Ask: "Style?", Choices: []string{"short", "long"}},
	}, "x", "y", "z")
	var asked []string
	out := play(t, p, func(c world.Call) world.Reply {
		text := c.Ask.Messages[0].Text()
		asked = append(asked, c.Seat)
		if !strings.Contains(text, "a: A deal? Really?\nb: No.") || strings.Contains(text, "deal?\n</record>") {
			t.Errorf("the record: %s", text)
		}
		switch {
		case c.Seat == "z":
			return world.Reply{Failed: llm.KindRefused}
		case strings.Contains(text, "fair:"):
			return world.Reply{JSON: json.RawMessage(`{"reason":"so","fair":` + fmt.Sprint(c.Seat == "x") + `}`)}
		case strings.Contains(text, "How kind is a?"):
			return world.Reply{JSON: json.RawMessage(`{"reason":"","kind":` + map[string]string{"x": "2", "y": "5"}[c.Seat] + `,"style":"long"}`)}
		default:
			return world.Reply{JSON: json.RawMessage(`{"kind":1,"style":"other"}`)}
		}
	})
	var got []string
	for _, s := range out.Scores {
		got = append(got, fmt.Sprintf("%s %s %v", s.Seat, s.Name, s.Value))
	}
	want := " fair 0.5, a kind 3.5, b kind 1, a style: short 0, a style: long 1"
	if strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	if fmt.Sprint(asked) != "[x x x y y y z z z]" {
		t.Errorf("asked %v", asked)
	}
	if n := len(out.Data.(Data).Ratings); n != 2+4+2 {
		t.Errorf("%d ratings: %+v", n, out.Data)
	}
}

// TestBias: a judge that always takes the first choice, one that rates by length, and judges that agree are found out.
func TestBias(t *testing.T) {
	t.Parallel()
	e := (&definition{}).Exhibitor()
	params, err := json.Marshal(asking(map[string]rubric.Question{"pick": {Ask: "?", Choices: []string{"u", "v", "w"}}, "either": {Ask: "?", Choices: []string{"x", "y"}}, "good": {Ask: "?", Scale: []int{0, 9}}}))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		order, length, fair := r.Perm(3), r.IntN(900), r.IntN(9)
		ratings := []rubric.Rating{
			{Question: "pick", Judge: "lazy", Value: float64(order[0]), Position: 1, Length: length},
			{Question: "pick", Judge: "fair", Value: float64(n % 3), Position: slices.Index(order, n%3) + 1, Length: length},
			{Question: "pick", Judge: "long", Value: float64(length / 300), Position: slices.Index(order, length/300) + 1, Length: length},
			{Question: "either", Judge: "long", Value: float64(length / 450), Position: 1 + n%2, Length: length},
			{Question: "either", Judge: "same", Value: 1, Position: 1 + n%2, Length: length},
			{Question: "good", Judge: "vain", Value: float64(length / 100), Length: length},
			{Question: "good", Judge: "fair", Value: float64(fair), Length: length},
			{Question: "good", Judge: "echo", Value: float64(fair), Length: length},
		}
		raw, err := json.Marshal(Data{Ratings: ratings})
		if err != nil {
			t.Fatal(err)
		}
		e.Add(world.Played{Episode: n, Spec: world.Spec{Params: params}, Outcome: world.Outcome{Data: json.RawMessage(raw)}})
	}
	e.Add(world.Played{Outcome: world.Outcome{Data: json.RawMessage(`{"not":"ratings"}`)}})
	signs := map[string]string{}
	for _, x := range e.Exhibits() {
		for _, row := range x.Show.(exhibit.Grid).Rows {
			signs[fmt.Sprint(x.Name, " ", row[0], " ", row[1])] = fmt.Sprint(row[len(row)-1])
		}
	}
	for key, want := range map[string]string{
		"position-bias pick lazy": "yes", "position-bias pick fair": "no", "length-bias good vain": "yes", "length-bias good fair": "no",
		"length-bias pick: u long": "yes", "length-bias pick: w long": "yes", "length-bias pick: u fair": "no", "length-bias pick: u lazy": "no",
		"length-bias either: x long": "yes", "length-bias either: y long": "", "length-bias either: x same": "", "length-bias pick long": "",
	} {
		if signs[key] != want {
			t.Errorf("%s: %q, want %q", key, signs[key], want)
		}
	}
	if signs["agreement-of-judges good 3"] == "" || signs["agreement-of-judges pick 3"] == "" {
		t.Errorf("agreement: %v", signs)
	}
}

// TestBadParams: every mistake is named at its key.
func TestBadParams(t *testing.T) {
	t.Parallel()
	low, high := 2.0, 1.0
	for want, change := range map[string]func(p *Params){
		"params.rules: there is nothing to score":  func(p *Params) { p.Rules, p.Questions = nil, nil },
		"params.rules.r: error parsing regexp":     func(p *Params) { p.Rules["r"] = Rule{Match: "("} },
		"want one of match, count, field and expr": func(p *Params) { p.Rules["r"] = Rule{Match: "a", Count: "b"} },
		"take is only for field":                   func(p *Params) { p.Rules["r"] = Rule{Match: "a", Take: "sum"} },
		"want both low and high":                   func(p *Params) { p.Rules["r"] = Rule{Field: "a", Low: &low, High: &high} },
		"low and high are only for":                func(p *Params) { p.Rules["r"] = Rule{Match: "a", Low: &low} },
		"params.rules.r: unknown name now":         func(p *Params) { p.Rules["r"] = Rule{Expr: "now()"} },
		"unknown name keys":                        func(p *Params) { p.Rules["r"] = Rule{Expr: "keys(scores)[0]"} },
		"the name \"\\x1b[2J\"":                    func(p *Params) { p.Rules["\x1b[2J"] = Rule{Match: "a"} },
		"the name q is taken":                      func(p *Params) { p.Rules["q"] = Rule{Match: "a"} },
		"params.questions.q.ask: is empty":         func(p *Params) { p.Questions["q"] = rubric.Question{} },
		"a seat answers for itself": func(p *Params) {
			p.Questions["q"] = rubric.Question{Ask: "?", By: rubric.BySeat, Per: "episode"}
		},
		"a text has no scale":                 func(p *Params) { p.Questions["q"] = rubric.Question{Ask: "?", Text: true, Scale: []int{1, 2}} },
		"params.questions.q.by: wants one of": func(p *Params) { p.Questions["q"] = rubric.Question{Ask: "?", By: "x"} },
		"want a scale or choices": func(p *Params) {
			p.Questions["q"] = rubric.Question{Ask: "?", Scale: []int{1, 2}, Choices: []string{"a", "b"}}
		},
		"params.questions.q.scale: [5 1]":           func(p *Params) { p.Questions["q"] = rubric.Question{Ask: "?", Scale: []int{5, 1}} },
		"params.questions.q.choices: 1 choices":     func(p *Params) { p.Questions["q"] = rubric.Question{Ask: "?", Choices: []string{"a"}} },
		"params.questions.q.choices[1]: \"a\"":      func(p *Params) { p.Questions["q"] = rubric.Question{Ask: "?", Choices: []string{"a", "a"}} },
		"params.judges[1]: \"x\"":                   func(p *Params) { p.Judges = []string{"x", "x"} },
		"params.judges: there are no questions":     func(p *Params) { p.Questions, p.Judges = nil, []string{"x"} },
		"params.max_text: wants 1000 to 10000000":   func(p *Params) { p.MaxText = 5 },
		"params.judges: 21 judges: want at most 20": func(p *Params) { p.Judges = strings.Split("abcdefghijklmnopqrstu", "") },
		"params.questions.q.per: wants one of":      func(p *Params) { p.Questions["q"] = rubric.Question{Ask: "?", Per: "x"} },
	} {
		p := &Params{Rubric: asking(map[string]rubric.Question{"q": {Ask: "?"}}).Rubric, Rules: map[string]Rule{"r": {Match: "a"}}}
		change(p)
		kind := world.Define(&definition{})
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		read, err := kind.Read(raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kind.Seats(read); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := (&definition{}).Plan(&Params{Scored: results.Scored{Episodes: "x"}}, world.Spec{}, 0); err == nil {
		t.Error("episodes that are no numbers are accepted")
	}
}

// TestNonsense: whatever judges answer, scores are numbers that the kind declares, and are the same every time.
func TestNonsense(t *testing.T) {
	t.Parallel()
	p := asking(map[string]rubric.Question{"q": {Ask: "?", Choices: []string{"a", "b"}}, "s": {Ask: "?", Per: "episode", Scale: []int{1, 3}}})
	declared := map[string]bool{}
	for _, m := range (&definition{}).Measures(p) {
		declared[m.Name] = true
	}
	for _, answer := range []string{``, `null`, `7`, `[]`, `{`, `{"q":7,"s":"x","reason":{}}`, `{"q":"a","s":1e999}`, `{"q":"b","s":2,"reason":"\u0000"}`} {
		reply := func(world.Call) world.Reply { return world.Reply{Text: answer, JSON: json.RawMessage(answer)} }
		first, second := play(t, p, reply), play(t, p, reply)
		if fmt.Sprint(first) != fmt.Sprint(second) {
			t.Errorf("%s: %v and %v", answer, first, second)
		}
		for _, s := range first.Scores {
			if !declared[s.Name] || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
				t.Errorf("%s: %+v", answer, s)
			}
		}
	}
}
