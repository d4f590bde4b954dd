package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/rules"
	"parley/worlds/rollout/training"
)

// Limits of the lessons of a run. Steps are those that a lesson tells.
const (
	maxLessonsPerEnv = 64
	maxMessageBytes  = 500
	maxLessonSteps   = 12
)

// lessonsOf returns the lessons of the run in j: those that it used, with their rewards added, and new ones of its
// best episodes. The same run gives the same lessons. An episode that failed, or got no more than the mean of
// its environment, gives none, and only the episodes that give lessons are read whole.
func lessonsOf(ctx context.Context, j journal.Journal) ([]rules.Lesson, error) {
	head, err := j.Head(ctx)
	switch {
	case err != nil:
		return nil, err
	case head.Begun == nil:
		return nil, errors.New("experience: the file holds no run yet")
	case head.Begun.Kind != kindName:
		return nil, fmt.Errorf("experience: a run of %s teaches nothing: want a run of rollout", head.Begun.Kind)
	}
	r := &lessonReader{head: head, uses: map[string][]float64{}, byEnv: map[string][]played{}, waiting: map[int]unrewarded{}}
	if err := r.fold(ctx, j); err != nil {
		return nil, err
	}
	out := r.usedLessons()
	for _, env := range slices.Sorted(maps.Keys(r.byEnv)) {
		for _, p := range aboveMean(r.byEnv[env]) {
			entries, err := journal.Episode(ctx, j, p.episode)
			if err != nil {
				return nil, err
			}
			out = append(out, rules.Lesson{
				Name: fmt.Sprintf("%s-%d", head.Begun.Run, p.episode), Env: env, Reward: p.reward, Text: p.text(entries),
			})
		}
	}
	if len(out) == 0 {
		return nil, errors.New("experience: the run teaches nothing: no episode was paid more than the others of its environment")
	}
	return out, nil
}

// lessonReader reads a run.
type lessonReader struct {
	head  *journal.Head
	uses  map[string][]float64 // rewards of the episodes that got a lesson, by its name
	byEnv map[string][]played
	// waiting are episodes whose rewards come with a judgement of their group, by number.
	waiting map[int]unrewarded
}

// unrewarded is an episode without its reward.
type unrewarded struct {
	played

	env     string
	lessons []string
}

// played is an episode that did not fail.
type played struct {
	episode, attempt int
	seat             string // whose reward it is
	reward           float64
	steps            []rules.Row
}

// fold reads the outcomes in episode order.
func (r *lessonReader) fold(ctx context.Context, j journal.Journal) error {
	return r.head.Ended.Outcomes(ctx, j, 0, world.MaxEpisodes, func(e *journal.Ended) error {
		raw, _ := e.Outcome.Data.(json.RawMessage)
		var d rules.Data
		i := slices.IndexFunc(e.Outcome.Scores, func(s world.Score) bool { return s.Name == "reward" })
		if e.Outcome.Failed != "" || json.Unmarshal(raw, &d) != nil {
			return nil
		}
		of := unrewarded{played{episode: e.Episode, attempt: e.Attempt, steps: d.Rows}, d.Env, d.Experience}
		switch {
		case d.Judgement != nil:
			for _, v := range d.Judgement.Verdicts {
				if was, ok := r.waiting[v.Episode]; ok {
					delete(r.waiting, v.Episode)
					r.addReward(was, v.Seat, v.Reward)
				}
			}
		case i < 0:
			r.waiting[e.Episode] = of
		default:
			r.addReward(of, e.Outcome.Scores[i].Seat, e.Outcome.Scores[i].Value)
		}
		return nil
	})
}

// addReward adds an episode with its reward.
func (r *lessonReader) addReward(e unrewarded, seat string, reward float64) {
	for _, name := range e.lessons {
		r.uses[name] = append(r.uses[name], reward)
	}
	e.seat, e.reward = seat, reward
	r.byEnv[e.env] = append(r.byEnv[e.env], e.played)
}

// usedLessons returns the lessons that the run used, with the rewards of their uses.
func (r *lessonReader) usedLessons() (out []rules.Lesson) {
	var plan struct {
		Params struct{ Experience rules.Experience }
	}
	if json.Unmarshal(r.head.Begun.Plan, &plan) != nil {
		return nil
	}
	for line := range strings.Lines(plan.Params.Experience.Lessons) {
		var l rules.Lesson
		if json.Unmarshal([]byte(line), &l) != nil {
			continue
		}
		if paid := r.uses[l.Name]; len(paid) > 0 {
			sum := 0.0
			for _, x := range paid {
				sum += x
			}
			before := float64(l.Uses)
			l.Uses += len(paid)
			l.Reward = (l.Reward*before + sum) / float64(l.Uses)
		}
		out = append(out, l)
	}
	return out
}

// aboveMean returns the episodes to learn from: those above the mean, the highest reward first.
func aboveMean(all []played) (out []played) {
	mean := 0.0
	for _, p := range all {
		mean += p.reward / float64(len(all))
	}
	for _, p := range all {
		if p.reward > mean {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b played) int { return cmp.Compare(b.reward, a.reward) })
	return out[:min(len(out), maxLessonsPerEnv)]
}

// text describes the first question, the answers and their rewards.
func (p played) text(entries []journal.Entry) string {
	asks := training.Asks(entries, p.attempt)
	var b strings.Builder
	paid := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	n := 0
	for _, row := range p.steps {
		if row.Seat != p.seat || row.Ask < 0 || row.Ask >= len(asks) || asks[row.Ask].Response == nil {
			continue
		}
		if n++; n == 1 {
			b.WriteString("Asked: " + shortMessage(lastQuestion(asks[row.Ask].Request)) + "\n")
		}
		if n > maxLessonSteps {
			b.WriteString("…\n")
			break
		}
		fmt.Fprintf(&b, "Answered: %s\nThat paid %s.\n", shortMessage(asks[row.Ask].Response.Text), paid(row.StepReward))
	}
	fmt.Fprintf(&b, "In all it paid %s.", paid(p.reward))
	return b.String()
}

// lastQuestion returns the last user message of a request.
func lastQuestion(r *llm.Request) string {
	if r == nil {
		return "" // a bot's
	}
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == llm.RoleUser {
			return m.Text()
		}
	}
	return ""
}

func shortMessage(text string) string { return world.Shorten(strings.TrimSpace(text), maxMessageBytes) }

// lessonFiles are files that can also read the lessons of run files, if the files can open runs.
type lessonFiles struct{ world.Files }

// Rows returns the rows of a file.
func (f lessonFiles) Rows(name string) iter.Seq2[json.RawMessage, error] {
	if r, ok := f.Files.(world.RowReader); ok {
		return r.Rows(name)
	}
	return func(yield func(json.RawMessage, error) bool) {
		yield(nil, fmt.Errorf("%s: rows cannot be read here", name))
	}
}

// Lessons returns the lessons of a run file, each as JSON.
func (f lessonFiles) Lessons(name string) (rows []json.RawMessage, err error) {
	opener, ok := f.Files.(journal.Opener)
	if !ok {
		return nil, fmt.Errorf("%s: run files cannot be read here", name)
	}
	run, err := opener.OpenRun(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	all, err := lessonsOf(context.Background(), run) // the files end it with the loading of the plan
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, l := range all {
		row, err := json.Marshal(l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

var (
	_ world.RowReader    = lessonFiles{}
	_ rules.LessonReader = lessonFiles{}
)
