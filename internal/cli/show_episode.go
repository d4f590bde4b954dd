package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/store/sqlite"
	"parley/internal/view/optional"
	"parley/internal/view/transcript"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// shownTranscript is an episode with everything that happened in it: its last attempt,
// where there were several.
type shownTranscript struct {
	File string `json:"file"`
	shownEpisode
	Params  json.RawMessage `json:"params,omitempty"`
	Turns   []*shownTurn    `json:"turns"`
	Outcome *shownOutcome   `json:"outcome,omitempty"`

	// What turns are of, where that is not everything.
	Seat       string `json:"only_seat,omitempty"`
	OnlyFailed bool   `json:"only_failed,omitempty"`
}

// shownTurn is a turn of a strand: what was noted, and then asked.
type shownTurn struct {
	Strand  string       `json:"strand"`
	Turn    int          `json:"turn"`
	Notes   []world.Note `json:"notes,omitempty"`
	Calls   int          `json:"calls"`
	Replies []*shownCall `json:"replies"` // those that are there, in call order
}

// shownOutcome is what the episode came to.
type shownOutcome struct {
	At     time.Time       `json:"at"`
	Failed string          `json:"failed,omitempty"`
	Scores []shownScore    `json:"scores"`
	Data   json.RawMessage `json:"data,omitempty"`
	Stack  string          `json:"stack,omitempty"`
}

func (c *showCmd) transcript(ctx context.Context, s *State, v *shower) error {
	t, err := v.transcript(ctx, *c.Episode)
	if err != nil {
		return err
	}
	if _, isRecord := world.As[world.Recorded](v.kind); isRecord {
		t.hear()
	}
	if err := t.mark(v.kind); err != nil {
		s.tell(err.Error())
	}
	if err := t.keep(c.Seat, c.Failed); err != nil {
		return err
	}
	for _, turn := range t.Turns {
		for _, r := range turn.Replies {
			r.Request = nil // a transcript is what was said; --call has the rest
		}
	}
	return c.show(s, t, t.print)
}

