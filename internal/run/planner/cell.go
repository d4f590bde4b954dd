package planner

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"parley/world"
)

// CellID identifies the cell of an episode: its kind, its params without those of Environment.Outside,
// and its lineup. The name of the cell is not a part of it.
type CellID [16]byte

// CellIDs computes CellIDs. Only one goroutine may use it.
type CellIDs struct {
	kind   world.Kind
	params map[paramsAt]CellID // specs share params, which may be large
}

// paramsAt is where params are in memory.
type paramsAt struct {
	first *byte
	size  int
}

// maxParams limits how many params are remembered.
const maxParams = 1024

// NewCellIDs returns a CellIDs for specs of a kind.
func NewCellIDs(k world.Kind) *CellIDs { return &CellIDs{kind: k, params: map[paramsAt]CellID{}} }

// Of returns the CellID of a spec.
func (c *CellIDs) Of(s world.Spec) CellID {
	var pair [128]byte
	var high, low uint64 // of the lineup: a sum, so that the order of seats does not count
	for seat, agent := range s.Lineup {
		b := binary.AppendUvarint(pair[:0], uint64(len(seat)))
		h := xxh3.Hash128(append(append(b, seat...), agent...))
		high, low = high+h.Hi, low+h.Lo
	}
	params := c.paramsOf(s)
	b := append(pair[:0], params[:]...)
	b = binary.BigEndian.AppendUint64(b, high)
	b = binary.BigEndian.AppendUint64(b, low)
	return xxh3.Hash128(append(b, s.Kind...)).Bytes()
}

func (c *CellIDs) paramsOf(s world.Spec) CellID {
	if len(s.Params) == 0 {
		return CellID{}
	}
	at := paramsAt{&s.Params[0], len(s.Params)}
	id, ok := c.params[at]
	if !ok {
		if len(c.params) >= maxParams {
			clear(c.params)
		}
		id = xxh3.Hash128(c.kind.Identity(s.Params)).Bytes()
		c.params[at] = id
	}
	return id
}
