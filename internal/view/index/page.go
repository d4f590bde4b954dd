package index

import (
	"cmp"
	"context"
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

// Query says which episodes to list, and in which order. Only episodes that began are in the index.
type Query struct {
	State string // one of the run file's states; "": any
	Cell  string // cells that contain this text
	Agent string // lineups with this agent
	Text  string // the reason of a failure contains this text
	Label string // one of the names that SetLabels got

	// Sort is one of Sorts, "score" or "label". Desc sorts from the highest to the lowest.
	Sort string
	Desc bool
	// Score and Seat are the score to sort by. For labels, Score is a name that SetLabels got.
	Score, Seat string

	// After is the last row of the page before. Default: the first page.
	After *Key
	Limit int
}

// Key is the position of a row in an order.
type Key struct {
	Value   string // of the column that is sorted by, as text
	Episode int
}

// Row is an episode.
type Row struct {
	Episode       int
	State         string
	Cell          string
	Lineup        string
	Deal          int
	Failed        string
	Calls, Errors int
	Tokens        int
	Cost          llm.Money
	Began         time.Time
	Took          time.Duration
	Scores        []world.Score

	Key Key
}

// ErrQuery is returned for a Query that cannot be answered.
var ErrQuery = errors.New("index: wrong query")

// Sorts returns the columns that episodes can be sorted by, besides scores.
func Sorts() []string {
	return []string{"episode", "state", "cell", "calls", "errors", "tokens", "cost", "began", "took"}
}

// Page lists up to q.Limit episodes. It reads the rows that it returns and, until MakeIndexes has made an index of the
// column that is sorted by, all others.
func (x *Index) Page(ctx context.Context, q Query) (rows []Row, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	from, column, err := x.order(q)
	if err != nil {
		return nil, err
	}
	where, args, err := q.where(column)
	if err != nil {
		return nil, fmt.Errorf("%w: the position of the page: %w", ErrQuery, err)
	}
	direction := ""
	if q.Desc {
		direction = " DESC"
	}
	text := fmt.Sprintf(`SELECT e.episode, state, cell, lineup, deal, failed, calls, errors, tokens, cost, began, took, %[1]s
FROM %[2]s WHERE %[3]s ORDER BY %[1]s%[4]s, e.episode%[4]s LIMIT ?`, column, from, where, direction)
	defer x.interruptible(ctx)()
	err = x.query(text, append(args, q.Limit), func(s *db.Stmt) {
		rows = append(rows, Row{
			Episode: s.ColumnInt(0), State: s.ColumnText(1), Cell: s.ColumnText(2), Lineup: strings.TrimSpace(s.ColumnText(3)),
			Deal: s.ColumnInt(4), Failed: s.ColumnText(5), Calls: s.ColumnInt(6), Errors: s.ColumnInt(7), Tokens: s.ColumnInt(8),
			Cost: llm.Money(s.ColumnInt64(9)), Began: time.Unix(0, s.ColumnInt64(10)), Took: time.Duration(s.ColumnInt64(11)),
			Key: newKey(s, 12),
		})
	})
	if err == nil {
		err = x.addScores(rows)
	}
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return rows, nil
}

// newKey returns the key of a row that is sorted by a column.
func newKey(s *db.Stmt, column int) Key {
	k := Key{Value: s.ColumnText(column), Episode: s.ColumnInt(0)}
	if s.ColumnType(column) == db.TypeFloat { // SQLite's text has only 15 digits
		k.Value = strconv.FormatFloat(s.ColumnFloat(column), 'g', -1, 64)
	}
	return k
}

// value returns the value of a key as a query compares it.
func (q *Query) value() (any, error) {
	switch q.Sort {
	case "state", "cell":
		return q.After.Value, nil
	case "score", "label":
		return strconv.ParseFloat(q.After.Value, 64)
	default:
		return strconv.ParseInt(q.After.Value, 10, 64)
	}
}

// interruptible stops the query that runs when ctx is done, until the returned function is called.
func (x *Index) interruptible(ctx context.Context) (end func()) {
	was := x.conn.SetInterrupt(ctx.Done())
	return func() { x.conn.SetInterrupt(was) }
}

// order returns the tables and the column of a query, and makes an index for the column.
func (x *Index) order(q Query) (from, column string, err error) {
	switch {
	case q.Sort == "score":
		return "scores s JOIN episodes e USING (episode)", "value", nil
	case q.Sort == "label":
		return "labels s JOIN episodes e USING (episode)", "value", nil
	case q.Sort == "" || q.Sort == "episode":
		return "episodes e", "e.episode", nil
	case !slices.Contains(Sorts(), q.Sort):
		return "", "", fmt.Errorf("%w: cannot sort by %q; want one of %s, score, label", ErrQuery, q.Sort, strings.Join(Sorts(), ", "))
	}
	if x.wanted[q.Sort] = true; q.Desc && !x.made[q.Sort] {
		// To sort many equal values from the last to the first takes SQLite longer than to make an index.
		err, x.made[q.Sort] = x.exec(indexSQL(q.Sort)), true
	}
	return "episodes e", q.Sort, err
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
			return fmt.Errorf("index: %w", err)
		}
		x.mu.Lock()
		x.made[column] = true
		x.mu.Unlock()
	}
	return nil
}

