package rubric

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
)

// Rubric is questions for judges, as params of a plan.
type Rubric struct {
	Questions map[string]Question `json:"questions" doc:"Questions for the judges or the seats, by the name of the score."`
	Judges    []string            `json:"judges" doc:"The seats of the judges: each of them answers every question that is for judges. Default: one, with the name judge, if there are such questions."`
	Intro     string              `json:"intro" doc:"What judges read first."`
	MaxText   int                 `json:"max_text" doc:"The most characters of an episode that judges read. The middle of a longer one is left out." range:"1000..10000000"`
	Read      string              `json:"read,omitempty" doc:"What judges read: answers (what the seats answered), messages (also what is new in each question to them), or all (also thoughts, acts with their results, failures and the notes of the world). Default: answers." oneof:",answers,messages,all"`
	Order     []string            `json:"order" doc:"The names of the questions in the order in which they are asked. parley score sets it to that of the plan file."`
}

// Question is asked of each judge, or of each seat. An answer is yes or no, unless there is a scale, there are choices or it is a text.
type Question struct {
	Ask        string   `json:"ask" doc:"The question. {seat} in it is the seat that it is about." filled:"true"`
	By         string   `json:"by,omitempty" doc:"Who answers: the judges, or the seat itself from where it stood at the end of the episode. Default: judges. The seat answers only in parley score." oneof:",judges,seat"`
	Per        string   `json:"per,omitempty" doc:"What it is about: each seat, or the whole episode. Default: seat." oneof:",seat,episode"`
	Scale      []int    `json:"scale,omitempty" doc:"The lowest and the highest answer, such as [1, 5]."`
	Choices    []string `json:"choices,omitempty" doc:"The answers to choose from. Each call has them in another order."`
	Categories int      `json:"categories,omitempty" doc:"The judges choose a category of the answer, of at most so many that the first judge makes of a sample. With choices, those are the categories. Only in parley score." range:"2..20"`
	Text       bool     `json:"text,omitempty" doc:"The answer is a text. It is recorded and gives no score."`
}

// BySeat is the value of by with which seats answer themselves.
const BySeat = "seat"

// The other values of by, and those of per.
const (
	byJudges   = "judges"
	perSeat    = "seat"
	perEpisode = "episode"
)

// Judge is the seat of the only judge, and the label of the calls of all judges.
const Judge = "judge"

// limits of a plan.
const (
	maxJudges  = 20
	maxChoices = 50
	maxScale   = 1000
)

// Default returns a rubric without questions.
func Default() Rubric {
	return Rubric{Questions: map[string]Question{}, Judges: []string{}, Order: []string{}, Intro: Intro, MaxText: 100_000}
}

// Asks reports whether there are questions that are answered by the judges, or by the seats.
func (r *Rubric) Asks(by string) bool { return len(r.about(by, "")) > 0 }

// Seats returns the seats of the judges.
func (r *Rubric) Seats() []string {
	if len(r.Judges) == 0 && r.Asks(byJudges) {
		return []string{Judge}
	}
	return slices.Clone(r.Judges)
}

var name = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// CheckName checks the name of a score.
func CheckName(c *world.ParamErrors, param, n string) {
	if !name.MatchString(n) {
		c.Addf(param, "the name %.40q: want letters, digits, - and _, and a letter first", n)
	}
}

// Check reports what is wrong. in is the param with the rubric, with a dot at its end if it is not empty. Names that are taken are
// those of other scores.
func (r *Rubric) Check(c *world.ParamErrors, in string, taken func(name string) bool) {
	if len(r.Judges) > maxJudges {
		c.Addf(in+"judges", "%d judges: want at most %d", len(r.Judges), maxJudges)
	}
	for i, j := range r.Judges {
		if !name.MatchString(j) || slices.Contains(r.Judges[:i], j) {
			c.Addf(fmt.Sprintf("%sjudges[%d]", in, i), "%.40q: want a new word of letters, digits, - and _", j)
		}
	}
	if len(r.Judges) > 0 && !r.Asks(byJudges) {
		c.Addf(in+"judges", "there are no questions for them: add questions")
	}
	for _, n := range slices.Sorted(maps.Keys(r.Questions)) {
		CheckName(c, in+"questions", n)
		if taken(n) || n == Reason {
			c.Addf(in+"questions."+n, "the name %s is taken: want another", n)
		}
		r.Questions[n].check(c, in+"questions."+n)
	}
}

