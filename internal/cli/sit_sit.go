// Part sit shows the questions of a run to the person in a seat, in a terminal or as JSON lines, and passes the
// answers on.
//
// Text of a model never reaches a terminal as control characters. What is shown is what the seat may see.
//
// It does not open or ask questions: package seat does.

package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"parley/internal/cli/exit"
	"parley/internal/run/control"
	"parley/internal/run/runfile"
	"parley/internal/run/seat"
	"parley/journal"
)

// seatPlayer is a person in a seat.
type seatPlayer struct {
	File string
	// Name is the seat, or the agent that is the person.
	Name  string
	Store *runfile.Store // of File
	In    io.Reader
	Out   io.Writer // for the person
	JSON  bool      // Out and In are JSON lines

	lines chan string // of In; closed at its end
	cut   error       // why In ended early; set before lines is closed
	shown map[string]bool
}

// lookEvery is how often the questions of a run are looked at.
const lookEvery = 250 * time.Millisecond

// Run shows questions and takes answers until the run or the input ends.
func (s *seatPlayer) Run(ctx context.Context) error {
	s.lines, s.shown = make(chan string), map[string]bool{}
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	in := exit.NewReader(s.In, ctx.Done())
	wg.Go(func() { s.read(ctx, in) })
	defer wg.Wait()
	defer stop()
	var err error
	if s.JSON {
		err = s.exchange(ctx)
	} else {
		err = s.talk(ctx)
	}
	if errors.Is(err, errEnd) {
		return nil
	}
	return err
}

// errEnd means that the person or the run is done.
var errEnd = errors.New("there is nothing left to answer")

// maxLine is the longest line that is read.
const maxLine = 2 * seat.MaxAnswer

// read passes the lines of the input on.
func (s *seatPlayer) read(ctx context.Context, r io.Reader) {
	defer close(s.lines)
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	for in.Scan() {
		select {
		case s.lines <- in.Text():
		case <-ctx.Done():
			return
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		s.cut = fmt.Errorf("sit: a line of the input is longer than %d bytes", maxLine)
	}
}

// line returns the next line of the person.
func (s *seatPlayer) line(ctx context.Context) (string, error) {
	select {
	case text, ok := <-s.lines:
		if !ok {
			return "", cmp.Or(s.cut, errEnd)
		}
		return text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// mine returns the open questions of the seat.
func (s *seatPlayer) mine(ctx context.Context) ([]seat.Question, error) {
	all, err := seat.Read(ctx, s.File)
	return slices.DeleteFunc(all, func(q seat.Question) bool { return q.Seat != s.Name && q.Agent != s.Name }), err
}

// state returns the state of the run. ended is whether no process will ask anything.
func (s *seatPlayer) state(ctx context.Context) (state string, ended bool, err error) {
	o, err := s.Store.Outline(ctx)
	switch {
	case err != nil:
		return "", false, err
	case o.Open || o.Last.State == "":
		return "", false, nil
	case o.Last.State == journal.Complete:
		return string(o.Last.State), true, nil
	}
	return fmt.Sprintf("%s: %s", o.Last.State, o.Last.Reason), true, nil
}

// pause waits until it is time to look again.
func pause(ctx context.Context) error {
	select {
	case <-time.After(lookEvery):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// send passes an answer on. refused is a text for the person. While no process plays the run, it waits.
func (s *seatPlayer) send(ctx context.Context, q seat.Question, text string, waiting func()) (refused string, err error) {
	for said := false; ; {
		err := seat.Send(ctx, s.File, seat.Answer{Question: q.ID, Seat: q.Seat, Text: text})
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
		if !said {
			waiting()
			said = true
		}
		if err := pause(ctx); err != nil {
			return "", err
		}
	}
}
