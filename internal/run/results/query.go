package results

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	db "zombiezen.com/go/sqlite"
)

// Query says which episodes to list, and in which order. Only episodes that began are in the index.
type Query struct {
	State string // one of the run file's states; "": any
	Cell  string // cells that contain this text
	Agent string // lineups with this agent
	Text  string // the reason of a failure contains this text
	Label string // one of the names that SetLabels got
	// Has is a score that episodes must have. Low and High limit its value, if they are set.
	Has       *ScoreName
	Low, High *float64
	Bounds    []Bound

	// Sort is one of Sorts, "score" or "label". Desc sorts from the highest to the lowest.
	Sort string
	Desc bool
	// Score and Seat are the score to sort by. For labels, Score is a name that SetLabels got.
	Score, Seat string

	// After is the last row of the page before. Default: the first page.
	After *IndexKey
	Limit int
}

// Bound limits a column of whole numbers, if Low and High are set: cost, in the unit of llm.Money, or took, in nanoseconds. Episodes
// without a reply took no known time: a bound of took leaves them out.
type Bound struct {
	Column    string
	Low, High *int64
}

// IndexKey is the position of a row in an order.
type IndexKey struct {
	Value   string // of the column that is sorted by, as text
	Episode int
}

// value returns the value of a key as a query compares it.
func (q *Query) value() (any, error) {
	switch q.Sort {
	case "state", "cell", "lineup":
		return q.After.Value, nil
	case "score", "label":
		return strconv.ParseFloat(q.After.Value, 64)
	default:
		return strconv.ParseInt(q.After.Value, 10, 64)
	}
}

// condition is a part of a query with its parameters.
type condition struct {
	text string
	args []any
}

// everything is a condition that all rows meet.
const everything = "1"

func (c condition) and(text string, args ...any) condition {
	return condition{c.text + " AND " + text, slices.Concat(c.args, args)}
}

func (q *Query) direction() string {
	if q.Desc {
		return " DESC"
	}
	return ""
}

// spans returns the rows after q.After as parts, in order: those with its value, and those beyond. SQLite would find
// (value, episode) > (?, ?) by the value alone, and read all rows that have it.
func (q *Query) spans(o order) ([]condition, error) {
	if q.After == nil {
		return []condition{o.key}, nil
	}
	value, err := q.value()
	if err != nil {
		return nil, err
	}
	sign := ">"
	if q.Desc {
		sign = "<"
	}
	if o.column == "episode" {
		return []condition{o.key.and("episode "+sign+" ?", q.After.Episode)}, nil
	}
	same := o.key.and(o.column+" = ? AND episode "+sign+" ?", value, q.After.Episode)
	return []condition{same, o.key.and(o.column+" "+sign+" ?", value)}, nil
}

// split finds the rows of the last span that the page can have, of which SQLite has no index: those with a higher value
// than the last, by number, and those with its value. To sort many equal values from the last to the first would take
// seconds.
func (x *Index) split(q *Query, o order, spans []condition) ([]condition, error) {
	last := spans[len(spans)-1]
	filter := q.filter()
	in := last.and(filter.text, filter.args...)
	var numbers []int
	var values []any
	text := fmt.Sprintf("SELECT episode, %[1]s FROM episodes e WHERE %[2]s ORDER BY %[1]s DESC LIMIT ?", o.column, in.text)
	err := x.query(text, append(in.args, q.Limit), func(s *db.Stmt) {
		numbers, values = append(numbers, s.ColumnInt(0)), append(values, s.ColumnInt64(1))
		if s.ColumnType(1) == db.TypeText {
			values[len(values)-1] = s.ColumnText(1)
		}
	})
	if err != nil {
		return nil, err
	}
	spans = slices.Clone(spans[:len(spans)-1])
	var same []condition
	if n := len(numbers); n == q.Limit { // others may have the last value too
		same = []condition{last.and(o.column+" = ?", values[n-1])}
		numbers = numbers[:slices.Index(values, values[n-1])]
	}
	listed, err := json.Marshal(numbers)
	spans = append(spans, o.key.and("episode IN (SELECT value FROM json_each(?))", string(listed)))
	return append(spans, same...), err
}

// filter returns the condition of a query without its position, on the table e.
func (q *Query) filter() condition {
	c := condition{text: everything}
	if q.Label != "" {
		c = c.and("e.episode IN (SELECT episode FROM labels WHERE name = ?)", q.Label)
	}
	if q.State != "" {
		c = c.and("e.state = ?", q.State)
	}
	if q.Cell != "" {
		c = c.and("instr(e.cell, ?) > 0", q.Cell)
	}
	if q.Agent != "" {
		c = c.and("instr(e.lineup, ?) > 0", "="+q.Agent+" ")
	}
	if q.Text != "" {
		c = c.and("instr(e.failed, ?) > 0", q.Text)
	}
	if q.Has != nil {
		has := condition{"name = ? AND seat = ?", []any{q.Has.Name, q.Has.Seat}}
		if q.Low != nil {
			has = has.and("value >= ?", *q.Low)
		}
		if q.High != nil {
			has = has.and("value <= ?", *q.High)
		}
		c = c.and("e.episode IN (SELECT episode FROM scores WHERE "+has.text+")", has.args...)
	}
	for _, b := range q.Bounds {
		if b.Low != nil {
			c = c.and("e."+b.Column+" >= ?", *b.Low)
		}
		if b.High != nil {
			c = c.and("e."+b.Column+" <= ?", *b.High)
		}
		if b.Column == Took {
			c = c.and("e.began > 0")
		}
	}
	return c
}
