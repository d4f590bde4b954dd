package results

import (
	"hash/maphash"
	"iter"
	"slices"
)

// firsts has for each of many keys 1 + the place of the first that is equal; 0 if no other is equal. It may be shorter: then the
// rest are 0.
type firsts []int32

// At returns what a key has.
func (f firsts) At(place int) int {
	if place >= len(f) {
		return 0
	}
	return int(f[place])
}

// findCopies finds equal keys. There are about n, which are read twice, each with its place. Only keys that occur more than once are
// held: among the deals and plays of millions of episodes most do not.
func findCopies[K comparable](n int, keys iter.Seq2[int, K]) firsts {
	seed, end := maphash.MakeSeed(), 0
	hashes := make([]uint64, 0, n)
	for i, k := range keys {
		hashes, end = append(hashes, maphash.Comparable(seed, k)), i+1
	}
	slices.Sort(hashes)
	if hashes = repeated(hashes); len(hashes) == 0 {
		return nil
	}
	out, first := make(firsts, end), map[K]int32{}
	for i, k := range keys {
		if _, ok := slices.BinarySearch(hashes, maphash.Comparable(seed, k)); !ok {
			continue
		}
		if first[k] == 0 {
			first[k] = int32(i) + 1
		}
		out[i] = first[k]
	}
	return out
}

// repeated keeps of a sorted list what it has more than once, each once.
func repeated(sorted []uint64) []uint64 {
	out := sorted[:0]
	for i := 1; i < len(sorted); i++ {
		if h := sorted[i]; h == sorted[i-1] && (len(out) == 0 || out[len(out)-1] != h) {
			out = append(out, h)
		}
	}
	return out
}
