package view

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Transcript is what happened in the last attempt at an episode, in the order it is read:
// a fork is followed by its strands, one after the other, however they were played.
type Transcript struct {
	Episode int
	Lines   []Line
	Notes   []world.Note            // all of them
	Told    []world.TranscriptEntry // all of it, for a kind's own story
	Failed  error                   // of CallPart: a part of the kind that lines lack

	lines []int // of Told: the line after the last of its lines
}

// Line is something that was said, done or noted.
type Line struct {
	Turn  string // 3, or 4.2/0 in a strand
	Seat  string // who; empty for a note about everybody; of what was asked: the role
	Agent string
	Label string // what was asked for, or the kind of the note
	Said  Said
	Text  string // of a failure: its kind, never its words
	Mark  string // what the words do, as the kind says it: see world.Marker
}

// Said is what a line is.
type Said string

// What lines are.
const (
	SaidAsked   Said = "asked" // what is new in a request of a record
	SaidAnswer  Said = "answer"
	SaidThought Said = "thought" // what a model said to itself before its answer
	SaidAct     Said = "act"     // what came of something done on the outside
	SaidFailed  Said = "failed"
	SaidNote    Said = "note"
)

// ReadTranscript reads one.
func ReadTranscript(ctx context.Context, j journal.Journal, r *Run, episode int) (*Transcript, error) {
	entries, err := journal.Episode(ctx, j, episode)
	if err != nil {
		return nil, err
	}
	t := &Transcript{Episode: episode}
	said := map[string]bool{}
	hear := &Hearing{}
	recorded, isRecord := r.Recorded()
	for _, at := range arranged(entries, r.Head.Progress(episode).Attempt) {
		if at.turned != nil {
			for _, n := range at.turned.Notes {
				t.Notes = append(t.Notes, n)
				t.Told, t.lines = append(t.Told, world.TranscriptEntry{Note: &n}), append(t.lines, 0)
				if isRecord {
					hidden := false
					if err := CallPart(r.kind, "Hidden", func() error { hidden = recorded.Hidden(n); return nil }); err != nil {
						t.Failed = err // the note is then shown
					}
					if hidden {
						continue
					}
				}
				if text, repeats := noteText(n, said); !repeats {
					t.Lines = append(t.Lines, Line{Turn: at.name, Seat: n.Seat, Label: n.Kind, Said: SaidNote, Text: text})
				}
			}
		}
		for _, e := range at.replies {
			t.Told = append(t.Told, world.TranscriptEntry{Seat: e.Seat, Agent: e.Agent, Label: e.Label, Act: e.Act, Reply: e.Reply()})
			if isRecord {
				t.Lines = append(t.Lines, askLines(at.name, e, hear)...)
			}
			for _, l := range replyLines(at.name, e) {
				said[strings.TrimSpace(l.Text)] = true
				t.Lines = append(t.Lines, l)
			}
			t.lines = append(t.lines, len(t.Lines))
		}
	}
	return t, nil
}

// Mark puts beside the lines what notes of the kind say about them. Its error is one of CallPart.
func (t *Transcript) Mark(kind world.Kind) error {
	marks, err := Marks(kind, t.Told)
	for i, mark := range marks {
		t.Lines[t.lines[i]-1].Mark = mark
	}
	return err
}

// Marks finds which replies of a transcript notes say something about: index to what they say. Its error is one of
// CallPart.
func Marks(kind world.Kind, told []world.TranscriptEntry) (marks map[int]string, err error) {
	marker, ok := world.As[world.Marker](kind)
	if !ok {
		return nil, nil
	}
	err = CallPart(kind, "Mark", func() error { marks = marksOf(marker, told); return nil })
	return marks, err
}

func marksOf(marker world.Marker, told []world.TranscriptEntry) map[int]string {
	marks := map[int]string{}
	last := map[[2]string]int{} // by seat and words
	for i, t := range told {
		if t.Note == nil {
			last[[2]string{t.Seat, strings.TrimSpace(t.Reply.Text)}] = i
			continue
		}
		words, mark := marker.Mark(*t.Note)
		if at, ok := last[[2]string{t.Note.Seat, strings.TrimSpace(words)}]; ok && mark != "" {
			marks[at] = mark
		}
	}
	return marks
}

// Story is what there is to look at of an episode, as its kind tells it; nothing where the
// kind does not. Its error is one of CallPart.
func (t *Transcript) Story(kind world.Kind, p world.Played) (story []world.Exhibit, err error) {
	if teller, ok := world.As[world.Storyteller](kind); ok {
		err = CallPart(kind, "Story", func() error { story = teller.Story(p, t.Told); return nil })
	}
	return story, err
}

