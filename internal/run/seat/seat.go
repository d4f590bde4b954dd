// Package seat puts questions of a run to the people who sit in its seats, and takes their answers.
//
// The process that plays the run file RUN writes its open questions to the file RUN-seats, which only its user can
// read. A question has what its seat may see, and nothing else: the messages to the seat, the form of the answer, and
// what the world offers. Answers come from other processes through package control.
//
// It promises that a question gets one answer, the first that follows its form; that an answer to a question that is
// not open changes nothing, and its sender learns that; and that a question without an answer at its deadline fails.
// Nothing is kept here: when a run is resumed, its open questions are asked again. Answers are hostile.
//
// It does not show questions: packages cli and serve/viewer do.
package seat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/internal/ask/answer"
	"parley/internal/kit/files"
	"parley/internal/run/control"
	"parley/internal/run/engine"
	"parley/llm"
	"parley/world"
)

// Suffix is added to the name of a run file to name its file of questions.
const Suffix = "-seats"

// Question is an open question.
type Question struct {
	// ID is the same whenever the same question is asked.
	ID      string `json:"id"`
	Episode int    `json:"episode"`
	Seat    string `json:"seat"`
	Agent   string `json:"agent"`
	Label   string `json:"label"`
	// Messages are what the seat is told, the oldest first.
	Messages []Message `json:"messages"`
	// Schema is the JSON Schema of the answer. Empty: the answer is text.
	Schema json.RawMessage `json:"schema,omitempty"`
	Offer  *world.Offer    `json:"offer,omitempty"`
	Asked  time.Time       `json:"asked"`
	// Deadline is when it is too late to answer. Zero: never.
	Deadline time.Time `json:"deadline,omitzero"`
}

// Message is a message to a seat, or its own. Text may be hostile.
type Message struct {
	Role llm.Role `json:"role"`
	Text string   `json:"text"`
}

// maxShown is how many questions of a seat are open at once. Others wait, and so do their deadlines.
const maxShown = 8

// Open is the questions of a run that have no answer yet. It is an engine.Answerer.
type Open struct {
	path string

	mu       sync.Mutex
	all      []*asked
	answered []string // the ids of the last questions that have an answer
	drained  bool
}

// asked is a question that somebody waits for.
type asked struct {
	Question
	form  *answer.Schema // nil: text
	limit time.Duration
	shown chan struct{}      // closed when it is in the file
	got   chan *llm.Response // its answer; closed without one by Drain
	open  bool               // shown is closed
}

// New returns the questions of a run file, which this process plays. There are none yet.
func New(run string) *Open {
	path := files.Beside(run, Suffix)
	_ = os.Remove(path) // a process that was killed left it
	return &Open{path: path}
}

// ID returns the name of a question.
func ID(t world.TurnID, index int) string {
	return fmt.Sprintf("%d-%d-%s%d-%d", t.Episode, t.Attempt, t.Strand, t.Turn, index)
}

// Ask puts a question to a person and waits for the answer.
func (o *Open) Ask(ctx context.Context, in engine.Question) (*llm.Response, error) {
	q, err := newAsked(in)
	if err != nil {
		return nil, err
	}
	if err := o.add(q); err != nil {
		return nil, err
	}
	var late <-chan time.Time
	shown := q.shown
	for {
		select {
		case <-shown:
			if shown = nil; q.limit > 0 {
				timer := time.NewTimer(q.limit)
				defer timer.Stop()
				late = timer.C
			}
		case resp, ok := <-q.got:
			if !ok {
				return nil, &llm.Error{Kind: llm.KindCanceled, Message: "the run stops; the question is asked again when it is resumed"}
			}
			return resp, nil
		case <-late:
			if o.remove(q) {
				return nil, &llm.Error{Kind: llm.KindTimeout, Final: true, Message: fmt.Sprintf("%s did not answer within %v", in.Agent, q.limit)}
			}
			late = nil // the answer came at the same moment
		case <-ctx.Done():
			o.remove(q)
			return nil, llm.ContextError(ctx)
		}
	}
}

