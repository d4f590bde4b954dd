package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"

	"parley/journal"
	"parley/world"
)

// digest folds outcomes into the digest of a run, in the order of episodes. Episodes end roughly in
// order, so few outcomes wait for those of earlier episodes, and no others are kept.
type digest struct {
	ended, failed int // episodes

	hash    hash.Hash
	next    int            // the first episode that is not folded yet
	waiting map[int][]byte // lines of later ones
	size    int            // of all lines that wait
	limit   int            // on size
	late    bool           // too many waited: the journal has the rest
}

// maxWaiting limits the memory of outcomes that wait for those of earlier episodes.
const maxWaiting = 32 << 20

func newDigest(limit int) digest {
	return digest{hash: sha256.New(), waiting: map[int][]byte{}, limit: limit}
}

// outcomeLine returns the line of an outcome in the digest.
func outcomeLine(e *journal.Ended) []byte {
	b, err := json.Marshal(e.Outcome)
	if err != nil {
		b = []byte(err.Error())
	}
	return fmt.Appendf(make([]byte, 0, len(b)+16), "%d %s\n", e.Episode, b)
}

// add adds the outcome of an episode, which is not added twice.
func (d *digest) add(e *journal.Ended, line []byte) {
	d.ended++
	if e.Outcome.Failed != "" {
		d.failed++
	}
	if d.late {
		return
	}
	d.waiting[e.Episode] = line
	d.size += len(line)
	for line, ok := d.waiting[d.next]; ok; line, ok = d.waiting[d.next] {
		d.fold(d.next, line)
		d.next++
	}
	if d.size > d.limit {
		d.waiting, d.size, d.late = nil, 0, true
	}
}

func (d *digest) fold(episode int, line []byte) {
	d.hash.Write(line)
	delete(d.waiting, episode)
	d.size -= len(line)
}

// sum returns the digest of all outcomes that were added. j is the journal that has them.
func (d *digest) sum(ctx context.Context, j journal.Journal) (string, error) {
	for _, n := range slices.Sorted(maps.Keys(d.waiting)) {
		d.fold(n, d.waiting[n])
	}
	if d.late {
		head, err := j.Head(ctx)
		if err == nil {
			err = head.Ended.Outcomes(ctx, j, d.next, world.MaxEpisodes, func(e *journal.Ended) error {
				d.hash.Write(outcomeLine(e))
				return nil
			})
		}
		if err != nil {
			return "", fmt.Errorf("engine: the digest: %w", err)
		}
	}
	return hex.EncodeToString(d.hash.Sum(nil)), nil
}

// readFunc reads the complete ends of episodes: from the first up to, but not including, the last.
type readFunc func(from, to int, each func(*journal.Ended) error) error

// past reads the outcomes that earlier processes recorded, in order and some at once.
type past struct {
	read  readFunc
	ahead []*journal.Ended
}

// readAhead is how many episodes are read at once.
const readAhead = 256

// take returns the end of an episode that ended. Its number is above that of the last.
func (p *past) take(episode int) (*journal.Ended, error) {
	for len(p.ahead) > 0 && p.ahead[0].Episode < episode {
		p.ahead = p.ahead[1:]
	}
	if len(p.ahead) == 0 {
		p.ahead = make([]*journal.Ended, 0, readAhead)
		err := p.read(episode, episode+readAhead, func(e *journal.Ended) error { p.ahead = append(p.ahead, e); return nil })
		if err != nil {
			return nil, err
		}
	}
	if len(p.ahead) == 0 || p.ahead[0].Episode != episode {
		return nil, fmt.Errorf("engine: the journal has no outcome of episode %d, which has ended", episode)
	}
	e := p.ahead[0]
	p.ahead = p.ahead[1:]
	return e, nil
}
