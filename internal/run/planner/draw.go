package planner

import (
	"cmp"
	"slices"

	"parley/world"
)

// Draw identifies an episode of a run by what it plays. What a model draws depends on it and not on the
// episode's number, so an experiment that grows plays the same as one that was that large from the
// start.
type Draw struct {
	Cell CellID
	Deal int
	Nth  int // of the run's episodes with the same cell and deal, from 0
}

// Draws identifies the episodes of a run. It must be given all of them, in order.
type Draws struct {
	ids  *CellIDs
	seen map[CellID][]dealRange
}

// dealRange is a range of deals that were each played the same number of times.
type dealRange struct{ first, last, times int }

// NewDraws returns Draws for a run of a kind.
func NewDraws(k world.Kind) *Draws {
	return &Draws{ids: NewCellIDs(k), seen: map[CellID][]dealRange{}}
}

// Of identifies the next episode.
func (d *Draws) Of(spec world.Spec) Draw {
	id := d.ids.Of(spec)
	list, nth := count(d.seen[id], spec.Deal)
	d.seen[id] = list
	return Draw{id, spec.Deal, nth}
}

// count adds a deal to the ordered list, and returns how often it was there before. Deals mostly
// come in order and equally often, so the list stays short.
func count(list []dealRange, deal int) (_ []dealRange, before int) {
	i, _ := slices.BinarySearchFunc(list, deal, func(d dealRange, deal int) int { return cmp.Compare(d.last, deal) })
	switch {
	case i == len(list) || list[i].first > deal:
		list = slices.Insert(list, i, dealRange{deal, deal, 1})
	case list[i].first == list[i].last:
		before = list[i].times
		list[i].times++
	default:
		in := list[i]
		before = in.times
		var parts []dealRange
		if in.first < deal {
			parts = append(parts, dealRange{in.first, deal - 1, before})
		}
		parts = append(parts, dealRange{deal, deal, before + 1})
		if in.last > deal {
			parts = append(parts, dealRange{deal + 1, in.last, before})
		}
		list = slices.Replace(list, i, i+1, parts...)
	}
	return joined(joined(list, i), i-1), before
}

// joined merges entry i of list with the next one, if they can be one range.
func joined(list []dealRange, i int) []dealRange {
	if i < 0 || i+1 >= len(list) || list[i].last != list[i+1].first-1 || list[i].times != list[i+1].times {
		return list
	}
	list[i].last = list[i+1].last
	return slices.Delete(list, i+1, i+2)
}
