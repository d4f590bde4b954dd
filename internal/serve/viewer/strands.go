// Part said is what was said in an episode, as parts of pages: its lines, with strands as columns and rows in the
// order of time; one call in full; and two episodes beside each other.

package viewer

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxColumns is how many columns a layout has at most. If more strands are played at once, the last column has
// several of them.
const maxColumns = 7

// cell is the lines of one turn.
type cell struct {
	Strand string // empty: of the whole episode
	Column int    // from 1; 0: as wide as the row
	Lines  []Line
}

// Row is turns that were played at about the same time, in different strands.
type Row struct {
	At    time.Time // of the first reply; zero: unknown
	Cells []cell
}

// layout is rows of cells.
type layout struct {
	Columns int // 0: nothing was played at once
	Rows    []Row
}

// newLayout lays out lines, which are in the order of time.
func newLayout(lines []Line) (l layout) {
	cells := split(lines)
	last := map[string]int{} // the last cell of a strand
	for i, c := range cells {
		last[c.Strand] = i
	}
	var holders [maxColumns]string // the strand of each column
	until := [maxColumns]int{}     // the last cell of that strand
	for i := range until {
		until[i] = -1
	}
	for i, c := range cells {
		if c.Strand != "" {
			at := slices.Index(holders[:], c.Strand)
			if at < 0 {
				at = free(holders, until, i, c.Strand)
			}
			if at < 0 {
				at = maxColumns - 1
			}
			holders[at], until[at] = c.Strand, max(until[at], last[c.Strand]) //nolint:gosec // at is a column
			c.Column = at + 1
			l.Columns = max(l.Columns, c.Column)
		}
		l.add(c)
	}
	return l
}

// free returns a column whose strand has ended and was not played beside the given one, or -1.
func free(holders [maxColumns]string, until [maxColumns]int, now int, strand string) int {
	usable := func(at int) bool {
		return until[at] < now && (holders[at] == "" || fork(holders[at]) != fork(strand))
	}
	number := strings.TrimSuffix(strand[len(fork(strand)):], "/")
	if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < maxColumns && usable(n) {
		return n // so that strands keep their order
	}
	for at := range holders {
		if usable(at) {
			return at
		}
	}
	return -1
}

// fork returns the name of the fork that a strand is of: "4." for "4.2/".
func fork(strand string) string { return strand[:strings.LastIndexByte(strand, '.')+1] }

// split returns a cell for each turn.
func split(lines []Line) (cells []cell) {
	turn := ""
	for i, line := range lines {
		if i == 0 || line.Turn != turn {
			turn = line.Turn
			cells = append(cells, cell{Strand: turn[:strings.LastIndexByte(turn, '/')+1]})
		}
		c := &cells[len(cells)-1]
		c.Lines = append(c.Lines, line)
	}
	return cells
}

// add puts a cell into the last row, if its column is free there, or into a new one.
func (l *layout) add(c cell) {
	if n := len(l.Rows); n > 0 && c.Column > 0 {
		row := &l.Rows[n-1]
		if !slices.ContainsFunc(row.Cells, func(x cell) bool { return x.Column == 0 || x.Column == c.Column }) {
			row.Cells = append(row.Cells, c)
			slices.SortFunc(row.Cells, func(a, b cell) int { return a.Column - b.Column }) // a grid fills its rows in this order
			return
		}
	}
	row := Row{Cells: []cell{c}}
	for _, line := range c.Lines {
		if line.Reply != nil && !line.Reply.At.IsZero() {
			row.At = line.Reply.At
			break
		}
	}
	l.Rows = append(l.Rows, row)
}
