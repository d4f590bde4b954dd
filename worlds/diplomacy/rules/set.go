package rules

import (
	"iter"
	"math/bits"
)

// Set is a set of provinces, locations or powers. The zero Set is empty. Compare sets with ==.
type Set[T ~uint8] [2]uint64

// Has reports whether x is in the set. A set holds numbers below 128.
func (s Set[T]) Has(x T) bool { return x < 128 && s[x>>6&1]>>(x&63)&1 != 0 }

// Add adds x.
func (s *Set[T]) Add(x T) {
	if x < 128 {
		s[x>>6&1] |= 1 << (x & 63)
	}
}

// Remove removes x.
func (s *Set[T]) Remove(x T) {
	if x < 128 {
		s[x>>6&1] &^= 1 << (x & 63)
	}
}

// Len returns the number of members.
func (s Set[T]) Len() int { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }

// Empty reports whether the set has no member.
func (s Set[T]) Empty() bool { return s[0]|s[1] == 0 }

// Or returns the union.
func (s Set[T]) Or(o Set[T]) Set[T] { return Set[T]{s[0] | o[0], s[1] | o[1]} }

// And returns the intersection.
func (s Set[T]) And(o Set[T]) Set[T] { return Set[T]{s[0] & o[0], s[1] & o[1]} }

// Minus returns the members of s that are not in o.
func (s Set[T]) Minus(o Set[T]) Set[T] { return Set[T]{s[0] &^ o[0], s[1] &^ o[1]} }

// All iterates over the members, smallest first.
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
