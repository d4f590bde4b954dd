package runfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/llm"
)

// storedText is a row of the table texts, which has what many calls share: messages, the settings of requests, params and lineups.
// A textKey identifies equal content, so that a writer stores it once.
type storedText struct {
	words   string
	parts   []llm.Part // of a message: all messages with the text share them
	rest    *messageRest
	bytes   int64        // of words and rest
	request *llm.Request // words as settings, once they are read as such
	added   bool         // the message was added to the writer's keys
}

// size returns about how much memory t takes.
func (t *storedText) size() int {
	n := 200 + len(t.words)
	if t.rest != nil {
		n += t.rest.Size()
	}
	return n
}

// otherRole is the letter of a role other than the four.
const otherRole = 'x'

// roleLetter returns a role as the column roles has it.
func roleLetter(r llm.Role) byte {
	switch r {
	case llm.RoleSystem, llm.RoleUser, llm.RoleAssistant, llm.RoleTool:
		return r[0]
	default:
		return otherRole
	}
}

// roleOf returns the role of a letter. rest may be nil.
func roleOf(letter byte, rest *messageRest) llm.Role {
	for _, r := range []llm.Role{llm.RoleUser, llm.RoleAssistant, llm.RoleSystem, llm.RoleTool} {
		if r[0] == letter {
			return r
		}
	}
	if rest != nil {
		return llm.Role(rest.Role)
	}
	return ""
}

// isPlain reports whether a message is one text of a known role, as most are.
func isPlain(m *llm.Message) bool {
	return len(m.Parts) == 1 && m.Parts[0].IsText() && roleLetter(m.Role) != otherRole &&
		len(m.Thoughts) == 0 && len(m.ToolCalls) == 0 && m.ToolCallID == "" && !m.ToolFailed
}

