package sqlite

import (
	"fmt"

	"github.com/zeebo/xxh3"
)

// Every row has a checksum of its values and its number, so that a bit that flipped on a
// disk or a row in another's place is noticed when it is read. Pages have none of ours:
// other programs fold the log into the file, and copy it, and would leave them wrong.
//
// The checksums are against damage. Whoever forges a row can forge its checksum.

// sum is a checksum under way. NULL, 0 and the empty text are alike to it, since they are
// alike to whoever reads them; where they are not, the reader adds what tells them apart.
type sum uint64

// add takes in a number. For one value that differs the result always differs.
func (s *sum) add(v uint64) {
	h := (uint64(*s) ^ v) * 0x9E3779B97F4A7C15
	*s = sum(h ^ h>>32)
}

// str takes in a text.
func (s *sum) str(text string) {
	if text == "" {
		s.add(0)
		return
	}
	s.add(xxh3.HashString(text))
}

// present takes in that there is a value where that makes a difference.
func (s *sum) present() { s.add(0xA5A5A5A5) }

// value is what is stored.
func (s sum) value() uint32 {
	s.add(1)
	return uint32(s)
}

// table is what a row is of. Its number begins the checksums of its rows.
type table int

const (
	tableState table = iota + 1
	tableTexts
	tableEvents
	tableStages
	tableSpecs
	tableProgress
	tableTurns
	tableReplies
	tableOutcomes
)

// row says which row of the table a number is.
func (t table) row(key int64) string {
	switch t {
	case tableState:
		return "the state of the run"
	case tableTexts:
		return fmt.Sprintf("text %d", key)
	case tableEvents:
		return fmt.Sprintf("entry %d", key)
	case tableStages:
		return fmt.Sprintf("entry %d (a stage)", key)
	case tableSpecs:
		return fmt.Sprintf("the description of episode %d", key)
	case tableProgress:
		return fmt.Sprintf("the progress of episode %d", key)
	case tableTurns:
		return fmt.Sprintf("entry %d (a turn)", key)
	case tableReplies:
		return fmt.Sprintf("entry %d (a reply)", key)
	default:
		return fmt.Sprintf("entry %d (an outcome)", key)
	}
}

// group begins the checksum of the group'th columns of a row.
func (t table) group(key int64, group int) (s sum) {
	s.add(uint64(t)<<8 | uint64(group))
	s.add(uint64(key))
	return s
}

// sealed is the checksum of a row under way, for those that write it and that read it.
type sealed struct {
	sum
	table  table
	key    int64
	groups int
}

// begin begins a row.
func (s *sealed) begin(t table, key int64) {
	*s = sealed{table: t, key: key, sum: t.group(key, 0)}
}

// next ends a group of columns: it returns the checksum and begins the next group's.
func (s *sealed) next() uint32 {
	v := s.value()
	s.skip(1)
	return v
}

// skip goes on to the group'th group from here.
func (s *sealed) skip(groups int) {
	s.groups += groups
	s.sum = s.table.group(s.key, s.groups)
}