func newAsked(in engine.Question) (*asked, error) {
	q := &asked{limit: in.Deadline, shown: make(chan struct{}), got: make(chan *llm.Response, 1)}
	q.Question = Question{ID: ID(in.Turn, in.Index), Episode: in.Turn.Episode, Seat: in.Seat, Agent: in.Agent, Label: in.Label, Offer: in.Offer}
	q.Messages = messagesOf(in.Request)
	if s := in.Request.Schema; s != nil {
		form, err := answer.Compile(s.JSON)
		if err != nil {
			return nil, &llm.Error{Kind: llm.KindBadRequest, Message: err.Error()}
		}
		q.form, q.Schema = form, s.JSON
	}
	return q, nil
}

// add adds a question and shows it, if its seat has room.
func (o *Open) add(q *asked) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.drained {
		close(q.got)
		return nil
	}
	o.all = append(o.all, q)
	slices.SortStableFunc(o.all, func(a, b *asked) int { return cmp.Compare(a.Episode, b.Episode) })
	if err := o.show(false); err != nil {
		o.all = slices.DeleteFunc(o.all, func(other *asked) bool { return other == q })
		return &llm.Error{Kind: llm.KindBadRequest, Message: fmt.Sprintf("the questions to people cannot be written to %s: %v", o.path, err)}
	}
	return nil
}

// remove removes a question, and reports whether it was there.
func (o *Open) remove(q *asked) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.Index(o.all, q)
	if i < 0 {
		return false
	}
	o.all = slices.Delete(o.all, i, i+1)
	_ = o.show(q.open) // the next one that is added reports what is wrong
	return true
}

// show opens the questions that their seats have room for, and writes the file if something has changed.
func (o *Open) show(changed bool) error {
	room := map[string]int{}
	for _, q := range o.all {
		if q.open {
			room[q.Seat]++
		}
	}
	var fresh []*asked
	now := time.Now()
	for _, q := range o.all {
		if !q.open && room[q.Seat] < maxShown {
			room[q.Seat]++
			q.open, q.Asked = true, now
			if q.limit > 0 {
				q.Deadline = now.Add(q.limit)
			}
			fresh = append(fresh, q)
		}
	}
	if len(fresh) == 0 && !changed {
		return nil
	}
	if err := o.write(); err != nil {
		for _, q := range fresh {
			q.open = false
		}
		return err
	}
	for _, q := range fresh {
		close(q.shown)
	}
	return nil
}

// write writes the file, or removes it if no question is open.
func (o *Open) write() error {
	questions := []Question{}
	for _, q := range o.all {
		if q.open {
			questions = append(questions, q.Question)
		}
	}
	if len(questions) == 0 {
		if err := os.Remove(o.path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := json.Marshal(questions)
	if err != nil {
		return err
	}
	return files.Publish(o.path, 0o600, b)
}

// Waiting says whose answers the run waits for; "" if no question is open.
func (o *Open) Waiting() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var seats []string
	for _, q := range o.all {
		if name := strconv.Quote(q.Seat); q.open && !slices.Contains(seats, name) {
			seats = append(seats, name)
		}
	}
	switch slices.Sort(seats); len(seats) {
	case 0:
		return ""
	case 1:
		return "the person in seat " + seats[0] + " (parley sit)"
	}
	return "the people in seats " + strings.Join(seats, ", ") + " (parley sit)"
}

// Drain withdraws all questions.
func (o *Open) Drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.drained {
		return
	}
	o.drained = true
	for _, q := range o.all {
		close(q.got)
	}
	o.all = nil
	_ = o.write() // the process ends
}

// maxFile bounds what is read.
const maxFile = 64 << 20

// Read returns the open questions of a run. They may be those of a process that was killed.
func Read(ctx context.Context, run string) ([]Question, error) {
	path := files.Beside(run, Suffix)
	b, err := files.Read(ctx, path, maxFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("seat: %w", err)
	}
	var all []Question
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("seat: %s: %w", path, err)
	}
	return all, nil
}

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
