package runfile

import (
	"errors"
	"math"
	"path/filepath"
	"testing"

	"parley/journal"
	"parley/world"
)

// TestBlocksInFile: a plan of any length takes a few rows, and every reader and view finds its episodes.
func TestBlocksInFile(t *testing.T) {
	t.Parallel()
	spec := func(cell string, deal int) world.Spec {
		return world.Spec{Kind: "k", Lineup: map[string]string{"a": "x"}, Cell: cell, Deal: deal}
	}
	const rounds = 500_000_000
	matrix, err := world.Blocks(world.Block{Groups: []world.Group{{Spec: spec("short", 0), Size: 1}, {Spec: spec("long", 5), Size: 3}}, Rounds: rounds})
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, filepath.Join(t.TempDir(), "run.db"), Create)
	mustAppend(t, s, &journal.Begun{Version: 1}, &journal.Opened{}, &journal.Staged{Specs: matrix}, ended(1), ended(6))
	for text, want := range map[string]string{
		`SELECT count(*) FROM specs`:    "2",
		`SELECT count(*) FROM progress`: "7",
		`SELECT group_concat(x, ' ') FROM (SELECT episode || ':' || cell || ':' || deal || ':' || state AS x FROM episodes LIMIT 8)`: "0:short:0:waiting 1:long:5:ended 2:long:5:waiting 3:long:5:waiting 4:short:1:waiting 5:long:6:waiting 6:long:6:ended 7:long:6:waiting",
		`SELECT group_concat(cell, ' ') FROM scores WHERE seat = 'host'`:                                                             "long long",
	} {
		if rows := query(t, s, text); len(rows) != 1 || rows[0][0] != want {
			t.Errorf("%s\ngives %v, want %s", text, rows, want)
		}
	}
	head, err := s.Head(t.Context())
	if err != nil || head.Stages[0].Specs.Len() != 4*rounds {
		t.Fatal(head, err)
	}
	for _, from := range []int{0, 5, 4*rounds - 3} {
		list, err := s.List(t.Context(), Listing{From: from, Limit: 3})
		if err != nil || len(list) != 3 {
			t.Fatal(list, err)
		}
		for i, l := range list {
			if want := matrix.At(from + i); l.Episode != from+i || l.Spec.Cell != want.Cell || l.Spec.Deal != want.Deal {
				t.Errorf("episode %d: %+v, want %+v", from+i, l, want)
			}
		}
	}
	if all, err := s.Lineups(t.Context()); err != nil || len(all) != 1 || all[0].LastBegun != 6 || all[0].Seats["a"] != "x" {
		t.Errorf("%+v, %v", all, err)
	}
	if found, err := s.Verify(t.Context()); err != nil || len(found.Damage) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	script(t, s.Path(), `DELETE FROM specs WHERE episode = 1`)
	if err := s.Salvage(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := s.Lost(); len(found.Damage) != 1 || found.Damage[0].What != "the description of 3 episodes starting at 1, in 500000000 rounds: cannot be read" {
		t.Errorf("%+v", found)
	}
	if list, err := s.List(t.Context(), Listing{Limit: 2}); err != nil || len(list) != 2 || list[1].Episode != 4 || list[1].Spec.Deal != 1 {
		t.Errorf("what is left: %+v, %v", list, err)
	}
}

// TestHostileBlocks: rows with impossible numbers are refused, even with a correct checksum, and use no
// memory for what they claim.
func TestHostileBlocks(t *testing.T) {
	t.Parallel()
	const huge = math.MaxInt64
	for name, c := range map[string]struct {
		rows []specRow
		deal int
	}{
		"many rounds":      {rows: []specRow{{size: 1, round: 1, rounds: 1 << 62}}},
		"a large group":    {rows: []specRow{{size: 1 << 62, round: 1 << 62, rounds: 1}}},
		"both":             {rows: []specRow{{size: 1 << 31, round: 1 << 31, rounds: 1 << 31}}},
		"all there is":     {rows: []specRow{{size: huge, round: huge, rounds: huge}}},
		"none":             {rows: []specRow{{}}},
		"negative":         {rows: []specRow{{size: -1, round: -1, rounds: -1}}},
		"no rounds":        {rows: []specRow{{size: 4, round: 4}}},
		"a late block":     {rows: []specRow{{size: 4, block: 2, round: 4, rounds: 1}}},
		"an early block":   {rows: []specRow{{size: 4, block: -2, round: 6, rounds: 1}}},
		"beyond its stage": {rows: []specRow{{size: 4, round: 4, rounds: 2}}},
		"too short":        {rows: []specRow{{size: 1, round: 1, rounds: 2}}},
		"half a round":     {rows: []specRow{{size: 1, round: 2, rounds: 2}}},
		"two of a round":   {rows: []specRow{{size: 2, round: 2, rounds: 2}, {episode: 1, size: 1, round: 2, rounds: 2}}},
		"two kinds":        {rows: []specRow{{size: 1, round: 2, rounds: 2}, {episode: 1, size: 1, round: 4, rounds: 1}}},
		"a huge deal":      {rows: []specRow{{size: 2, round: 2, rounds: 2}}, deal: huge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, filepath.Join(t.TempDir(), "run.db"), Create)
			mustAppend(t, s, &journal.Begun{Version: 1}, &journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{}, 4)})
			script(t, s.Path(), `DELETE FROM specs`)
			for _, row := range c.rows {
				if err := s.writer.putSpec(row, &world.Spec{Kind: "k", Deal: c.deal}); err != nil {
					t.Fatal(err)
				}
			}
			if h, err := s.Head(t.Context()); !errors.Is(err, ErrDamaged) {
				t.Errorf("head: %+v, %v", h, err)
			}
			if l, err := s.List(t.Context(), Listing{Limit: 4}); len(l) > 4 || err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("list: %+v, %v", l, err)
			}
			if err := s.Salvage(t.Context()); err != nil {
				t.Fatal(err)
			}
			found := s.Lost()
			if h, err := s.Head(t.Context()); err != nil || h.Stages[0].Specs.Len() != 4 {
				t.Errorf("what is left: %+v, %v", h, err)
			}
			if l, err := s.List(t.Context(), Listing{Lost: true}); err != nil || len(l) != 4 || len(found.Damage) == 0 {
				t.Errorf("what is left: %+v of %+v, %v", l, found, err)
			}
		})
	}
}

// TestLastBefore compares the last episode of each group before every other with a search.
func TestLastBefore(t *testing.T) {
	t.Parallel()
	rows := []specRow{{episode: 3, size: 2, block: 3, round: 6, rounds: 3}, {episode: 5, size: 4, block: 3, round: 6, rounds: 3}}
	for before := range int64(25) {
		for i := range rows {
			want := int64(-1)
			for e := range min(before, rows[0].end()) {
				if e >= rows[0].block {
					if s, _ := groupOf(rows, e); s == &rows[i] {
						want = e
					}
				}
			}
			if got := rows[i].lastBefore(before); got != want {
				t.Errorf("group %d before %d: %d, want %d", i, before, got, want)
			}
		}
	}
}
