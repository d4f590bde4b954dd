package sqlite

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// put stores one entry as the last.
func (w *writer) put(e journal.Entry) error {
	switch e := e.(type) {
	case *journal.Turned:
		return w.putTurned(e)
	case *journal.Replied:
		return w.putReplied(e)
	case *journal.Ended:
		return w.putEnded(e)
	case *journal.Staged:
		return w.putStaged(e)
	default:
		return w.putEvent(e)
	}
}

// What is kept as JSON of the rare entries, money in billionths of a dollar.
type (
	begunData struct {
		Version     int           `json:"version"`
		Run         string        `json:"run"`
		Tool        string        `json:"tool"`
		Kind        string        `json:"kind"`
		KindVersion int           `json:"kind_version"`
		Seed        string        `json:"seed"` // a text: it is larger than what many tools read as a number
		Agents      []world.Agent `json:"agents"`

		Fork  *journal.Origin   `json:"fork,omitempty"`
		Grown []journal.Growth  `json:"grown,omitempty"`
		Cells map[string]string `json:"cells,omitempty"`
	}
	openedData struct {
		Lost int   `json:"lost"`
		Cost int64 `json:"cost"`
	}
	closedData struct {
		State  journal.State      `json:"state"`
		By     journal.ReasonKind `json:"by,omitempty"`
		Reason string             `json:"reason,omitempty"`
	}
	exposedData struct {
		Calls int   `json:"calls"`
		Worst int64 `json:"worst"`
	}
	batchedData struct {
		Step     journal.Step `json:"step"`
		Key      string       `json:"key"`
		Provider string       `json:"provider,omitempty"`
		Model    string       `json:"model,omitempty"`
		Lines    []string     `json:"lines,omitempty"`
		Worst    int64        `json:"worst,omitempty"`
		Dearest  int64        `json:"dearest,omitempty"`
		File     string       `json:"file,omitempty"`
		Batch    string       `json:"batch,omitempty"`
		Why      string       `json:"why,omitempty"`
	}
)