// Files are the files of an episode, as its kind makes them; none where the kind does not. Its error is one of CallPart.
func (t *Transcript) Files(kind world.Kind, p world.Played) (files map[string]string, err error) {
	if maker, ok := world.As[world.FileMaker](kind); ok {
		err = CallPart(kind, "Files", func() error { files = maker.Files(p, t.Notes); return nil })
	}
	return files, err
}

// arrangement is a turn with its replies.
type arrangement struct {
	name    string
	place   []int
	turned  *journal.Turned
	replies []*journal.Replied
}

func arranged(entries []journal.Entry, attempt int) []*arrangement {
	var all []*arrangement
	byName := map[string]*arrangement{}
	at := func(t journal.Turn) *arrangement {
		name := t.Strand + strconv.Itoa(t.Turn)
		if byName[name] == nil {
			byName[name] = &arrangement{name: name, place: place(t)}
			all = append(all, byName[name])
		}
		return byName[name]
	}
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			if e.Attempt == attempt {
				at(e.Turn).turned = e
			}
		case *journal.Replied:
			if e.Attempt == attempt {
				a := at(e.Turn)
				a.replies = append(a.replies, e)
			}
		}
	}
	for _, a := range all {
		slices.SortStableFunc(a.replies, func(x, y *journal.Replied) int { return cmp.Compare(x.Index, y.Index) })
	}
	slices.SortStableFunc(all, func(x, y *arrangement) int { return slices.Compare(x.place, y.place) })
	return all
}

// place is the numbers of a turn's name, which sort as a transcript is read.
func place(t journal.Turn) []int {
	var at []int
	for word := range strings.FieldsFuncSeq(t.Strand, func(r rune) bool { return r == '.' || r == '/' }) {
		n, _ := strconv.Atoi(word) // the engine writes nothing else
		at = append(at, n)
	}
	return append(at, t.Turn)
}

// Recorded returns that part of the run's kind, as far as it is known (see Know): ok is whether the run is a record of
// what other programs asked. Other kinds note what their seats are told; of a record nothing but its requests says so.
func (r *Run) Recorded() (part world.Recorded, ok bool) { return world.As[world.Recorded](r.kind) }

// askLines are what is new in the request of a reply.
func askLines(turn string, e *journal.Replied, hear *Hearing) (out []Line) {
	if e.Request == nil {
		return nil
	}
	for _, m := range hear.New(e.Request, e.Response) {
		out = append(out, Line{Turn: turn, Seat: string(m.Role), Label: e.Label, Said: SaidAsked, Text: MessageText(&m)})
	}
	return out
}

// replyLines are the thoughts of a reply, if it has any, and what it came to.
func replyLines(turn string, e *journal.Replied) []Line {
	l := Line{Turn: turn, Seat: e.Seat, Agent: e.Agent, Label: e.Label, Said: SaidAnswer}
	reply := e.Reply()
	if !reply.OK() {
		l.Said, l.Text = SaidFailed, strings.ReplaceAll(string(reply.Failed), "_", " ")
		return []Line{l}
	}
	if e.Act != nil {
		l.Said, l.Label = SaidAct, e.Act.Name
	}
	var out []Line
	for _, th := range reply.Thoughts {
		if strings.TrimSpace(th.Text) != "" {
			thought := l
			thought.Said, thought.Text = SaidThought, th.Text
			out = append(out, thought)
		}
	}
	l.Text = answerText(e.Response)
	return append(out, l)
}

func answerText(a *llm.Response) string {
	parts := []string{a.Text}
	if a.Text == "" && a.JSON != nil {
		parts[0] = compact(a.JSON)
	}
	if a.Refusal != "" {
		parts = append(parts, "(refused) "+a.Refusal)
	}
	for _, c := range a.ToolCalls {
		parts = append(parts, c.Name+"("+c.Arguments+")")
	}
	return strings.TrimSpace(strings.Join(parts, "\n"))
}

// noteText is what a note says, and whether that is only what somebody just said.
func noteText(n world.Note, said map[string]bool) (text string, repeats bool) {
	if json.Unmarshal(n.Data, &text) == nil {
		return text, said[strings.TrimSpace(text)]
	}
	var fields struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(n.Data, &fields) == nil && fields.Text != "" && said[strings.TrimSpace(fields.Text)] {
		return "", true
	}
	return compact(n.Data), false
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