// messageRest is everything in a message except its text. Parts is set unless the message has
// exactly one part, a text.
type messageRest struct {
	Role       string         `json:"role,omitempty"` // if it is not one of the four
	Parts      []llm.Part     `json:"parts,omitempty"`
	Empty      bool           `json:"empty,omitempty"` // the message has no parts
	Thoughts   []llm.Thought  `json:"thoughts,omitempty"`
	ToolCalls  []llm.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`
	ToolFailed bool           `json:"tool_failed,omitempty"`
}

// newRest returns the rest of a message.
func newRest(m *llm.Message) messageRest {
	r := messageRest{Thoughts: m.Thoughts, ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID, ToolFailed: m.ToolFailed}
	if roleLetter(m.Role) == otherRole {
		r.Role = string(m.Role)
	}
	switch {
	case len(m.Parts) == 0:
		r.Empty = true
	case len(m.Parts) > 1 || !m.Parts[0].IsText():
		r.Parts = m.Parts
	}
	return r
}

// parts returns the parts of the message with the given text.
func (r *messageRest) parts(text string) []llm.Part {
	switch {
	case len(r.Parts) > 0:
		return r.Parts
	case !r.Empty:
		return []llm.Part{{Text: text}}
	}
	return nil
}

// Size returns about how many bytes of memory the parts take.
func (r *messageRest) Size() (n int) {
	for _, p := range r.Parts {
		n += len(p.Text)
		if p.Image != nil {
			n += len(p.Image.Data)
		}
		if p.File != nil {
			n += len(p.File.Data)
		}
	}
	return n
}

// requestSettings is a request without its messages, and without what differs in every call.
type requestSettings struct {
	llm.Request
	Messages  *struct{}     `json:"messages,omitempty"` // hides those of Request
	Deadline  time.Duration `json:"deadline,omitempty"`
	Fallbacks []string      `json:"fallbacks,omitempty"`
}

// encodeSettings writes the settings of a request as JSON.
func encodeSettings(r *llm.Request) (string, error) {
	s := requestSettings{Request: *r, Deadline: r.Deadline, Fallbacks: r.Fallbacks}
	s.Sample = 0
	return encode(s)
}

// decodeSettings reads what encodeSettings writes.
func decodeSettings(text string) (*llm.Request, error) {
	var s requestSettings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, err
	}
	r := s.Request
	r.Messages, r.Deadline, r.Fallbacks = nil, s.Deadline, s.Fallbacks
	return &r, nil
}

// encode writes v as JSON without HTML escapes.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// appendIDs appends ids as a JSON list.
func appendIDs(b []byte, ids []int64) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return append(b, ']')
}

// parseIDs reads what appendIDs writes.
func parseIDs(list string) (out []int64, err error) {
	list, opened := strings.CutPrefix(list, "[")
	list, closed := strings.CutSuffix(list, "]")
	if !opened || !closed {
		return nil, errors.New("its prompt is not a list")
	}
	if list != "" {
		out = make([]int64, 0, 1+strings.Count(list, ","))
	}
	for list != "" {
		var first string
		first, list, _ = strings.Cut(list, ",")
		id, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return nil, errors.New("its prompt is not a list of numbers")
		}
		out = append(out, id)
	}
	return out, nil
}

// textID returns the id of a text, and stores the text if it is new.
func (w *writer) textID(text string) (int64, error) {
	k := w.hasher.Text(text)
	if id, ok := w.keys.Find(k); ok {
		return id, nil
	}
	return w.putText(k, text, "")
}

// episodeTextID is textID for a text that may be one of episodeTexts, which takes less time to find out.
func (w *writer) episodeTextID(texts *episodeTexts, text string) (int64, error) {
	if id := texts.Find(text); id != 0 {
		return id, nil
	}
	id, err := w.textID(text)
	if err != nil {
		return 0, err
	}
	w.keys.Remember(texts, text, id)
	return id, nil
}

// messageID returns the id of a message, and stores the message if it is new.
func (w *writer) messageID(texts *episodeTexts, m *llm.Message) (int64, error) {
	if isPlain(m) {
		return w.episodeTextID(texts, m.Parts[0].Text)
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

func (w *writer) putText(k textKey, text, rest string) (int64, error) {
	id := w.totals.texts + 1
	r, err := w.rows.Row(`INSERT INTO texts (id, sum, text, rest) VALUES (?, ?, ?, ?)`, tableTexts, id, 1)
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

// textsKept is how many bytes of texts a reader keeps at least.
const textsKept = 8 << 20

func (r *reader) forgetTexts() { r.texts = newRecent[int64](textsKept, (*storedText).size) }

// text returns a text. The text 0 is empty.
func (r *reader) text(id int64) (t *storedText, err error) {
	if id == 0 {
		return &storedText{}, nil
	}
	if t, ok := r.texts.Find(id); ok {
		return t, nil
	}
	err = findRow(r.byKey.text, tableTexts, id, func(c rowReader) (err error) {
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
func (r *reader) readText(c rowReader) (*storedText, error) {
	c.Begin(tableTexts, 1)
	words, rest := c.Text(), c.Optional()
	if err := c.Check(); err != nil {
		return nil, err
	}
	t := &storedText{words: words, parts: []llm.Part{{Text: words}}, bytes: int64(len(words) + len(rest))}
	if rest != "" {
		t.rest = &messageRest{}
		if err := json.Unmarshal([]byte(rest), t.rest); err != nil {
			return nil, c.Bad("cannot be read: " + err.Error())
		}
		t.parts = t.rest.parts(words)
	} else if r.keys != nil {
		r.keys.Add(r.hasher.Text(words), c.Key)
	}
	r.texts.Add(c.Key, t)
	return t, nil
}

// message returns a text as a message of the role with the given letter, and how many bytes it has in the file.
func (r *reader) message(id int64, letter byte) (m llm.Message, bytes int64, err error) {
	t, err := r.text(id)
	if err != nil {
		return m, 0, err
	}
	m = llm.Message{Role: roleOf(letter, t.rest), Parts: t.parts}
	if t.rest == nil {
		return m, t.bytes, nil
	}
	m.Thoughts, m.ToolCalls, m.ToolCallID, m.ToolFailed = t.rest.Thoughts, t.rest.ToolCalls, t.rest.ToolCallID, t.rest.ToolFailed
	if r.keys != nil && !t.added {
		t.added = true
		r.keys.Add(r.hasher.Message(&m), id)
	}
	return m, t.bytes, nil
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
		return nil, &rowError{Table: tableTexts, Key: id, Why: "cannot be read: " + err.Error()}
	}
	if r.keys != nil {
		r.keys.Add(r.hasher.Settings(t.request), id)
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

func (r *reader) lineup(id int64) (map[string]string, error) {
	return textJSON[map[string]string](r, id)
}

func (r *reader) more(id int64) (specMore, error) { return textJSON[specMore](r, id) }

// textJSON decodes a text that is JSON.
func textJSON[T any](r *reader, id int64) (v T, err error) {
	t, err := r.text(id)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal([]byte(t.words), &v); err != nil {
		return v, errors.Join(ErrDamaged, err)
	}
	return v, nil
}
