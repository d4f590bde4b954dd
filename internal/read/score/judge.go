package score

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
)

// Rating is the answer of one judge, or of a seat, to one question.
type Rating struct {
	Question string  `json:"question"`
	Seat     string  `json:"seat,omitempty"` // what it is about; empty: the whole episode
	Judge    string  `json:"judge"`          // who answers: a seat of the run of scores
	Value    float64 `json:"value"`          // with choices: the number of the choice in the plan
	Text     string  `json:"text,omitempty"` // the answer to a question for a text, or the reason for a category
	// Again means that the judge chose a category for the second time. It is not part of the score.
	Again bool `json:"again,omitempty"`
	// Position is where the choice was in the list that the judge saw, from 1. 0: there was no list.
	Position int `json:"position,omitempty"`
	// Length is how many characters the seat wrote, or all seats together.
	Length int `json:"length"`
}

// reasonField is the field of an answer with the reason.
const reasonField = "reason"

// asked is one call: the questions about one subject for one judge, or for the seat itself.
type asked struct {
	judge, seat string
	questions   []string
	order       map[string][]int // by question with choices: the order in which they are listed
	stood       *Call            // where the seat stood, if it answers itself
	again       bool             // for the second time
}

// ask asks every judge about every seat and about the episode, and the seats themselves, and adds the scores.
func (s *scoring) ask(t *world.Table, of *Episode, seats []string) []Rating {
	said, lengths := s.reading(of)
	var asks []asked
	for _, judge := range s.judges() {
		asks = append(asks, asked{judge: judge, questions: s.about(byJudges, perEpisode)})
		for _, seat := range seats {
			if lengths[seat] > 0 { // otherwise it said nothing
				asks = append(asks, asked{judge: judge, seat: seat, questions: s.about(byJudges, perSeat)})
			}
		}
	}
	asks = append(asks, s.interviews(of, seats)...)
	if s.Again {
		for _, a := range slices.Clone(asks) {
			a.again, a.questions = true, slices.DeleteFunc(slices.Clone(a.questions), func(n string) bool { return s.Questions[n].Categories == 0 })
			asks = append(asks, a)
		}
	}
	asks = slices.DeleteFunc(asks, func(a asked) bool { return len(a.questions) == 0 })
	var calls []world.Call
	for i := range asks {
		a := &asks[i]
		a.order = map[string][]int{}
		for _, n := range a.questions {
			if k := len(s.Questions[n].Choices); k > 0 {
				a.order[n] = t.Rand().Perm(k)
			}
		}
		calls = append(calls, s.call(*a, said))
	}
	ratings := []Rating{}
	for i, r := range t.Ask(calls...) {
		ratings = append(ratings, s.read(t, asks[i], r, lengths[asks[i].seat])...)
	}
	s.tally(slices.Sorted(maps.Keys(s.Questions)), append([]string{""}, seats...), ratings)
	return ratings
}

// about lists the questions by who answers and what they are about.
func (s *scoring) about(by, per string) (all []string) {
	for _, n := range s.ordered() {
		if q := s.Questions[n]; q.by() == by && q.per() == per {
			all = append(all, n)
		}
	}
	return all
}

