package app

import (
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"parley/internal/run/planfile"
	"parley/world"
)

// versions decides which version of a model that is being trained answers in an episode: see planfile.Version. All episodes with
// one deal and cell meet the same version, so that those of a group can be compared.
type versions struct {
	seed uint64

	mu     sync.Mutex
	past   []int
	chosen map[meeting]string
}

// meeting is what a version is chosen for.
type meeting struct {
	model, cell string
	deal        int
}

// maxMeetings is how many choices are remembered. Without its memory, a choice changes only if the versions do.
const maxMeetings = 1 << 16

// SetPast says which earlier versions of the models that are trained can be asked.
func (a *App) SetPast(past []int) {
	a.versions.mu.Lock()
	defer a.versions.mu.Unlock()
	a.versions.past = past
}

// model returns the model to ask.
func (v *versions) model(name string, of world.Spec) string {
	base, share, past := planfile.Version(name)
	if base == name {
		return name
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	at := meeting{base, of.Cell, of.Deal}
	if was, ok := v.chosen[at]; ok && past {
		return was
	}
	chosen := base
	if past && v.draw(at, -1) < share {
		best := -1.0
		for _, version := range v.past {
			if x := v.draw(at, version); x > best { // a further version changes few choices
				best, chosen = x, base+"@v"+strconv.Itoa(version)
			}
		}
	}
	if len(v.chosen) >= maxMeetings || v.chosen == nil {
		v.chosen = map[meeting]string{}
	}
	v.chosen[at] = chosen
	return chosen
}

// draw returns a number from 0 to 1 that depends only on its arguments.
func (v *versions) draw(at meeting, version int) float64 {
	h := xxh3.HashString(strings.Join([]string{strconv.FormatUint(v.seed, 10), at.model, at.cell, strconv.Itoa(at.deal), strconv.Itoa(version)}, "\x00"))
	return float64(h) / math.MaxUint64
}
