package score

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sort"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// Text is what a judge, or a seat itself, wrote about an episode when it was asked afterwards.
type Text struct {
	Scorer   string `json:"scorer"`
	Question string `json:"question"`
	Seat     string `json:"seat,omitempty"`  // what it is about; empty: the whole episode
	Agent    string `json:"agent,omitempty"` // who wrote it
	Model    string `json:"model,omitempty"`
	Text     string `json:"text"`
}

// By says who wrote it, and about whom.
func (t Text) By() string {
	by := "by " + t.Agent
	if t.Model != "" && t.Model != t.Agent {
		by += " (" + t.Model + ")"
	}
	if t.Seat != "" {
		by += ", about " + t.Seat
	}
	return by
}

// maxText is how many bytes of a text are read.
const maxText = 20_000

// Texts returns the texts that were written about an episode of the run in a file, scorer by scorer. id is the id of the run.
func Texts(ctx context.Context, file, id string, episode int) (all []Text, err error) {
	err = each(file, func(of, scorer string) error {
		texts, err := textsOf(ctx, of, scorer, id, episode)
		all = append(all, texts...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// textsOf returns the texts of one scorer.
func textsOf(ctx context.Context, file, name, id string, episode int) (all []Text, err error) {
	err = outcomes(ctx, file, id, []int{episode}, func(b *journal.Begun, spec world.Spec, _ int, o world.Outcome) {
		all = append(all, written(name, spec, b.Agents, textQuestions(b), o)...)
	})
	return all, err
}

// outcomes calls f with the complete outcomes of the episodes of a scorer that score these episodes of the run with this id.
func outcomes(ctx context.Context, file, id string, episodes []int, f func(b *journal.Begun, spec world.Spec, episode int, o world.Outcome)) (err error) {
	store, err := runfile.OpenRead(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	about, err := store.Outline(ctx)
	if err != nil || about.Begun == nil {
		return err
	}
	what, err := Of(about.Begun)
	if err != nil || what.Run != id || len(planQuestions(about.Begun)) == 0 {
		return err
	}
	head, err := store.Head(ctx)
	if err != nil {
		return err
	}
	for _, episode := range episodes {
		for _, st := range head.Stages { // several, if the scores have grown, or there are categories
			place := sort.Search(st.Specs.Len(), func(i int) bool { return st.Specs.At(i).Deal >= episode }) // see Scored.Of
			if place == st.Specs.Len() {
				continue
			}
			spec := st.Specs.At(place)
			if of, err := scoredOf(spec.Params); err != nil || of.Episode != episode {
				continue
			}
			ended, err := head.Ended.Outcome(ctx, store, st.First+place)
			if err != nil {
				return err
			}
			if ended != nil {
				f(about.Begun, spec, episode, ended.Outcome)
			}
		}
	}
	return nil
}

// scoreAsked is a question of a scorer that is a plan file.
type scoreAsked struct {
	By      string   `json:"by"`
	Text    bool     `json:"text"`
	Choices []string `json:"choices"`
}

// questions returns the questions in params, by name. Other scorers have none.
func questions(params json.RawMessage) map[string]scoreAsked {
	var p struct {
		Questions map[string]scoreAsked `json:"questions"`
	}
	_ = json.Unmarshal(params, &p) // other params have none
	return p.Questions
}

// planQuestions returns the questions of a plan.
func planQuestions(b *journal.Begun) map[string]scoreAsked {
	var plan struct {
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(b.Plan, &plan) // Of has read it
	return questions(plan.Params)
}

// textQuestions returns the questions of a plan that are answered with a text.
func textQuestions(b *journal.Begun) (all []string) {
	for name, q := range planQuestions(b) {
		if q.Text {
			all = append(all, name)
		}
	}
	return all
}

// written returns the texts in an outcome.
func written(scorer string, spec world.Spec, agents []world.Agent, questions []string, o world.Outcome) (all []Text) {
	var data struct {
		Ratings []struct{ Question, Seat, Judge, Text string }
	}
	raw, _ := o.Data.(json.RawMessage)
	_ = json.Unmarshal(raw, &data) // what cannot be read is not shown
	for _, r := range data.Ratings {
		if r.Text == "" || !slices.Contains(questions, r.Question) {
			continue
		}
		t := Text{Scorer: scorer, Question: r.Question, Seat: r.Seat, Agent: spec.Lineup[r.Judge], Text: world.Shorten(r.Text, maxText)}
		if i := slices.IndexFunc(agents, func(a world.Agent) bool { return a.Name == t.Agent }); i >= 0 {
			t.Model = agents[i].Model
		}
		all = append(all, t)
	}
	return all
}
