package export

import (
	"context"

	"parley/internal/run/label"
)

// labels writes the labels of the run, in the order in which people gave them.
func (x *export) labels(ctx context.Context) error {
	set, err := label.Read(ctx, x.store.Path(), x.run)
	if err != nil {
		return err
	}
	columns := labelColumns()
	for i := range set.All {
		if x.without[set.All[i].Episode] {
			continue
		}
		if err := put(x, columns, &set.All[i]); err != nil {
			return err
		}
	}
	return nil
}

func labelColumns() []column[label.Label] {
	return []column[label.Label]{
		few("run", "the id of the run", func(l *label.Label) cell { return text(l.Run) }),
		col("episode", Integer, "the number of its episode, from 0", func(l *label.Label) cell { return integer(l.Episode) }),
		col("call", Text, "the message that it is about, as TURN:CALL; null for the whole episode", func(l *label.Label) cell { return some(l.Call) }),
		few("tag", "a word for what the person saw", func(l *label.Label) cell { return some(l.Tag) }),
		few("verdict", "`pass`, `fail` or `unsure`", func(l *label.Label) cell { return some(string(l.Verdict)) }),
		col("note", Text, "a text", func(l *label.Label) cell { return some(l.Note) }),
		few("by", "the person, if they gave a name", func(l *label.Label) cell { return some(l.By) }),
		col("at", Time, "when it was given", func(l *label.Label) cell { return moment(l.At) }),
	}
}
