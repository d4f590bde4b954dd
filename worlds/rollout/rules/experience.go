package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
)

// Experience says which lessons from earlier episodes trained agents get.
type Experience struct {
	From     string   `json:"from" doc:"Source of the lessons: run files (.parley) of rollouts, or files of lessons (json, jsonl, yaml, parquet). A pattern, such as runs/*.parley, may match several. Empty: no lessons."`
	Pick     string   `json:"pick" doc:"How lessons are chosen: best takes those with the highest reward; ucb also tries lessons with few uses; random draws them." oneof:"best,ucb,random"`
	Count    int      `json:"count" doc:"Number of lessons for an episode: 1 to 20."`
	Template string   `json:"template" doc:"Text that follows the system message; {lessons} is replaced by the lessons."`
	Lessons  string   `json:"lessons" doc:"Lessons of the files, one on a line; set when the plan is read."`
	Picked   []Lesson `json:"lessons_used,omitempty" doc:"Lessons of the episode; set for each episode."`
}

// The ways to pick lessons.
const (
	PickBest   = "best"
	PickUCB    = "ucb"
	PickRandom = "random"
)

// Lesson is a text for agents.
type Lesson struct {
	Name string `json:"name"`
	// Env is the environment it is about. Empty: all.
	Env  string `json:"env,omitempty"`
	Text string `json:"text"`
	// Uses is how many episodes got it, and Reward their mean reward. Without uses, Reward is that of the
	// episode it was taken from.
	Uses   int     `json:"uses,omitempty"`
	Reward float64 `json:"reward,omitempty"`
}

// Limits on lessons.
const (
	maxLessons     = 100_000
	maxLessonBytes = 256 << 20
	keptLessons    = 256
	maxCount       = 20
	maxLesson      = 8000
	lessonsMark    = "{lessons}"
)

// LessonReader is implemented by Files that can read the lessons of a run.
type LessonReader interface {
	// Lessons returns the lessons of a run file, each as JSON.
	Lessons(name string) ([]json.RawMessage, error)
}

func (p *Params) checkExperience(c *world.ParamErrors) {
	x := p.Experience
	c.OneOf("experience.pick", x.Pick, []string{PickBest, PickUCB, PickRandom})
	c.IntRange("experience.count", x.Count, 1, maxCount)
	c.Braces("experience.template", x.Template, lessonsMark)
	if !strings.Contains(x.Template, lessonsMark) {
		c.Addf("experience.template", "does not say where the lessons go: want %s in it", lessonsMark)
	}
}

// loadLessons loads the lessons of the files: those with the highest reward, each once.
func (p *Params) loadLessons(files world.Files) error {
	x := &p.Experience
	if x.From == "" {
		return nil
	}
	names := files.Match(x.From)
	if len(names) == 0 {
		return paramErrorf("experience.from", "no file matches %s", x.From)
	}
	merged := map[string]Lesson{}
	bytes := 0
	for _, name := range names {
		n := 0
		for row, err := range lessonRows(files, name) {
			if err != nil {
				return paramErrorf("experience.from", "%v", err)
			}
			n++
			l, err := readLesson(row, fmt.Sprintf("%s row %d", path.Base(name), n))
			if err != nil {
				return paramErrorf("experience.from", "%s: row %d: %v", name, n, err)
			}
			merged[l.Name] = l.join(merged[l.Name])
			if bytes += len(row); bytes > maxLessonBytes || len(merged) > maxLessons {
				return paramErrorf("experience.from", "%s: row %d: the lessons up to here are more than %d, or %d MiB: name fewer files", name, n, maxLessons, maxLessonBytes>>20)
			}
		}
	}
	var all []Lesson
	for _, l := range merged {
		all = append(all, l)
	}
	slices.SortFunc(all, byReward)
	var out strings.Builder
	for _, l := range all[:min(len(all), keptLessons)] {
		line, err := json.Marshal(l)
		if err != nil {
			return paramErrorf("experience.from", "lesson %s: %v", l.Name, err)
		}
		out.Write(append(line, '\n'))
	}
	x.Lessons = out.String()
	return nil
}

func lessonRows(files world.Files, name string) iter.Seq2[json.RawMessage, error] {
	if path.Ext(name) == ".parley" {
		reader, ok := files.(LessonReader)
		if !ok {
			return failedRows(fmt.Errorf("%s: run files cannot be read here", name))
		}
		rows, err := reader.Lessons(name)
		if err != nil {
			return failedRows(err)
		}
		return func(yield func(json.RawMessage, error) bool) {
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
	reader, ok := files.(world.RowReader)
	if !ok {
		return failedRows(fmt.Errorf("%s: files of lessons cannot be read here", name))
	}
	return reader.Rows(name)
}

// failedRows returns an error instead of rows.
func failedRows(err error) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) { yield(nil, err) }
}

