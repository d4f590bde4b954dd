package runfile

import (
	"encoding/json"
	"errors"
	"slices"

	"parley/llm"
)

// sqliteText is a row of texts.
type sqliteText struct {
	words   string
	parts   []llm.Part
	rest    *contentRest
	request *llm.Request // words as settings, once they are read as such
	added   bool         // the message was added to the writer's keys
}

// size returns about how much memory t takes.
func (t *sqliteText) size() int {
	n := 200 + len(t.words)
	if t.rest != nil {
		n += t.rest.Size()
	}
	return n
}

// textsKept is how many bytes of texts a reader keeps at least.
const textsKept = 8 << 20

func (r *reader) forgetTexts() { r.texts = newRecent[int64](textsKept, (*sqliteText).size) }

// text returns a text. The text 0 is empty.
func (r *reader) text(id int64) (t *sqliteText, err error) {
	if id == 0 {
		return &sqliteText{}, nil
	}
	if t, ok := r.texts.Find(id); ok {
		return t, nil
	}
	err = one(r.byKey.text, rowTexts, id, func(c rowReader) (err error) {
		t, err = r.readText(c)
		return err
	})
	return t, err
}

// fetch reads texts that the reader does not have, all at once.
func (r *reader) fetch(ids []int64) error {
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id int64) bool {
		_, ok := r.texts.Find(id)
		return ok || id == 0
	})
	if len(ids) == 0 {
		return nil
	}
	s := r.byKey.texts
	defer reset(s)
	s.BindText(1, string(appendIDs(nil, ids)))
	for {
		found, err := s.Step()
		if err != nil || !found {
			return err
		}
		if _, err := r.readText(newRowReader(s)); err != nil {
			return err
		}
	}
}

// readText reads a text and keeps it. It adds it to the writer's keys, because an episode
// that is resumed will use it again.
func (r *reader) readText(c rowReader) (*sqliteText, error) {
	c.Begin(rowTexts, 1)
	words, rest := c.Text(), c.Optional()
	if err := c.Check(); err != nil {
		return nil, err
	}
	t := &sqliteText{words: words, parts: []llm.Part{{Text: words}}}
	if rest != "" {
		t.rest = &contentRest{}
		if err := json.Unmarshal([]byte(rest), t.rest); err != nil {
			return nil, c.Bad("cannot be read: " + err.Error())
		}
	} else if k := r.keysOf(c.Key); k != nil {
		k.Add(r.hasher.Text(words), c.Key)
	}
	r.texts.Add(c.Key, t)
	return t, nil
}

// message returns a text as a message of the role with the given letter.
func (r *reader) message(id int64, letter byte) (llm.Message, error) {
	t, err := r.text(id)
	if err != nil {
		return llm.Message{}, err
	}
	if t.rest == nil {
		return llm.Message{Role: role(letter, nil), Parts: t.parts}, nil
	}
	m := t.rest.Message(t.words, letter)
	if k := r.keysOf(id); k != nil && !t.added {
		t.added = true
		k.Add(r.hasher.Message(&m), id)
	}
	return m, nil
}

// settings returns a text as a request without messages.
func (r *reader) settings(id int64) (*llm.Request, error) {
	t, err := r.text(id)
	if err != nil {
		return nil, err
	}
	if t.request != nil {
		return t.request, nil
	}
	if t.request, err = decodeSettings(t.words); err != nil {
		return nil, &rowError{Table: rowTexts, Key: id, Why: "cannot be read: " + err.Error()}
	}
	if k := r.keysOf(id); k != nil {
		k.Add(r.hasher.Settings(t.request), id)
	}
	return t.request, nil
}

func (r *reader) params(id int64) (json.RawMessage, error) {
	t, err := r.text(id)
	if err != nil || t.words == "" {
		return nil, err
	}
	return json.RawMessage(t.words), nil
}

func (r *reader) lineup(id int64) (lineup map[string]string, err error) {
	t, err := r.text(id)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(t.words), &lineup); err != nil {
		return nil, errors.Join(ErrDamaged, err)
	}
	return lineup, nil
}