func (w *writer) putEvent(e journal.Entry) error {
	s, err := w.conn.Prepare(`INSERT INTO events (seq, sum, what, at, data, plan) VALUES (?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	r := row{s: s}
	r.begin(tableEvents, w.totals.seq, 1)
	var data any
	var plan json.RawMessage
	switch e := e.(type) {
	case *journal.Begun:
		r.str("begun")
		r.time(e.At)
		data = begunData{e.Version, e.Run, e.Tool, e.Kind, e.KindVersion, strconv.FormatUint(e.Seed, 10), e.Agents, e.Fork, e.Grown, e.Cells}
		plan = e.Plan
	case *journal.Opened:
		r.str("opened")
		r.time(e.At)
		data = openedData{e.Lost, int64(e.Cost)}
	case *journal.Closed:
		r.str("closed")
		r.time(e.At)
		data = closedData{e.State, e.Reason.Kind, e.Reason.Detail}
	case *journal.Exposed:
		r.str("exposed")
		r.null()
		data = exposedData{e.Calls, int64(e.Worst)}
	case *journal.Batched:
		r.str("batched")
		r.time(e.At)
		data = batchedData{e.Step, e.Key, e.Provider, e.Model, e.Lines, int64(e.Worst), int64(e.Dearest), e.File, e.Batch, e.Why}
	default:
		return errors.New("this is no entry")
	}
	text, err := encode(data)
	if err != nil {
		return err
	}
	r.str(text)
	r.raw(plan)
	r.seal()
	w.totals.events++
	return r.do()
}

func (w *writer) putStaged(e *journal.Staged) error {
	s, err := w.conn.Prepare(`INSERT INTO stages (seq, sum, stage, first, count) VALUES (?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	r := row{s: s}
	r.begin(tableStages, w.totals.seq, 1)
	r.int(int64(e.Stage))
	r.int(int64(e.First))
	r.int(int64(e.Specs.Len()))
	r.seal()
	w.totals.stages++
	w.totals.episodes += int64(e.Specs.Len())
	if err := r.do(); err != nil {
		return err
	}
	return w.putSpecs(e.First, e.Specs)
}

func (w *writer) putTurned(e *journal.Turned) error {
	p, prev, err := w.step(e.Episode, -w.totals.seq)
	if err != nil {
		return err
	}
	p.Turned(e)
	var notes string
	if len(e.Notes) > 0 {
		if notes, err = encode(e.Notes); err != nil {
			return fmt.Errorf("notes: %w", err)
		}
	}
	s, err := w.conn.Prepare(`INSERT INTO turns (` + turnCoreColumns + `, notes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	r := row{s: s}
	r.begin(tableTurns, w.totals.seq, 1)
	r.int(prev)
	r.turn(e.Turn)
	r.int(int64(e.Calls))
	r.bytes(e.Digest[:])
	r.seal()
	r.opt(notes)
	r.seal()
	w.totals.turns++
	return r.do()
}

func (r *row) turn(t journal.Turn) {
	r.int(int64(t.Episode))
	r.int(int64(t.Attempt))
	r.str(t.Strand)
	r.int(int64(t.Turn))
}

// scoreData is a score whose value may be one that JSON has no number for.
type scoreData struct {
	Seat  string `json:"seat,omitempty"`
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// step notes that an episode's turns and replies end at last (0: where they did), and
// returns where they ended before.
func (w *writer) step(episode int, last int64) (p *place, prev int64, err error) {
	p = w.places[episode]
	if p == nil {
		if p, err = w.findPlace(episode); err != nil {
			return nil, 0, err
		}
		w.places[episode] = p
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

func (w *writer) findPlace(episode int) (*place, error) {
	if int64(episode) >= w.totals.begun {
		return &place{}, w.begin(episode)
	}
	s, err := w.conn.Prepare(progressSQL + `WHERE episode = ?`)
	if err != nil {
		return nil, err
	}
	defer done(s)
	s.BindInt64(1, int64(episode))
	found, err := s.Step()
	if err != nil || !found {
		return nil, cmp.Or(err, error(&rowError{table: tableProgress, key: int64(episode), why: "is missing"}))
	}
	p, err := progress(newColumns(s))
	p.was = p.state()
	return &p.place, err
}

// begin notes that an episode began. Episodes begin about in order: those before it that have no
// row yet get one, so that a row that is missing is noticed.
func (w *writer) begin(episode int) error {
	if episode >= world.MaxEpisodes {
		return fmt.Errorf("episode %d: a run has at most %d", episode, world.MaxEpisodes)
	}
	for ; w.totals.begun < int64(episode); w.totals.begun++ {
		if err := w.putPlace(int(w.totals.begun), &place{}); err != nil {
			return err
		}
	}
	w.totals.begun++
	return nil
}

// progressed is a row of progress.
type progressed struct {
	place
	episode int
}

const progressSQL = `SELECT episode, sum, attempt, open, entries, ended, first, last FROM progress `

// progress reads a row of progressSQL.
func progress(c columns) (p progressed, err error) {
	p.episode = int(c.key(tableProgress, 1))
	p.Attempt, p.Open, p.Entries = c.int(), c.int(), c.int()
	ended := c.int()
	p.Ended, p.failed = ended != 0, ended == 2
	p.first, p.last = c.int64(), c.int64()
	return p, c.check()
}

func (w *writer) putPlaces() error {
	for _, episode := range w.dirty {
		p := w.places[episode]
		if err := w.putPlace(episode, p); err != nil {
			return err
		}
		w.totals.states[p.was]--
		w.totals.states[p.state()]++
		p.was = p.state()
	}
	return nil
}

const placeSQL = `INSERT OR REPLACE INTO progress (episode, sum, attempt, open, entries, ended, first, last) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

func (w *writer) putPlace(episode int, p *place) error {
	s, err := w.conn.Prepare(placeSQL)
	if err != nil {
		return err
	}
	r := row{s: s}
	r.begin(tableProgress, int64(episode), 1)
	r.int(int64(p.Attempt))
	r.int(int64(p.Open))
	r.int(int64(p.Entries))
	r.int(max(0, int64(p.state()-statePlaying))) // 1 ended, 2 failed
	r.int(p.first)
	r.int(p.last)
	r.seal()
	return r.do()
}

// shared returns the id of a text, and stores it if it is new.
func (w *writer) shared(text string) (int64, error) {
	k := w.print.text(text)
	if id, ok := w.keys.find(k); ok {
		return id, nil
	}
	return w.store(k, text, "")
}

// said returns the id of a message, and stores it if it is new.
func (w *writer) said(m *llm.Message) (int64, error) {
	k := w.print.message(m)
	if id, ok := w.keys.find(k); ok {
		return id, nil
	}
	if plain(m) {
		return w.store(k, m.Parts[0].Text, "")
	}
	more, err := encode(newRest(m))
	if err != nil {
		return 0, err
	}
	return w.store(k, m.Text(), more)
}

// store stores a text that is new.
func (w *writer) store(k key, text, rest string) (int64, error) {
	s, err := w.conn.Prepare(`INSERT INTO texts (id, sum, text, rest) VALUES (?, ?, ?, ?)`)
	if err != nil {
		return 0, err
	}
	w.totals.texts++
	id := w.totals.texts
	r := row{s: s}
	r.begin(tableTexts, id, 1)
	r.str(text)
	r.opt(rest)
	r.seal()
	if err := r.do(); err != nil {
		return 0, err
	}
	w.keys.add(k, id)
	return id, nil
}
