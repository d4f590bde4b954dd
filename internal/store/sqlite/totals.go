package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"parley/world"
)

// totals is the row of state.
type totals struct {
	epoch        int64
	seq          int64 // of the last entry
	calls, spent int64
	// How many rows the other tables have.
	texts, events, stages, turns, outcomes int64
	episodes                               int64    // of all stages
	begun                                  int64    // those before it have a row in progress
	states                                 [4]int64 // episodes by placeState; there is no count of the first
}

const (
	totalsSQL    = `SELECT one, sum, epoch, seq, calls, spent, texts, events, stages, turns, outcomes, episodes, begun, playing, ended, failed FROM state`
	putTotalsSQL = `INSERT OR REPLACE INTO state (one, sum, epoch, seq, calls, spent, texts, events, stages, turns, outcomes, episodes, begun, playing, ended, failed)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// fields are the columns after the checksum, in order.
func (t *totals) fields() [14]*int64 {
	return [...]*int64{
		&t.epoch, &t.seq, &t.calls, &t.spent, &t.texts, &t.events, &t.stages, &t.turns, &t.outcomes, &t.episodes, &t.begun,
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
	if err := c.check(); err != nil {
		return t, err
	}
	if min(t.seq, t.texts, t.begun, t.episodes) < 0 || max(t.begun, t.episodes) > world.MaxEpisodes {
		return t, fmt.Errorf("%w: the state of the run speaks of %d entries, %d texts and %d episodes, of which %d began", ErrDamaged, t.seq, t.texts, t.episodes, t.begun)
	}
	return t, nil
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
