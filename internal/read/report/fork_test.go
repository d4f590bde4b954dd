package report

import (
	"strings"
	"testing"

	"parley/journal"
	"parley/world"
)

// TestForkNote checks that the overview of a fork says what counts once, and that of another run does not.
func TestForkNote(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from *journal.Origin
		want string
	}{
		{nil, ""},
		{&journal.Origin{File: "dir/old.parley", Episode: 3}, "a fork of episode 3 of old.parley from its beginning"},
		{&journal.Origin{File: "dir/old.parley", Episode: 3, Turn: 4}, "a fork of episode 3 of old.parley at turn 4: the turns before are copies"},
	} {
		s := played(t, "x", 2)
		s.Run.Head.Begun.Fork = test.from
		s.Run.Each(func(p world.Played) {
			if test.from != nil && p.Past != test.from.Turn || test.from == nil && p.Past != 0 {
				t.Errorf("%+v: the kind gets %d past turns", test.from, p.Past)
			}
		})
		for _, several := range []bool{false, true} {
			text := ""
			for _, b := range headline(s, several).Blocks {
				text += b.Text
			}
			if !strings.Contains(text, test.want) || test.want == "" && text != "" {
				t.Errorf("%+v: %q", test.from, text)
			}
		}
	}
}
