package score

import (
	"encoding/json"
	"slices"

	"parley/internal/run/results"
	"parley/llm"
)

const (
	interview      = "interview"
	interviewIntro = "It is over. Here are questions about it for you. Answer them from where you stand now, with what you know and think. Nobody who took part sees your answers, and they change nothing."
)

// InterviewSeat names the seat of the run of scores in which an agent of the scored run answers. It differs from the seats of that
// run, where the same agent can sit in several, or in another one in each episode.
func InterviewSeat(agent string) string { return interview + " " + agent }

// Interviews reports whether params have questions that seats answer themselves.
func Interviews(params json.RawMessage) bool {
	var p Params
	return json.Unmarshal(params, &p) == nil && p.asks(bySeat)
}

// interviews returns the calls of seats that answer themselves: those that a model answered for.
func (s *scoring) interviews(of *Episode, seats []string) (all []asked) {
	questions := s.about(bySeat, perSeat)
	for _, seat := range seats {
		for i, c := range slices.Backward(of.Calls) {
			if c.Seat != seat || !c.Reply.OK() || len(c.Messages) == 0 || !slices.Contains(s.Agents, c.Agent) {
				continue
			}
			all = append(all, asked{judge: InterviewSeat(c.Agent), seat: seat, questions: questions, stood: &of.Calls[i]})
			break
		}
	}
	return all
}

// continued puts a request after the last thing that a seat was asked and answered: what the seat itself has read and said, and
// nothing of the others.
func continued(ask *llm.Request, stood *Call) {
	messages := slices.Clone(stood.Messages)
	if said := results.AnswerText(&llm.Response{Text: stood.Reply.Text, JSON: stood.Reply.JSON, ToolCalls: stood.Reply.ToolCalls}); said != "" {
		messages = append(messages, llm.Assistant(said))
	}
	ask.Messages = append(messages, ask.Messages...)
	if len(stood.Tools) > 0 { // some providers refuse messages about tools that they do not know
		ask.Tools, ask.ToolChoice = stood.Tools, "none"
	}
}
