// Part show renders runs for a terminal: the list of episodes, a transcript, a call, a story and the tables
// of a report.
//
// Text from a model is quoted line by line, so that it cannot look like a line of the page.
//
// It does not fold runs: packages view and report do.

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

	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/score"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// showReader reads the parts of a run that are shown.
type showReader struct {
	Store *runfile.Store
	About runfile.Outline
	File  string
	Kind  world.Kind // zero if this program does not have it
	Tell  func(text string)
}

// Transcript is an episode with everything that happened in its last attempt.
type Transcript struct {
	File string `json:"file"`
	EpisodeRow
	Params  json.RawMessage `json:"params,omitempty"`
	Turns   []*Turn         `json:"turns"`
	Outcome *Outcome        `json:"outcome,omitempty"`
	Texts   []score.Text    `json:"texts,omitempty"` // written about it afterwards

	// The filters, if not everything is shown.
	Seat       string `json:"only_seat,omitempty"`
	OnlyFailed bool   `json:"only_failed,omitempty"`
}

// Turn is a turn of a strand: its notes, then its calls.
type Turn struct {
	Strand  string       `json:"strand"`
	Turn    int          `json:"turn"`
	Notes   []world.Note `json:"notes,omitempty"`
	Calls   int          `json:"calls"`
	Replies []*Call      `json:"replies"` // the recorded ones, in call order
}

// Outcome is the outcome of the episode.
type Outcome struct {
	At     time.Time       `json:"at"`
	Failed string          `json:"failed,omitempty"`
	Scores []Score         `json:"scores"`
	Data   json.RawMessage `json:"data,omitempty"`
	Stack  string          `json:"stack,omitempty"`

	scores []world.Score // as recorded
}

// Said returns the transcript of an episode without the requests, which --call shows. If seat is set, it keeps
// only that seat; if failed is set, only failed calls.
func (v *showReader) Said(ctx context.Context, episode int, seat string, failed bool) (*Transcript, error) {
	t, err := v.transcript(ctx, episode)
	if err != nil {
		return nil, err
	}
	if _, isRecord := world.As[world.Recorded](v.Kind); isRecord {
		t.findNew()
	}
	if err := t.mark(v.Kind); err != nil {
		v.Tell(err.Error())
	}
	if err := t.keep(seat, failed); err != nil {
		return nil, err
	}
	for _, turn := range t.Turns {
		for _, r := range turn.Replies {
			r.Request = nil
		}
	}
	if !failed {
		t.Texts, err = v.texts(ctx, episode)
		t.Texts = slices.DeleteFunc(t.Texts, func(x score.Text) bool { return seat != "" && x.Seat != seat })
	}
	return t, err
}

