package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// lost finds whose the entries are that are not good: each is named by the one after it.
func (v *verifier) lost() error {
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
			v.episode(episode, v.entry(n))
			delete(lost, n)
		}
	}
	err := v.r.scan(`SELECT `+turnCoreColumns+` FROM turns `+inSpan, everything(), func(c columns) error {
		e, prev, err := c.turned()
		if err == nil {
			claim(e.Episode, prev)
		}
		return err
	})
	if err != nil {
		return err
	}
	err = v.r.scan(`SELECT seq, sum, `+coreColumns+` FROM replies `+inSpan, everything(), func(c columns) error {
		k, err := c.core(1)
		if err == nil {
			claim(k.turn.Episode, k.prev)
		}
		return err
	})
	for _, n := range slices.Sorted(maps.Keys(lost)) {
		v.run(v.entry(n))
	}
	return err
}

// found looks up what should be there of the other episodes, where anything is damaged: a
// row may be there and still not be found, since the way to it leads past others.
func (v *verifier) found() error {
	if len(v.Damage) == 0 {
		return nil
	}
	for _, m := range v.landmarks {
		if err := m.check(v.r); err != nil {
			v.fatal = cmp.Or(v.fatal, err)
		}
	}
	v.r.texts = newRecent[int64](textsKept, (*text).size) // so that they are read again
	for _, p := range v.spots {
		if v.has(p.episode) {
			continue
		}
		if _, err := v.r.episode(context.Background(), p); isDamage(err) {
			v.episode(p.episode, what(err))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// landmark is the first row of a query after one of those that readers go on from.
type landmark struct {
	query       string
	after, next int64 // next is -1 where there is none
}

// to makes landmarks up to a number, whose next row is the given one.
func (m *landmark) to(last, next int64) (out []landmark) {
	for ; m.after <= last; m.after += readAtOnce {
		out = append(out, landmark{m.query, m.after, next})
	}
	return out
}

// check says if another row is found there.
func (m *landmark) check(r *reader) error {
	next := int64(-1)
	err := r.scan(m.query, span{m.after, everything().to}, func(c columns) error {
		next = c.row
		return errFound
	})
	if errors.Is(err, errFound) && next != m.next {
		return fmt.Errorf("%w: its pages are not in order, and rows that are there are not found", ErrDamaged)
	}
	return nil
}
