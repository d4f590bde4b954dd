package results

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
)

// Transcript is what happened in the last attempt at an episode: see Turns for the order.
type Transcript struct {
	Turns   []*Turn
	Lines   []Line
	Asked   map[*journal.Replied][]llm.Message // of a record: what is new in requests
	Notes   []world.Note
	Entries []world.TranscriptEntry // replies and notes, for a kind's own story
	Failed  error                   // of CallKind: a part of the kind that failed
	Playing bool                    // the episode is being played: if its kind has no story, the last lines are told

	lines []int // by entry: the number of lines up to the last of its lines
}

// Line is an answer, an act or a note.
type Line struct {
	Turn  string // its name: 3, or 4.2/0 in a strand
	Call  string // its name in the episode, such as 3:0; empty for a note
	Seat  string // empty for a note about everybody; the role for LineAsked
	Agent string // see Answerer
	Label string // of the call, or the kind of the note
	Said  LineType
	Text  string           // for a failure its kind, never its message; for a note its data: see Words
	To    string           // who can read it besides its writer, if not everybody
	Mark  string           // the kind's remark on the line: see part.Marker
	Reply *journal.Replied // that it is from; nil for a note
}

// LineType is the type of a line.
type LineType string

// The types of lines.
const (
	LineAsked   LineType = "asked" // what is new in a request of a record
	LineAnswer  LineType = "answer"
	LineThought LineType = "thought" // what a model wrote before its answer
	lineAct     LineType = "act"     // the result of an act
	LineFailed  LineType = "failed"
	LineNote    LineType = "note"
	LinePhase   LineType = "phase" // its text is the name of the phase that begins
)

// ReadTranscript reads the transcript of an episode. kind is the kind that played it, or zero. The
// transcript of a record also has what was asked: see part.Recorded.
func ReadTranscript(ctx context.Context, j journal.Journal, head *journal.Head, kind world.Kind, episode int) (*Transcript, error) {
	part, err := ReadLines(ctx, j, head.Begun, kind, episode, head.Progress(episode).Attempt, Wanted{})
	if err != nil {
		return nil, err
	}
	return part.Transcript, nil
}

// Entries returns what happened in the last attempt at an episode, without the words of its kind.
func Entries(ctx context.Context, j journal.Journal, episode int) ([]world.TranscriptEntry, error) {
	entries, err := journal.Episode(ctx, j, episode)
	if err != nil {
		return nil, err
	}
	last := 0
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			last = max(last, e.Attempt)
		case *journal.Replied:
			last = max(last, e.Attempt)
		}
	}
	return NewTranscript(nil, entries, last, world.Kind{}).Entries, nil
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

