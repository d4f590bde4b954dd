package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/internal/cli/terminal"
	"parley/internal/run/seat"
)

// maxPast is how many earlier questions of an episode are shown when somebody sits down.
const maxPast = 5

// runTerminal asks a person in a terminal.
func (s *seatPlayer) runTerminal(ctx context.Context) error {
	waits := false
	for {
		open, err := s.openQuestions(ctx)
		if err != nil {
			return err
		}
		if len(open) == 0 {
			state, ended, err := s.state(ctx)
			if err != nil {
				return err
			}
			if ended {
				s.print("The run is %s.\n", state)
				return errNothingLeft
			}
			if !waits {
				waits = true
				s.print("Waiting for the next question. Ctrl-C leaves; the run goes on.\n")
			}
			if err := waitToPoll(ctx); err != nil {
				return err
			}
			continue
		}
		waits = false
		if err := s.ask(ctx, open[0]); err != nil {
			return err
		}
	}
}

// print writes text for the person, without control characters of models.
func (s *seatPlayer) print(format string, args ...any) {
	_, _ = fmt.Fprint(s.out, terminal.Safe(fmt.Sprintf(format, args...))) // the terminal is gone: the input ends too
}

// ask shows a question and takes its answer.
func (s *seatPlayer) ask(ctx context.Context, q seat.Question) error {
	past, err := seat.ReadPast(ctx, s.store, q.Episode, q.Seat)
	if err != nil {
		return err
	}
	if key := fmt.Sprint("episode ", q.Episode, q.Seat); !s.shown[key] {
		s.shown[key] = true
		s.printHistory(past)
	}
	s.print("\n%s\n", strings.Repeat("─", 60))
	s.print("Episode %d · seat %s · %s%s\n\n", q.Episode, q.Seat, q.Label, deadlineText(q.Deadline))
	for _, m := range past.Fresh(q) {
		s.print("[%s]\n%s\n\n", m.Role, m.Text)
	}
	for {
		text, err := s.answer(ctx, q)
		if err != nil {
			return err
		}
		refused, err := s.send(ctx, q, text, func() {
			s.print("No process plays %s now. `parley run` continues it, and gets your answer.\n", s.file)
		})
		if err != nil {
			return err
		}
		if refused == "" {
			s.print("Your answer was accepted.\n")
			return nil
		}
		s.print("Not accepted: %s\n", refused)
		if open, err := s.stillOpen(ctx, q); err != nil || !open {
			return err
		}
	}
}

// stillOpen reports whether a question waits for an answer.
func (s *seatPlayer) stillOpen(ctx context.Context, q seat.Question) (bool, error) {
	open, err := s.openQuestions(ctx)
	for _, other := range open {
		if other.ID == q.ID {
			return true, err
		}
	}
	return false, err
}

// printHistory shows the last earlier questions of an episode.
func (s *seatPlayer) printHistory(past *seat.Past) {
	from := max(0, len(past.Exchanges)-maxPast)
	if from > 0 {
		s.print("(%d earlier questions are not shown.)\n", from)
	}
	for _, x := range past.Exchanges[from:] {
		s.print("\n· %s ·\n", x.Label)
		for _, m := range x.New {
			s.print("[%s]\n%s\n\n", m.Role, m.Text)
		}
		switch {
		case x.Failed != "":
			s.print("(no answer: %s)\n", x.Failed)
		case x.By != "":
			s.print("[%s, for you]\n%s\n", x.By, x.Answer)
		default:
			s.print("[you]\n%s\n", x.Answer)
		}
	}
}

// deadlineText says how long a person may take.
func deadlineText(deadline time.Time) string {
	if deadline.IsZero() {
		return ""
	}
	return fmt.Sprintf(" · answer within %v, until %s", max(0, time.Until(deadline)).Round(time.Second), deadline.Local().Format("15:04:05"))
}

