package seat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/internal/ask/answer"
	"parley/internal/run/control"
	"parley/llm"
	"parley/world"
)

// Verb is the verb of an Answer for package control.
const Verb = "answer"

// Answer is the answer of a person to a question.
type Answer struct {
	Question string `json:"question"` // its ID
	Seat     string `json:"seat"`
	Text     string `json:"text"` // a JSON value, if the question has a schema
}

// MaxAnswer is the most bytes that an answer may have.
const MaxAnswer = 128 << 10

// maxAnswered is how many answered questions are remembered, to tell late senders what happened.
const maxAnswered = 1024

// Send passes an answer to the process that plays a run. It returns control.ErrNotPlayed if there is none, and an
// error with a text for people if the answer is refused.
func Send(ctx context.Context, run string, a Answer) error {
	if len(a.Text) > MaxAnswer {
		return tooLong(len(a.Text)) // more than a request may have
	}
	return control.Send(ctx, run, Verb, a, nil)
}

// Handle takes an Answer that another process sent.
func (o *Open) Handle(_ context.Context, args json.RawMessage) (any, error) {
	var a Answer
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, errors.New("the answer is not JSON of the form {\"question\":…,\"seat\":…,\"text\":…}")
	}
	return struct{}{}, o.Answer(a)
}

// Answer gives a question its answer. The error says what is wrong, for the person.
func (o *Open) Answer(a Answer) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.all, func(q *asked) bool { return q.open && q.ID == a.Question && q.Seat == a.Seat })
	if i < 0 {
		if slices.Contains(o.answered, a.Question) {
			return errors.New("this question already has an answer: yours was not used")
		}
		return errors.New("this question is not open any more: your answer was not used")
	}
	q := o.all[i]
	resp, err := q.read(a.Text)
	if err != nil {
		return err
	}
	q.got <- resp
	o.all = slices.Delete(o.all, i, i+1)
	if o.answered = append(o.answered, q.ID); len(o.answered) > maxAnswered {
		o.answered = o.answered[1:]
	}
	_ = o.show(true) // the next one that is added reports what is wrong
	return nil
}

// read checks an answer and returns it as a response.
func (q *asked) read(text string) (*llm.Response, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	switch i := strings.IndexFunc(text, refused); {
	case len(text) > MaxAnswer:
		return nil, tooLong(len(text))
	case !utf8.ValidString(text):
		return nil, errors.New("the answer is not valid UTF-8 text")
	case i >= 0:
		r, _ := utf8.DecodeRuneInString(text[i:])
		return nil, fmt.Errorf("the answer has the control character %U: write text without it", r)
	case strings.TrimSpace(text) == "":
		return nil, errors.New("the answer is empty")
	}
	r := &llm.Response{Text: text, Finish: llm.FinishStop, Model: world.Human, Metadata: llm.Metadata{Attempts: 1, Latency: time.Since(q.Asked)}}
	if q.form == nil {
		return r, nil
	}
	value, _, err := q.form.Read(text)
	if err == nil {
		err = plain(value)
	}
	if err != nil {
		return nil, refusal(err)
	}
	r.Text, r.JSON = string(value), value
	return r, nil
}

// refusal returns the error of an answer that does not follow its schema, for people.
func refusal(err error) error {
	if e, ok := errors.AsType[*answer.Error](err); ok {
		if e.Truncated {
			return errors.New("the JSON of the answer has no end")
		}
		return errors.New(strings.Join(e.Findings, "; "))
	}
	return err
}

// plain refuses control characters within the texts of a JSON value.
func plain(value json.RawMessage) error {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	return plainValue(v)
}

func plainValue(v any) error {
	switch v := v.(type) {
	case string:
		if i := strings.IndexFunc(v, refused); i >= 0 {
			r, _ := utf8.DecodeRuneInString(v[i:])
			return fmt.Errorf("the answer has the control character %U: write text without it", r)
		}
	case []any:
		for _, one := range v {
			if err := plainValue(one); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, one := range v {
			if err := errors.Join(plainValue(name), plainValue(one)); err != nil {
				return err
			}
		}
	}
	return nil
}

// refused reports whether a character of an answer is refused: one that is not text.
func refused(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

func tooLong(n int) error {
	return fmt.Errorf("the answer has %d bytes, and at most %d are allowed: shorten it", n, MaxAnswer)
}
