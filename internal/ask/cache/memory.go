package cache

import (
	"container/list"
	"slices"
	"sync"
	"time"
)

// memory holds the most recently used values. Each shard has its own lock, so that goroutines
// rarely wait for one another.
type memory struct {
	shards [shardCount]shard
}

const shardCount = 16

type shard struct {
	mu      sync.Mutex
	limit   int64
	bytes   int64
	entries map[[32]byte]*list.Element // of *entry
	order   list.List                  // most recently used first
}

type entry struct {
	key   [32]byte
	value []byte
	seen  time.Time // when its file was last marked as used, as far as is known
}

// overhead is roughly what an entry costs besides its value.
const overhead = 160

func newMemory(limit int64) *memory {
	m := &memory{}
	for i := range m.shards {
		m.shards[i].limit = max(limit, 0) / shardCount
		m.shards[i].entries = map[[32]byte]*list.Element{}
	}
	return m
}

func (m *memory) shard(key [32]byte) *shard { return &m.shards[key[31]%shardCount] }

// get returns the value of key. Stale reports, once in touchEvery, that its file should be marked
// as used.
func (m *memory) get(key [32]byte, now time.Time) (value []byte, stale, ok bool) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	el, ok := s.entries[key]
	if !ok {
		return nil, false, false
	}
	s.order.MoveToFront(el)
	e := el.Value.(*entry)
	if now.Sub(e.seen) > touchEvery {
		e.seen, stale = now, true
	}
	return e.value, stale, true
}

// put stores value, which must not be modified any more.
func (m *memory) put(key [32]byte, value []byte, now time.Time) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.entries[key]; ok {
		s.drop(old)
	}
	if int64(len(value))+overhead > s.limit {
		return
	}
	// The capacity is clipped so that no caller's append writes into it.
	s.entries[key] = s.order.PushFront(&entry{key: key, value: slices.Clip(value), seen: now})
	s.bytes += int64(len(value)) + overhead
	for s.bytes > s.limit {
		s.drop(s.order.Back())
	}
}

func (s *shard) drop(el *list.Element) {
	e := s.order.Remove(el).(*entry)
	delete(s.entries, e.key)
	s.bytes -= int64(len(e.value)) + overhead
}
