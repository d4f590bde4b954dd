package runfile

import (
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"parley/journal"
)

// sum is a checksum in progress. NULL, 0 and the empty text give the same sum, because
// readers do not distinguish them. Where they do, they add present.
type sum uint64

// add adds a number. If one value differs, the result always differs.
func (s *sum) add(v uint64) {
	h := (uint64(*s) ^ v) * 0x9E3779B97F4A7C15
	*s = sum(h ^ h>>32)
}

// text adds a text.
func (s *sum) text(text string) {
	if text == "" {
		s.add(0)
		return
	}
	s.add(xxh3.HashString(text))
}

// bytes adds the bytes of a text.
func (s *sum) bytes(b []byte) {
	if len(b) == 0 {
		s.add(0)
		return
	}
	s.add(xxh3.Hash(b))
}

// present marks that a value is not NULL.
func (s *sum) present() { s.add(0xA5A5A5A5) }

// rowSum is the checksum of a row's current group of columns.
type rowSum struct {
	sum
	table rowTable
	key   int64
	group int
}

func (s *rowSum) begin(t rowTable, key int64) {
	s.table, s.key = t, key
	s.start(0)
}

// start starts the checksum of a group.
func (s *rowSum) start(group int) {
	s.sum, s.group = 0, group
	s.add(uint64(s.table)<<8 | uint64(group))
	s.add(uint64(s.key))
}

// next returns the checksum of the group and starts the next group.
func (s *rowSum) next() uint32 {
	s.add(1)
	v := uint32(s.sum)
	s.start(s.group + 1)
	return v
}

// rowTable is a table of a run file. Its number is part of the checksums of its rows.
type rowTable int

// The tables.
const (
	rowState rowTable = iota + 1
	rowTexts
	rowEvents
	rowStages
	rowSpecs
	rowProgress
	rowTurns
	rowReplies
	rowOutcomes
	rowShards
)

// describe names the row with the given key.
func (t rowTable) describe(key int64) string {
	if t == rowState {
		return "the state of the run"
	}
	return fmt.Sprintf([...]string{
		rowTexts: "text %d", rowEvents: "entry %d", rowStages: "entry %d (a stage)", rowSpecs: "the description of episode %d",
		rowProgress: "the progress of episode %d", rowTurns: "entry %d (a turn)", rowReplies: "entry %d (a reply)", rowOutcomes: "entry %d (an outcome)",
		rowShards: "shard %d",
	}[t], key)
}

// rowError is a row that is missing, or differs from what was written.
type rowError struct {
	Table   rowTable
	Key     int64
	Why     string
	Episode *int // the episode that the row belongs to, if known
}

// Error implements error.
func (e *rowError) Error() string {
	text := journal.ErrDamaged.Error() + ": " + e.Table.describe(e.Key)
	if e.Episode != nil {
		text += fmt.Sprintf(" of episode %d", *e.Episode)
	}
	return text + " " + e.Why
}

// Unwrap returns journal.ErrDamaged.
func (e *rowError) Unwrap() error { return journal.ErrDamaged }

// rowMissing returns an error about a row that is not there.
func rowMissing(t rowTable, key int64) error { return &rowError{Table: t, Key: key, Why: "is missing"} }

// withEpisode adds the episode to an Error that does not have one.
func withEpisode(episode int, err error) error {
	if e, ok := errors.AsType[*rowError](err); ok && e.Episode == nil {
		e.Episode = &episode
	}
	return err
}
