package runfile

import (
	"fmt"

	"parley/internal/ask/wire/body"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// put stores an entry as the last one.
func (w *writer) put(e journal.Entry) error {
	switch e := e.(type) {
	case *journal.Turned:
		return w.putTurned(e)
	case *journal.Replied:
		return w.putReplied(e)
	case *journal.Ended:
		return w.putEnded(e)
	case *journal.Staged:
		return w.putStaged(e)
	default:
		return w.putEvent(e)
	}
}

// insert stores a turn or a reply in this file.
func (w *writer) insert(s *step) error {
	if e, ok := s.Entry.(*journal.Turned); ok {
		return w.insertTurn(s, e)
	}
	return w.insertReply(s, s.Entry.(*journal.Replied))
}

func (w *writer) putStaged(e *journal.Staged) error {
	r, err := w.rows.Row(`INSERT INTO stages (seq, sum, stage, first, count) VALUES (?, ?, ?, ?, ?)`, rowStages, w.totals.seq, 1)
	if err != nil {
		return err
	}
	r.Int(int64(e.Stage))
	r.Int(int64(e.First))
	r.Int(int64(e.Specs.Len()))
	r.Seal()
	w.totals.stages++
	w.totals.episodes += int64(e.Specs.Len())
	if err := r.Do(); err != nil {
		return err
	}
	return w.putSpecs(e.First, e.Specs)
}

func (w *writer) putTurned(e *journal.Turned) error {
	p, prev, err := w.advance(e.Episode, -w.totals.seq)
	if err != nil {
		return err
	}
	p.Turned(e)
	w.totals.turns++
	return w.store(e.Episode, step{e, w.totals.seq, prev, &p.said})
}

func (w *writer) insertTurn(s *step, e *journal.Turned) error {
	notes, err := w.encodeNotes(e.Notes)
	if err != nil {
		return fmt.Errorf("notes: %w", err)
	}
	r, err := w.rows.Row(`INSERT INTO turns (`+turnColumns+`, notes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, rowTurns, s.seq, 1)
	if err != nil {
		return err
	}
	r.Int(s.prev)
	putTurn(&r, e.Turn)
	r.Int(int64(e.Calls))
	r.Bytes(e.Digest[:])
	r.Seal()
	r.Optional(notes)
	r.Seal()
	return r.Do()
}

// encodeNotes writes notes as JSON. It does not use reflection, since most turns have notes.
func (w *writer) encodeNotes(notes []world.Note) (string, error) {
	if len(notes) == 0 {
		return "", nil
	}
	b := append(w.notes[:0], '[')
	for i := range notes {
		n := &notes[i]
		if !body.Valid(n.Data) {
			return encode(notes) // it has no data, or says what is wrong
		}
		b = body.Str(body.Open(b, '{'), "kind", n.Kind)
		if n.Seat != "" {
			b = body.Str(b, "seat", n.Seat)
		}
		b = append(body.Raw(b, "data", n.Data), '}')
	}
	b = append(b, ']')
	if cap(b) <= 1<<20 { // notes are rarely longer
		w.notes = b
	}
	return string(b), nil
}

func putTurn(r *rowWriter, t journal.Turn) {
	r.Int(int64(t.Episode))
	r.Int(int64(t.Attempt))
	r.Text(t.Strand)
	r.Int(int64(t.Turn))
}

// textID returns the id of a text, and stores the text if it is new.
func (w *writer) textID(text string) (int64, error) {
	k := w.hasher.Text(text)
	if id, ok := w.keys.Find(k); ok {
		return id, nil
	}
	return w.putText(k, text, "")
}

// saidID is textID for a text of an episode that may have said it before.
func (w *writer) saidID(said *contentSaid, text string) (int64, error) {
	if id := said.Find(text); id != 0 {
		return id, nil
	}
	id, err := w.textID(text)
	if err != nil {
		return 0, err
	}
	w.keys.Say(said, text, id)
	return id, nil
}

// messageID returns the id of a message, and stores the message if it is new.
func (w *writer) messageID(said *contentSaid, m *llm.Message) (int64, error) {
	if contentPlain(m) {
		return w.saidID(said, m.Parts[0].Text)
	}
	k := w.hasher.Message(m)
	if id, ok := w.keys.Find(k); ok {
		return id, nil
	}
	rest, err := encode(newRest(m))
	if err != nil {
		return 0, err
	}
	return w.putText(k, m.Text(), rest)
}

// settingsID returns the id of a request's settings, and stores them if they are new.
func (w *writer) settingsID(q *llm.Request) (int64, error) {
	k := w.hasher.Settings(q)
	if id, ok := w.keys.Find(k); ok {
		return id, nil
	}
	text, err := encodeSettings(q)
	if err != nil {
		return 0, err
	}
	return w.putText(k, text, "")
}

func (w *writer) putText(k contentKey, text, rest string) (int64, error) {
	id := w.textNumber(w.totals.texts + 1)
	r, err := w.rows.Row(`INSERT INTO texts (id, sum, text, rest) VALUES (?, ?, ?, ?)`, rowTexts, id, 1)
	if err != nil {
		return 0, err
	}
	r.Text(text)
	r.Optional(rest)
	r.Seal()
	if err := r.Do(); err != nil {
		return 0, err
	}
	w.totals.texts++
	w.keys.Add(k, id)
	return id, nil
}
