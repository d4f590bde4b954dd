package world

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
)

// Specs is an immutable sequence of specs. It is stored in blocks, so a million episodes that differ only in their
// deal take as much memory as one. The zero value is empty.
//
// Specs are also Stages: it plays all of them in one stage.
type Specs struct {
	blocks []block
}

// Group is a number of equal specs, one after the other.
type Group struct {
	Spec Spec `json:"spec"`
	Size int  `json:"size"`
}

// Block is repeated groups: a round is all groups in order, and each round adds 1 to the deals.
type Block struct {
	Groups []Group `json:"groups"`
	Rounds int     `json:"rounds"`
}

type block struct {
	Block
	ends []int // of each group in a round; nil: each has one spec
	size int   // of a round
	end  int   // of the block in the sequence
}

// List returns a sequence of specs.
func List(specs ...Spec) Specs {
	if len(specs) == 0 {
		return Specs{}
	}
	groups := make([]Group, len(specs))
	for i, s := range specs {
		groups[i] = Group{s, 1}
	}
	return Specs{[]block{{Block{groups, 1}, nil, len(groups), len(groups)}}}
}

// Repeat returns n specs like s with the deals 0 to n-1.
func Repeat(s Spec, n int) Specs {
	if n <= 0 {
		return Specs{}
	}
	return Specs{[]block{{Block{[]Group{{s.WithDeal(0), 1}}, n}, nil, 1, n}}}
}

// WithDeal returns s with another deal. Both share the lineup.
func (s Spec) WithDeal(deal int) Spec {
	s.Deal = deal
	return s
}

// Blocks makes a sequence of blocks, which may be from anywhere. An invalid block, or more than MaxEpisodes in all, is
// an error. The sequence keeps the groups.
func Blocks(blocks ...Block) (Specs, error) {
	s := Specs{make([]block, 0, len(blocks))}
	for i, b := range blocks {
		made, err := b.checked()
		if err == nil && made.end > MaxEpisodes-s.Len() {
			err = fmt.Errorf("there are more than %d episodes", MaxEpisodes)
		}
		if err != nil {
			return Specs{}, fmt.Errorf("world: block %d of %d: %w", i+1, len(blocks), err)
		}
		made.end += s.Len()
		s.blocks = append(s.blocks, made)
	}
	return s, nil
}

// checked returns b as the only block of a sequence.
func (b Block) checked() (block, error) {
	made := block{Block: b}
	if len(b.Groups) == 0 || b.Rounds < 1 || b.Rounds > MaxEpisodes {
		return made, fmt.Errorf("%d groups and %d rounds: want at least 1 group, and 1 to %d rounds", len(b.Groups), b.Rounds, MaxEpisodes)
	}
	single := true
	for _, g := range b.Groups {
		switch {
		case g.Size < 1 || g.Size > MaxEpisodes/b.Rounds-made.size:
			return made, fmt.Errorf("a group of %d, in %d rounds: want groups of 1 or more, and at most %d episodes", g.Size, b.Rounds, MaxEpisodes)
		case g.Spec.Deal > math.MaxInt-b.Rounds:
			return made, fmt.Errorf("deal %d, in %d rounds: the deal is too large", g.Spec.Deal, b.Rounds)
		}
		made.size += g.Size
		single = single && g.Size == 1
	}
	made.end = made.size * b.Rounds
	if single {
		return made, nil
	}
	made.ends = make([]int, len(b.Groups))
	end := 0
	for i, g := range b.Groups {
		end += g.Size
		made.ends[i] = end
	}
	return made, nil
}

// Join concatenates sequences.
func Join(parts ...Specs) Specs {
	var all Specs
	for _, p := range parts {
		before := all.Len()
		for _, b := range p.blocks {
			b.end += min(before, math.MaxInt-b.end) // a sequence that is too long is refused when it is played
			all.blocks = append(all.blocks, b)
		}
	}
	return all
}

// Cut returns the specs with the indexes from, up to but not including to.
func (s Specs) Cut(from, to int) Specs {
	var out Specs
	for _, b := range s.blocks {
		start := b.end - b.size*b.Rounds
		low, high := max(from, start)-start, min(to, b.end)-start
		if low >= high {
			continue
		}
		first, last := low/b.size, high/b.size
		if first == last {
			out = Join(out, b.round(first, low%b.size, high%b.size))
			continue
		}
		if low%b.size > 0 {
			out = Join(out, b.round(first, low%b.size, b.size))
			first++
		}
		if first < last {
			whole := Specs{[]block{b}}.Map(func(s Spec) Spec { return s.WithDeal(s.Deal + first) })
			whole.blocks[0].Rounds, whole.blocks[0].end = last-first, b.size*(last-first)
			out = Join(out, whole)
		}
		out = Join(out, b.round(last, 0, high%b.size))
	}
	return out
}