// NewTranscript returns the transcript of entries of a run: see Read. Only those of a record need the messages of requests.
func NewTranscript(begun *journal.Begun, entries []journal.Entry, attempt int, kind world.Kind) *Transcript {
	n := len(entries)
	t := &Transcript{Lines: make([]Line, 0, n), Entries: make([]world.TranscriptEntry, 0, n), lines: make([]int, 0, n), Asked: map[*journal.Replied][]llm.Message{}}
	said := make(map[string]int, n) // the lines of texts, from 1
	recorded, isRecord := world.As[part.Recorded](kind)
	_, hasStory := world.As[part.Storyteller](kind)
	var diff MessageDiff
	t.Turns = Turns(entries, attempt)
	for _, turn := range t.Turns {
		for _, n := range turn.notes() {
			// The notes of a program's calls are the bytes that it got: the replies say the same.
			hidden := journal.OfProgram(turn.Strand) || isRecord && t.hidden(kind, recorded, n)
			t.addNote(turn.Name(), n, said, hidden, hasStory)
			if !hidden {
				turn.Notes = append(turn.Notes, n)
			}
		}
		for _, e := range turn.Replies {
			t.Entries = append(t.Entries, world.TranscriptEntry{Turn: turn.Name(), Seat: e.Seat, Agent: e.Agent, Label: e.Label, Act: e.Act, Reply: e.Reply()})
			if isRecord && e.Request != nil {
				fresh := diff.New(e.Request, e.Response)
				t.Asked[e] = fresh
				for _, m := range fresh {
					t.Lines = append(t.Lines, Line{Turn: turn.Name(), Call: CallName(e), Seat: string(m.Role), Label: e.Label, Said: LineAsked, Text: m.Words(), Reply: e})
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
func (t *Transcript) hidden(kind world.Kind, recorded part.Recorded, n world.Note) (hidden bool) {
	if err := CallKind(kind, "Hidden", func() error { hidden = recorded.Hidden(n); return nil }); err != nil {
		t.Failed = err
	}
	return hidden
}

// addNote adds a note, and a line unless the note is hidden or only repeats a line. If the kind has a story, that has what
// else is in a note that repeats a line.
func (t *Transcript) addNote(turn string, n world.Note, said map[string]int, hidden, story bool) {
	t.Notes = append(t.Notes, n)
	t.Entries, t.lines = append(t.Entries, world.TranscriptEntry{Turn: turn, Note: &n}), append(t.lines, 0)
	if hidden {
		return
	}
	if name := n.Phase(); name != "" {
		t.Lines = append(t.Lines, Line{Turn: turn, Label: n.Kind, Said: LinePhase, Text: name})
		return
	}
	text, to, repeats, only := noteText(n, said)
	if repeats > 0 && (only || story) && (n.Seat == "" || n.Seat == t.Lines[repeats-1].Seat) {
		t.Lines[repeats-1].To = to
		return
	}
	t.Lines = append(t.Lines, Line{Turn: turn, Seat: n.Seat, Label: n.Kind, Said: LineNote, Text: text, To: to})
}

// Mark adds the marks of the kind's notes to the lines. Its error is one of CallKind.
func (t *Transcript) Mark(kind world.Kind) error {
	marker, ok := world.As[part.Marker](kind)
	if !ok {
		return nil
	}
	var marks map[int]string
	err := CallKind(kind, "Mark", func() error { marks = marksOf(marker, t.Entries); return nil })
	for i, mark := range marks {
		t.Lines[t.lines[i]-1].Mark = mark
	}
	return err
}

// Marks returns the marks of calls, by their names.
func (t *Transcript) Marks() map[string]string {
	marks := map[string]string{}
	for i := range t.Lines {
		if l := &t.Lines[i]; l.Mark != "" {
			marks[l.Call] = l.Mark
		}
	}
	return marks
}

// Call returns the reply to a call with a name, or nil.
func (t *Transcript) Call(name string) *journal.Replied {
	for _, turn := range t.Turns {
		for _, e := range turn.Replies {
			if CallName(e) == name {
				return e
			}
		}
	}
	return nil
}

func marksOf(marker part.Marker, entries []world.TranscriptEntry) map[int]string {
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
// called before. A story is bounded. Its error is one of CallKind; there is a story nevertheless.
func (t *Transcript) Story(kind world.Kind, p world.Played) (story []exhibit.Exhibit, err error) {
	if teller, ok := world.As[part.Storyteller](kind); ok {
		err = CallKind(kind, "Story", func() error { story = teller.Story(p, t.Entries); return nil })
	}
	if len(story) == 0 || err != nil {
		return t.turnByTurn(p), err
	}
	b := storyLimit{left: maxStory, playing: t.Playing}
	story = b.apply(story)
	t.findTurns(story)
	return story, nil
}

// findTurns gives frames with the name of a phase the turn in which that begins.
func (t *Transcript) findTurns(story []exhibit.Exhibit) {
	began := map[string]string{}
	for i := range t.Lines {
		if l := &t.Lines[i]; l.Said == LinePhase && began[l.Text] == "" {
			began[l.Text] = l.Turn
		}
	}
	for _, e := range story {
		replay, _ := e.Show.(exhibit.Replay)
		for i := range replay.Frames {
			f := &replay.Frames[i]
			f.Turn = cmp.Or(f.Turn, began[f.Title])
		}
	}
}

// Files returns the kind's files of an episode, if it makes any. Its error is one of
// CallKind.
func (t *Transcript) Files(kind world.Kind, plan json.RawMessage, p world.Played) (files map[string]string, err error) {
	if maker, ok := world.As[part.FileMaker](kind); ok {
		err = CallKind(kind, "Files", func() error { files = maker.Files(plan, p, t.Notes); return nil })
	}
	return files, err
}

// CallName returns the name of a call in its episode: 3:0, or 4.2/0:1 in a strand.
func CallName(e *journal.Replied) string {
	return TurnName(e.Strand, e.Turn.Turn) + ":" + strconv.Itoa(e.Index)
}

// replyLines returns the thoughts of a reply, and its answer, result or failure.
func replyLines(begun *journal.Begun, turn string, e *journal.Replied) (out []Line) {
	l := Line{Turn: turn, Call: CallName(e), Seat: e.Seat, Agent: Answerer(begun, e), Label: e.Label, Said: LineAnswer, Reply: e}
	reply := e.Reply()
	if !reply.OK() {
		l.Said, l.Text = LineFailed, strings.ReplaceAll(string(reply.Failed), "_", " ")
		return []Line{l}
	}
	if e.Act != nil {
		l.Said, l.Label = lineAct, e.Act.Name
	}
	for _, th := range reply.Thoughts {
		if strings.TrimSpace(th.Text) != "" {
			thought := l
			thought.Said, thought.Text = LineThought, th.Text
			out = append(out, thought)
		}
	}
	l.Text = e.Response.Words()
	return append(out, l)
}

// noteText returns the text of a note, to whom it was said, if its data has that, and the line whose words it repeats, or 0.
// only means that the note says nothing else.
func noteText(n world.Note, said map[string]int) (text, to string, repeats int, only bool) {
	if json.Unmarshal(n.Data, &text) == nil {
		return text, "", said[strings.TrimSpace(text)], true
	}
	var fields struct {
		Text string          `json:"text"`
		To   json.RawMessage `json:"to"`
	}
	if json.Unmarshal(n.Data, &fields) != nil {
		return compact(n.Data), "", 0, false
	}
	var many []string
	if json.Unmarshal(fields.To, &to) != nil && json.Unmarshal(fields.To, &many) == nil {
		to = strings.Join(many, ", ")
	}
	if fields.Text != "" {
		repeats = said[strings.TrimSpace(fields.Text)]
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(n.Data, &all) // fields has its text
	text = compact(n.Data)
	if repeats > 0 {
		text = strings.Replace(text, string(all["text"]), `"…"`, 1)
	}
	delete(all, "text")
	delete(all, "to")
	return text, to, repeats, len(all) == 0
}

// kindText returns the kind of a note as Readable writes a field of that name.
func (l *Line) kindText() string { return strings.ReplaceAll(l.Label, "_", " ") + ": " }

// Words returns the text of the line for people: a structured answer, and the data of a note, as lines. A note whose data only
// repeats its kind, as {"role":"wolf"} of the kind role, has only the value.
func (l *Line) Words() string {
	switch l.Said {
	case LineAnswer:
		return Readable(l.Text)
	case LineNote:
		text := l.Text
		if text == "null" {
			return "" // the kind of the note says everything
		}
		if !IsData(text) {
			return text
		}
		lines, flat := dataLines(text)
		if value, ok := strings.CutPrefix(strings.Join(lines, "\n"), l.kindText()); ok && len(lines) == 1 {
			return value
		}
		join := joinFields
		if strings.HasPrefix(strings.TrimSpace(text), "[") {
			join = joinItems
		}
		if one, ok := join(lines, flat); ok && len(lines) > 0 {
			return one
		}
		return readableData(text)
	default:
		return l.Text
	}
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// Turn is a turn of a strand with its replies, in the order of its calls.
type Turn struct {
	Strand  string
	Number  int
	Turned  *journal.Turned // nil if it was not recorded
	Replies []*journal.Replied
	Notes   []world.Note // those of Turned that the kind does not hide; only in a Transcript
}

// notes returns all notes.
func (t *Turn) notes() []world.Note {
	if t.Turned == nil {
		return nil
	}
	return t.Turned.Notes
}

// Name returns the name of the turn: 3, or 4.2/0 in a strand.
func (t *Turn) Name() string { return TurnName(t.Strand, t.Number) }

// TurnName returns the name of a turn.
func TurnName(strand string, turn int) string { return strand + strconv.Itoa(turn) }

// Turns returns the turns of an attempt in the order of a transcript: a fork is followed by
// its strands, one after the other, whatever order they were played in.
func Turns(entries []journal.Entry, attempt int) []*Turn {
	type name struct {
		strand string
		turn   int
	}
	all := make([]*Turn, 0, len(entries)/2+1)
	byName := make(map[name]*Turn, len(entries)/2+1)
	at := func(t journal.Turn) *Turn {
		of := byName[name{t.Strand, t.Turn}]
		if of == nil {
			of = &Turn{Strand: t.Strand, Number: t.Turn}
			byName[name{t.Strand, t.Turn}] = of
			all = append(all, of)
		}
		return of
	}
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			if e.Attempt == attempt {
				at(e.Turn).Turned = e
			}
		case *journal.Replied:
			if e.Attempt == attempt {
				t := at(e.Turn)
				t.Replies = append(t.Replies, e)
			}
		}
	}
	for _, t := range all {
		slices.SortStableFunc(t.Replies, func(a, b *journal.Replied) int { return cmp.Compare(a.Index, b.Index) })
	}
	slices.SortStableFunc(all, func(a, b *Turn) int {
		if a.Strand == b.Strand {
			return cmp.Compare(a.Number, b.Number)
		}
		return CompareTurns(a.Name(), b.Name())
	})
	return all
}

// CompareTurns orders the names of turns as a transcript does.
func CompareTurns(a, b string) int { return slices.Compare(turnPath(a), turnPath(b)) }

// turnPath returns the numbers in the name of a turn. They sort turns in the order of a transcript.
func turnPath(turn string) (path []int) {
	for word := range strings.FieldsFuncSeq(turn, func(r rune) bool { return r == '.' || r == '/' }) {
		n, _ := strconv.Atoi(word) // the engine writes only numbers
		path = append(path, n)
	}
	return path
}

// CallKind calls a part of a kind. A panic in it becomes an error that names the kind and the part,
// so that the reader can continue without the part.
func CallKind(kind world.Kind, name string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the kind %s: %s panicked: %v", kind.Name, name, p)
		}
	}()
	if err := call(); err != nil {
		return fmt.Errorf("the kind %s: %s: %w", kind.Name, name, err)
	}
	return nil
}