// readLesson reads a row of a file. unnamed is the name of a lesson without one.
func readLesson(row json.RawMessage, unnamed string) (l Lesson, err error) {
	var keys map[string]json.RawMessage
	if json.Unmarshal(row, &keys) != nil {
		return l, fmt.Errorf("want an object with a text")
	}
	known := []string{"name", "env", "text", "reward", "uses"}
	for key := range keys {
		if !slices.Contains(known, key) {
			meant := ""
			if near := world.Nearest(key, known); near != "" {
				meant = " (did you mean " + near + "?)"
			}
			return l, fmt.Errorf("unknown key %.40q%s: use %s", key, meant, strings.Join(known, ", "))
		}
	}
	if err := json.Unmarshal(row, &l); err != nil {
		return l, fmt.Errorf("want name, env and text as text, reward and uses as numbers: %w", err)
	}
	l.Name = cmp.Or(l.Name, unnamed)
	switch {
	case strings.TrimSpace(l.Text) == "":
		return l, fmt.Errorf("has no text")
	case len(l.Text) > maxLesson:
		return l, fmt.Errorf("text: has %d bytes: want at most %d", len(l.Text), maxLesson)
	case l.Uses < 0:
		return l, fmt.Errorf("uses: %d: want 0 or more", l.Uses)
	}
	return l, nil
}

// join combines what two files say about a lesson. The reward of its uses counts more than that of its source.
func (l Lesson) join(other Lesson) Lesson {
	switch {
	case other.Name == "" || other.Uses == 0:
		return l
	case l.Uses == 0:
		l.Uses, l.Reward = other.Uses, other.Reward
		return l
	}
	n := l.Uses + other.Uses
	l.Reward = (l.Reward*float64(l.Uses) + other.Reward*float64(other.Uses)) / float64(n)
	l.Uses = n
	return l
}

// byReward orders lessons by reward, highest first.
func byReward(a, b Lesson) int {
	return cmp.Or(cmp.Compare(b.Reward, a.Reward), cmp.Compare(b.Uses, a.Uses), cmp.Compare(a.Name, b.Name))
}

// lessons reads what learn wrote: the lessons about an environment, the best first.
func (x Experience) lessons(env string) (all []Lesson, err error) {
	n := 0
	for line := range strings.Lines(x.Lessons) {
		n++
		var l Lesson
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Text == "" {
			return nil, paramErrorf("experience.lessons", "line %d: want a lesson with name and text", n)
		}
		if l.Env == "" || l.Env == env {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, byReward)
	return all, nil
}

// withLessons returns x for the episodes of a task: with the lessons that they get.
func (x Experience) withLessons(env string, deal int, seed uint64) (Experience, error) {
	all, err := x.lessons(env)
	if err != nil {
		return x, err
	}
	x.Lessons, x.From = "", ""
	n := min(x.Count, len(all))
	switch x.Pick {
	case PickUCB:
		x.Picked = ucb(all, n, deal%maxRounds)
	case PickRandom:
		draw := rand.New(rand.NewPCG(seed, uint64(deal))).Perm(len(all))
		for _, i := range draw[:n] {
			x.Picked = append(x.Picked, all[i])
		}
	default:
		x.Picked = all[:n]
	}
	return x, nil
}

// maxRounds is after how many tasks the choice by ucb starts over.
const maxRounds = 1024

// ucb picks n lessons for a task by the upper confidence bound of their reward: the mean, scaled from the
// worst to the best of all, plus sqrt(2 ln N / n). Lessons that were never used come first. Uses by earlier
// tasks of the run count, their rewards do not: tasks are planned before they are played.
func ucb(all []Lesson, n, round int) []Lesson {
	low, high := math.Inf(1), math.Inf(-1)
	uses, total := make([]float64, len(all)), 0.0
	for i, l := range all {
		low, high = min(low, l.Reward), max(high, l.Reward)
		uses[i] = float64(l.Uses)
		total += uses[i]
	}
	bound := func(i int) float64 {
		if uses[i] == 0 {
			return math.Inf(1)
		}
		mean := 0.5
		if high > low {
			mean = (all[i].Reward - low) / (high - low)
		}
		return mean + math.Sqrt(2*math.Log(max(1, total))/uses[i])
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	for at := 0; ; at++ {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(bound(b), bound(a)), cmp.Compare(a, b)) })
		if at == round {
			break
		}
		for _, i := range order[:n] {
			uses[i]++
			total++
		}
	}
	var out []Lesson
	for _, i := range order[:n] {
		out = append(out, all[i])
	}
	return out
}

// addTo adds the lessons to the leading system message, or adds such a message.
func (x Experience) addTo(ms []llm.Message) []llm.Message {
	if len(x.Picked) == 0 {
		return ms
	}
	var texts []string
	for _, l := range x.Picked {
		texts = append(texts, l.Text)
	}
	text := strings.ReplaceAll(x.Template, lessonsMark, strings.Join(texts, "\n\n"))
	if len(ms) == 0 || ms[0].Role != llm.RoleSystem {
		return append([]llm.Message{llm.System(text)}, ms...)
	}
	first := ms[0]
	first.Parts = append(slices.Clone(first.Parts), llm.Part{Text: "\n\n" + text})
	return append([]llm.Message{first}, ms[1:]...)
}

// pickedNames returns the names of the lessons that were used.
func (x Experience) pickedNames() (out []string) {
	for _, l := range x.Picked {
		out = append(out, l.Name)
	}
	return out
}
