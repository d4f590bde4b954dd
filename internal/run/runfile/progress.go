package runfile

import (
	"fmt"

	"parley/journal"
	"parley/world"
)

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
	said   contentSaid
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
	c.Begin(rowProgress, 1)
	p.episode = int(c.Key)
	p.Attempt, p.Open, p.Entries = c.Int(), c.Int(), c.Int()
	ended := c.Int()
	p.Ended, p.failed = ended != 0, ended == 2
	p.first, p.last = c.Int64(), c.Int64()
	return p, c.Check()
}

func (w *writer) putProgress(episode int, p *progress) error {
	r, err := w.rows.Row(putProgressSQL, rowProgress, int64(episode), 1)
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

// step is a turn or a reply with its place in the journal.
type step struct {
	journal.Entry
	seq, prev int64        // prev as in progress.last
	said      *contentSaid // of the episode
}

// advance records that an episode's turns and replies end at last, and returns where they ended
// before. If last is 0, they end where they did.
func (w *writer) advance(episode int, last int64) (p *progress, prev int64, err error) {
	p = w.progress[episode]
	if p == nil {
		if p, err = w.findProgress(episode); err != nil {
			return nil, 0, err
		}
		p.said = w.fileOf(episode).keys.Recalled(episode)
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
	err = one(s, rowProgress, int64(episode), func(c rowReader) (err error) {
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