func (v *shower) transcript(ctx context.Context, n int) (*shownTranscript, error) {
	var l *sqlite.Listed
	if n >= 0 {
		list, err := v.store.List(ctx, sqlite.Listing{From: n, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			l = &list[0]
		}
	}
	if l == nil || l.Episode != n {
		return nil, v.none(n)
	}
	e, err := v.episode(ctx, l)
	if err != nil {
		return nil, err
	}
	entries, err := journal.Episode(ctx, v.store, n)
	if err != nil {
		return nil, err
	}
	t := &shownTranscript{File: v.file, shownEpisode: e, Params: l.Spec.Params, Turns: turnsOf(entries, e.Attempt)}
	if recorded, ok := world.As[world.Recorded](v.kind); ok {
		var failed error
		t.leaveOut(func(n world.Note) (hidden bool) {
			failed = cmp.Or(optional.Call(v.kind, "Hidden", func() error { hidden = recorded.Hidden(n); return nil }), failed)
			return hidden
		})
		if failed != nil {
			v.tell(failed.Error())
		}
	}
	if end := l.Ended; end != nil {
		t.Outcome = &shownOutcome{At: end.At.UTC(), Failed: end.Outcome.Failed, Scores: e.Scores, Stack: end.Stack}
		t.Outcome.Data, _ = end.Outcome.Data.(json.RawMessage)
	}
	return t, nil
}

// mark puts beside replies what notes of the kind say about them. Its error is one of optional.Call.
func (t *shownTranscript) mark(kind world.Kind) error {
	var told []world.TranscriptEntry
	calls := map[int]*shownCall{}
	for _, turn := range t.Turns {
		for i := range turn.Notes {
			told = append(told, world.TranscriptEntry{Note: &turn.Notes[i]})
		}
		for _, r := range turn.Replies {
			reply := world.TranscriptEntry{Seat: r.Seat}
			if r.Response != nil {
				reply.Reply.Text = r.Response.Text
			}
			calls[len(told)] = r
			told = append(told, reply)
		}
	}
	marks, err := transcript.Marks(kind, told)
	for i, mark := range marks {
		calls[i].Mark = mark
	}
	return err
}

// leaveOut leaves out notes.
func (t *shownTranscript) leaveOut(hidden func(world.Note) bool) {
	for _, turn := range t.Turns {
		turn.Notes = slices.DeleteFunc(turn.Notes, hidden)
	}
}

// none says that there is no such episode.
func (v *shower) none(n int) error {
	if v.about.Episodes == 0 {
		return usage("%s has no episodes yet", v.file)
	}
	return usage("%s has no episode %d: it has 0 to %d", v.file, n, v.about.Episodes-1)
}

// keep leaves out what is not of a seat, if one is given, and what did not fail, if that
// is asked for.
func (t *shownTranscript) keep(seat string, failed bool) error {
	if seat == "" && !failed {
		return nil
	}
	if _, ok := t.Lineup[seat]; seat != "" && !ok && len(t.Lineup) > 0 {
		return usage("--seat %q: nobody sits there: the seats are %s", seat, strings.Join(slices.Sorted(maps.Keys(t.Lineup)), ", "))
	}
	t.Seat, t.OnlyFailed = seat, failed
	for _, turn := range t.Turns {
		turn.Notes = slices.DeleteFunc(turn.Notes, func(n world.Note) bool { return failed || n.Seat != seat })
		turn.Replies = slices.DeleteFunc(turn.Replies, func(r *shownCall) bool {
			return seat != "" && r.Seat != seat || failed && r.Error == nil
		})
	}
	t.Turns = slices.DeleteFunc(t.Turns, func(turn *shownTurn) bool { return len(turn.Notes)+len(turn.Replies) == 0 })
	return nil
}

// only says what keep left.
func (t *shownTranscript) only() string {
	words := "what is of " + t.Seat
	if t.OnlyFailed {
		words = "calls that failed"
		if t.Seat != "" {
			words += ", of " + t.Seat
		}
	}
	return words
}

// turnsOf returns the turns of an attempt in the order of a transcript.
func turnsOf(entries []journal.Entry, attempt int) []*shownTurn {
	out := []*shownTurn{}
	for _, t := range transcript.Turns(entries, attempt) {
		turn := &shownTurn{Strand: t.Strand, Turn: t.Number, Replies: make([]*shownCall, len(t.Replies))}
		if t.Turned != nil {
			turn.Notes, turn.Calls = t.Turned.Notes, t.Turned.Calls
		}
		for i, r := range t.Replies {
			turn.Replies[i] = newShownCall(r)
		}
		out = append(out, turn)
	}
	return out
}

func (t *shownTranscript) print(p *page) {
	p.put(inkHead, fmt.Sprintf("episode %d", t.Episode))
	p.put(inkPlain, " of "+t.File+": ")
	p.put(stateInk(t.State), t.State)
	p.line()
	if t.Attempt > 0 {
		p.fact("attempt", fmt.Sprintf("%d: those before were given up", t.Attempt))
	}
	if t.Cell != "" && t.Cell != lineupText(t.Lineup) {
		p.fact("cell", t.Cell)
	}
	p.fact("lineup", lineupText(t.Lineup))
	p.fact("deal", strconv.Itoa(t.Deal))
	calls := number(t.Calls) + ", " + t.Cost.String()
	if t.FailedCalls > 0 {
		calls = fmt.Sprintf("%s, %s of them failed, %s", number(t.Calls), number(t.FailedCalls), t.Cost)
	}
	p.fact("calls", calls)
	all := t.Seat == "" && !t.OnlyFailed
	if !all {
		p.fact("only", t.only())
	}
	said := map[string]bool{}
	for _, turn := range t.Turns {
		turn.print(p, said, all)
	}
	if t.Outcome != nil {
		t.Outcome.print(p)
	}
}

// print writes the turn. Replies that are missing are told of if all of it is there.
func (t *shownTurn) print(p *page, said map[string]bool, all bool) {
	indent := strings.Repeat("    ", strings.Count(t.Strand, "/"))
	p.line()
	p.put(inkHead, indent+"turn "+transcript.TurnName(t.Strand, t.Turn))
	p.line()
	indent += "  "
	for _, n := range t.Notes {
		who := ""
		if n.Seat != "" {
			who = ", " + n.Seat
		}
		p.put(inkFaint, indent+oneLine("note "+n.Kind+who+": "+brief(n.Data, said)))
		p.line()
	}
	for _, r := range t.Replies {
		r.print(p, indent)
		if r.Response != nil {
			said[strings.TrimSpace(r.Response.Text)] = true
		}
	}
	if open := t.Calls - len(t.Replies); all && open > 0 {
		p.put(inkFaint, fmt.Sprintf("%swaiting for %d of %d replies", indent, open, t.Calls))
		p.line()
	}
}

// brief is a note without the words that stand above it.
func brief(note json.RawMessage, said map[string]bool) string {
	text := string(note)
	var fields map[string]json.RawMessage
	if json.Unmarshal(note, &fields) != nil {
		return text
	}
	for _, value := range fields {
		var words string
		if json.Unmarshal(value, &words) == nil && words != "" && said[words] {
			text = strings.Replace(text, string(value), `"…"`, 1)
		}
	}
	return text
}

// print writes what became of a call, under a line that says whose it is and how it is
// called. A failure is never written as words are.
func (c *shownCall) print(p *page, indent string) {
	p.put(inkName, indent+c.Seat)
	p.put(inkPlain, " ("+c.who()+"), "+c.Label)
	p.put(inkFaint, "  ["+c.Call+"]")
	if c.Copied {
		p.put(inkFaint, " copied")
	}
	if c.Mark != "" {
		p.put(inkBad, "  * "+oneLine(c.Mark))
	}
	p.line()
	indent += "  "
	if c.Act != nil {
		p.put(inkFaint, indent+"does ")
		p.line(oneLine(c.Act.Name + " " + string(c.Act.Body)))
	}
	c.asked(p, indent)
	if c.Error != nil {
		p.put(inkBad, indent+"failed: "+oneLine(c.Error.Error()))
		p.line()
		return
	}
	c.words(p, indent)
}

func (c *shownCall) words(p *page, indent string) {
	r := c.Response
	if r == nil {
		p.put(inkBad, indent+"failed: no reply was recorded")
		p.line()
		return
	}
	empty := true
	if text := cmp.Or(r.Text, string(r.JSON)); text != "" {
		empty = false
		p.quote(indent, text)
	}
	for _, t := range r.ToolCalls {
		empty = false
		p.put(inkFaint, indent+"calls ")
		p.line(oneLine(t.Name + " " + t.Arguments))
	}
	switch {
	case r.Refusal != "":
		p.put(inkBad, indent+"refused: "+oneLine(r.Refusal))
	case r.Finish == llm.FinishLength:
		p.put(inkFaint, indent+"(cut off at its longest allowed length)")
	case r.Finish == llm.FinishRefused, r.Finish == llm.FinishAborted:
		p.put(inkBad, indent+"("+string(r.Finish)+")")
	case empty:
		p.put(inkFaint, indent+"(no words)")
	default:
		return
	}
	p.line()
}

func (o *shownOutcome) print(p *page) {
	p.line()
	p.put(inkHead, "outcome")
	p.line()
	if o.Failed != "" {
		p.put(inkBad, "  failed: "+oneLine(o.Failed))
		p.line()
	}
	for i := 0; i < len(o.Scores); {
		n := i + 1
		for n < len(o.Scores) && o.Scores[n].Seat == o.Scores[i].Seat {
			n++
		}
		p.line("  ", scoresText(o.Scores[i:n]))
		i = n
	}
	if len(o.Data) > 0 && string(o.Data) != "null" {
		p.put(inkFaint, "  "+oneLine(string(o.Data)))
		p.line()
	}
	if o.Stack != "" {
		p.quote("  ", o.Stack)
	}
}
