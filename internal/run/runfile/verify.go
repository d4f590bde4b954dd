package runfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"zombiezen.com/go/sqlite"

	"parley/internal/kit/text"
	"parley/journal"
)

// Damage is one problem of a run file.
type Damage struct {
	// Episode is the damaged episode. Nil: the run itself is damaged, or the episode is unknown.
	Episode *int   `json:"episode,omitempty"`
	What    string `json:"what"`
}

// Losses is the result of Verify.
type Losses struct {
	// How many there should be. Episodes are those that the plan asked for.
	Entries  int `json:"entries"`
	Texts    int `json:"texts"`
	Episodes int `json:"episodes"`
	// Damaged lists the episodes that cannot be read completely, in order.
	Damaged []int    `json:"damaged_episodes"`
	Damage  []Damage `json:"damage"`

	damaged map[int]bool
	fatal   error // why the rest cannot be read either
}

// Has reports whether an episode is damaged. It is false if l is nil.
func (l *Losses) Has(episode int) bool { return l != nil && l.damaged[episode] }

// maxRanges is how many ranges of damaged episodes a sentence names.
const maxRanges = 20

// Text says which episodes are damaged and left out. It is empty if l is nil.
func (l *Losses) Text() string {
	switch {
	case l == nil:
		return ""
	case len(l.Damaged) == 0:
		return "The run file is damaged. Entries that are of no episode are left out."
	}
	return fmt.Sprintf("The run file is damaged. %s of %s episodes cannot be read whole and are left out: %s.", text.GroupDigits(len(l.Damaged)), text.GroupDigits(l.Episodes), text.Ranges(l.Damaged, maxRanges))
}

// LostText says which episodes of a journal are damaged and left out, if it is a run file.
func LostText(j journal.Journal) string {
	if s, ok := j.(*Store); ok {
		return s.Lost().Text()
	}
	return ""
}

// Fatal returns why nothing of the file can be read. Nil: the other episodes can be read.
func (l *Losses) Fatal() error { return beyond(l.fatal) }

func (l *Losses) addRun(what string) { l.Damage = append(l.Damage, Damage{What: what}) }

func (l *Losses) addEpisode(n int, what string) {
	l.damaged[n] = true
	l.Damage = append(l.Damage, Damage{Episode: &n, What: what})
}

// Verify reads everything in the file, and returns what differs from what was written. Its
// error is nil unless reading failed for a reason other than damage, or the state of the run
// cannot be read.
func (s *Store) Verify(ctx context.Context) (*Losses, error) { return s.verify(ctx, true) }

// Salvage makes s leave out damaged episodes from now on, instead of returning errors. It
// returns an error if the rest cannot be read either. Lost returns what is left out.
func (s *Store) Salvage(ctx context.Context) error {
	found, err := s.verify(ctx, false)
	if err != nil {
		return err
	}
	if found.fatal == nil && len(found.Damage) > 0 {
		s.readers.leaveOut(found)
	}
	return explain(s.path, "read", found.Fatal())
}

// Lost returns what s leaves out after Salvage. Nil: nothing, and damage is an error.
func (s *Store) Lost() *Losses { return s.readers.leftOut() }

func (s *Store) verify(ctx context.Context, structure bool) (found *Losses, err error) {
	err = s.read(func(r *reader) error {
		v := &verifier{r: r, Losses: &Losses{damaged: map[int]bool{}}, bad: map[int64]string{}, claimed: map[int64]bool{}, lostTexts: map[int64]bool{}, ends: map[int]int{}}
		r.lost = v.Losses // skip what is damaged
		r.onSkip = func(err error) { v.addRun(damageText(err)) }
		r.conn.SetInterrupt(ctx.Done())
		defer func() { r.onSkip = nil; r.conn.SetInterrupt(nil) }()
		found = v.Losses
		if structure {
			v.checkStructure()
		}
		return beyond(v.checkAll())
	})
	if err := cmp.Or(context.Cause(ctx), err); err != nil {
		return nil, err
	}
	found.Damaged = append([]int{}, slices.Sorted(maps.Keys(found.damaged))...)
	return found, nil
}

