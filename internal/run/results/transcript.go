// Part transcript reads what happened in an episode, in the order of a story.
//
// It reads the last attempt at the episode. Panics in a kind's optional parts become errors.

package results

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Transcript is what happened in the last attempt at an episode: see Turns for the order.
type Transcript struct {
	Lines   []Line
	Notes   []world.Note
	Entries []world.TranscriptEntry // replies and notes, for a kind's own story
	Failed  error                   // of Call: a part of the kind that failed
	Playing bool                    // the episode is being played: if its kind has no story, the last lines are told

	lines []int // by entry: the number of lines up to the last of its lines
}

// Line is an answer, an act or a note.
type Line struct {
	Turn  string // its name: 3, or 4.2/0 in a strand
	Call  string // its name in the episode, such as 3:0; empty for a note
	Seat  string // empty for a note about everybody; the role for SaidAsked
	Agent string // see Answerer
	Label string // of the call, or the kind of the note
	Said  Said
	Text  string           // for a failure its kind, never its message
	To    string           // who can read it besides its writer, if not everybody
	Mark  string           // the kind's remark on the line: see world.Marker
	Reply *journal.Replied // that it is from; nil for a note
}

// Said is the type of a line.
type Said string

// The types of lines.
const (
	SaidAsked   Said = "asked" // what is new in a request of a record
	SaidAnswer  Said = "answer"
	SaidThought Said = "thought" // what a model wrote before its answer
	saidAct     Said = "act"     // the result of an act
	SaidFailed  Said = "failed"
	SaidNote    Said = "note"
)

// Read reads the transcript of an episode. kind is the kind that played it, or zero. The
// transcript of a record also has what was asked: see world.Recorded.
func Read(ctx context.Context, j journal.Journal, head *journal.Head, kind world.Kind, episode int) (*Transcript, error) {
	entries, err := journal.Episode(ctx, j, episode)
	if err != nil {
		return nil, err
	}
	return New(head.Begun, entries, head.Progress(episode).Attempt, kind), nil
}

// Fallback returns the agent whose model was asked because the person in the seat did not answer in time, or "".
func Fallback(begun *journal.Begun, e *journal.Replied) string {
	if begun == nil || e.Request == nil || e.Request.Model == world.Human {
		return ""
	}
	for i := range begun.Agents {
		if a := &begun.Agents[i]; a.Name == e.Agent && a.Human() {
			return cmp.Or(a.Fallback, e.Request.Model)
		}
	}
	return ""
}

// Answerer returns the agent that a call was put to, with the person that it answers for, if any.
func Answerer(begun *journal.Begun, e *journal.Replied) string {
	if f := Fallback(begun, e); f != "" {
		return f + " instead of " + e.Agent
	}
	return e.Agent
}

// New returns the transcript of entries of a run: see Read. Only those of a record need the messages of requests.
func New(begun *journal.Begun, entries []journal.Entry, attempt int, kind world.Kind) *Transcript {
	n := len(entries)
	t := &Transcript{Lines: make([]Line, 0, n), Entries: make([]world.TranscriptEntry, 0, n), lines: make([]int, 0, n)}
	said := make(map[string]int, n) // the lines of texts, from 1
	recorded, isRecord := world.As[world.Recorded](kind)
	var diff MessageDiff
	for _, turn := range Turns(entries, attempt) {
		if turn.Turned != nil {
			for _, n := range turn.Turned.Notes {
				t.addNote(turn.Name(), n, said, isRecord && t.hidden(kind, recorded, n))
			}
		}
		for _, e := range turn.Replies {
			t.Entries = append(t.Entries, world.TranscriptEntry{Seat: e.Seat, Agent: e.Agent, Label: e.Label, Act: e.Act, Reply: e.Reply()})
			if isRecord && e.Request != nil {
				for _, m := range diff.New(e.Request, e.Response) {
					t.Lines = append(t.Lines, Line{Turn: turn.Name(), Call: callName(turn.Name(), e), Seat: string(m.Role), Label: e.Label, Said: SaidAsked, Text: MessageText(&m), Reply: e})
				}
			}
			for _, l := range replyLines(begun, turn.Name(), e) {
				t.Lines = append(t.Lines, l)
				said[strings.TrimSpace(l.Text)] = len(t.Lines)
			}
			t.lines = append(t.lines, len(t.Lines))
		}
	}
	return t
}

// hidden reports whether the kind hides a note. A note is shown if the kind panics.
func (t *Transcript) hidden(kind world.Kind, recorded world.Recorded, n world.Note) (hidden bool) {
	if err := Call(kind, "Hidden", func() error { hidden = recorded.Hidden(n); return nil }); err != nil {
		t.Failed = err
	}
	return hidden
}

// addNote adds a note, and a line unless the note is hidden or repeats a line.
func (t *Transcript) addNote(turn string, n world.Note, said map[string]int, hidden bool) {
	t.Notes = append(t.Notes, n)
	t.Entries, t.lines = append(t.Entries, world.TranscriptEntry{Note: &n}), append(t.lines, 0)
	if hidden {
		return
	}
	text, to, repeats := noteText(n, said)
	if repeats > 0 {
		t.Lines[repeats-1].To = to
		return
	}
	t.Lines = append(t.Lines, Line{Turn: turn, Seat: n.Seat, Label: n.Kind, Said: SaidNote, Text: text, To: to})
}