func (q Question) check(c *world.ParamErrors, param string) {
	switch {
	case q.by() == BySeat && q.per() == perEpisode:
		c.Addf(param+".per", "a seat answers for itself: remove per, or by: seat")
	case q.Categories > 0 && (q.Text || len(q.Scale) > 0 || q.by() == BySeat):
		c.Addf(param+".categories", "judges choose a category: remove text, scale and by: seat")
	case q.Text && len(q.Scale)+len(q.Choices) > 0:
		c.Addf(param+".text", "a text has no scale and no choices: remove them, or text")
	case len(q.Scale) > 0 && len(q.Choices) > 0:
		c.Addf(param+".scale", "want a scale or choices, not both")
	case len(q.Scale) > 0 && (len(q.Scale) != 2 || q.Scale[0] >= q.Scale[1] || q.Scale[0] < -maxScale || q.Scale[1] > maxScale):
		c.Addf(param+".scale", "%v: want the lowest and the highest answer, such as [1, 5], within ±%d", q.Scale, maxScale)
	case len(q.Choices) == 1 || len(q.Choices) > maxChoices:
		c.Addf(param+".choices", "%d choices: want 2 to %d", len(q.Choices), maxChoices)
	}
	for i, s := range q.Choices {
		if s == "" || slices.Contains(q.Choices[:i], s) {
			c.Addf(fmt.Sprintf("%s.choices[%d]", param, i), "%.40q: want a new text", s)
		}
	}
}

func (q Question) per() string { return cmp.Or(q.Per, perSeat) }

func (q Question) by() string { return cmp.Or(q.By, byJudges) }

// bounds returns the possible values of an answer that is a number.
func (q Question) bounds() world.Bounds {
	if len(q.Scale) != 2 {
		return world.Share()
	}
	return world.Bounds{Low: float64(q.Scale[0]), High: float64(q.Scale[1])}
}

// Scores returns the scores that an answer to the question with this name gives: one, or for choices one for each, which is 1 for the
// chosen one. A text gives none, and neither do categories that are not known yet.
func (q Question) Scores(name string, answer float64) []world.Score {
	if q.Text || q.Categories > 0 && len(q.Choices) == 0 {
		return nil
	}
	if len(q.Choices) == 0 {
		return []world.Score{{Name: name, Value: answer}}
	}
	all := make([]world.Score, len(q.Choices))
	for k, c := range q.Choices {
		all[k] = world.Score{Name: choiceName(name, c), Value: exhibit.Indicator(int(answer) == k)}
	}
	return all
}

// choiceName names the score of a choice.
func choiceName(question, choice string) string { return question + ": " + choice }

// Measures lists the scores.
func (r *Rubric) Measures() (all []world.Measure) {
	for _, n := range slices.Sorted(maps.Keys(r.Questions)) {
		for _, s := range r.Questions[n].Scores(n, 0) {
			all = append(all, world.Measure{Name: s.Name, Bounds: r.Questions[n].bounds()})
		}
	}
	return all
}

