package growth

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"parley/internal/run/planner"
	"parley/journal"
)

// CodeChanges says how code differs from the recorded code of the same name, file by file. Code that only one of them has
// is not compared: a larger plan may name more.
func CodeChanges(recorded, now []journal.Code) []string {
	var all []string
	for _, was := range recorded {
		i := slices.IndexFunc(now, func(c journal.Code) bool { return c.Name == was.Name })
		if i < 0 {
			continue
		}
		is := now[i].Files
		for _, file := range slices.Sorted(maps.Keys(was.Files)) {
			switch sum, there := is[file]; {
			case !there:
				all = append(all, fmt.Sprintf("%s is no longer part of %s", file, was.Name))
			case sum != was.Files[file]:
				all = append(all, file+" has changed")
			}
		}
		for _, file := range slices.Sorted(maps.Keys(is)) {
			if _, there := was.Files[file]; !there {
				all = append(all, fmt.Sprintf("%s is now part of %s", file, was.Name))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all) // two classes may be in one file
}

// Use chooses to play code, which may not be the recorded one. Other code is recorded with when episodes had been played before.
func (c *Choice) Use(code []journal.Code, head *journal.Head) {
	changes := CodeChanges(head.Begun.Code, code)
	switch {
	case len(changes) > 0:
		begun := *cmp.Or(c.Begun, head.Begun)
		begun.Code, begun.Measures = code, planner.JoinMeasures(slices.Clone(begun.Measures), Measures(c.Plan)) // some episodes are of the old code
		if played := head.Ended.Len() + len(head.Playing); played > 0 {
			begun.Edited = append(slices.Clone(head.Begun.Edited), journal.Growth{At: time.Now(), Episodes: played})
		}
		c.Recoded = &begun
	case c.Begun != nil && len(code) > 0:
		c.Begun.Code = code
	}
}
