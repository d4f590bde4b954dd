package sqlite

import (
	"errors"

	"zombiezen.com/go/sqlite"
)

// totals is the row of state.
type totals struct {
	epoch        int64
	seq          int64 // of the last entry
	calls, spent int64
	// How many rows the other tables have.
	texts, events, stages, turns, outcomes, specs int64
	states                                        [4]int64 // episodes by placeState; there is no count of the first
}

const (
	totalsSQL    = `SELECT one, sum, epoch, seq, calls, spent, texts, events, stages, turns, outcomes, specs, playing, ended, failed FROM state`
	putTotalsSQL = `INSERT OR REPLACE INTO state (one, sum, epoch, seq, calls, spent, texts, events, stages, turns, outcomes, specs, playing, ended, failed)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// fields are the columns after the checksum, in order.
func (t *totals) fields() [13]*int64 {
	return [...]*int64{
		&t.epoch, &t.seq, &t.calls, &t.spent, &t.texts, &t.events, &t.stages, &t.turns, &t.outcomes, &t.specs,
		&t.states[statePlaying], &t.states[stateEnded], &t.states[stateFailed],
	}
}

func readTotals(conn *sqlite.Conn) (t totals, err error) {
	s, err := conn.Prepare(totalsSQL)
	if err != nil {
		return t, err
	}
	defer done(s)
	if found, err := s.Step(); err != nil || !found {
		return t, errors.Join(err, missing(found, "the state of the run"))
	}
	c := newColumns(s)
	c.key(tableState, 1)
	for _, f := range t.fields() {
		*f = c.int64()
	}
	return t, c.check()
}

func (w *writer) putTotals() error {
	s, err := w.conn.Prepare(putTotalsSQL)
	if err != nil {
		return err
	}
	r := row{s: s}
	r.begin(tableState, 1, 1)
	for _, f := range w.totals.fields() {
		r.int(*f)
	}
	r.seal()
	return r.do()
}