// round returns a part of one round of a block, as a sequence.
func (b block) round(round, from, to int) Specs {
	made := Block{Rounds: 1}
	at := 0
	for i, g := range b.Groups {
		if n := min(to, at+g.Size) - max(from, at); n > 0 {
			made.Groups = append(made.Groups, Group{b.spec(i, round), n})
		}
		at += g.Size
	}
	specs, err := Blocks(made)
	if err != nil {
		return Specs{} // not reached unless it is empty: it is part of a block
	}
	return specs
}

// Map returns the sequence with f applied to each spec. f must not depend on the deal, but may add a number to it.
func (s Specs) Map(f func(Spec) Spec) Specs {
	out := Specs{slices.Clone(s.blocks)}
	for i := range out.blocks {
		b := &out.blocks[i]
		b.Groups = slices.Clone(b.Groups)
		for j, g := range b.Groups {
			b.Groups[j].Spec = f(g.Spec)
		}
	}
	return out
}

// Len returns the number of specs.
func (s Specs) Len() int {
	if len(s.blocks) == 0 {
		return 0
	}
	return s.blocks[len(s.blocks)-1].end
}

// At returns the spec at index i. It panics if i is out of range.
func (s Specs) At(i int) Spec {
	b, round, g, _ := s.place(i)
	return b.spec(g, round)
}

// Group returns the range of the group that contains index i.
func (s Specs) Group(i int) (from, to int) {
	b, _, g, in := s.place(i)
	if b.ends == nil {
		return i, i + 1
	}
	to = i + b.ends[g] - in
	return to - b.Groups[g].Size, to
}

// place finds index i: its block, the round, the group, and the index in the round.
func (s Specs) place(i int) (b *block, round, group, in int) {
	n := 0
	if len(s.blocks) > 1 {
		n = sort.Search(len(s.blocks), func(n int) bool { return i < s.blocks[n].end })
	}
	b = &s.blocks[n]
	if i < 0 || i >= b.end {
		panic(fmt.Sprintf("world: spec %d of %d", i, s.Len()))
	}
	i -= b.end - b.size*b.Rounds
	round, in = i/b.size, i%b.size
	if b.ends == nil {
		return b, round, in, in
	}
	return b, round, sort.Search(len(b.ends), func(n int) bool { return in < b.ends[n] }), in
}

// spec returns the spec of a group in a round.
func (b *Block) spec(group, round int) Spec {
	s := b.Groups[group].Spec
	s.Deal += round
	return s
}

// All yields every spec with its index.
func (s Specs) All() iter.Seq2[int, Spec] {
	return func(yield func(int, Spec) bool) {
		i := 0
		for n := range s.blocks {
			b := &s.blocks[n].Block
			for round := range b.Rounds {
				for g := range b.Groups {
					for range b.Groups[g].Size {
						if !yield(i, b.spec(g, round)) {
							return
						}
						i++
					}
				}
			}
		}
	}
}

// Distinct yields the spec of every group with its first index: all other specs differ from one of these only in
// their deal, if at all.
func (s Specs) Distinct() iter.Seq2[int, Spec] {
	return func(yield func(int, Spec) bool) {
		for _, b := range s.blocks {
			i := b.end - b.size*b.Rounds
			for _, g := range b.Groups {
				if !yield(i, g.Spec) {
					return
				}
				i += g.Size
			}
		}
	}
}

// Blocks yields the blocks of the sequence. Do not modify them.
func (s Specs) Blocks() iter.Seq[Block] {
	return func(yield func(Block) bool) {
		for _, b := range s.blocks {
			if !yield(b.Block) {
				return
			}
		}
	}
}

// MarshalJSON writes the blocks.
func (s Specs) MarshalJSON() ([]byte, error) {
	return json.Marshal(slices.AppendSeq([]Block{}, s.Blocks()))
}

// Next returns the whole sequence the first time, and then nothing.
func (s Specs) Next(last []Played) Specs {
	if len(last) > 0 {
		return Specs{}
	}
	return s
}

// Fixed returns true: a sequence does not depend on outcomes.
func (s Specs) Fixed() bool { return true }

// Diff returns the first index at which two sequences of the same length differ, or -1. same may compare deals only
// for equality.
func (s Specs) Diff(t Specs, same func(a, b Spec) bool) int {
	places := s.All()
	if slices.EqualFunc(s.blocks, t.blocks, (block).shaped) {
		places = s.Distinct()
	}
	for i, a := range places {
		if !same(a, t.At(i)) {
			return i
		}
	}
	return -1
}

// shaped reports whether two blocks have groups of the same sizes and as many rounds.
func (b block) shaped(o block) bool {
	return b.Rounds == o.Rounds && b.size == o.size && slices.Equal(b.ends, o.ends)
}