func (v *showReader) transcript(ctx context.Context, n int) (*Transcript, error) {
	var l *runfile.Listed
	if n >= 0 {
		list, err := v.Store.List(ctx, runfile.Listing{From: n, Limit: 1})
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
	entries, err := journal.Episode(ctx, v.Store, n)
	if err != nil {
		return nil, err
	}
	t := &Transcript{File: v.File, EpisodeRow: e, Params: l.Spec.Params, Turns: turnsOf(v.About.Begun, entries, e.Attempt)}
	if recorded, ok := world.As[world.Recorded](v.Kind); ok {
		var failed error
		t.leaveOut(func(n world.Note) (hidden bool) {
			failed = cmp.Or(results.Call(v.Kind, "Hidden", func() error { hidden = recorded.Hidden(n); return nil }), failed)
			return hidden
		})
		if failed != nil {
			v.Tell(failed.Error())
		}
	}
	if end := l.Ended; end != nil {
		t.Outcome = &Outcome{At: end.At.UTC(), Failed: end.Outcome.Failed, Scores: e.Scores, Stack: end.Stack, scores: end.Outcome.Scores}
		t.Outcome.Data, _ = end.Outcome.Data.(json.RawMessage)
	}
	return t, nil
}

// mark adds the kind's descriptions of replies. Its error is one of results.Call.
func (t *Transcript) mark(kind world.Kind) error {
	var entries []world.TranscriptEntry
	calls := map[int]*Call{}
	for _, turn := range t.Turns {
		for i := range turn.Notes {
			entries = append(entries, world.TranscriptEntry{Note: &turn.Notes[i]})
		}
		for _, r := range turn.Replies {
			reply := world.TranscriptEntry{Seat: r.Seat}
			if r.Response != nil {
				reply.Reply.Text = r.Response.Text
			}
			calls[len(entries)] = r
			entries = append(entries, reply)
		}
	}
	marks, err := results.Marks(kind, entries)
	for i, mark := range marks {
		calls[i].Mark = mark
	}
	return err
}

// leaveOut removes hidden notes.
func (t *Transcript) leaveOut(hidden func(world.Note) bool) {
	for _, turn := range t.Turns {
		turn.Notes = slices.DeleteFunc(turn.Notes, hidden)
	}
}

// none returns the error for an episode that does not exist.
func (v *showReader) none(n int) error {
	if v.About.Episodes == 0 {
		return exit.Usagef("%s has no episodes yet", v.File)
	}
	return exit.Usagef("%s has no episode %d: it has 0 to %d", v.File, n, v.About.Episodes-1)
}

// keep removes what does not belong to seat, if one is given, and with failed all calls that did not fail.
func (t *Transcript) keep(seat string, failed bool) error {
	if seat == "" && !failed {
		return nil
	}
	if _, ok := t.Lineup[seat]; seat != "" && !ok && len(t.Lineup) > 0 {
		return exit.Usagef("--seat %q: no such seat; the seats are %s", seat, strings.Join(slices.Sorted(maps.Keys(t.Lineup)), ", "))
	}
	t.Seat, t.OnlyFailed = seat, failed
	for _, turn := range t.Turns {
		turn.Notes = slices.DeleteFunc(turn.Notes, func(n world.Note) bool { return failed || n.Seat != seat })
		turn.Replies = slices.DeleteFunc(turn.Replies, func(r *Call) bool {
			return seat != "" && r.Seat != seat || failed && r.Error == nil
		})
	}
	t.Turns = slices.DeleteFunc(t.Turns, func(turn *Turn) bool { return len(turn.Notes)+len(turn.Replies) == 0 })
	return nil
}

// only describes the filters.
func (t *Transcript) only() string {
	words := "what is of " + t.Seat
	if t.OnlyFailed {
		words = "calls that failed"
		if t.Seat != "" {
			words += ", of " + t.Seat
		}
	}
	return words
}

// turnsOf returns the turns of an attempt in transcript order.
func turnsOf(begun *journal.Begun, entries []journal.Entry, attempt int) []*Turn {
	out := []*Turn{}
	for _, t := range results.Turns(entries, attempt) {
		turn := &Turn{Strand: t.Strand, Turn: t.Number, Replies: make([]*Call, len(t.Replies))}
		if t.Turned != nil {
			turn.Notes, turn.Calls = t.Turned.Notes, t.Turned.Calls
		}
		for i, r := range t.Replies {
			turn.Replies[i] = newShownCall(begun, r)
		}
		out = append(out, turn)
	}
	return out
}

// Print prints the transcript.
func (t *Transcript) Print(p *terminal.Page) {
	p.Put(terminal.InkHead, fmt.Sprintf("episode %d", t.Episode))
	p.Put(terminal.InkPlain, " of "+t.File+": ")
	p.Put(stateInk(t.State), t.State)
	p.Line()
	if t.Attempt > 0 {
		p.Fact("attempt", fmt.Sprintf("%d: those before were given up", t.Attempt))
	}
	if t.Cell != "" && t.Cell != results.LineupText(t.Lineup) {
		p.Fact("cell", t.Cell)
	}
	p.Fact("lineup", results.LineupText(t.Lineup))
	p.Fact("deal", strconv.Itoa(t.Deal))
	p.Fact("calls", terminal.Number(t.Calls)+", "+t.Cost.String())
	printBeside(p, t.Acts, t.Bots)
	if n := t.failures(); n > 0 {
		p.Fact("failed", terminal.Number(n)+" of them")
	}
	all := t.Seat == "" && !t.OnlyFailed
	if !all {
		p.Fact("only", t.only())
	}
	said := map[string]bool{}
	for _, turn := range t.Turns {
		turn.print(p, said, all)
	}
	if t.Outcome != nil {
		t.Outcome.print(p)
	}
	printTexts(p, t.Texts)
}

// print writes the turn. If all is set, it says which replies are missing.
func (t *Turn) print(p *terminal.Page, said map[string]bool, all bool) {
	indent := strings.Repeat("    ", strings.Count(t.Strand, "/"))
	p.Line()
	p.Put(terminal.InkHead, indent+"turn "+results.TurnName(t.Strand, t.Turn))
	p.Line()
	indent += "  "
	for _, n := range t.Notes {
		who := ""
		if n.Seat != "" {
			who = ", " + n.Seat
		}
		p.Put(terminal.InkFaint, indent+terminal.OneLine("note "+n.Kind+who+": "+brief(n.Data, said)))
		p.Line()
	}
	for _, r := range t.Replies {
		r.print(p, indent)
		if r.Response != nil {
			said[strings.TrimSpace(r.Response.Text)] = true
		}
	}
	if open := t.Calls - len(t.Replies); all && open > 0 {
		p.Put(terminal.InkFaint, fmt.Sprintf("%swaiting for %d of %d replies", indent, open, t.Calls))
		p.Line()
	}
}

// brief returns a note without the words that are already printed above it.
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

// print writes the result of a call, below a heading with the seat and the name of the call. A failure never
// looks like words of a model.
func (c *Call) print(p *terminal.Page, indent string) {
	p.Put(terminal.InkName, indent+c.Seat)
	p.Put(terminal.InkPlain, " ("+c.who+"), "+c.Label)
	p.Put(terminal.InkFaint, "  ["+c.Call+"]")
	if c.Copied {
		p.Put(terminal.InkFaint, " copied")
	}
	if c.Mark != "" {
		p.Put(terminal.InkBad, "  * "+terminal.OneLine(c.Mark))
	}
	p.Line()
	indent += "  "
	if c.Act != nil {
		p.Put(terminal.InkFaint, indent+"does ")
		p.Line(terminal.OneLine(c.Act.Name + " " + string(c.Act.Body)))
	}
	c.asked(p, indent)
	if c.Error != nil {
		p.Put(terminal.InkBad, indent+"failed: "+terminal.OneLine(c.Error.Error()))
		p.Line()
		return
	}
	c.words(p, indent)
}

func (c *Call) words(p *terminal.Page, indent string) {
	r := c.Response
	if r == nil {
		p.Put(terminal.InkBad, indent+"failed: no reply was recorded")
		p.Line()
		return
	}
	empty := true
	if text := cmp.Or(r.Text, string(r.JSON)); text != "" {
		empty = false
		p.Quote(indent, text)
	}
	for _, t := range r.ToolCalls {
		empty = false
		p.Put(terminal.InkFaint, indent+"calls ")
		p.Line(terminal.OneLine(t.Name + " " + t.Arguments))
	}
	switch {
	case r.Refusal != "":
		p.Put(terminal.InkBad, indent+"refused: "+terminal.OneLine(r.Refusal))
	case r.Finish == llm.FinishLength:
		p.Put(terminal.InkFaint, indent+"(cut off at its maximum length)")
	case r.Finish == llm.FinishRefused, r.Finish == llm.FinishAborted:
		p.Put(terminal.InkBad, indent+"("+string(r.Finish)+")")
	case empty:
		p.Put(terminal.InkFaint, indent+"(no words)")
	default:
		return
	}
	p.Line()
}
