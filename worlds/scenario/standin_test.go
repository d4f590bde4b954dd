package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds/scenario/script"
)

// TestStandIn: the stand-in understands what everybody in a scenario is asked, and finds in it who it is, what it
// wants, what was done and what is measured.
func TestStandIn(t *testing.T) {
	t.Parallel()
	s := stage(3, 5, func(s *script.Script) {
		own, yes, share := numeric("own"), numeric("yes"), numeric("share")
		own.ActorSpecific = true
		yes.Type, yes.Range = script.Boolean, nil
		share.Range, share.Unit = []float64{0, 100}, "percent"
		s.Metrics = []script.Metric{own, yes, share}
		for i := range s.Actors {
			s.Actors[i].Goals = []string{fmt.Sprintf("Keep bridge %d open", i)}
		}
		s.State = "The reservoir stands at 46 percent."
		s.Talk = script.Talk{Statements: true, Bilateral: true, Coalitions: true, Max: 2, Rounds: 2}
		s.Window, s.Reflect, s.BlackSwan = 1, true, 0.5
		s.Events = []script.Event{{Name: "storm", Description: "A storm floods the valley.", Type: script.EventRandom, Probability: new(1.0)}}
		s.Validation = script.Validation{MaxIssues: 1000}
		for _, name := range []string{script.CheckDecisions, script.CheckWorld, script.CheckInformation, script.CheckGoals, script.CheckRules} {
			s.Validation.Checks = append(s.Validation.Checks, script.Check{Name: name, Severity: "low"})
		}
		s.Validation.Rules = []string{"Nobody leaves."}
	})
	params, err := json.Marshal(Params{Set: map[string]any{}, Script: s})
	if err != nil {
		t.Fatal(err)
	}
	worldtest.StandIn(t, Kind(), []string{
		"opening", "answer", "coalition", "joint statement", "decision", "private summary", "update", "summary", "metric own", "metric yes", "metric share",
		"check " + script.CheckDecisions, "check " + script.CheckWorld, "check " + script.CheckInformation, "check " + script.CheckGoals, "check " + script.CheckRules,
	}, worldtest.Options{Params: string(params), Deals: 10, Understood: func(c world.Call, r world.Reply) error { return understood(s, c, r) }})
}

// understood wants an answer to take up what the prompt says.
func understood(s *script.Script, c world.Call, r world.Reply) error {
	var a struct {
		Action, State, Summary string
		Long                   []string `json:"long_term_goals"`
		Value                  any
	}
	if err := json.Unmarshal(r.JSON, &a); err != nil {
		return err
	}
	switch prompt := c.Ask.Messages[1].Text(); {
	case c.Label == "decision":
		actor := s.Actors[s.Actor(c.Seat)]
		if !strings.HasPrefix(a.Action, actor.Name+" ") || len(a.Long) == 0 || a.Long[0] != actor.Goals[0] {
			return fmt.Errorf("%s decides %q with the goals %q", actor.Name, a.Action, a.Long)
		}
	case c.Label == "update":
		if !strings.Contains(a.State, "A storm floods the valley.") || !strings.Contains(a.State, " percent after turn ") || strings.Contains(a.State, "after turn 0") {
			return fmt.Errorf("the narrator leaves out the state: %q", a.State)
		}
	case strings.Contains(c.Label, "summary"):
		if (c.Label == "summary" || strings.Contains(prompt, "\n> ")) && !strings.HasPrefix(a.Summary, "In short: ") {
			return fmt.Errorf("sums up %q", a.Summary)
		}
	case c.Label == "metric share":
		if read := c.Ask.Messages[0].Text(); !strings.Contains(read, fmt.Sprintf("%v percent", a.Value)) {
			return fmt.Errorf("measures %v in %s", a.Value, read)
		}
	}
	return nil
}

const stageText = `You take part in a simulation that is played in turns. First comes what everybody can read.

# One river

## Who acts
- Growers (growers): farmers
- Town (town): a town

## The situation at the start
The reservoir stands at 46 percent.`

func scenarioAsk(system, user, schema string) *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.System(system), llm.User(user)}, Schema: &llm.Schema{JSON: json.RawMessage(schema)}}
}

func TestKnowsItsWorld(t *testing.T) {
	t.Parallel()
	for _, req := range []*llm.Request{
		{}, {Messages: []llm.Message{llm.System("You are helpful."), llm.User("hi")}}, scenarioAsk("You are helpful.", "hi", `{}`),
		scenarioAsk(stageText, "hi", `{}`), scenarioAsk(stageText, "hi", `not JSON`), {Messages: []llm.Message{llm.System(stageText), llm.User("hi")}},
	} {
		if text, ok := standInReply("small", req, 1); ok {
			t.Errorf("%+v is answered with %q", req.Messages, text)
		}
	}
}

// TestDecides: an actor keeps its goals, says who it is, and does not do the same in
// every episode; the same request is answered the same.
func TestDecides(t *testing.T) {
	t.Parallel()
	req := scenarioAsk(stageText, "# You are Growers\nThe goals you set out with:\n- Save the trees.\nYour constraints:\n- none\n\n# Turn 2 of 5: what you do",
		`{"type":"object","properties":{"reflection":{"type":"string"},"action":{"type":"string"}}}`)
	actions := map[string]bool{}
	for seed := range uint64(50) {
		text, ok := standInReply("large", req, seed)
		var a struct {
			Long       []string `json:"long_term_goals"`
			Action     string
			Reflection *string
		}
		if err := json.Unmarshal([]byte(text), &a); err != nil || !ok || len(a.Long) == 0 || a.Long[0] != "Save the trees." || a.Reflection == nil {
			t.Fatalf("%s (%v)", text, err)
		}
		if !strings.HasPrefix(a.Action, "Growers ") {
			t.Error(a.Action)
		}
		actions[a.Action] = true
		if again, _ := standInReply("large", req, seed); again != text {
			t.Error("the same request is answered differently")
		}
	}
	if len(actions) < 4 {
		t.Errorf("only %d actions", len(actions))
	}
}

