package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"parley/internal/run/seat"
)

// event is a line for a program. One field is set, besides the error.
type event struct {
	Question *asked `json:"question,omitempty"`
	Accepted string `json:"accepted,omitempty"` // the id of a question
	Refused  string `json:"refused,omitempty"`  // the id of a question
	Error    string `json:"error,omitempty"`    // why
	Closed   string `json:"closed,omitempty"`   // the id of a question that is not open any more
	End      string `json:"end,omitempty"`      // the state of the run, which has ended
}

// asked is a question, with the number of its messages that are new to the seat.
type asked struct {
	seat.Question
	New int `json:"new"`
}

// reply is a line of a program: the id of a question, and its answer: a text, or a JSON value.
type reply struct {
	Question string          `json:"question"`
	Answer   json.RawMessage `json:"answer"`
}

// exchange writes questions as lines of JSON, and reads answers as lines of JSON.
func (s *seatPlayer) exchange(ctx context.Context) error {
	out := json.NewEncoder(s.Out)
	known := map[string]seat.Question{}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if err := s.announce(ctx, out, known); err != nil {
			return err
		}
		select {
		case text, ok := <-s.lines:
			if !ok {
				return cmp.Or(s.cut, errEnd)
			}
			if err := s.take(ctx, out, known, text); err != nil {
				return err
			}
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// announce writes what has changed.
func (s *seatPlayer) announce(ctx context.Context, out *json.Encoder, known map[string]seat.Question) error {
	open, err := s.mine(ctx)
	if err != nil {
		return err
	}
	still := map[string]bool{}
	for _, q := range open {
		still[q.ID] = true
		if _, ok := known[q.ID]; ok {
			continue
		}
		past, err := seat.ReadPast(ctx, s.Store, q.Episode, q.Seat)
		if err != nil {
			return err
		}
		known[q.ID] = q
		if err := out.Encode(event{Question: &asked{q, len(past.Fresh(q))}}); err != nil {
			return err
		}
	}
	for id := range known {
		if !still[id] {
			delete(known, id)
			if err := out.Encode(event{Closed: id}); err != nil {
				return err
			}
		}
	}
	if len(open) > 0 {
		return nil
	}
	state, ended, err := s.state(ctx)
	if err != nil || !ended {
		return err
	}
	if err := out.Encode(event{End: state}); err != nil {
		return err
	}
	return errEnd
}

// take passes the answer in a line on.
func (s *seatPlayer) take(ctx context.Context, out *json.Encoder, known map[string]seat.Question, text string) error {
	var r reply
	if err := json.Unmarshal([]byte(text), &r); err != nil || len(r.Answer) == 0 {
		return out.Encode(event{Error: fmt.Sprintf("a line is {\"question\": ID, \"answer\": TEXT or JSON}, found %.100q", text)})
	}
	q, ok := known[r.Question]
	if !ok {
		return out.Encode(event{Refused: r.Question, Error: "this question is not open"})
	}
	answer := string(r.Answer)
	var plain string
	if json.Unmarshal(r.Answer, &plain) == nil {
		answer = plain
	}
	refused, err := s.send(ctx, q, answer, func() {})
	switch {
	case err != nil:
		return err
	case refused != "":
		return out.Encode(event{Refused: q.ID, Error: refused})
	}
	delete(known, q.ID) // it is closed too, and the program knows
	return out.Encode(event{Accepted: q.ID})
}