// about lists the questions by who answers and what they are about, if per is not empty.
func (r *Rubric) about(by, per string) (all []string) {
	for _, n := range slices.Concat(r.Order, slices.Sorted(maps.Keys(r.Questions))) { // those that have no order are at the end
		q, ok := r.Questions[n]
		if ok && q.by() == by && (per == "" || q.per() == per) && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// Rating is the answer of one judge, or of a seat, to one question.
type Rating struct {
	Question string  `json:"question"`
	Seat     string  `json:"seat,omitempty"` // what it is about; empty: the whole episode
	Judge    string  `json:"judge"`          // who answers: the seat of a judge or, in an interview, of an agent
	Value    float64 `json:"value"`          // with choices: the number of the choice in the plan
	Text     string  `json:"text,omitempty"` // the answer to a question for a text, or the reason for a category
	// Again means that the judge chose a category for the second time. It is not part of the score.
	Again bool `json:"again,omitempty"`
	// Position is where the choice was in the list that the judge saw, from 1. 0: there was no list.
	Position int `json:"position,omitempty"`
	// Length is how many characters the seat wrote, or all seats together.
	Length int `json:"length"`
}

// Call is one call: the questions about one subject for one judge, or for the seat itself.
type Call struct {
	Judge, Seat string
	Questions   []string
	// Things is how many things of the record are compared, which have the numbers from 1: what the ratings are about. The best of them
	// gets the highest answer, the worst the lowest, and the others lie evenly between. 0: nothing is compared.
	Things int
	// Stood is where the seat stood, if it answers itself: what it had read and said, and its tools.
	Stood *llm.Request
	Again bool // for the second time

	order map[string][]int // by question with choices: the order in which they are listed
	sheet Sheet
}

// Calls returns the calls of all judges, about the episode and about seats.
func (r *Rubric) Calls(seats []string) (all []Call) {
	for _, judge := range r.Seats() {
		all = append(all, Call{Judge: judge, Questions: r.about(byJudges, perEpisode)})
		for _, seat := range seats {
			all = append(all, Call{Judge: judge, Seat: seat, Questions: r.about(byJudges, perSeat)})
		}
	}
	return all
}

// Comparison returns the calls in which all judges put things in order.
func (r *Rubric) Comparison(things int) (all []Call) {
	for _, judge := range r.Seats() {
		all = append(all, Call{Judge: judge, Questions: r.about(byJudges, ""), Things: things})
	}
	return all
}

// Interview returns the call in which a seat answers itself.
func (r *Rubric) Interview(judge, seat string, stood *llm.Request) Call {
	return Call{Judge: judge, Seat: seat, Questions: r.about(BySeat, ""), Stood: stood}
}

// Interviewing is the label of the calls of seats that answer themselves.
const Interviewing = "interview"

const interviewIntro = "It is over. Here are questions about it for you. Answer them from where you stand now, with what you know and think. Nobody who took part sees your answers, and they change nothing."

// Ask makes the calls that have questions, all at once, and returns the answers that count. missing says why one does not.
func (r *Rubric) Ask(t *world.Table, record *Record, asks []Call) (ratings []Rating, missing string) {
	asks = slices.DeleteFunc(asks, func(a Call) bool { return len(a.Questions) == 0 })
	about := Sheet{Intro: r.Intro, Form: record.Form(), Record: record.Text(r.MaxText)}
	calls := make([]world.Call, len(asks))
	for i := range asks {
		calls[i] = r.call(t, about, &asks[i])
	}
	ratings = []Rating{}
	for i, reply := range t.Ask(calls...) {
		got, failed := r.read(t, &asks[i], reply, record)
		ratings, missing = append(ratings, got...), cmp.Or(missing, failed)
	}
	return ratings, missing
}

// call returns the call of a judge about a record, or of a seat.
func (r *Rubric) call(t *world.Table, about Sheet, a *Call) world.Call {
	if a.sheet = about; a.Stood != nil {
		a.sheet = Sheet{Intro: interviewIntro}
	}
	a.order = map[string][]int{}
	for _, n := range a.Questions {
		q := Item{Name: n, Question: r.Questions[n], Order: a.Things}
		q.Ask = strings.ReplaceAll(q.Ask, "{seat}", a.Seat)
		if k := len(q.Choices); k > 0 {
			a.order[n] = t.Rand().Perm(k)
			q.Choices = nil
			for _, k := range a.order[n] {
				q.Choices = append(q.Choices, r.Questions[n].Choices[k])
			}
		}
		a.sheet.Items = append(a.sheet.Items, q)
	}
	c := world.Call{Seat: a.Judge, Label: Judge, Ask: a.sheet.Request()}
	if a.Stood != nil {
		c.Label, c.Ask.Messages = Interviewing, slices.Concat(a.Stood.Messages, c.Ask.Messages)
		if len(a.Stood.Tools) > 0 { // some providers refuse messages about tools that they do not know
			c.Ask.Tools, c.Ask.ToolChoice = a.Stood.Tools, "none"
		}
	}
	return c
}

// read returns the ratings in an answer. A call that failed has none.
func (r *Rubric) read(t *world.Table, a *Call, reply world.Reply, record *Record) (all []Rating, missing string) {
	reason, answers, failed := a.sheet.Read(reply)
	if reason != "" {
		t.Note("reason", a.Judge, map[string]string{"about": a.Seat, "text": reason})
	}
	if failed != "" {
		return nil, a.Judge + ": " + failed
	}
	for _, n := range a.Questions {
		answer, ok := answers[n]
		if !ok {
			missing = cmp.Or(missing, fmt.Sprintf("%s: it has no valid answer to %s", a.Judge, n))
			continue
		}
		q, one := r.Questions[n], Rating{Question: n, Seat: a.Seat, Judge: a.Judge, Value: answer.Value, Text: answer.Text, Length: record.Length(a.Seat), Again: a.Again}
		if q.Categories > 0 {
			one.Text = reason
		}
		if order := a.order[n]; len(order) > 0 {
			one.Value, one.Position = float64(order[int(answer.Value)]), int(answer.Value)+1
		}
		if a.Things == 0 {
			all = append(all, one)
		}
		for place, number := range answer.Order {
			b := q.bounds()
			one.Seat, one.Value = fmt.Sprint(number), b.Low+(b.High-b.Low)*float64(a.Things-1-place)/float64(a.Things-1)
			one.Length = record.Length(one.Seat)
			all = append(all, one)
		}
	}
	return all, missing
}

// Tally returns a score for each question and subject, a seat or the empty episode: the mean of the judges or, for a choice, the share
// that chose it.
func (r *Rubric) Tally(subjects []string, ratings []Rating) (all []world.Score) {
	for _, n := range slices.Sorted(maps.Keys(r.Questions)) {
		for _, seat := range subjects {
			var scores []world.Score
			judges := 0.0
			for _, one := range ratings {
				if one.Question != n || one.Seat != seat || one.Again {
					continue
				}
				judges++
				for k, s := range r.Questions[n].Scores(n, one.Value) {
					if len(scores) == k {
						scores = append(scores, world.Score{Seat: seat, Name: s.Name})
					}
					scores[k].Value += s.Value
				}
			}
			for k := range scores {
				scores[k].Value /= judges
			}
			all = append(all, scores...)
		}
	}
	return all
}
