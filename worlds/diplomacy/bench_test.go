package diplomacy

import (
	"testing"

	"parley/world"
)

// BenchmarkGame plays a press game of three rounds to 1905 with replies that take no time, and
// reports the time of a call in the world itself.
func BenchmarkGame(b *testing.B) {
	recorded := playDiplomacy(b, 1, world.Lineup{}, simulated, func(p *Params) { p.MaxYear = 1905 })
	b.ReportAllocs()
	for b.Loop() {
		i := 0
		playDiplomacy(b, 1, world.Lineup{}, func(world.Call) world.Reply { i++; return recorded.replies[i-1] }, func(p *Params) { p.MaxYear = 1905 })
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(recorded.calls)), "µs/call")
}
