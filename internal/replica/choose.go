package replica

import (
	"cmp"
	"slices"
)

const (
	crowdLead  = 8   // calls that a server must be ahead of another
	crowdTimes = 1.5 // times the other's, for sessions to move from it
)

// choose picks a server for a call. One of a session stays where that is, unless its server
// rests or is crowded. A new session goes where there are fewest, and one that a server
// failed rather elsewhere; a call without a session (nil) goes where there are fewest calls.
// Servers that were tried come last, and so do those that rest, which are taken when nothing
// else is left.
func choose(members []*member, s *placement, tried []*member) *member {
	var was, shun *member
	if s != nil {
		was, shun = s.at, s.shun
	}
	best := slices.MinFunc(members, func(a, b *member) int {
		byCalls := cmp.Compare(a.calls, b.calls)
		if s != nil && was == nil {
			byCalls = cmp.Or(cmp.Compare(a.sessions, b.sessions), byCalls)
		}
		return cmp.Or(
			order(slices.Contains(tried, a), slices.Contains(tried, b)),
			order(!a.fit(), !b.fit()),
			a.until.Compare(b.until), // of those that rest, the one that comes back first
			order(a == shun, b == shun),
			byCalls,
		)
	})
	if was != nil && was.fit() && !slices.Contains(tried, was) && !crowded(was, best) {
		return was
	}
	return best
}

// crowded says whether a server has so many more calls than another that being served there
// sooner is worth more than what its cache holds.
func crowded(m, other *member) bool {
	return other.fit() && m.calls-other.calls > crowdLead && float64(m.calls) > crowdTimes*float64(other.calls)
}

// order puts what is not so before what is.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
