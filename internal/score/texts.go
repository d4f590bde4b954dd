package score

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sort"

	"parley/internal/store/sqlite"
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
	store, err := sqlite.OpenRead(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	about, err := store.Outline(ctx)
	if err != nil || about.Begun == nil {
		return nil, err
	}
	questions := textQuestions(about.Begun)
	what, err := Of(about.Begun)
	if err != nil || what.Run != id || len(questions) == 0 {
		return nil, err
	}
	head, err := store.Head(ctx)
	if err != nil {
		return nil, err
	}
	for _, st := range head.Stages { // several, if the scores have grown
		place := sort.Search(st.Specs.Len(), func(i int) bool { return st.Specs.At(i).Deal >= episode }) // see Scored.Of
		if place == st.Specs.Len() || st.Specs.At(place).Deal != episode {
			continue
		}
		if of, err := scoredOf(st.Specs.At(place).Params); err != nil || of.Episode != episode {
			continue // it is of an earlier version
		}
		ended, err := head.Ended.Outcome(ctx, store, st.First+place)
		if err != nil {
			return nil, err
		}
		if ended != nil {
			all = append(all, written(name, st.Specs.At(place), about.Begun.Agents, questions, ended.Outcome)...)
		}
	}
	return all, nil
}

// textQuestions returns the questions of a plan that are answered with a text.
func textQuestions(b *journal.Begun) (all []string) {
	var plan struct {
		Params struct {
			Questions map[string]struct {
				Text bool `json:"text"`
			} `json:"questions"`
		} `json:"params"`
	}
	_ = json.Unmarshal(b.Plan, &plan) // another kind has none
	for name, q := range plan.Params.Questions {
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