// answer takes an answer: field by field if its schema has a form, and as a whole otherwise.
func (s *seatPlayer) answer(ctx context.Context, q seat.Question) (string, error) {
	if len(q.Schema) == 0 {
		return s.readAnswer(ctx, "Your answer. An empty line ends it.")
	}
	f, ok := seat.FormOf(q.Schema, q.Offer)
	if !ok {
		s.print("The answer follows this JSON Schema:\n%s\n", q.Schema)
		return s.readAnswer(ctx, "Your answer as JSON. An empty line ends it.")
	}
	for {
		texts := map[string][]string{}
		if err := s.fields(ctx, f.Fields, "", texts); err != nil {
			return "", err
		}
		value, problems := f.Answer(func(key string) []string { return texts[key] })
		if len(problems) == 0 {
			return string(value), nil
		}
		for _, text := range problems {
			s.print("Not accepted: %s\n", text)
		}
	}
}

// readAnswer takes the lines of an answer.
func (s *seatPlayer) readAnswer(ctx context.Context, prompt string) (string, error) {
	s.print("%s\n", prompt)
	var lines []string
	for {
		s.print("> ")
		text, err := s.nextLine(ctx)
		if err != nil {
			return "", err
		}
		if text == "" && len(lines) > 0 {
			return strings.Join(lines, "\n"), nil
		}
		if text != "" || len(lines) > 0 {
			lines = append(lines, text)
		}
	}
}

// fields takes the texts of fields, by key. row is that of the list they are in.
func (s *seatPlayer) fields(ctx context.Context, fields []*seat.Field, row string, texts map[string][]string) error {
	for _, f := range fields {
		if err := s.field(ctx, f, f.In(row), texts); err != nil {
			return err
		}
	}
	return nil
}

func (s *seatPlayer) field(ctx context.Context, f *seat.Field, key string, texts map[string][]string) error {
	switch {
	case len(f.Offered) > 0:
		for _, c := range f.Offered {
			text, err := s.choose(ctx, c.Name, c.Options)
			if err != nil {
				return err
			}
			texts[key] = append(texts[key], text)
		}
		return nil
	case f.List && f.Type == seat.Group:
		return s.rows(ctx, f, texts)
	case f.Type == seat.Group:
		s.print("%s:\n", f.Label())
		return s.fields(ctx, f.Fields, "", texts)
	case f.List:
		s.print("%s, one a line; an empty line ends them:\n", f.Label())
		for {
			text, err := s.choose(ctx, "", f.Options)
			if err != nil || text == "" {
				return err
			}
			texts[key] = append(texts[key], text)
		}
	default:
		text, err := s.choose(ctx, fieldLabel(f), f.Options)
		texts[key] = []string{text}
		return err
	}
}

// rows takes a list of objects.
func (s *seatPlayer) rows(ctx context.Context, f *seat.Field, texts map[string][]string) error {
	for n := range seat.MaxRows {
		row := strconv.Itoa(n)
		s.print("%s %d; an empty line ends them:\n", f.Label(), n+1)
		first := f.Fields[0]
		text, err := s.choose(ctx, fieldLabel(first), first.Options)
		if err != nil || text == "" {
			return err
		}
		texts[first.In(row)] = []string{text}
		if err := s.fields(ctx, f.Fields[1:], row, texts); err != nil {
			return err
		}
	}
	return nil
}

// fieldLabel returns the label of a field with what it is about.
func fieldLabel(f *seat.Field) string {
	text := f.Label()
	if f.Doc != "" {
		text += " (" + f.Doc + ")"
	}
	return text
}

// choose takes a line. If there are options, their numbers stand for them.
func (s *seatPlayer) choose(ctx context.Context, label string, options []string) (string, error) {
	if label != "" {
		s.print("%s", terminal.OneLine(label))
	}
	for i, o := range options {
		s.print("\n  %d %s", i+1, terminal.OneLine(o))
	}
	if len(options) > 0 {
		s.print("\n")
	}
	s.print("> ")
	text, err := s.nextLine(ctx)
	if n, bad := strconv.Atoi(strings.TrimSpace(text)); bad == nil && n >= 1 && n <= len(options) {
		text = options[n-1]
	}
	return text, err
}
