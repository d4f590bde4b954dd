package runfile

import (
	"fmt"

	"zombiezen.com/go/sqlite"

	"parley/world"
)

// totals is the row of the table state.
type totals struct {
	epoch        int64
	seq          int64 // of the last entry
	calls, spent int64
	// The numbers of rows of other tables.
	texts, events, stages, turns, outcomes int64
	episodes                               int64    // of all stages
	begun                                  int64    // episodes before this one have a row in progress
	states                                 [4]int64 // episodes by episodeState; the first is not counted
	log, collected                         int64    // the last journal.Collected
}

const (
	totalsColumns = `one, sum, epoch, seq, calls, spent, texts, events, stages, turns, outcomes, episodes, begun, playing, ended, failed, log, collected`
	totalsSQL     = `SELECT ` + totalsColumns + ` FROM state`
	putTotalsSQL  = `INSERT OR REPLACE INTO state (` + totalsColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// fields returns the columns after the checksum, in order.
func (t *totals) fields() [16]*int64 {
	return [...]*int64{
		&t.epoch, &t.seq, &t.calls, &t.spent, &t.texts, &t.events, &t.stages, &t.turns, &t.outcomes, &t.episodes, &t.begun,
		&t.states[statePlaying], &t.states[stateEnded], &t.states[stateFailed], &t.log, &t.collected,
	}
}

func readTotals(conn *sqlite.Conn) (t totals, err error) {
	s, err := conn.Prepare(totalsSQL)
	if err != nil {
		return t, err
	}
	defer reset(s)
	found, err := s.Step()
	if err != nil {
		return t, err
	}
	if !found {
		return t, errMissing("the state of the run")
	}
	c := newRowReader(s)
	c.Begin(rowState, 1)
	for _, f := range t.fields() {
		*f = c.Int64()
	}
	if err := c.Check(); err != nil {
		return t, err
	}
	if min(t.seq, t.texts, t.begun, t.episodes) < 0 || max(t.begun, t.episodes) > world.MaxEpisodes {
		return t, fmt.Errorf("%w: the state of the run has %d entries, %d texts and %d episodes, of which %d began", ErrDamaged, t.seq, t.texts, t.episodes, t.begun)
	}
	return t, nil
}

func (w *writer) putTotals() error {
	r, err := w.rows.Row(putTotalsSQL, rowState, 1, 1)
	if err != nil {
		return err
	}
	for _, f := range w.totals.fields() {
		r.Int(*f)
	}
	r.Seal()
	return r.Do()
}