// ordered lists the questions in their order. Those that it does not name are at the end.
func (p *Params) ordered() (all []string) {
	for _, n := range slices.Concat(p.Order, slices.Sorted(maps.Keys(p.Questions))) {
		if _, ok := p.Questions[n]; ok && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// call returns the call of a judge, or of a seat.
func (s *scoring) call(a asked, said string) world.Call {
	var b strings.Builder
	if a.stood != nil {
		b.WriteString(interviewIntro)
	} else {
		fmt.Fprintf(&b, "%s\n\n%s\n\n<record>\n%s\n</record>", s.Intro, s.form(), unclosed(said))
	}
	b.WriteString("\n\nAnswer as JSON.\n")
	var answer form
	answer.add(reasonField, map[string]any{"type": "string", "description": "Why you answer so, in a sentence or two."})
	for _, n := range a.questions {
		q := s.Questions[n]
		fmt.Fprintf(&b, "\n%s: %s", n, strings.ReplaceAll(q.Ask, "{seat}", a.seat))
		switch {
		case q.Text:
			b.WriteString(" A text.")
			answer.add(n, map[string]any{"type": "string"})
		case len(q.Choices) > 0:
			list := make([]string, len(q.Choices))
			for i, k := range a.order[n] {
				list[i] = q.Choices[k]
			}
			fmt.Fprintf(&b, " One of: %s.", strings.Join(list, "; "))
			answer.add(n, map[string]any{"type": "string", "enum": list})
		case len(q.Scale) == 2:
			fmt.Fprintf(&b, " A whole number from %d to %d.", q.Scale[0], q.Scale[1])
			answer.add(n, map[string]any{"type": "integer", "minimum": q.Scale[0], "maximum": q.Scale[1]})
		default:
			b.WriteString(" true or false.")
			answer.add(n, map[string]any{"type": "boolean"})
		}
	}
	c := world.Call{Seat: a.judge, Label: onlyJudge, Ask: llm.Request{
		Messages: []llm.Message{llm.User(b.String())}, Schema: &llm.Schema{Name: "judgement", JSON: answer.schema()},
	}}
	if a.stood != nil {
		c.Label = interview
		continued(&c.Ask, a.stood)
	}
	return c
}

// read returns the ratings in an answer. A call that failed has none.
func (s *scoring) read(t *world.Table, a asked, r world.Reply, length int) (all []Rating) {
	var fields map[string]json.RawMessage
	if !r.OK() || json.Unmarshal(r.JSON, &fields) != nil {
		return nil
	}
	var reason string
	if json.Unmarshal(fields[reasonField], &reason) == nil && reason != "" {
		t.Note(reasonField, a.judge, map[string]string{"about": a.seat, "text": reason})
	}
	for _, n := range a.questions {
		one := Rating{Question: n, Seat: a.seat, Judge: a.judge, Length: length, Again: a.again}
		if s.Questions[n].Categories > 0 {
			one.Text = reason
		}
		var text string
		if choices := s.Questions[n].Choices; len(choices) > 0 || s.Questions[n].Text {
			if json.Unmarshal(fields[n], &text) != nil || text == "" {
				continue
			}
			if s.Questions[n].Text {
				one.Text = text
				all = append(all, one)
				continue
			}
			k := slices.Index(choices, text)
			if k < 0 {
				continue
			}
			one.Value, one.Position = float64(k), slices.Index(a.order[n], k)+1
		} else if v, ok := ruleNumber(fields[n]); ok {
			one.Value = v
		} else {
			continue
		}
		all = append(all, one)
	}
	return all
}

// tally adds a score for each question and subject: the mean of the judges or, for a choice, the share that chose it.
func (s *scoring) tally(questions, subjects []string, ratings []Rating) {
	for _, n := range questions {
		for _, seat := range subjects {
			var values []float64
			for _, r := range ratings {
				if r.Question == n && r.Seat == seat && !r.Again {
					values = append(values, r.Value)
				}
			}
			if len(values) == 0 || s.Questions[n].Text {
				continue
			}
			choices := s.Questions[n].Choices
			if len(choices) == 0 {
				s.scores = append(s.scores, world.Score{Seat: seat, Name: n, Value: mean(values)})
			}
			for k, c := range choices {
				s.scores = append(s.scores, world.Score{Seat: seat, Name: choiceName(n, c), Value: mean(chose(values, k))})
			}
		}
	}
}

// chose returns 1 for each answer that is a choice, and 0 for the others.
func chose(answers []float64, choice int) []float64 {
	out := make([]float64, len(answers))
	for i, v := range answers {
		if int(v) == choice {
			out[i] = 1
		}
	}
	return out
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
