package score

import (
	"context"
	"encoding/json"

	"parley/journal"
	"parley/world"
)

// Judged are scores by single judges, by episode.
type Judged map[int][]JudgeScore

// JudgeScore is a score by one judge.
type JudgeScore struct {
	Judge string
	world.Score
}

// choiceName names the score of a choice.
func choiceName(question, choice string) string { return question + ": " + choice }

// Judges reads what single judges said about some episodes of the run in a file, to compare each of them with people.
func Judges(ctx context.Context, file, id string, episodes []int) (Judged, error) {
	if len(episodes) == 0 {
		return nil, nil
	}
	all := Judged{}
	err := each(file, func(of, scorer string) error {
		return outcomes(ctx, of, id, episodes, func(_ *journal.Begun, spec world.Spec, episode int, o world.Outcome) {
			all[episode] = append(all[episode], judgedIn(scorer, spec, o)...)
		})
	})
	return all, err
}

// judgedIn returns the scores by single judges in an outcome.
func judgedIn(scorer string, spec world.Spec, o world.Outcome) (all []JudgeScore) {
	var data struct {
		Ratings []struct {
			Question, Seat, Judge string
			Value                 float64
			Again                 bool
		}
	}
	raw, _ := o.Data.(json.RawMessage)
	_ = json.Unmarshal(raw, &data) // what cannot be read is not compared
	known := questions(spec.Params)
	for _, r := range data.Ratings {
		q, ok := known[r.Question]
		if !ok || q.Text || q.By == "seat" || r.Again {
			continue
		}
		add := func(name string, value float64) {
			all = append(all, JudgeScore{Judge: r.Judge, Score: world.Score{Seat: r.Seat, Name: scorer + "." + name, Value: value}})
		}
		if len(q.Choices) == 0 {
			add(r.Question, r.Value)
		}
		for k, c := range q.Choices {
			value := 0.0
			if int(r.Value) == k {
				value = 1
			}
			add(choiceName(r.Question, c), value)
		}
	}
	return all
}
