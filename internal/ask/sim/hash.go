package sim

import (
	"math"
	"math/bits"
	"sync"
)

// hash is a fast 64-bit hash that is the same on every machine. It is not cryptographic.
type hash uint64

func (h hash) mix(v uint64) hash {
	hi, lo := bits.Mul64(uint64(h)^0x9e3779b97f4a7c15, v^0xd1b54a32d192ed03)
	return hash(hi ^ lo ^ bits.RotateLeft64(uint64(h), 23))
}

func (h hash) str(s string) hash {
	h = h.mix(uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		h = h.mix(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	var tail uint64
	for i := range len(s) {
		tail |= uint64(s[i]) << (8 * i)
	}
	return h.mix(tail)
}

func (h hash) num(n int) hash { return h.mix(uint64(n)) }

func (h hash) float(f *float64) hash {
	if f == nil {
		return h.mix(0)
	}
	return h.mix(1).mix(math.Float64bits(*f))
}

// end returns the final hash.
func (h hash) end() uint64 {
	x := uint64(h)
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// counter counts how often it saw each key.
type counter struct {
	shards [32]struct {
		mu sync.Mutex
		n  map[uint64]uint32
		_  [40]byte // a cache line each
	}
}

// next returns how often it saw key before.
func (c *counter) next(key uint64) uint32 {
	s := &c.shards[key%uint64(len(c.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == nil {
		s.n = map[uint64]uint32{}
	}
	n := s.n[key]
	s.n[key] = n + 1
	return n
}