// verifier checks a run file.
type verifier struct {
	*Losses
	r *reader
	t totals

	entries, texts, progress bitset           // good rows
	stageEnds                []int64          // the episode after each stage
	bad                      map[int64]string // what is wrong with bad entries
	claimed                  map[int64]bool   // bad entries whose episode is known
	lostTexts                map[int64]bool
	ends                     map[int]int // by episode: the attempt of its last outcome
	extents                  extents     // of episodes whose progress is good
	landmarks                []landmark
}

// bitset is a set of numbers from 0.
type bitset []uint64

func newBitset(limit int64) bitset { return make(bitset, limit/64+1) }

func (b bitset) has(n int64) bool { return n >= 0 && n/64 < int64(len(b)) && b[n/64]&(1<<(n%64)) != 0 }

func (b bitset) add(n int64) {
	if n >= 0 && n/64 < int64(len(b)) {
		b[n/64] |= 1 << (n % 64)
	}
}

// checkAll checks every table.
func (v *verifier) checkAll() (err error) {
	if v.t, err = readTotals(v.r.conn); err != nil {
		return err
	}
	v.Entries, v.Texts, v.Episodes, v.Damage = int(v.t.seq), int(v.t.texts), int(v.t.episodes), append(v.Damage, []Damage{}...)
	size, err := queryNumber(v.r.conn, `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`)
	if err != nil {
		return err
	}
	if rows := max(v.t.seq, v.t.texts, v.t.begun); rows > size { // a row takes more than a byte
		return fmt.Errorf("%w: the state of the run has %d rows, but the file is too small for them", ErrDamaged, rows)
	}
	v.entries, v.texts, v.progress = newBitset(v.t.seq), newBitset(v.t.texts), newBitset(v.t.begun)
	for _, check := range []func() error{
		v.checkTexts, v.checkEvents, v.checkStages, v.checkSpecs, v.checkTurns, v.checkReplies, v.checkOutcomes, v.checkProgress, v.assignLost, v.checkFound,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkStructure lets SQLite check its pages, and compares the views.
func (v *verifier) checkStructure() {
	s, _, err := v.r.conn.PrepareTransient(`PRAGMA quick_check(20)`)
	if err == nil {
		defer func() { _ = s.Finalize() }() // it repeats the error of Step
	}
	for found := true; err == nil && found; {
		if found, err = s.Step(); found && err == nil && s.ColumnText(0) != "ok" {
			v.addRun("SQLite: " + s.ColumnText(0))
		}
	}
	if err != nil {
		v.addRun("SQLite: " + err.Error())
	}
	if err := checkViews(v.r.conn); err != nil {
		v.addRun(damageText(err))
	}
}

// damageText returns an error's text without repeating that the file is damaged.
func damageText(err error) string { return strings.TrimPrefix(err.Error(), ErrDamaged.Error()+": ") }

// rows reads the rows of a table, and adds the good ones to a set.
func (v *verifier) rows(query string, good bitset, read func(c rowReader) error) error {
	mark := landmark{query: query}
	defer func() { v.landmarks = append(v.landmarks, mark.advance(v.t.seq, -1)...) }()
	return v.r.scan(query, everything(), func(c rowReader) error {
		v.landmarks = append(v.landmarks, mark.advance(c.Key-1, c.Key)...)
		switch err := read(c); {
		case err == nil:
			good.add(c.Key)
		case sqlite.ErrCode(err) == sqlite.ResultInterrupt:
			return err
		case &good[0] == &v.entries[0]:
			v.bad[c.Key] = damageText(err)
		}
		return nil
	})
}

func (v *verifier) checkTexts() error {
	err := v.rows(`SELECT id, sum, text, rest FROM texts WHERE id > ? AND id <= ? ORDER BY id`, v.texts, func(c rowReader) error {
		c.Begin(tableTexts, 1)
		c.Text()
		c.Text()
		return c.Check()
	})
	for id := int64(1); id <= v.t.texts; id++ {
		if !v.texts.has(id) {
			v.lostTexts[id] = true
		}
	}
	return err
}

func (v *verifier) checkEvents() error {
	begun := false
	err := v.rows(eventsSQL, v.entries, func(c rowReader) error {
		e, err := readEvent(c)
		if err == nil {
			_, is := e.(*journal.Begun)
			begun = begun || is
		}
		return err
	})
	if !begun {
		v.fatal = cmp.Or(v.fatal, v.r.checkBegun(nil, v.t))
	}
	return err
}

func (v *verifier) checkStages() error {
	err := v.rows(stagesSQL, v.entries, func(c rowReader) error {
		e, count, err := readStage(c)
		if err == nil {
			v.stageEnds = append(v.stageEnds, int64(e.First+count))
		}
		return err
	})
	if int64(len(v.stageEnds)) != v.t.stages {
		v.fatal = cmp.Or(v.fatal, fmt.Errorf("%w: the episodes of a stage cannot be read", ErrDamaged))
	}
	return err
}

func (v *verifier) checkSpecs() error {
	b := blockReader{pad: true, each: v.checkBlock}
	err := v.rows(specsSQL+inEpisodesSpan, newBitset(0), func(c rowReader) error {
		s, err := readSpec(c)
		if err != nil {
			return err
		}
		if err = b.add(s); err != nil {
			v.addRun(damageText(err))
		}
		return err
	})
	if err != nil {
		return err
	}
	return b.finish(v.t.episodes)
}

// maxNamed is how many episodes that did not begin are listed one by one: a block may have
// any number of them.
const maxNamed = 1 << 16

// checkBlock looks for lost groups of a block.
func (v *verifier) checkBlock(rows []specRow) error {
	at := sort.Search(len(v.stageEnds), func(i int) bool { return rows[0].block < v.stageEnds[i] })
	for i := range rows {
		s := &rows[i]
		what := ""
		switch {
		case s.lost():
			what = "cannot be read"
		case v.lostTexts[s.params]:
			what = lostText(s.params)
		case v.lostTexts[s.lineup]:
			what = lostText(s.lineup)
		case v.lostTexts[s.more]:
			what = lostText(s.more)
		case at < len(v.stageEnds) && s.end() > v.stageEnds[at]:
			what = "they extend beyond their stage"
		}
		switch {
		case what == "":
		case s.size == 1 && s.rounds == 1:
			v.addEpisode(int(s.episode), "its description: "+what)
		default:
			v.addRun(fmt.Sprintf("the description of %d episodes starting at %d, in %d rounds: %s", s.size, s.episode, s.rounds, what))
			limit := max(v.t.begun, min(v.t.episodes, maxNamed))
			for from := s.episode; from < min(s.end(), limit); from += s.round {
				for n := from; n < min(from+s.size, limit); n++ {
					v.damaged[int(n)] = true
				}
			}
		}
	}
	return nil
}

func lostText(id int64) string { return fmt.Sprintf("text %d cannot be read", id) }

func (v *verifier) checkTurns() error {
	return v.rows(turnsSQL+inSpan, v.entries, func(c rowReader) error {
		_, _, err := readTurned(c)
		return err
	})
}

func (v *verifier) checkReplies() error {
	return v.rows(repliesSQL+inSpan, v.entries, func(c rowReader) error {
		p, _, err := readReplied(c, true)
		if err != nil || len(v.lostTexts) == 0 {
			return err
		}
		for _, id := range append([]int64{p.settings, p.answer}, p.prompt...) {
			if v.lostTexts[id] {
				v.addEpisode(p.Episode, fmt.Sprintf("entry %d (%s): %s", c.Key, callName(p.Turn, p.Index), lostText(id)))
			}
		}
		return nil
	})
}

func (v *verifier) checkOutcomes() error {
	return v.rows(outcomesSQL, v.entries, func(c rowReader) error {
		e, err := v.r.readOutcome(c, false)
		if err == nil {
			v.ends[e.Episode] = e.Attempt
			return nil
		}
		c.Begin(tableOutcomes, 1)
		episode := c.Int()
		if c.Int(); c.Check() == nil { // the episode can be read
			v.claimed[c.Key] = true
			v.addEpisode(episode, damageText(err))
		}
		return err
	})
}

func (v *verifier) checkProgress() error {
	err := v.rows(progressSQL+inEpisodesSpan, v.progress, func(c rowReader) error {
		p, err := readProgress(c)
		if err != nil {
			return err
		}
		if attempt, ok := v.ends[p.episode]; p.Ended && (!ok || attempt != p.Attempt) && !v.Has(p.episode) {
			v.addEpisode(p.episode, "its outcome cannot be read")
		}
		if n := abs(p.last); n != 0 && !v.entries.has(n) {
			v.addEpisode(p.episode, v.badEntry(n))
			v.claimed[n] = true
		}
		v.extents = append(v.extents, newExtent(&p))
		return nil
	})
	for n := range v.t.begun {
		if !v.progress.has(n) {
			v.addEpisode(int(n), "its progress cannot be read")
		}
	}
	return err
}

// badEntry says what is wrong with an entry.
func (v *verifier) badEntry(seq int64) string {
	return cmp.Or(v.bad[seq], fmt.Sprintf("entry %d is missing", seq))
}

// assignLost finds the episodes of bad entries: the next entry of an episode names the bad one.
func (v *verifier) assignLost() error {
	lost := map[int64]bool{}
	for n := int64(1); n <= v.t.seq; n++ {
		if !v.entries.has(n) && !v.claimed[n] {
			lost[n] = true
		}
	}
	if len(lost) == 0 {
		return nil
	}
	claim := func(episode int, prev int64) {
		if n := abs(prev); lost[n] {
			v.addEpisode(episode, v.badEntry(n))
			delete(lost, n)
		}
	}
	err := v.r.scan(`SELECT `+turnColumns+` FROM turns `+inSpan, everything(), func(c rowReader) error {
		var e journal.Turned
		prev, err := readTurnCore(&c, &e)
		if err == nil {
			claim(e.Episode, prev)
		}
		return err
	})
	if err != nil {
		return err
	}
	err = v.r.scan(`SELECT seq, sum, `+coreColumns+` FROM replies `+inSpan, everything(), func(c rowReader) error {
		k, err := readCore(&c, 1)
		if err == nil {
			claim(k.turn.Episode, k.prev)
		}
		return err
	})
	for _, n := range slices.Sorted(maps.Keys(lost)) {
		v.addRun(v.badEntry(n))
	}
	return err
}

// checkFound looks up the entries of the other episodes, if anything is damaged: a good row
// may not be found if damaged pages hide the way to it.
func (v *verifier) checkFound() error {
	if len(v.Damage) == 0 {
		return nil
	}
	for _, m := range v.landmarks {
		v.fatal = cmp.Or(v.fatal, m.check(v.r))
	}
	v.r.forgetTexts() // so that they are read again
	for _, e := range v.extents {
		if v.Has(e.episode) {
			continue
		}
		if _, _, err := v.r.episode(context.Background(), e, 0, true); isDamage(err) {
			v.addEpisode(e.episode, damageText(err))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// landmark is the first row of a query after a key at which readers continue.
type landmark struct {
	query       string
	after, next int64 // next is -1 if there is no row
}

// advance returns landmarks up to a key. The next row after them is the given one.
func (m *landmark) advance(last, next int64) (out []landmark) {
	for ; m.after <= last; m.after += readAtOnce {
		out = append(out, landmark{m.query, m.after, next})
	}
	return out
}

// check returns an error if the query finds another row.
func (m *landmark) check(r *reader) error {
	next := int64(-1)
	err := r.scan(m.query, span{m.after, math.MaxInt64}, func(c rowReader) error {
		next = c.Key
		return errStop
	})
	if errors.Is(err, errStop) && next != m.next {
		return fmt.Errorf("%w: its pages are not in order, and existing rows are not found", ErrDamaged)
	}
	return nil
}
