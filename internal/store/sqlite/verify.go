package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"zombiezen.com/go/sqlite"

	"parley/journal"
)

// Damage is one thing that is wrong with a run file.
type Damage struct {
	// Episode is whose it is, or nil: the run's, or nobody knows whose.
	Episode *int   `json:"episode,omitempty"`
	What    string `json:"what"`
}

// Losses is what Verify found.
type Losses struct {
	Entries  int `json:"entries"`  // there should be
	Texts    int `json:"texts"`    // there should be
	Episodes int `json:"episodes"` // the plan asked for
	// Damaged are the episodes of which something cannot be read, in order.
	Damaged []int    `json:"damaged_episodes"`
	Damage  []Damage `json:"damage"`

	damaged map[int]bool
	fatal   error // why the rest cannot be read either
}

// has says whether an episode is damaged. Nothing is where l is nil.
func (l *Losses) has(episode int) bool { return l != nil && l.damaged[episode] }

func (l *Losses) run(what string) { l.Damage = append(l.Damage, Damage{What: what}) }

func (l *Losses) episode(n int, what string) {
	l.damaged[n] = true
	l.Damage = append(l.Damage, Damage{Episode: &n, What: what})
}

// Verify reads everything that is in the file, and says what of it is not as it was
// written. The error is nil unless reading failed for another reason than damage, or no
// state of the run can be read at all.
func (s *Store) Verify(ctx context.Context) (found *Losses, err error) {
	return s.verify(ctx, true)
}

// Salvage makes s leave out the episodes that are damaged, whole, from now on, instead of
// failing. It returns which these are, or an error where the rest cannot be read either.
func (s *Store) Salvage(ctx context.Context) (found *Losses, err error) {
	found, err = s.verify(ctx, false)
	if err != nil {
		return nil, err
	}
	if found.fatal != nil {
		return nil, explain(s.path, "read", found.fatal)
	}
	if len(found.Damage) > 0 {
		s.readers.salvage(found)
	}
	return found, nil
}

// Lost is what s leaves out, or nil: damage is an error.
func (s *Store) Lost() *Losses { return s.readers.leftOut() }

func (s *Store) verify(ctx context.Context, structure bool) (found *Losses, err error) {
	err = s.readers.with(func(r *reader) error {
		v := &verifier{r: r, Losses: &Losses{damaged: map[int]bool{}}, bad: map[int64]string{}, claimed: map[int64]bool{}, lostTexts: map[int64]bool{}, ends: map[int]int{}}
		r.lost = v.Losses // what is damaged is passed
		r.passed = func(err error) { v.run(what(err)) }
		r.conn.SetInterrupt(ctx.Done())
		defer func() { r.passed = nil; r.conn.SetInterrupt(nil) }()
		found = v.Losses
		if structure {
			v.structure()
		}
		return v.all()
	})
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, explain(s.path, "read", err)
	}
	found.Damaged = append([]int{}, slices.Sorted(maps.Keys(found.damaged))...)
	return found, nil
}

// verifier goes through a run file.
type verifier struct {
	*Losses
	r *reader
	t totals

	entries, texts, places bitset           // what is good
	staged                 []int64          // where stages end
	bad                    map[int64]string // what is known of entries that are not
	claimed                map[int64]bool   // those of them whose episode is known
	lostTexts              map[int64]bool
	ends                   map[int]int // by episode: the attempt of its last outcome
	spots                  spots       // of the episodes whose progress is good
	landmarks              []landmark
}

// bitset is a set of numbers from 0.
type bitset []uint64

func newBitset(most int64) bitset { return make(bitset, most/64+1) }

func (m bitset) has(n int64) bool { return n >= 0 && n/64 < int64(len(m)) && m[n/64]&(1<<(n%64)) != 0 }

func (m bitset) add(n int64) {
	if n >= 0 && n/64 < int64(len(m)) {
		m[n/64] |= 1 << (n % 64)
	}
}

