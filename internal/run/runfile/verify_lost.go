package runfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/journal"
)

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
			v.addEpisode(e.episode, what(err))
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
