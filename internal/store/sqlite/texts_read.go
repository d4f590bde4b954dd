package sqlite

import (
	"encoding/json"
	"slices"

	"parley/llm"
)

// text is a row of texts.
type text struct {
	words string
	parts []llm.Part
	rest  *rest
	// request is words read as settings, once somebody did.
	request *llm.Request
	told    bool // the writer knows of it
}

// size is about how much memory t takes.
func (t *text) size() int {
	n := 200 + len(t.words)
	if t.rest != nil {
		for _, p := range t.rest.Parts {
			n += len(p.Text)
			if p.Image != nil {
				n += len(p.Image.Data)
			}
		}
	}
	return n
}

// textsKept is how many bytes of texts a reader keeps at least.
const textsKept = 8 << 20

// text reads a row of texts, or finds it among those read lately. There is no text 0.
func (r *reader) text(id int64) (t *text, err error) {
	if id == 0 {
		return &text{}, nil
	}
	if t, ok := r.texts.find(id); ok {
		return t, nil
	}
	err = one(r.chain.text, tableTexts, id, func(c columns) (err error) {
		t, err = r.keep(c)
		return err
	})
	return t, err
}

// fetch reads those texts of ids that are not at hand, all at once.
func (r *reader) fetch(ids []int64) error {
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id int64) bool {
		_, ok := r.texts.find(id)
		return ok || id == 0
	})
	if len(ids) == 0 {
		return nil
	}
	s := r.chain.texts
	defer done(s)
	s.BindText(1, string(appendList(nil, ids)))
	for {
		found, err := s.Step()
		if err != nil || !found {
			return err
		}
		if _, err := r.keep(newColumns(s)); err != nil {
			return err
		}
	}
}

// keep reads a text and keeps it at hand. The writer is told, since an episode that is
// played on will say it again.
func (r *reader) keep(c columns) (*text, error) {
	id, words, more := c.key(tableTexts, 1), c.str(), c.opt()
	if err := c.check(); err != nil {
		return nil, err
	}
	t := &text{words: words, parts: []llm.Part{{Text: words}}}
	if more != "" {
		t.rest = &rest{}
		if err := json.Unmarshal([]byte(more), t.rest); err != nil {
			return nil, &rowError{table: tableTexts, key: id, why: "cannot be read: " + err.Error()}
		}
	} else if r.keys != nil {
		r.keys.add(r.print.text(words), id)
	}
	r.texts.add(id, t)
	return t, nil
}

// message reads a text as a message of whom the letter says.
func (r *reader) message(id int64, letter byte) (llm.Message, error) {
	t, err := r.text(id)
	if err != nil {
		return llm.Message{}, err
	}
	if t.rest == nil {
		return llm.Message{Role: roleOf(letter, nil), Parts: t.parts}, nil
	}
	m := t.rest.message(t.words)
	m.Role = roleOf(letter, t.rest)
	if r.keys != nil && !t.told {
		t.told = true
		r.keys.add(r.print.message(&m), id)
	}
	return m, nil
}

// settings reads a text as what a request has beside its messages.
func (r *reader) settings(id int64) (*llm.Request, error) {
	t, err := r.text(id)
	if err != nil {
		return nil, err
	}
	if t.request != nil {
		return t.request, nil
	}
	var s settings
	if err := json.Unmarshal([]byte(t.words), &s); err != nil {
		return nil, &rowError{table: tableTexts, key: id, why: "cannot be read: " + err.Error()}
	}
	t.request = s.request()
	if r.keys != nil {
		r.keys.add(r.print.settings(t.request), id)
	}
	return t.request, nil
}
