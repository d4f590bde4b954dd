package runfile

import (
	"fmt"

	"zombiezen.com/go/sqlite"

	"parley/journal"
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
	c.Begin(tableState, 1)
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
	r, err := w.rows.Row(putTotalsSQL, tableState, 1, 1)
	if err != nil {
		return err
	}
	for _, f := range w.totals.fields() {
		r.Int(*f)
	}
	r.Seal()
	return r.Do()
}

// progress is a row of the table progress: how far an episode is, and where its turns and
// replies are.
type progress struct {
	journal.Progress
	episode     int
	failed      bool
	first, last int64 // see schema.sql

	// Of a writer.
	dirty  bool         // the next commit stores it
	stored episodeState // in the file
	texts  episodeTexts
}

// episodeState is how far an episode is.
type episodeState int

const (
	stateNone episodeState = iota // it did not begin
	statePlaying
	stateEnded
	stateFailed
)

func (p *progress) state() episodeState {
	switch {
	case p.Ended && p.failed:
		return stateFailed
	case p.Ended:
		return stateEnded
	case p.first == 0:
		return stateNone
	default:
		return statePlaying
	}
}

const (
	progressColumns = `episode, sum, attempt, open, entries, ended, first, last`
	progressSQL     = `SELECT ` + progressColumns + ` FROM progress `
	putProgressSQL  = `INSERT OR REPLACE INTO progress (` + progressColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
)

// readProgress reads a row of progressSQL.
func readProgress(c rowReader) (p progress, err error) {
	c.Begin(tableProgress, 1)
	p.episode = int(c.Key)
	p.Attempt, p.Open, p.Entries = c.Int(), c.Int(), c.Int()
	ended := c.Int()
	p.Ended, p.failed = ended != 0, ended == 2
	p.first, p.last = c.Int64(), c.Int64()
	return p, c.Check()
}

func (w *writer) putProgress(episode int, p *progress) error {
	r, err := w.rows.Row(putProgressSQL, tableProgress, int64(episode), 1)
	if err != nil {
		return err
	}
	r.Int(int64(p.Attempt))
	r.Int(int64(p.Open))
	r.Int(int64(p.Entries))
	r.Int(max(0, int64(p.state()-statePlaying))) // 1 ended, 2 failed
	r.Int(p.first)
	r.Int(p.last)
	r.Seal()
	return r.Do()
}

// advance records that an episode's turns and replies end at last, and returns where they ended
// before. If last is 0, they end where they did.
func (w *writer) advance(episode int, last int64) (p *progress, prev int64, err error) {
	p = w.progress[episode]
	if p == nil {
		if p, err = w.findProgress(episode); err != nil {
			return nil, 0, err
		}
		p.texts = w.keys.Recalled(episode)
		w.progress[episode] = p
	}
	prev = p.last
	if last != 0 {
		p.last = last
	}
	if p.first == 0 {
		p.first = abs(last)
	}
	if !p.dirty {
		p.dirty = true
		w.dirty = append(w.dirty, episode)
	}
	return p, prev, nil
}

func (w *writer) findProgress(episode int) (*progress, error) {
	if int64(episode) >= w.totals.begun {
		return &progress{}, w.begin(episode)
	}
	s, err := w.conn.Prepare(progressSQL + `WHERE episode = ?`)
	if err != nil {
		return nil, err
	}
	var p progress
	err = findRow(s, tableProgress, int64(episode), func(c rowReader) (err error) {
		p, err = readProgress(c)
		return err
	})
	p.stored = p.state()
	return &p, err
}

// begin records that an episode begins. Episodes begin roughly in order. Earlier ones without
// a row get one, so that a missing row is noticed.
func (w *writer) begin(episode int) error {
	if episode >= world.MaxEpisodes {
		return fmt.Errorf("episode %d: a run has at most %d", episode, world.MaxEpisodes)
	}
	for ; w.totals.begun < int64(episode); w.totals.begun++ {
		if err := w.putProgress(int(w.totals.begun), &progress{}); err != nil {
			return err
		}
	}
	w.totals.begun++
	return nil
}
