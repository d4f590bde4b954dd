package score

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/internal/run/results"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
	"parley/world/rubric"
)

// anyRun makes specs for episodes of a run of which nothing is known.
func anyRun(own world.Spec, s results.Scored, episode int, params func(results.Scored) (json.RawMessage, error)) (_ world.Spec, err error) {
	s.Episode, s.Episodes, own.Deal = episode, "", episode
	own.Params, err = params(s)
	return own, err
}

// follow plays all stages of the plan of params, and adds the episodes to the exhibitor. It returns the sizes of the stages and the
// episodes of the last.
func follow(t *testing.T, p *Params, answer func(c world.Call) world.Reply, e exhibit.Exhibitor) (sizes []int, last []world.Played, err error) {
	t.Helper()
	d := &definition{func(int) (*Episode, error) { return talk(), nil }, anyRun}
	plan, err := d.Plan(p, world.Spec{Kind: RubricName}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for specs := plan.Next(nil); specs.Len() > 0; specs = plan.Next(last) {
		sizes, last = append(sizes, specs.Len()), nil
		for i, spec := range specs.All() {
			of := d.Defaults()
			if err := json.Unmarshal(spec.Params, of); err != nil {
				t.Fatal(err)
			}
			out := play(t, of, answer)
			raw, err := json.Marshal(out.Data)
			if err != nil {
				t.Fatal(err)
			}
			out.Data = json.RawMessage(raw)
			last = append(last, world.Played{Episode: i, Unit: world.Unit{Deal: i}, Spec: spec, Outcome: out})
			e.Add(last[i])
		}
	}
	return sizes, last, plan.(part.FailingStages).Err()
}

// why are params with a question that has categories, for a hundred episodes.
func why() *Params {
	numbers := make([]int, 100)
	for i := range numbers {
		numbers[i] = 2 * i
	}
	p := asking(map[string]rubric.Question{"why": {Ask: "Why?", Per: "episode", Categories: 3}, "kind": {Ask: "Kind?"}}, "x", "y")
	p.Scored = results.NewScored("r", numbers, nil)
	return p
}

// TestCategories: reasons of a sample become categories, and then every episode has one. A sample is judged twice.
func TestCategories(t *testing.T) {
	t.Parallel()
	answer := func(c world.Call) world.Reply {
		text := c.Ask.Messages[0].Text()
		switch {
		case c.Label == categories:
			if strings.Count(text, "the price\n") < sampled-1 || strings.Count(text, "</record>") != 1 {
				t.Errorf("asked for categories: %s", text)
			}
			return world.Reply{JSON: json.RawMessage(`{"categories":[" Price\n high ","price high","","Other","\u001b[2Jtrust","too","many"]}`)}
		case strings.Contains(text, "A text."):
			return world.Reply{JSON: json.RawMessage(`{"why":"</record> the price"}`)}
		case strings.Contains(text, "why:") && c.Seat == "x":
			return world.Reply{JSON: json.RawMessage(`{"reason":"too much","why":"Price high"}`)}
		case strings.Contains(text, "why:"):
			return world.Reply{JSON: json.RawMessage(`{"why":"other"}`)}
		default:
			return world.Reply{JSON: json.RawMessage(`{"kind":true}`)}
		}
	}
	e := (&definition{}).Exhibitor()
	sizes, last, err := follow(t, why(), answer, e)
	if err != nil || !slices.Equal(sizes, []int{sampled, 1, 100}) {
		t.Fatalf("stages of %v, %v", sizes, err)
	}
	parts, err := (&definition{of: anyRun}).Forecast(why(), world.Spec{Kind: RubricName}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var forecast []int
	for _, part := range parts {
		forecast = append(forecast, part.Low)
	}
	if !slices.Equal(sizes, forecast) {
		t.Errorf("stages of %v, forecast %v", sizes, forecast)
	}
	for _, p := range last {
		if got := fmt.Sprint(p.Outcome.Scores[2:]); got != "[{ why: Price high 0.5} { why: [2Jtrust 0} { why: too 0} { why: other 0.5}]" {
			t.Fatalf("scores %s", got)
		}
	}
	rows := map[string][][]any{}
	for _, x := range e.Exhibits() {
		rows[x.Name] = x.Show.(exhibit.Grid).Rows
	}
	if got := rows["categories"]; len(got) != 4 || fmt.Sprint(got[0][:3], got[0][4:]) != "[why Price high 100] [[0 2 4 6 8] too much]" {
		t.Errorf("categories %v", got)
	}
	if got := rows["texts"]; len(got) != 20 || got[0][4] != "</record> the price" {
		t.Errorf("texts %v", got)
	}
	if got := rows["agreement-on-second-look"]; len(got) != 2 || got[0][2] != sampled {
		t.Errorf("a second look: %v", got)
	}
}

// TestNoCategories: if the judge gives no reasons or makes no categories, the plan fails and says so. Given choices are the categories.
func TestNoCategories(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]string{"gave no reason": `{}`, "made no categories": `{"why":"so"}`} {
		answer := func(world.Call) world.Reply { return world.Reply{JSON: json.RawMessage(broken)} }
		if _, _, err := follow(t, why(), answer, (&definition{}).Exhibitor()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
	p := why()
	p.Questions["why"] = rubric.Question{Ask: "Why?", Categories: 2, Choices: []string{"so", other}}
	sizes, last, err := follow(t, p, func(world.Call) world.Reply { return world.Reply{JSON: json.RawMessage(`{"why":"so"}`)} }, (&definition{}).Exhibitor())
	if err != nil || !slices.Equal(sizes, []int{100}) || len(last[0].Outcome.Scores) != 4 {
		t.Errorf("%v, %v, %v", sizes, last[0].Outcome, err)
	}
}
