package viewer

import (
	"strings"
	"unicode/utf8"

	"parley/internal/run/results"
)

// turnPair is a turn in both episodes. A side without lines did not have it.
type turnPair struct {
	Turn  string
	A, B  []Side
	Same  bool
	First bool // it is the first turn that differs
}

// Side is a line of one of them. Text is what both sides of the first difference begin with, and Rest is what differs there;
// in other lines Rest is empty.
type Side struct {
	results.Line
	Rest string
}

// align puts the lines of two episodes beside each other. Both are in the order of a transcript. first is the first row
// that differs, or -1.
func align(a, b []results.Line) (rows []turnPair, first int) {
	for len(a) > 0 || len(b) > 0 {
		var order int
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = results.CompareTurns(a[0].Turn, b[0].Turn)
		}
		var r turnPair
		if order <= 0 {
			r.A, a = turn(a)
			r.Turn = r.A[0].Turn
		}
		if order >= 0 {
			r.B, b = turn(b)
			r.Turn = r.B[0].Turn
		}
		rows = append(rows, r)
	}
	first = -1
	for i := range rows {
		at := difference(rows[i].A, rows[i].B)
		if rows[i].Same = at < 0; at >= 0 && first < 0 {
			first, rows[i].First = i, true
			rows[i].mark(at)
		}
	}
	return rows, first
}

// turn returns the lines of the first turn, and the others.
func turn(lines []results.Line) (own []Side, rest []results.Line) {
	n := 0
	for n < len(lines) && lines[n].Turn == lines[0].Turn {
		own = append(own, Side{Line: lines[n]})
		n++
	}
	return own, lines[n:]
}

// difference returns the first line that differs, or -1. Who the agent is does not matter.
func difference(a, b []Side) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i].Seat != b[i].Seat || a[i].Said != b[i].Said || a[i].Text != b[i].Text {
			return i
		}
	}
	return -1
}

// mark splits the line that differs where it does.
func (r *turnPair) mark(at int) {
	if at >= len(r.A) || at >= len(r.B) {
		return
	}
	a, b := &r.A[at], &r.B[at]
	n := 0
	for n < min(len(a.Text), len(b.Text)) && a.Text[n] == b.Text[n] {
		n++
	}
	for n > 0 && n < len(a.Text) && !utf8.RuneStart(a.Text[n]) {
		n--
	}
	if space := strings.LastIndexByte(a.Text[:n], ' '); space >= 0 {
		n = space + 1 // at the beginning of a word
	}
	a.Text, a.Rest = a.Text[:n], a.Text[n:]
	b.Text, b.Rest = b.Text[:n], b.Text[n:]
}
