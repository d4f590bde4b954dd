package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/control"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/internal/run/seat"
)

// sitCmd takes a seat of a run.
type sitCmd struct {
	File string `arg:"" placeholder:"FILE" help:"The run file. Another process plays it."`
	Seat string `arg:"" optional:"" placeholder:"SEAT" help:"The seat to take, or the agent that you are. Default: list the seats of people."`
	JSON bool   `name:"json" help:"For programs: print questions as JSON lines, and read answers as JSON lines."`
}

// Run takes the seat until the run ends, or lists the seats.
func (c *sitCmd) Run(ctx context.Context, s *State) (err error) {
	ctx, end := untilSignal(ctx, s)
	defer end()
	store, about, err := openRun(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	places, err := seat.Places(ctx, store, about.Begun)
	if err != nil {
		return playError(c.File, err)
	}
	if len(places) == 0 {
		return exit.Usagef("%s: no person takes part in this run: a plan seats one with an agent `model: human`", c.File)
	}
	if c.Seat == "" {
		return c.list(ctx, s, places)
	}
	var names []string
	for _, p := range places {
		names = append(names, p.Seat)
		if p.Seat == c.Seat || p.Agent == c.Seat {
			names = nil
			break
		}
	}
	if names != nil {
		return exit.Usagef("%s: no person takes the seat %q; want one of %s", c.File, c.Seat, strings.Join(slices.Compact(names), ", "))
	}
	player := seatPlayer{file: c.File, name: c.Seat, store: store, in: s.Stdin, out: s.Stdout, json: c.JSON}
	return pipeEnd(player.run(ctx))
}

// listedSeat is a seat of a person.
type listedSeat struct {
	Seat  string `json:"seat"`
	Agent string `json:"agent"`
	Open  int    `json:"open_questions"`
}

// list prints the seats of people.
func (c *sitCmd) list(ctx context.Context, s *State, places []seat.Place) error {
	open, err := seat.Read(ctx, c.File)
	if err != nil {
		return err
	}
	all := make([]listedSeat, len(places))
	for i, p := range places {
		all[i] = listedSeat{Seat: p.Seat, Agent: p.Agent}
		for _, q := range open {
			if q.Seat == p.Seat && q.Agent == p.Agent {
				all[i].Open++
			}
		}
	}
	if c.JSON {
		return terminal.PrintJSON(s.Stdout, all)
	}
	t := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "seat\tagent\topen questions")
	for _, one := range all {
		fmt.Fprintf(t, "%s\t%s\t%d\n", terminal.Safe(one.Seat), terminal.Safe(one.Agent), one.Open)
	}
	fmt.Fprintf(t, "\nnext:  %s\n", commandOf([]string{"sit", c.File, all[0].Seat}))
	return t.Flush()
}

// seatPlayer shows questions to the person in a seat, and passes the answers on. It shows only what the seat may see.
type seatPlayer struct {
	file string
	// name is the seat, or the agent that is the person.
	name  string
	store *runfile.Store // of file
	in    io.Reader
	out   io.Writer // for the person
	json  bool      // out and in are JSON lines

	lines    chan string // of in; closed at its end
	inputErr error       // why in ended early; set before lines is closed
	shown    map[string]bool
}

// pollEvery is how often the questions of a run are looked at.
const pollEvery = 250 * time.Millisecond

// run shows questions and takes answers until the run or the input ends.
func (s *seatPlayer) run(ctx context.Context) error {
	s.lines, s.shown = make(chan string), map[string]bool{}
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	in := exit.NewReader(s.in, ctx.Done())
	wg.Go(func() { s.readLines(ctx, in) })
	defer wg.Wait()
	defer stop()
	var err error
	if s.json {
		err = s.runJSON(ctx)
	} else {
		err = s.runTerminal(ctx)
	}
	if errors.Is(err, errNothingLeft) {
		return nil
	}
	return err
}

// errNothingLeft means that the person or the run is done.
var errNothingLeft = errors.New("there is nothing left to answer")

// maxAnswerLine is the longest line that is read.
const maxAnswerLine = 2 * seat.MaxAnswer

// readLines passes the lines of the input on.
func (s *seatPlayer) readLines(ctx context.Context, r io.Reader) {
	defer close(s.lines)
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxAnswerLine)
	for in.Scan() {
		select {
		case s.lines <- in.Text():
		case <-ctx.Done():
			return
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		s.inputErr = fmt.Errorf("sit: a line of the input is longer than %d bytes", maxAnswerLine)
	}
}