// Mark adds the marks of the kind's notes to the lines. Its error is one of Call.
func (t *Transcript) Mark(kind world.Kind) error {
	marks, err := Marks(kind, t.Entries)
	for i, mark := range marks {
		t.Lines[t.lines[i]-1].Mark = mark
	}
	return err
}

// Marks returns the marks that notes put on replies, by the index of the reply. Its error is
// one of Call.
func Marks(kind world.Kind, entries []world.TranscriptEntry) (marks map[int]string, err error) {
	marker, ok := world.As[world.Marker](kind)
	if !ok {
		return nil, nil
	}
	err = Call(kind, "Mark", func() error { marks = marksOf(marker, entries); return nil })
	return marks, err
}

func marksOf(marker world.Marker, entries []world.TranscriptEntry) map[int]string {
	marks := map[int]string{}
	last := map[[2]string]int{} // by seat and text
	for i, e := range entries {
		if e.Note == nil {
			last[[2]string{e.Seat, strings.TrimSpace(e.Reply.Text)}] = i
			continue
		}
		text, mark := marker.Mark(*e.Note)
		if at, ok := last[[2]string{e.Note.Seat, strings.TrimSpace(text)}]; ok && mark != "" {
			marks[at] = mark
		}
	}
	return marks
}

// Story returns the kind's exhibits of an episode. If it has none, the episode is told turn by turn: Mark must have been
// called before. A story is bounded. Its error is one of Call; there is a story nevertheless.
func (t *Transcript) Story(kind world.Kind, p world.Played) (story []world.Exhibit, err error) {
	if teller, ok := world.As[world.Storyteller](kind); ok {
		err = Call(kind, "Story", func() error { story = teller.Story(p, t.Entries); return nil })
	}
	if len(story) == 0 || err != nil {
		return t.account(p), err
	}
	b := bound{left: maxAccount, playing: t.Playing}
	return b.apply(story), nil
}

// Files returns the kind's files of an episode, if it makes any. Its error is one of
// Call.
func (t *Transcript) Files(kind world.Kind, p world.Played) (files map[string]string, err error) {
	if maker, ok := world.As[world.FileMaker](kind); ok {
		err = Call(kind, "Files", func() error { files = maker.Files(p, t.Notes); return nil })
	}
	return files, err
}

// callName returns the name of a call in its episode.
func callName(turn string, e *journal.Replied) string { return turn + ":" + strconv.Itoa(e.Index) }

// replyLines returns the thoughts of a reply, and its answer, result or failure.
func replyLines(begun *journal.Begun, turn string, e *journal.Replied) (out []Line) {
	l := Line{Turn: turn, Call: callName(turn, e), Seat: e.Seat, Agent: Answerer(begun, e), Label: e.Label, Said: SaidAnswer, Reply: e}
	reply := e.Reply()
	if !reply.OK() {
		l.Said, l.Text = SaidFailed, strings.ReplaceAll(string(reply.Failed), "_", " ")
		return []Line{l}
	}
	if e.Act != nil {
		l.Said, l.Label = saidAct, e.Act.Name
	}
	for _, th := range reply.Thoughts {
		if strings.TrimSpace(th.Text) != "" {
			thought := l
			thought.Said, thought.Text = SaidThought, th.Text
			out = append(out, thought)
		}
	}
	l.Text = AnswerText(e.Response)
	return append(out, l)
}

// AnswerText returns the text of an answer: its text or JSON, its refusal, and its tool calls.
func AnswerText(a *llm.Response) string {
	parts := []string{a.Text}
	if a.Text == "" && a.JSON != nil {
		parts[0] = compact(a.JSON)
	}
	if a.Refusal != "" {
		parts = append(parts, "(refused) "+a.Refusal)
	}
	return strings.TrimSpace(strings.Join(append(parts, toolCalls(a.ToolCalls)...), "\n"))
}

func toolCalls(calls []llm.ToolCall) (out []string) {
	for _, c := range calls {
		out = append(out, c.Name+"("+c.Arguments+")")
	}
	return out
}

// noteText returns the text of a note, to whom it was said, if its data has that, and the line that it only repeats, or 0.
func noteText(n world.Note, said map[string]int) (text, to string, repeats int) {
	if json.Unmarshal(n.Data, &text) == nil {
		return text, "", said[strings.TrimSpace(text)]
	}
	var fields struct {
		Text string          `json:"text"`
		To   json.RawMessage `json:"to"`
	}
	if json.Unmarshal(n.Data, &fields) != nil {
		return compact(n.Data), "", 0
	}
	var many []string
	if json.Unmarshal(fields.To, &to) != nil && json.Unmarshal(fields.To, &many) == nil {
		to = strings.Join(many, ", ")
	}
	if fields.Text != "" {
		repeats = said[strings.TrimSpace(fields.Text)]
	}
	return compact(n.Data), to, repeats
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
