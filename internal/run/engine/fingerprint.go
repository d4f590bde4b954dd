package engine

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/zeebo/xxh3"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// enoughText is how many bytes of sampled text two plays must share before one counts as a copy of
// the other, whatever else the run shows. Two independent samples often agree on one word, and never on several sentences.
const enoughText = 200

// fingerprint identifies what a strand asked and was answered, independent of its place in the run.
// Episodes with the same fingerprint are the same play.
type fingerprint struct {
	sum     journal.Digest
	opening uint64           // what was asked first; of several strands, all that they asked first
	opened  bool             // it does not change any more
	forks   []journal.Digest // of the strands it waits for, by number
	asks    int              // asked of models
	acts    int
	sampled int // bytes of answers that were sampled

	// Of the current turn:
	digest journal.Digest
	chance []bool // by call: whether the model samples its answer
}

// asked adds the calls of a turn.
func (f *fingerprint) asked(digest journal.Digest, calls []*call) {
	f.digest = digest
	if !f.opened && slices.ContainsFunc(calls, func(c *call) bool { return c.req != nil }) {
		b := append(append(make([]byte, 0, 2*len(digest)), f.sum[:]...), digest[:]...)
		f.opening, f.opened = max(1, xxh3.Hash(b)), true
	}
	f.chance = f.chance[:0]
	for _, c := range calls {
		switch {
		case c.act != nil:
			f.acts++
		case c.req != nil:
			f.asks++
		}
		f.chance = append(f.chance, c.req != nil && Samples(c.req))
	}
}

// Samples reports whether a model may answer a request differently when asked again.
func Samples(r *llm.Request) bool {
	return (r.Temperature == nil || *r.Temperature > 0) && r.Seed == nil
}

// answered adds the replies of the turn or, after a fork, the plays of its strands.
func (f *fingerprint) answered(replies []world.Reply) {
	if len(replies) == 0 && len(f.forks) == 0 {
		return
	}
	b := append(make([]byte, 0, 512), f.sum[:]...)
	b = append(b, f.digest[:]...)
	for i, r := range replies {
		var size int
		b, size = appendReply(b, r)
		if i < len(f.chance) && f.chance[i] {
			f.sampled += size
		}
	}
	for _, sum := range f.forks {
		b = append(b, sum[:]...)
	}
	f.sum = xxh3.Hash128(b).Bytes()
	f.opened = f.opening != 0
	f.digest, f.forks = journal.Digest{}, nil
}

// appendReply appends hashes of everything in a reply that a world can see, and returns how many
// bytes that is.
func appendReply(b []byte, r world.Reply) (_ []byte, size int) {
	part := func(s string) {
		sum := xxh3.HashString128(s).Bytes()
		b = append(b, sum[:]...)
		size += len(s)
	}
	part(r.Text)
	json := xxh3.Hash128(r.JSON).Bytes()
	b = append(b, json[:]...)
	size += len(r.JSON)
	for _, c := range r.ToolCalls {
		part(c.Name)
		part(c.Arguments)
	}
	b = append(append(b, r.Finish...), ' ')
	b = append(append(b, r.Failed...), ' ')
	if r.Why != "" {
		part(r.Why)
	}
	return b, size
}

// add adds the play of a forked strand.
func (f *fingerprint) add(child *fingerprint, number int) {
	f.forks[number] = child.sum
	if !f.opened {
		f.opening ^= child.opening
	}
	f.asks += child.asks
	f.acts += child.acts
	f.sampled += child.sampled
}

// play returns a digest of an episode with its outcome, which begins with what was asked first, and whether independent episodes may
// have the same digest by chance.
func (f *fingerprint) play(o world.Outcome) (play journal.Digest, chance bool) {
	b := append(make([]byte, 0, 256), f.sum[:]...)
	for _, s := range o.Scores {
		b = append(strconv.AppendQuote(b, s.Name), ' ')
		b = append(strconv.AppendQuote(b, s.Seat), ' ')
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(s.Value))
	}
	b = append(b, o.Failed...)
	chance = f.asks == 0 || f.acts+f.sampled > 0 && f.sampled < enoughText
	play = xxh3.Hash128(b).Bytes()
	binary.BigEndian.PutUint64(play[:8], f.opening)
	return play, chance
}
