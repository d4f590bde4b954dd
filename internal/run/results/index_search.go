package results

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	db "zombiezen.com/go/sqlite"

	"parley/journal"
	"parley/llm"
)

// Hit is a text that has all the words of a search.
type Hit struct {
	ID      int
	Episode int
	Call    string // TURN:INDEX of a call, or TURN of a note
	What    string // answer, thought, asked or note
	Seat    string
}

// UpdateTexts brings the texts of the index up to date: those of at most limit entries. It returns
// how many entries of the run it has.
func (x *Index) UpdateTexts(ctx context.Context, limit int) (entries int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	last := x.meta.texts
	err = x.inTransaction(func() error {
		if err := x.readMeta(); err != nil {
			return err
		}
		if x.room = x.limit(); x.full() {
			last, err = x.store.Entries()
		} else {
			last, err = x.store.ReadPart(ctx, x.meta.texts, limit, x.putTexts)
		}
		if err != nil || last == x.meta.texts {
			return err
		}
		return x.exec(`UPDATE meta SET texts = ?, bytes = ?`, last, x.meta.bytes)
	})
	if err != nil {
		return x.meta.texts, err
	}
	x.meta.texts = last
	return last, nil
}

// full reports whether the texts are as large as they may get. A text that many calls repeat is in the run file once, and in the
// index as often as it is new to a call.
func (x *Index) full() bool { return int64(x.meta.bytes) > x.room }

// Full reports whether texts are left out of the search, since there are too many.
func (x *Index) Full() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.full()
}

// putTexts adds the texts of an entry.
func (x *Index) putTexts(e journal.Entry) error {
	switch e := e.(type) {
	case *journal.Turned:
		for _, n := range e.Notes {
			if err := x.putText(e.Turn, "", Note, n.Seat, string(n.Data)); err != nil {
				return err
			}
		}
	case *journal.Replied:
		for _, what := range []string{Asked, Thought, Answer} {
			for _, text := range ReplyTexts(e, what) {
				if err := x.putText(e.Turn, ":"+strconv.Itoa(e.Index), what, e.Seat, text); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// What a text is.
const (
	Asked   = "asked" // a new message of a request
	Thought = "thought"
	Answer  = "answer"
	Note    = "note"
)

// ReplyTexts returns the texts of a reply that are of a sort.
func ReplyTexts(e *journal.Replied, what string) (out []string) {
	switch {
	case what == Asked && e.Request != nil:
		fresh := e.Request.Messages[newMessages(e.Request.Messages):]
		for i := range fresh {
			out = append(out, fresh[i].Words())
		}
	case what == Thought && e.Response != nil:
		for _, t := range e.Response.Thoughts {
			out = append(out, t.Text)
		}
	case what == Answer && e.Response != nil:
		out = append(out, e.Response.Words())
	}
	return out
}

// newMessages returns the index of the first message after the last answer of the model: what comes
// before was in an earlier request.
func newMessages(messages []llm.Message) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == llm.RoleAssistant {
			return i + 1
		}
	}
	return 0
}

// maxIndexText is how much of a text is searched.
const maxIndexText = 1 << 20

func (x *Index) putText(t journal.Turn, call, what, seat, text string) error {
	if strings.TrimSpace(text) == "" || x.full() {
		return nil
	}
	text = text[:min(len(text), maxIndexText)]
	x.meta.bytes += len(text)
	name := TurnName(t.Strand, t.Turn) + call
	if err := x.exec(`INSERT INTO hits (episode, call, what, seat) VALUES (?, ?, ?, ?)`, t.Episode, name, what, seat); err != nil {
		return err
	}
	return x.exec(`INSERT INTO said (rowid, text) VALUES (last_insert_rowid(), ?)`, text)
}

// Search lists up to limit texts that have all the words, from the first after the given hit.
func (x *Index) Search(ctx context.Context, words string, after, limit int) (hits []Hit, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.interruptible(ctx)()
	match := matchQuery(words)
	if match == "" {
		return nil, nil
	}
	err = x.query(`SELECT h.id, episode, call, what, seat FROM said JOIN hits h ON h.id = said.rowid
WHERE said MATCH ? AND said.rowid > ? ORDER BY said.rowid LIMIT ?`, []any{match, after, limit}, func(s *db.Stmt) {
		hits = append(hits, Hit{ID: s.ColumnInt(0), Episode: s.ColumnInt(1), Call: s.ColumnText(2), What: s.ColumnText(3), Seat: s.ColumnText(4)})
	})
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return hits, nil
}

// matchQuery returns the FTS5 query for texts with all the words: each word is quoted, so that none
// is an operator. A word at the end of the input may be the beginning of a longer one.
func matchQuery(words string) string {
	fields := strings.FieldsFunc(strings.ToValidUTF8(words, ""), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	if len(fields) == 0 {
		return ""
	}
	for i, w := range fields {
		fields[i] = `"` + strings.ReplaceAll(w, `"`, `""`) + `"`
	}
	return strings.Join(fields, " ") + "*"
}
