package runfile

import (
	"context"
	"fmt"

	"parley/journal"
)

// Count counts the replies by what was asked. It reads no texts, so it takes as long as Failed.
func (s *Store) Count(ctx context.Context) (c journal.Counts, err error) {
	if err := context.Cause(ctx); err != nil {
		return c, err
	}
	salvage := false
	err = s.read(func(r *reader) error {
		if salvage = r.lost != nil; salvage {
			return nil
		}
		stmt, err := r.conn.Prepare(fmt.Sprintf(`SELECT count(*), sum(flags & %d <> 0), sum(flags & %d = %d) FROM replies`, flagAct, flagAct|flagAsked, flagAsked))
		if err != nil {
			return err
		}
		defer reset(stmt)
		if _, err := stmt.Step(); err != nil {
			return err
		}
		c.Acts, c.Asks = stmt.ColumnInt(1), stmt.ColumnInt(2)
		c.Bots = stmt.ColumnInt(0) - c.Acts - c.Asks
		return nil
	})
	if err != nil || !salvage {
		return c, err
	}
	return c, s.Brief(ctx, func(e journal.Entry) error { // which leaves out what is damaged
		if r, ok := e.(*journal.Replied); ok {
			c.Add(r)
		}
		return nil
	})
}
