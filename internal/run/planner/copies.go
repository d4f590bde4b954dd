package planner

import "encoding/binary"

// Copies finds out whether episodes that are word for word the same are copies, where little was said in them. Models with
// randomness often agree on one word, and models without it always do. So they are copies if nowhere in their cell somebody who was asked
// the same answered something else. The zero value has seen nothing.
type Copies struct {
	first  map[opening][16]byte
	varies map[string]bool // by cell
}

// opening is what was first asked in an episode.
type opening struct {
	cell  string
	asked uint64
}

// Opening returns what was first asked in an episode, of its play: see journal.Ended. It is 0 if no model was asked.
func Opening(play [16]byte) uint64 { return binary.BigEndian.Uint64(play[:8]) }

// See takes an episode that did not fail and in which little was said.
func (c *Copies) See(cell string, play [16]byte) {
	if c.first == nil {
		c.first, c.varies = map[opening][16]byte{}, map[string]bool{}
	}
	o := opening{cell, Opening(play)}
	if was, seen := c.first[o]; !seen {
		c.first[o] = play
	} else if was != play && o.asked != 0 {
		c.varies[cell] = true
	}
}

// Copied reports whether episodes with this play, in which little was said, are copies of each other.
func (c *Copies) Copied(cell string, play [16]byte) bool {
	return Opening(play) != 0 && !c.varies[cell]
}