// nextLine returns the next line of the person.
func (s *seatPlayer) nextLine(ctx context.Context) (string, error) {
	select {
	case text, ok := <-s.lines:
		if !ok {
			return "", cmp.Or(s.inputErr, errNothingLeft)
		}
		return text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// openQuestions returns the open questions of the seat.
func (s *seatPlayer) openQuestions(ctx context.Context) ([]seat.Question, error) {
	all, err := seat.Read(ctx, s.file)
	return slices.DeleteFunc(all, func(q seat.Question) bool { return q.Seat != s.name && q.Agent != s.name }), err
}

// state returns the state of the run. ended is whether no process will ask anything.
func (s *seatPlayer) state(ctx context.Context) (state string, ended bool, err error) {
	o, err := s.store.Outline(ctx)
	if err != nil || o.Open || o.Last.State == "" {
		return "", false, err
	}
	now := results.StatusOf(o, false)
	return strings.TrimSuffix(fmt.Sprintf("%s: %s", now.State, now.Reason), ": "), true, nil
}

// waitToPoll waits until it is time to look again.
func waitToPoll(ctx context.Context) error {
	select {
	case <-time.After(pollEvery):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// send passes an answer on. refused is a text for the person. While no process plays the run, it waits.
func (s *seatPlayer) send(ctx context.Context, q seat.Question, text string, waiting func()) (refused string, err error) {
	for waits := false; ; {
		err := seat.Send(ctx, s.file, seat.Answer{Question: q.ID, Seat: q.Seat, Text: text})
		if err == nil {
			return "", nil
		}
		if !errors.Is(err, control.ErrNotPlayed) {
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			return err.Error(), nil
		}
		if _, ended, err := s.state(ctx); err != nil || ended {
			return "the run has ended", err
		}
		if !waits {
			waiting()
			waits = true
		}
		if err := waitToPoll(ctx); err != nil {
			return "", err
		}
	}
}

// sitEvent is a line for a program. One field is set, besides the error.
type sitEvent struct {
	Question *askedQuestion `json:"question,omitempty"`
	Accepted string         `json:"accepted,omitempty"` // the id of a question
	Refused  string         `json:"refused,omitempty"`  // the id of a question
	Error    string         `json:"error,omitempty"`    // why
	Closed   string         `json:"closed,omitempty"`   // the id of a question that is not open any more
	End      string         `json:"end,omitempty"`      // the state of the run, which has ended
}

// askedQuestion is a question, with the number of its messages that are new to the seat.
type askedQuestion struct {
	seat.Question
	New int `json:"new"`
}

// sitAnswer is a line of a program: the id of a question, and its answer: a text, or a JSON value.
type sitAnswer struct {
	Question string          `json:"question"`
	Answer   json.RawMessage `json:"answer"`
}

// runJSON writes questions as lines of JSON, and reads answers as lines of JSON.
func (s *seatPlayer) runJSON(ctx context.Context) error {
	out := json.NewEncoder(s.out)
	known := map[string]seat.Question{}
	look := time.NewTicker(pollEvery)
	defer look.Stop()
	for {
		if err := s.announce(ctx, out, known); err != nil {
			return err
		}
		select {
		case text, ok := <-s.lines:
			if !ok {
				return cmp.Or(s.inputErr, errNothingLeft)
			}
			if err := s.answerLine(ctx, out, known, text); err != nil {
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
	open, err := s.openQuestions(ctx)
	if err != nil {
		return err
	}
	still := map[string]bool{}
	for _, q := range open {
		still[q.ID] = true
		if _, ok := known[q.ID]; ok {
			continue
		}
		past, err := seat.ReadPast(ctx, s.store, q.Episode, q.Seat)
		if err != nil {
			return err
		}
		known[q.ID] = q
		if err := out.Encode(sitEvent{Question: &askedQuestion{q, len(past.Fresh(q))}}); err != nil {
			return err
		}
	}
	for id := range known {
		if !still[id] {
			delete(known, id)
			if err := out.Encode(sitEvent{Closed: id}); err != nil {
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
	if err := out.Encode(sitEvent{End: state}); err != nil {
		return err
	}
	return errNothingLeft
}

// answerLine passes the answer in a line on.
func (s *seatPlayer) answerLine(ctx context.Context, out *json.Encoder, known map[string]seat.Question, text string) error {
	var r sitAnswer
	if err := json.Unmarshal([]byte(text), &r); err != nil || len(r.Answer) == 0 {
		return out.Encode(sitEvent{Error: fmt.Sprintf("a line is {\"question\": ID, \"answer\": TEXT or JSON}, found %.100q", text)})
	}
	q, ok := known[r.Question]
	if !ok {
		return out.Encode(sitEvent{Refused: r.Question, Error: "this question is not open"})
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
		return out.Encode(sitEvent{Refused: q.ID, Error: refused})
	}
	delete(known, q.ID) // it is closed too, and the program knows
	return out.Encode(sitEvent{Accepted: q.ID})
}
