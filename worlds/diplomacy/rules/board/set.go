package board

import (
	"iter"
	"math/bits"
)

// Set is a set of provinces or of places. The zero Set is empty; sets are compared
// with ==.
type Set[T ~uint8] [2]uint64

// Has says whether x is in the set. Nothing beyond its 128 numbers is.
func (s Set[T]) Has(x T) bool { return x < 128 && s[x>>6&1]>>(x&63)&1 != 0 }

// Add puts x in.
func (s *Set[T]) Add(x T) {
	if x < 128 {
		s[x>>6&1] |= 1 << (x & 63)
	}
}

// Remove takes x out.
func (s *Set[T]) Remove(x T) {
	if x < 128 {
		s[x>>6&1] &^= 1 << (x & 63)
	}
}

// Len is the number of members.
func (s Set[T]) Len() int { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }

// Empty says whether there are none.
func (s Set[T]) Empty() bool { return s[0]|s[1] == 0 }

// Or is what is in either.
func (s Set[T]) Or(o Set[T]) Set[T] { return Set[T]{s[0] | o[0], s[1] | o[1]} }

// And is what is in both.
func (s Set[T]) And(o Set[T]) Set[T] { return Set[T]{s[0] & o[0], s[1] & o[1]} }

// Minus is what is in s and not in o.
func (s Set[T]) Minus(o Set[T]) Set[T] { return Set[T]{s[0] &^ o[0], s[1] &^ o[1]} }

// All goes through the members, smallest first.
func (s Set[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(T(i<<6 | bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
