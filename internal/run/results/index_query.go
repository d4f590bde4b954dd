package results

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	db "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/llm"
	"parley/world"
)

// Row is an episode as an Index lists it. Of the calls it knows only how many there are and, as Errors, how many failed with the acts
// and the answers of bots.
type Row struct {
	Episode
	Lineup string
	Errors int
	Tokens int
	Began  time.Time
	Took   time.Duration
	// Strip has a letter for each of the first replies: a is the first seat of the lineup in alphabetical order, - no seat, and ! a
	// failure.
	Strip string

	Key IndexKey
}

// ErrQuery is returned for a Query that cannot be answered.
var ErrQuery = errors.New("wrong query")

// Columns that a Test can compare.
const (
	CostColumn = "cost"
	TookColumn = "took"
)

// SortColumns returns the columns that episodes can be sorted by, besides scores.
func SortColumns() []string {
	return []string{"episode", "state", "cell", "lineup", "calls", "errors", "tokens", CostColumn, "began", TookColumn}
}

// Page lists up to q.Limit episodes. It reads the rows that it returns and, until MakeIndexes has made an index of the
// column that is sorted by, all others. With a filter it may read all rows too.
func (x *Index) Page(ctx context.Context, q Query) (rows []Row, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o, err := x.order(&q)
	if err != nil {
		return nil, err
	}
	spans, err := q.spans(o)
	if err != nil {
		return nil, fmt.Errorf("%w: the position of the page: %w", ErrQuery, err)
	}
	defer x.interruptible(ctx)()
	if !o.indexed && q.Desc {
		spans, err = x.split(&q, o, spans)
	}
	for _, in := range spans {
		if err == nil && len(rows) < q.Limit {
			rows, err = x.list(&q, o, in, rows)
		}
	}
	if err == nil {
		err = x.addScores(rows)
	}
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// list adds the rows of a span, in order, until there are q.Limit. It follows the order and leaves out what the filter
// does. If the filter leaves out nearly all, it looks at everything instead and sorts what is left.
func (x *Index) list(q *Query, o order, in condition, rows []Row) ([]Row, error) {
	filter := q.filter()
	limit := q.Limit - len(rows)
	reads := []int{limit}
	if filter.text != everything {
		reads = []int{fewRows, manyRows}
	}
	if !o.indexed && filter.text != everything {
		reads = nil
	}
	for _, n := range reads {
		text := fmt.Sprintf("(SELECT %[1]s AS at, episode AS number FROM %[2]s WHERE %[3]s ORDER BY %[1]s%[4]s, episode%[4]s LIMIT ?) CROSS JOIN episodes e ON e.episode = number WHERE %[5]s", o.column, o.table, in.text, q.direction(), filter.text)
		found, err := x.rows(q, text, slices.Concat(in.args, []any{n}, filter.args, []any{limit}))
		if err != nil || filter.text == everything || len(found) == limit {
			return append(rows, found...), err
		}
	}
	from, condition := "episodes e", in.text
	if o.table != "episodes" {
		from, condition = "episodes e CROSS JOIN "+o.table+" s ON s.episode = e.episode", strings.ReplaceAll(in.text, "episode ", "e.episode ")
	}
	text := fmt.Sprintf("(SELECT %s AS at, e.episode AS number, e.* FROM %s WHERE %s AND %s)", o.column, from, filter.text, condition)
	found, err := x.rows(q, text, slices.Concat(filter.args, in.args, []any{limit}))
	return append(rows, found...), err
}

// fewRows and manyRows are how many rows in order are filtered before all are: what SQLite joins in a few milliseconds,
// and in a few tens.
const (
	fewRows  = 1000
	manyRows = 20_000
)

// rows reads rows of a table with the columns of episodes, at and number.
func (x *Index) rows(q *Query, from string, args []any) (rows []Row, err error) {
	text := fmt.Sprintf(`SELECT number, state, cell, lineup, deal, failed, calls, errors, tokens, cost, began, took, strip, at
FROM %s ORDER BY at%[2]s, number%[2]s LIMIT ?`, from, q.direction())
	err = x.query(text, args, func(s *db.Stmt) {
		row := Row{Episode: Episode{Number: s.ColumnInt(0), State: s.ColumnText(1), Cell: s.ColumnText(2), Deal: s.ColumnInt(4), Failed: s.ColumnText(5)}, Lineup: strings.TrimSpace(s.ColumnText(3)), Key: newKey(s, 13)}
		row.read(s, 6)
		rows = append(rows, row)
	})
	return rows, err
}

// read reads what an episode spent from the columns from a place on.
func (row *Row) read(s *db.Stmt, at int) {
	row.Calls, row.Errors, row.Tokens, row.Cost = s.ColumnInt(at), s.ColumnInt(at+1), s.ColumnInt(at+2), llm.Money(s.ColumnInt64(at+3))
	row.Began, row.Took = time.Unix(0, s.ColumnInt64(at+4)), time.Duration(s.ColumnInt64(at+5))
	row.Strip = s.ColumnText(at + 6)
}

// newKey returns the key of a row that is sorted by a column.
func newKey(s *db.Stmt, column int) IndexKey {
	k := IndexKey{Value: s.ColumnText(column), Episode: s.ColumnInt(0)}
	if s.ColumnType(column) == db.TypeFloat { // SQLite's text has only 15 digits
		k.Value = strconv.FormatFloat(s.ColumnFloat(column), 'g', -1, 64)
	}
	return k
}

// interruptible stops the query that runs when ctx is done, until the returned function is called.
func (x *Index) interruptible(ctx context.Context) (end func()) {
	was := x.conn.SetInterrupt(ctx.Done())
	return func() { x.conn.SetInterrupt(was) }
}

// order is where the order of a query is from.
type order struct {
	table, column string
	key           condition // which rows of the table
	indexed       bool      // the table can be read in the order
}

// order returns the order of a query, and notes that its column needs an index, and those that it limits.
func (x *Index) order(q *Query) (order, error) {
	for _, t := range q.Tests {
		if !slices.Contains([]string{"<", "<=", "=", ">=", ">"}, t.Op) {
			return order{}, fmt.Errorf("%w: unknown comparison %q", ErrQuery, t.Op)
		}
		if t.Column == "" {
			continue
		}
		if !slices.Contains(TestColumns(), t.Column) {
			return order{}, fmt.Errorf("%w: cannot compare %q; want one of %s", ErrQuery, t.Column, strings.Join(TestColumns(), ", "))
		}
		if slices.Contains(SortColumns(), t.Column) {
			x.wanted[t.Column] = true
		}
	}
	switch {
	case q.Sort == "score":
		return order{"scores", "value", condition{"name = ? AND seat = ?", []any{q.Score, q.Seat}}, true}, nil
	case q.Sort == "label":
		return order{"labels", "value", condition{"name = ?", []any{q.Score}}, true}, nil
	case q.Sort == "" || q.Sort == "episode":
		return order{"episodes", "episode", condition{everything, nil}, true}, nil
	case !slices.Contains(SortColumns(), q.Sort):
		return order{}, fmt.Errorf("%w: cannot sort by %q; want one of %s, score, label", ErrQuery, q.Sort, strings.Join(SortColumns(), ", "))
	}
	x.wanted[q.Sort] = true
	return order{"episodes", q.Sort, condition{everything, nil}, x.made[q.Sort]}, nil
}

// MakeIndexes makes an index for each column that was sorted by. Until then a page reads all rows to sort them. It
// does not hold up readers.
func (x *Index) MakeIndexes(ctx context.Context) error {
	x.mu.Lock()
	var columns []string
	for column := range x.wanted {
		if !x.made[column] {
			columns = append(columns, column)
		}
	}
	x.mu.Unlock()
	for _, column := range columns {
		if err := x.makeIndex(ctx, column); err != nil {
			return err
		}
		x.mu.Lock()
		x.made[column] = true
		x.mu.Unlock()
	}
	return nil
}

func indexSQL(column string) string {
	return fmt.Sprintf(`CREATE INDEX IF NOT EXISTS episodes_%[1]s ON episodes (%[1]s)`, column)
}

func (x *Index) makeIndex(ctx context.Context, column string) (err error) {
	text := indexSQL(column)
	if x.path == inMemory {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.exec(text)
	}
	c, err := db.OpenConn(x.path, db.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	c.SetBusyTimeout(busyTimeout)
	c.SetInterrupt(ctx.Done())
	for _, one := range []string{"PRAGMA synchronous = OFF", "PRAGMA trusted_schema = OFF", text} {
		if err := sqlitex.ExecuteTransient(c, one, nil); err != nil {
			return err
		}
	}
	return nil
}

// Fill fills in what the index knows of episodes: their calls, cost and time.
func (x *Index) Fill(rows []Row) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range rows {
		if err := x.fill(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) fill(row *Row) error {
	return x.query(`SELECT calls, errors, tokens, cost, began, took, strip FROM episodes WHERE episode = ?`, []any{row.Number}, func(s *db.Stmt) { row.read(s, 0) })
}

// addScores reads the scores of rows.
func (x *Index) addScores(rows []Row) error {
	for i := range rows {
		err := x.query(`SELECT seat, name, value FROM scores WHERE episode = ? ORDER BY place`, []any{rows[i].Number}, func(s *db.Stmt) {
			rows[i].Scores = append(rows[i].Scores, world.Score{Seat: s.ColumnText(0), Name: s.ColumnText(1), Value: s.ColumnFloat(2)})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ScoreName is a score that episodes have.
type ScoreName struct {
	Name, Seat string
	place      int
}

// Scores lists the names of all scores in the order of an outcome, without reading all rows.
func (x *Index) Scores() ([]ScoreName, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.scoreNames()
}

func (x *Index) scoreNames() (names []ScoreName, err error) {
	const next = `SELECT name, seat, place FROM scores WHERE `
	for {
		var last ScoreName
		n := len(names)
		if n > 0 {
			last = names[n-1]
		}
		add := func(s *db.Stmt) { names = append(names, ScoreName{s.ColumnText(0), s.ColumnText(1), s.ColumnInt(2)}) }
		// Two queries: SQLite would find (name, seat) > (?, ?) by name alone, and read a row for every episode.
		err = x.query(next+`name = ? AND seat > ? ORDER BY seat LIMIT 1`, []any{last.Name, last.Seat}, add)
		if err == nil && len(names) == n {
			err = x.query(next+`name > ? ORDER BY name, seat LIMIT 1`, []any{last.Name}, add)
		}
		if err != nil || len(names) == n {
			break
		}
	}
	slices.SortStableFunc(names, func(a, b ScoreName) int { return cmp.Compare(a.place, b.place) })
	return names, err
}

// SetLabels replaces the labels of all episodes: values by name, by episode.
func (x *Index) SetLabels(labels map[int]map[string]float64) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := x.inTransaction(func() error {
		if err := x.exec(`DELETE FROM labels`); err != nil {
			return err
		}
		for episode, values := range labels {
			for name, value := range values {
				if err := x.exec(`INSERT INTO labels VALUES (?, ?, ?)`, name, value, episode); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	return nil
}

// SameDeal lists up to limit other episodes with a deal.
func (x *Index) SameDeal(ctx context.Context, deal, except, limit int) (rows []Row, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.interruptible(ctx)()
	err = x.query(`SELECT episode, lineup FROM episodes WHERE deal = ? AND episode <> ? ORDER BY episode LIMIT ?`, []any{deal, except, limit}, func(s *db.Stmt) {
		rows = append(rows, Row{Episode: Episode{Number: s.ColumnInt(0)}, Lineup: strings.TrimSpace(s.ColumnText(1))})
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// Query says which episodes to list, and in which order. Only episodes that began are in the index.
type Query struct {
	State string   // one of the run file's states; "": any
	Cell  string   // cells that contain this text
	Agent string   // lineups with this agent
	Text  string   // the reason of a failure contains this text
	Label string   // one of the names that SetLabels got
	Said  []string // each is words that one text of the episode has: see Search
	Tests []Test

	// Sort is one of SortColumns, "score" or "label". Empty: "episode". Desc sorts from the highest to the lowest.
	Sort string
	Desc bool
	// Score and Seat are the score to sort by. For labels, Score is a name that SetLabels got.
	Score, Seat string

	// After is the last row of the page before. Default: the first page.
	After *IndexKey
	Limit int
}

// Test compares a number of an episode with a value. Episodes without a reply took no known time: a test of took leaves them out.
type Test struct {
	Column string    // one of TestColumns; empty: a score
	Score  ScoreName // without a seat, any may have it
	Op     string    // <, <=, =, >= or >
	Value  any       // float64 of a score; int64 of a column: cost in the unit of llm.Money, took in nanoseconds
}

// TestColumns returns the columns that a Test can compare.
func TestColumns() []string {
	return []string{"episode", "deal", "calls", "errors", "tokens", CostColumn, TookColumn}
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
	for _, words := range q.Said {
		if match := matchQuery(words); match != "" {
			c = c.and("e.episode IN (SELECT h.episode FROM said JOIN hits h ON h.id = said.rowid WHERE said MATCH ?)", match)
		}
	}
	for _, t := range q.Tests {
		switch {
		case t.Column == TookColumn:
			c = c.and("e.began > 0 AND e.took "+t.Op+" ?", t.Value)
		case t.Column != "":
			c = c.and("e."+t.Column+" "+t.Op+" ?", t.Value)
		case t.Score.Seat == "":
			c = c.and("e.episode IN (SELECT episode FROM scores WHERE name = ? AND value "+t.Op+" ?)", t.Score.Name, t.Value)
		default:
			c = c.and("e.episode IN (SELECT episode FROM scores WHERE name = ? AND seat = ? AND value "+t.Op+" ?)", t.Score.Name, t.Score.Seat, t.Value)
		}
	}
	return c
}

// Reason is why episodes failed.
type Reason struct {
	Text     string // hostile
	Episodes int
}

const reasonsSQL = `SELECT failed, count(*) FROM episodes WHERE failed <> '' GROUP BY failed ORDER BY 2 DESC, 1 LIMIT ?`

// Reasons lists up to limit reasons of failures, the most frequent first.
func (x *Index) Reasons(ctx context.Context, limit int) (all []Reason, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.interruptible(ctx)()
	err = x.query(reasonsSQL, []any{limit}, func(s *db.Stmt) {
		all = append(all, Reason{s.ColumnText(0), s.ColumnInt(1)})
	})
	return all, err
}
