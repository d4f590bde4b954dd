package replica

import (
	"cmp"
	"slices"

	"parley/internal/kit/health"
)

// Sessions move away from a server that has crowdLead more calls than another, and crowdTimes as many.
const (
	crowdLead  = 8
	crowdTimes = 1.5
)

// choose picks a server for a call. A session stays on its server unless that rests or is crowded. A new
// session goes to the server with the fewest sessions, and avoids the one that failed it last. A call
// without a session (nil) goes to the server with the fewest calls. Servers that rest, and those that were
// tried, are taken only if nothing else is left.
func choose(members []*member, s *placement, tried []*member) *member {
	var was, avoid *member
	if s != nil {
		was, avoid = s.at, s.avoid
	}
	usable := func(m *member) bool { return m.fit() && !slices.Contains(tried, m) }
	best := health.Least(members, usable, func(a, b *member) int {
		byCalls := cmp.Compare(a.calls, b.calls)
		if s != nil && was == nil {
			byCalls = cmp.Or(cmp.Compare(a.sessions, b.sessions), byCalls)
		}
		return cmp.Or(
			health.FalseFirst(slices.Contains(tried, a), slices.Contains(tried, b)),
			health.FalseFirst(!a.fit(), !b.fit()),
			a.Until().Compare(b.Until()), // of those that rest, the one that is back first
			health.FalseFirst(a == avoid, b == avoid),
			byCalls,
		)
	})
	if was != nil && usable(was) && !crowded(was, best) {
		return was
	}
	return best
}

// crowded reports whether a server has so many more calls than another that the other answers sooner, even
// without its cache.
func crowded(m, other *member) bool {
	return other.fit() && m.calls-other.calls > crowdLead && float64(m.calls) > crowdTimes*float64(other.calls)
}
