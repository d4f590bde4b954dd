package view

import (
	"hash/maphash"
	"iter"
	"slices"
)

// places returns for each key 1 + the place of the first that is equal. It may be 0 if no other is equal; nil means that
// all differ. There are about n keys, which are read twice. Only those that occur more than once are held: among millions
// of episodes most plays do not.
func places[K comparable](n int, keys iter.Seq2[int, K]) []int32 {
	seed, end := maphash.MakeSeed(), 0
	hashes := make([]uint64, 0, n)
	for i, k := range keys {
		hashes, end = append(hashes, maphash.Comparable(seed, k)), i+1
	}
	slices.Sort(hashes)
	if hashes = repeated(hashes); len(hashes) == 0 {
		return nil
	}
	out, first := make([]int32, end), map[K]int32{}
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

// at returns what places returned for a key, or 0 if it was not among them.
func at(places []int32, place int) int {
	if place >= len(places) {
		return 0
	}
	return int(places[place])
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