func indexSQL(column string) string {
	return fmt.Sprintf(`CREATE INDEX IF NOT EXISTS episodes_%[1]s ON episodes (%[1]s, episode)`, column)
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
	c.SetBusyTimeout(busy)
	c.SetInterrupt(ctx.Done())
	for _, one := range []string{"PRAGMA synchronous = OFF", "PRAGMA trusted_schema = OFF", text} {
		if err := sqlitex.ExecuteTransient(c, one, nil); err != nil {
			return err
		}
	}
	return nil
}

// where returns the condition of a query.
func (q *Query) where(column string) (text string, args []any, err error) {
	conditions := []string{"1"}
	add := func(condition string, values ...any) {
		conditions, args = append(conditions, condition), append(args, values...)
	}
	if q.Sort == "score" {
		add("name = ? AND seat = ?", q.Score, q.Seat)
	}
	if q.Sort == "label" {
		add("name = ?", q.Score)
	}
	if q.Label != "" {
		add("e.episode IN (SELECT episode FROM labels WHERE name = ?)", q.Label)
	}
	if q.State != "" {
		add("state = ?", q.State)
	}
	if q.Cell != "" {
		add("instr(cell, ?) > 0", q.Cell)
	}
	if q.Agent != "" {
		add("instr(lineup, ?) > 0", "="+q.Agent+" ")
	}
	if q.Text != "" {
		add("instr(failed, ?) > 0", q.Text)
	}
	if q.After != nil {
		sign := ">"
		if q.Desc {
			sign = "<"
		}
		value, err := q.value()
		if err != nil {
			return "", nil, err
		}
		add(fmt.Sprintf("(%s, e.episode) %s (?, ?)", column, sign), value, q.After.Episode)
	}
	return strings.Join(conditions, " AND "), args, nil
}

// Fill fills in what the index knows of episodes: their calls, cost and time.
func (x *Index) Fill(rows []Row) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range rows {
		if err := x.fill(&rows[i]); err != nil {
			return fmt.Errorf("index: %w", err)
		}
	}
	return nil
}

func (x *Index) fill(row *Row) error {
	return x.query(`SELECT calls, errors, tokens, cost, began, took FROM episodes WHERE episode = ?`, []any{row.Episode}, func(s *db.Stmt) {
		row.Calls, row.Errors, row.Tokens, row.Cost = s.ColumnInt(0), s.ColumnInt(1), s.ColumnInt(2), llm.Money(s.ColumnInt64(3))
		row.Began, row.Took = time.Unix(0, s.ColumnInt64(4)), time.Duration(s.ColumnInt64(5))
	})
}

// addScores reads the scores of rows.
func (x *Index) addScores(rows []Row) error {
	for i := range rows {
		err := x.query(`SELECT seat, name, value FROM scores WHERE episode = ? ORDER BY place`, []any{rows[i].Episode}, func(s *db.Stmt) {
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
func (x *Index) Scores() (names []ScoreName, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
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
	err := x.within(func() error {
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
		return fmt.Errorf("index: labels: %w", err)
	}
	return nil
}

// SameDeal lists up to limit other episodes with a deal.
func (x *Index) SameDeal(ctx context.Context, deal, except, limit int) (rows []Row, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.interruptible(ctx)()
	err = x.query(`SELECT episode, lineup FROM episodes WHERE deal = ? AND episode <> ? ORDER BY episode LIMIT ?`, []any{deal, except, limit}, func(s *db.Stmt) {
		rows = append(rows, Row{Episode: s.ColumnInt(0), Lineup: strings.TrimSpace(s.ColumnText(1))})
	})
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return rows, nil
}