// TestSpeaksAsAllowed: no more messages than the form allows, to those it names.
func TestSpeaksAsAllowed(t *testing.T) {
	t.Parallel()
	form := `{"properties":{"public_statement":{"type":"string"},"messages":{"type":"array","maxItems":1,"items":{"properties":{"to":{"enum":["town"]},"text":{"type":"string"}}}},
		"coalition":{"type":"object","properties":{"members":{"type":"array","items":{"enum":["town","dam"]}},"purpose":{"type":"string"}}}}}`
	wrote, proposed := 0, 0
	for seed := range uint64(200) {
		text, _ := standInReply("large", scenarioAsk(stageText, "# You are Growers\n\n# Turn 1 of 5: what you say", form), seed)
		var a struct {
			Statement *string `json:"public_statement"`
			Messages  []struct{ To, Text string }
			Coalition struct {
				Members []string
				Purpose string
			}
		}
		if err := json.Unmarshal([]byte(text), &a); err != nil || a.Statement == nil || len(a.Messages) > 1 {
			t.Fatalf("%s (%v)", text, err)
		}
		for _, m := range a.Messages {
			wrote++
			if m.To != "town" || m.Text == "" {
				t.Error(text)
			}
		}
		if n := len(a.Coalition.Members); n != 0 && n != 2 || (n == 2) != (a.Coalition.Purpose != "") {
			t.Error(text)
		} else if n == 2 {
			proposed++
		}
	}
	if wrote == 0 || proposed == 0 || proposed > 100 {
		t.Errorf("%d messages, %d coalitions of 200", wrote, proposed)
	}
}

// TestMeasures: values are within their ranges, mostly known, and go with the words.
func TestMeasures(t *testing.T) {
	t.Parallel()
	mean := func(state, schema, ask string) (mean, known float64) {
		const n = 300
		read := "You measure. Read what is quoted, and say what it shows.\n# One river\nThe situation after turn 2:\n> " + state
		for seed := range uint64(n) {
			text, _ := standInReply("large", scenarioAsk(read, "# trust\n"+ask, schema), seed)
			var a struct {
				Known bool
				Value float64
			}
			if err := json.Unmarshal([]byte(text), &a); err != nil || a.Value < 0 || a.Value > 10 && a.Value != 46 {
				t.Fatalf("%s (%v)", text, err)
			}
			mean += a.Value / n
			if a.Known {
				known += 1.0 / n
			}
		}
		return mean, known
	}
	ten := `{"properties":{"value":{"type":"number","minimum":0,"maximum":10}}}`
	calm, known := mean("They agree, and share what they have. There is relief and trust.", ten, "")
	tense, _ := mean("They accuse each other. A protest is announced; one refuses, another goes to court.", ten, "")
	if !(calm > tense+1) || known < 0.9 {
		t.Errorf("calm %v, tense %v, known %v", calm, tense, known)
	}
	if share, _ := mean("It stands at 46 percent.", `{"properties":{"value":{"type":"number","minimum":0,"maximum":100}}}`, "It is a number from 0 to 100, in percent."); share < 45.9 || share > 46.1 {
		t.Errorf("read %v out of 46 percent", share)
	}
}

// TestStandinChecks: most checks find nothing, some do.
func TestStandinChecks(t *testing.T) {
	t.Parallel()
	found := 0
	for seed := range uint64(500) {
		text, _ := standInReply("small", scenarioAsk("You check simulations. Read.", "# rules\nAn issue is of high severity unless it is less.", `{}`), seed)
		var a struct {
			Issues []struct{ Issue, Severity string }
		}
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		for _, i := range a.Issues {
			found++
			if i.Issue == "" || i.Severity != "low" && i.Severity != "high" {
				t.Error(text)
			}
		}
	}
	if found < 20 || found > 100 {
		t.Errorf("%d issues in 500 checks", found)
	}
}

// TestTakesAnything checks that the answer to any prompt is JSON without a null.
func TestTakesAnything(t *testing.T) {
	t.Parallel()
	for _, goal := range []string{"...", "", "Émigrer", "\xff", strings.Repeat("x", 5000)} {
		for _, name := range []string{"public_statement", "reply", "accept", "joint_statement", "action", "key_changes", "summary"} {
			for seed := range uint64(20) {
				user := "# You are \nThe goals you set out with:\n- " + goal + "\n## Done in turn 1\n\n# Turn 99999999999999999999 of 5"
				text, ok := standInReply("", scenarioAsk(stageText+"\n> 999999999999999999999999999999 percent", user, `{"properties":{"messages":{"maxItems":9,"items":{"properties":{"to":{"enum":["a"]}}}},"`+name+`":{}}}`), seed)
				if !ok || !json.Valid([]byte(text)) || strings.Contains(text, ":null") {
					t.Fatalf("%s: %q", name, text)
				}
			}
		}
	}
}
