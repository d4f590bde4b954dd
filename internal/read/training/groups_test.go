package training

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"parley/journal"
	"parley/world"
)

// staged writes a stage of two-member groups with these deals.
func staged(t *testing.T, j *memory, stage, first int, deals ...int) {
	t.Helper()
	var groups []world.Group
	for _, d := range deals {
		groups = append(groups, world.Group{Spec: world.Spec{Kind: "rollout", Params: json.RawMessage(`{"env":"maze"}`), Deal: d}, Size: 2})
	}
	specs, err := world.Blocks(world.Block{Groups: groups, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(t.Context(), &journal.Staged{Stage: stage, First: first, Specs: specs}); err != nil {
		t.Fatal(err)
	}
}

// all names the complete groups of g with their cursors.
func all(g *Index) string {
	var out []string
	for at := 0; ; {
		c, ok := g.After(at)
		if !ok {
			return strings.Join(out, " ")
		}
		at = c.Cursor
		out = append(out, fmt.Sprintf("%d:%s%v", at, c.id, c.members))
	}
}

// TestGroups checks that groups become complete in the order of the commits, and that a later reader sees the
// same order.
func TestGroups(t *testing.T) {
	t.Parallel()
	j := &memory{}
	src := j
	write := func(e journal.Entry) {
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	early := Index{Kind: rollouts()}
	if err := early.Update(t.Context(), src); err == nil || !strings.Contains(err.Error(), "holds no run") {
		t.Error(err)
	}
	write(&journal.Begun{Run: "r1", Kind: "rollout"})
	staged(t, j, 0, 0, 0, 1, 2)
	for _, n := range []int{0, 4, 2, 5, 5, 1} { // one of them says twice that it ended
		write(&journal.Ended{Episode: n})
		if err := early.Update(t.Context(), src); err != nil {
			t.Fatal(err)
		}
	}
	staged(t, j, 1, 6, 2, 9)
	for _, n := range []int{7, 3, 6} {
		write(&journal.Ended{Episode: n})
	}
	if err := early.Update(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	late := Index{Kind: rollouts()}
	if err := late.Update(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	const want = "6:maze:3[4 5] 8:maze:1[0 1] 11:maze:2[2 3] 12:maze:3[6 7]"
	if all(&early) != want || all(&late) != want {
		t.Errorf("%s\n%s\nwant %s", all(&early), all(&late), want)
	}
	planned, complete := late.Count()
	if planned != 5 || complete != 4 || late.seen != 12 || late.run != "r1" {
		t.Errorf("%d %d %d", planned, complete, late.seen)
	}
	write(&journal.Ended{Episode: 99})
	if err := late.Update(t.Context(), src); err == nil || !strings.Contains(err.Error(), "never planned") {
		t.Error(err)
	}
}

// TestGroupsOfLongStage checks that waiting groups use no memory, and that the number of groups that must be
// searched is limited.
func TestGroupsOfLongStage(t *testing.T) {
	t.Parallel()
	group := world.Group{Spec: world.Spec{Kind: "rollout", Params: json.RawMessage(`{"env":"maze"}`)}, Size: 8}
	long := func(blocks ...world.Block) *memory {
		specs, err := world.Blocks(blocks...)
		if err != nil {
			t.Fatal(err)
		}
		j := &memory{}
		entries := []journal.Entry{&journal.Begun{Run: "r1", Kind: "rollout"}, &journal.Staged{Specs: specs}}
		for n := specs.Len() - 9; n < specs.Len(); n++ {
			entries = append(entries, &journal.Ended{Episode: n})
		}
		if err := j.Append(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
		return j
	}
	const rounds = 250_000_000
	g := Index{Kind: rollouts()}
	if err := g.Update(t.Context(), long(world.Block{Groups: []world.Group{group}, Rounds: rounds})); err != nil {
		t.Fatal(err)
	}
	planned, complete := g.Count()
	if want := fmt.Sprintf("11:maze:%d[", rounds); planned != rounds || complete != 1 || !strings.HasPrefix(all(&g), want) {
		t.Errorf("%d groups, %d complete: %s; want %s", planned, complete, all(&g), want)
	}
	half := world.Block{Groups: []world.Group{group}, Rounds: rounds / 2}
	if err := (&Index{Kind: rollouts()}).Update(t.Context(), long(half, half)); err == nil || !strings.Contains(err.Error(), "at most 10000000") {
		t.Error(err)
	}
}

// TestReadWhole checks that a group that is read alone equals the one that Each passes.
func TestReadWhole(t *testing.T) {
	t.Parallel()
	j := run(t, episode{deal: 0, reward: 1}, episode{deal: 1, reward: 0}, episode{deal: 0, reward: 0}, episode{deal: 1, failed: "lost"})
	g := Index{Kind: rollouts()}
	if err := g.Update(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	if _, err := Each(t.Context(), j, rollouts(), Filter{}, func(g *Group) error {
		want[g.ID] = fmt.Sprintf("%+v", g.Members)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for at := 0; ; {
		c, ok := g.After(at)
		if !ok {
			break
		}
		at = c.Cursor
		got, left, err := g.Read(t.Context(), j, c, Filter{})
		if err != nil || left != "" || len(got.Members) != 2 || len(got.Members[0].Rows) != 2 || len(want[c.id]) == 0 {
			t.Errorf("%+v %s %v", got, left, err)
		}
		delete(want, c.id)
	}
	if len(want) > 0 {
		t.Errorf("%v are missing", want)
	}
}

// TestRowGroups: what is held of a Parquet file is bounded.
func TestRowGroups(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	put, end := newColumns(&out, rowsOf, func(*Row) int { return groupBytes / 2 })
	for range 10 {
		if _, err := put(&Group{Members: []*Trajectory{{Rows: []Row{{Messages: json.RawMessage("[]")}}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || len(f.RowGroups()) != 5 || f.NumRows() != 10 {
		t.Errorf("%v: %d row groups, %d rows", err, len(f.RowGroups()), f.NumRows())
	}
}
