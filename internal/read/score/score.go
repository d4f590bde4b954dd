// Package score reads the scores that were added to a run after it was played: those of the runs of scorers, which are in a
// folder beside the run file. It also writes episodes as scorers get them, and has the scorer that is a plan file: the kind rubric.
//
// The run of a scorer is an ordinary run file, with an episode for each episode that is scored. Read is the one place
// where its scores become scores of the run that it scored.
//
// The kind rubric scores by rules and by judges. A rule (rule.go) is a regular expression, a field of answers, or an expression. Judges
// are asked by package world/rubric; here are the record of the episode that they get (reading.go), and what only scores have: judges find
// the categories of answers themselves (categories.go), and the seats of the episode can answer questions too. An interview continues
// what a seat itself was asked and answered.
package score

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/rubric"
)

// ext is the ending of run files.
const ext = ".parley"

// Folder returns the folder with the runs that score a run.
func Folder(run string) string { return strings.TrimSuffix(run, ext) + ".scores" }

// File returns the run file of a scorer.
func File(run, scorer string) string { return filepath.Join(Folder(run), scorer+ext) }

// Origin returns the run file whose scores are in the run file of a scorer.
func Origin(file string) string { return strings.TrimSuffix(filepath.Dir(file), ".scores") + ext }

// Set is the scores that were added to a run.
type Set struct {
	// By maps episodes to their scores. The names are those of the scorer and the measure: Politeness.polite.
	By map[int][]world.Score
	// Bounds are the possible values, by name.
	Bounds map[string]world.Bounds
}

// Of returns the scores of an episode: those of its outcome, and those that were added.
func (s *Set) Of(episode int, o world.Outcome) []world.Score {
	return append(slices.Clip(o.Scores), s.By[episode]...)
}

// Read reads the scores that were added to the run in a file. id is the id of the run: scores of another run are left out.
// Episodes that the scorer failed to score have none.
func Read(ctx context.Context, file, id string) (*Set, error) {
	set := &Set{By: map[int][]world.Score{}, Bounds: map[string]world.Bounds{}}
	err := each(file, func(of, scorer string) error { return set.add(ctx, of, scorer, id) })
	if err != nil {
		return nil, err
	}
	return set, nil
}

// each calls f with the run file and the name of each scorer of the run in a file.
func each(file string, f func(of, scorer string) error) error {
	all, err := os.ReadDir(Folder(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("score: %w", err)
	}
	for _, one := range all {
		scorer, ok := strings.CutSuffix(one.Name(), ext)
		if !ok || !one.Type().IsRegular() {
			continue
		}
		if err := f(File(file, scorer), scorer); err != nil {
			return fmt.Errorf("score: %s: %w", one.Name(), err)
		}
	}
	return nil
}

// add adds the scores of one file.
func (s *Set) add(ctx context.Context, file, name, id string) (err error) {
	store, err := runfile.OpenRead(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	head, err := store.Head(ctx)
	if err != nil || head.Begun == nil {
		return err
	}
	what, err := results.ScoredOf(head.Begun)
	if err != nil || what.Run != id {
		return err
	}
	for _, m := range what.Measures {
		s.Bounds[name+"."+m.Name] = m.Bounds
	}
	for spec, ended := range head.Played() {
		of, err := results.ScoredIn(spec.Params)
		if err != nil {
			return err
		}
		if len(of.Measures) != len(what.Measures) { // some were found while scoring
			for _, m := range of.Measures {
				s.Bounds[name+"."+m.Name] = m.Bounds
			}
		}
		for _, one := range ended.Outcome.Scores {
			one.Name = name + "." + one.Name
			s.By[of.Episode] = append(s.By[of.Episode], one)
		}
	}
	return nil
}

// Merge adds the scores that are attached to a run, with other numbers of episodes. ok is false for an episode to leave out.
func (s *Set) Merge(r *results.Run, number func(episode int) (n int, ok bool)) {
	for episode, all := range r.Added {
		if n, ok := number(episode); ok {
			s.By[n] = all
		}
		for _, one := range all {
			s.Bounds[one.Name] = r.Bounds[one.Name]
		}
	}
}

// Attach adds scores to a run. Call it after Know.
func (s *Set) Attach(r *results.Run) {
	r.Added = s.By
	maps.Copy(r.Bounds, s.Bounds)
}

// Judged are scores by single judges, by episode.
type Judged map[int][]JudgeScore

// JudgeScore is a score by one judge.
type JudgeScore struct {
	Judge string
	world.Score
}

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
	known := questions(spec.Params)
	for _, r := range dataOf(o).Ratings { // what cannot be read is not compared
		q, ok := known[r.Question]
		if !ok || q.By == rubric.BySeat || r.Again {
			continue
		}
		for _, one := range q.Scores(r.Question, r.Value) {
			one.Seat, one.Name = r.Seat, scorer+"."+one.Name
			all = append(all, JudgeScore{Judge: r.Judge, Score: one})
		}
	}
	return all
}

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
		all = append(all, textsIn(name, spec, b.Agents, textQuestions(b), o)...)
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
	what, err := results.ScoredOf(about.Begun)
	if err != nil || what.Run != id || len(planQuestions(about.Begun)) == 0 {
		return err
	}
	head, err := store.Head(ctx)
	if err != nil {
		return err
	}
	for _, episode := range episodes {
		for _, st := range head.Stages { // several, if the scores have grown, or there are categories
			place := sort.Search(st.Specs.Len(), func(i int) bool { return st.Specs.At(i).Deal >= episode }) // see Run.Scorable
			if place == st.Specs.Len() {
				continue
			}
			spec := st.Specs.At(place)
			if of, err := results.ScoredIn(spec.Params); err != nil || of.Episode != episode {
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

// questions returns the questions in params, by name. Other scorers have none.
func questions(params json.RawMessage) map[string]rubric.Question {
	var p struct {
		Questions map[string]rubric.Question `json:"questions"`
	}
	_ = json.Unmarshal(params, &p) // other params have none
	return p.Questions
}

// planQuestions returns the questions of a plan.
func planQuestions(b *journal.Begun) map[string]rubric.Question {
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

// textsIn returns the texts in an outcome.
func textsIn(scorer string, spec world.Spec, agents []world.Agent, questions []string, o world.Outcome) (all []Text) {
	for _, r := range dataOf(o).Ratings { // what cannot be read is not shown
		if r.Text == "" || !slices.Contains(questions, r.Question) {
			continue
		}
		t := Text{Scorer: scorer, Question: r.Question, Seat: r.Seat, Agent: spec.Lineup[r.Judge], Text: exhibit.Shorten(r.Text, maxText)}
		if i := slices.IndexFunc(agents, func(a world.Agent) bool { return a.Name == t.Agent }); i >= 0 {
			t.Model = agents[i].Model
		}
		all = append(all, t)
	}
	return all
}