// all looks at every table.
func (v *verifier) all() (err error) {
	if v.t, err = readTotals(v.r.conn); err != nil {
		return err
	}
	v.Entries, v.Texts, v.Episodes, v.Damage = int(v.t.seq), int(v.t.texts), int(v.t.episodes), append(v.Damage, []Damage{}...)
	size, err := number(v.r.conn, `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`)
	if err != nil {
		return err
	}
	if most := max(v.t.seq, v.t.texts, v.t.begun); most > size { // a row takes more than a byte
		return fmt.Errorf("%w: the state of the run speaks of %d rows, and there is no room for them", ErrDamaged, most)
	}
	v.entries, v.texts, v.places = newBitset(v.t.seq), newBitset(v.t.texts), newBitset(v.t.begun)
	for _, look := range []func() error{v.lookTexts, v.lookEvents, v.lookStages, v.lookSpecs, v.lookTurns, v.lookReplies, v.lookOutcomes, v.lookProgress, v.lost, v.found} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// structure has SQLite look at its own pages, and compares the views, which people read.
func (v *verifier) structure() {
	s, _, err := v.r.conn.PrepareTransient(`PRAGMA quick_check(20)`)
	if err == nil {
		defer func() { _ = s.Finalize() }() // says only what Step said
	}
	for found := true; err == nil && found; {
		if found, err = s.Step(); found && err == nil && s.ColumnText(0) != "ok" {
			v.run("SQLite: " + s.ColumnText(0))
		}
	}
	if err != nil {
		v.run("SQLite: " + err.Error())
	}
	if err := checkSchema(v.r.conn, views); err != nil {
		v.run(what(err))
	}
}

// what is an error without saying again that the file is damaged.
func what(err error) string { return strings.TrimPrefix(err.Error(), ErrDamaged.Error()+": ") }

// rows goes through the rows of a table, and adds those that are good.
func (v *verifier) rows(query string, good bitset, read func(c columns) error) error {
	step := landmark{query: query}
	defer func() { v.landmarks = append(v.landmarks, step.to(v.t.seq, -1)...) }()
	return v.r.scan(query, everything(), func(c columns) error {
		key := c.row
		v.landmarks = append(v.landmarks, step.to(key-1, key)...)
		switch err := read(c); {
		case err == nil:
			good.add(key)
		case sqlite.ErrCode(err) == sqlite.ResultInterrupt:
			return err
		case &good[0] == &v.entries[0]:
			v.bad[key] = what(err)
		}
		return nil
	})
}

func (v *verifier) lookTexts() error {
	err := v.rows(`SELECT id, sum, text, rest FROM texts WHERE id > ? AND id <= ? ORDER BY id`, v.texts, func(c columns) error {
		c.key(tableTexts, 1)
		c.str()
		c.str()
		return c.check()
	})
	for id := int64(1); id <= v.t.texts; id++ {
		if !v.texts.has(id) {
			v.lostTexts[id] = true
		}
	}
	return err
}

func (v *verifier) lookEvents() error {
	begun := false
	err := v.rows(`SELECT seq, sum, what, at, data, plan FROM events `+inSpan, v.entries, func(c columns) error {
		c.key(tableEvents, 1)
		e, err := event(c)
		if err == nil {
			_, is := e.(*journal.Begun)
			begun = begun || is
		}
		return err
	})
	if !begun && v.t.seq > 0 {
		v.fatal = cmp.Or(v.fatal, fmt.Errorf("%w: how the run began cannot be read", ErrDamaged))
	}
	return err
}

func (v *verifier) lookStages() error {
	err := v.rows(`SELECT seq, sum, stage, first, count FROM stages `+inSpan, v.entries, func(c columns) error {
		c.key(tableStages, 1)
		c.int64()
		end := c.int64() + c.int64()
		err := c.check()
		if err == nil {
			v.staged = append(v.staged, end)
		}
		return err
	})
	if int64(len(v.staged)) != v.t.stages {
		v.fatal = cmp.Or(v.fatal, fmt.Errorf("%w: which episodes a stage has cannot be read", ErrDamaged))
	}
	return err
}

func (v *verifier) lookSpecs() error {
	a := assembly{pad: true, each: v.group}
	err := v.rows(specsSQL+inSpanOfRuns, newBitset(0), func(c columns) error {
		s, err := readSpec(c)
		if err != nil {
			return err
		}
		if err = a.add(s); err != nil {
			v.run(what(err))
		}
		return err
	})
	return cmp.Or(err, a.finish(v.t.episodes))
}

// mostWaiting is how many episodes are named one by one though they did not begin: a block may have
// any number of them.
const mostWaiting = 1 << 16

// group looks for groups of a block that are lost.
func (v *verifier) group(rows []spec) error {
	at := sort.Search(len(v.staged), func(i int) bool { return rows[0].block < v.staged[i] })
	for i := range rows {
		s := &rows[i]
		what := ""
		switch {
		case s.lost():
			what = "cannot be read"
		case v.lostTexts[s.params]:
			what = v.text(s.params)
		case v.lostTexts[s.lineup]:
			what = v.text(s.lineup)
		case at < len(v.staged) && s.end() > v.staged[at]:
			what = "they go on after their stage"
		}
		switch {
		case what == "":
		case s.size == 1 && s.rounds == 1:
			v.episode(int(s.episode), "its description: "+what)
		default:
			v.run(fmt.Sprintf("the description of %d episodes from %d on, in %d rounds: %s", s.size, s.episode, s.rounds, what))
			most := max(v.t.begun, min(v.t.episodes, mostWaiting))
			for from := s.episode; from < min(s.end(), most); from += s.round {
				for n := from; n < min(from+s.size, most); n++ {
					v.damaged[int(n)] = true
				}
			}
		}
	}
	return nil
}

func (v *verifier) text(id int64) string { return fmt.Sprintf("text %d cannot be read", id) }

func (v *verifier) lookTurns() error {
	return v.rows(turnsSQL+inSpan, v.entries, func(c columns) error {
		_, _, err := turned(c)
		return err
	})
}

func (v *verifier) lookReplies() error {
	return v.rows(repliesSQL+inSpan, v.entries, func(c columns) error {
		p, _, err := replied(c, true)
		if err != nil {
			return err
		}
		if len(v.lostTexts) > 0 {
			v.textsOf(c.row, &p)
		}
		return nil
	})
}

// textsOf looks for texts of a reply that are lost.
func (v *verifier) textsOf(seq int64, p *partial) {
	for _, id := range append([]int64{p.settings, p.answer}, p.prompt...) {
		if v.lostTexts[id] {
			v.episode(p.Episode, fmt.Sprintf("entry %d (%s): %s", seq, call(p.Turn, p.Index), v.text(id)))
		}
	}
}

func (v *verifier) lookOutcomes() error {
	return v.rows(`SELECT `+outcomeColumns+` FROM outcomes `+inSpan, v.entries, func(c columns) error {
		e, err := outcome(c)
		if err == nil {
			v.ends[e.Episode] = e.Attempt
			return nil
		}
		seq, episode := c.key(tableOutcomes, 1), c.int()
		if c.int(); c.check() == nil { // whose it is can be read
			v.claimed[seq] = true
			v.episode(episode, what(err))
		}
		return err
	})
}

func (v *verifier) lookProgress() error {
	err := v.rows(progressSQL+inSpanOfRuns, v.places, func(c columns) error {
		p, err := progress(c)
		if err != nil {
			return err
		}
		if attempt, ok := v.ends[p.episode]; p.Ended && (!ok || attempt != p.Attempt) && !v.has(p.episode) {
			v.episode(p.episode, "its outcome cannot be read")
		}
		if n := abs(p.last); n != 0 && !v.entries.has(n) {
			v.episode(p.episode, v.entry(n))
			v.claimed[n] = true
		}
		v.spots = append(v.spots, spot{p.episode, int64(p.Entries), p.first, p.last})
		return nil
	})
	for n := range v.t.begun {
		if !v.places.has(n) {
			v.episode(int(n), "how far it has come cannot be read")
		}
	}
	return err
}

// entry says what is wrong with an entry.
func (v *verifier) entry(seq int64) string {
	if v.bad[seq] == "" {
		return fmt.Sprintf("entry %d is missing", seq)
	}
	return v.bad[seq]
}
