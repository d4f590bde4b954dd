package growth

import (
	"fmt"
	"maps"
	"slices"
	"time"

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

// Use records code that is not the recorded one, and when episodes had been played with other code before.
func (c *Choice) Use(code []journal.Code, head *journal.Head) {
	changes := CodeChanges(head.Begun.Code, code)
	if c.Begun == nil && len(changes) > 0 {
		same := *head.Begun
		c.Begun = &same
	}
	if c.Begun == nil || len(code) == 0 {
		return
	}
	c.Begun.Code = code
	if played := head.Ended.Len() + len(head.Playing); len(changes) > 0 && played > 0 {
		c.Begun.Edited = append(slices.Clone(head.Begun.Edited), journal.Growth{At: time.Now(), Episodes: played})
	}
}
