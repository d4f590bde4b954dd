package runfile

import (
	"encoding/json"
	"fmt"

	"parley/journal"
)

const (
	turnColumns = `seq, sum, prev, episode, attempt, strand, turn, calls, digest`
	turnsSQL    = `SELECT ` + turnColumns + `, notes FROM turns `
)

func (w *writer) putTurned(e *journal.Turned) error {
	p, prev, err := w.advance(e.Episode, -w.totals.seq)
	if err != nil {
		return err
	}
	p.Turned(e)
	w.totals.turns++
	notes := ""
	if len(e.Notes) > 0 {
		if notes, err = encode(e.Notes); err != nil {
			return fmt.Errorf("notes: %w", err)
		}
	}
	r, err := w.rows.Row(`INSERT INTO turns (`+turnColumns+`, notes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, tableTurns, w.totals.seq, 1)
	if err != nil {
		return err
	}
	r.Int(prev)
	putTurn(&r, e.Turn)
	r.Int(int64(e.Calls))
	r.Bytes(e.Digest[:])
	r.Seal()
	r.Optional(notes)
	r.Seal()
	return r.Do()
}

func putTurn(r *rowWriter, t journal.Turn) {
	r.Int(int64(t.Episode))
	r.Int(int64(t.Attempt))
	r.Text(t.Strand)
	r.Int(int64(t.Turn))
}

func (r *reader) turns(in span, keep keepFunc) (n int64, err error) {
	err = r.scan(turnsSQL+inSpan, in, func(c rowReader) error {
		e, _, err := readTurned(c)
		if err != nil || r.lost.Has(e.Episode) {
			return err
		}
		n++
		keep(c.Key, e)
		return nil
	})
	return n, err
}

// readTurnCore reads turnColumns.
func readTurnCore(c *rowReader, e *journal.Turned) (prev int64, err error) {
	c.Begin(tableTurns, 1)
	prev = c.Int64()
	*e = journal.Turned{Turn: readTurn(c), Calls: c.Int()}
	c.Bytes(e.Digest[:])
	return prev, c.Check()
}

// readTurned reads a row of turnsSQL.
func readTurned(c rowReader) (e *journal.Turned, prev int64, err error) {
	e = &journal.Turned{}
	if prev, err = readTurnCore(&c, e); err != nil {
		return nil, 0, err
	}
	notes := c.Optional()
	if err := c.Check(); err != nil {
		return nil, 0, withEpisode(e.Episode, err)
	}
	if notes != "" {
		if err := json.Unmarshal([]byte(notes), &e.Notes); err != nil {
			return nil, 0, c.Bad("has notes that cannot be read: " + err.Error())
		}
	}
	return e, prev, nil
}

func readTurn(c *rowReader) journal.Turn {
	return journal.Turn{Episode: c.Int(), Attempt: c.Int(), Strand: c.Optional(), Turn: c.Int()}
}
