package progress

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// TimeLeft estimates how long the episodes that are known take to be played, from the calls that
// episodes took and the rate of calls lately. It gives an interval, and none where that would be
// too wide to be of use. It reads no clock.
type TimeLeft struct {
	live  map[int]int // calls so far, by episode that has begun
	ended map[int]int // episodes, by the calls they took
	count int         // of ended

	// bins count calls by time. When all are used, each two become one.
	bins  []int
	width time.Duration // of a bin
}

const (
	maxBins  = 64
	firstBin = 250 * time.Millisecond
	minBins  = 12              // that an estimate is made of, of which the later half counts
	minTime  = 5 * time.Second // since the start
	minEnds  = 10              // episodes that ended
	widest   = 3               // the interval's upper end over its lower one
	shortest = 5 * time.Second // what is not worth showing
	heavy    = 1.1             // the deviation of calls over their mean: 1 is that of episodes that end at random
	normal90 = 1.645           // of a two-sided interval of 90%
	maxCalls = 1 << 20         // calls of an episode that are told apart
	farthest = 365 * 24 * time.Hour
)

// Replied takes in that a call of an episode was answered, so long after the start.
func (l *TimeLeft) Replied(episode int, at time.Duration) {
	if l.live == nil {
		l.live, l.ended, l.width = map[int]int{}, map[int]int{}, firstBin
	}
	l.live[episode]++
	i := int(max(0, at) / l.width)
	for ; i >= maxBins; i /= 2 {
		for j := range (len(l.bins) + 1) / 2 {
			l.bins[j] = l.bins[2*j]
			if 2*j+1 < len(l.bins) {
				l.bins[j] += l.bins[2*j+1]
			}
		}
		l.bins, l.width = l.bins[:(len(l.bins)+1)/2], 2*l.width
	}
	for len(l.bins) <= i {
		l.bins = append(l.bins, 0)
	}
	l.bins[i]++
}

// End takes in that an episode ended.
func (l *TimeLeft) End(episode int) {
	calls := l.live[episode]
	if calls == 0 {
		return // it was played before, or asked nothing
	}
	delete(l.live, episode)
	l.ended[min(calls, maxCalls)]++
	l.count++
}

// Interval is how long it takes until a number of episodes more have ended, at some time after the
// start: between low and high, nine times of ten. It is not known where ok is false.
func (l *TimeLeft) Interval(left int, at time.Duration) (low, high time.Duration, ok bool) {
	if left <= 0 || l.count < minEnds || at < minTime {
		return 0, 0, false
	}
	slow, fast, ok := l.rate(at)
	if !ok {
		return 0, 0, false
	}
	w, ok := l.work(left)
	if !ok {
		return 0, 0, false
	}
	z := normal90 * (1 + 1.2/float64(l.count-1)) // nearly Student's quantile
	lo := max(w.mean-z*w.deviation, w.mean/widest) / fast
	hi := (w.mean + z*w.deviation) / slow
	// An episode takes its calls one after the other, and so the last ones run out while less and
	// less goes on beside them.
	last := w.longest * float64(max(1, len(l.live))) / slow
	if hi = max(hi, last); left > len(l.live) {
		hi += last
	}
	if !(hi <= widest*lo) || hi < shortest.Seconds() || hi > farthest.Seconds() {
		return 0, 0, false
	}
	return seconds(lo), seconds(hi), true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// rate is how many calls a second are answered at least and at most, by the later half of the time so
// far. One that rises or falls within that is taken to go on like that.
func (l *TimeLeft) rate(at time.Duration) (slow, fast float64, ok bool) {
	full := int(at / l.width)               // the bin that is being filled does not count
	if full < minBins || full > 2*maxBins { // the latter: nothing came for as long as all before
		return 0, 0, false
	}
	bins := make([]float64, full)
	for i := range min(full, len(l.bins)) {
		bins[i] = float64(l.bins[i])
	}
	bins = bins[full/2:]
	mean, sd := meanAndDeviation(bins)
	early, _ := meanAndDeviation(bins[:len(bins)/2])
	late, _ := meanAndDeviation(bins[len(bins)/2:])
	last, _ := meanAndDeviation(bins[len(bins)-max(1, len(bins)/4):])
	off := normal90 * sd / math.Sqrt(float64(len(bins)))
	slow = min(mean, late, last) - max(0, early-late) - off
	fast = max(mean, late, last) + max(0, late-early) + off
	return slow / l.width.Seconds(), fast / l.width.Seconds(), slow > 0
}

func meanAndDeviation(xs []float64) (mean, sd float64) {
	for _, x := range xs {
		mean += x
	}
	mean /= float64(max(1, len(xs)))
	for _, x := range xs {
		sd += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sd / float64(max(1, len(xs)-1)))
}

// work is calls that are still to be made.
type work struct {
	mean, deviation float64
	longest         float64 // of one episode
}

// work is what a number of episodes still take: those that have begun and others. It is not known
// where a few take far more calls than all others: one that is still to come may take most.
func (l *TimeLeft) work(left int) (_ work, ok bool) {
	s := l.survival()
	if s.deviation > heavy*s.beyond(0) {
		return work{}, false
	}
	// The longest that is still to come is longer than the longest so far, the more so the more are
	// to come and the heavier the tail is.
	s.most += s.excess * (1 + math.Log1p(float64(left)/float64(l.count)))
	waiting := float64(max(0, left-len(l.live)))
	w := work{mean: waiting * s.beyond(0)}
	if waiting > 0 {
		w.longest = s.most
	}
	for calls, n := range l.open() {
		more := s.beyond(calls)
		w.mean += float64(n) * more
		w.longest = max(w.longest, more, s.most-float64(calls))
	}
	n := waiting + float64(len(l.live))
	// That of the mean, which all have in common, and that of each, which evens out.
	common := n * s.deviation / math.Sqrt(float64(l.count))
	w.deviation = math.Hypot(common, math.Sqrt(n)*s.deviation)
	return w, true
}

// open counts the episodes that have begun by the calls they took so far.
func (l *TimeLeft) open() map[int]int {
	open := map[int]int{}
	for _, calls := range l.live {
		open[calls]++
	}
	return open
}

// survival is how many calls episodes take, by those that ended and by those that have not yet:
// Kaplan and Meier's estimate. Counting only what ended would favour the short ones.
type survival struct {
	at, alive []float64 // alive is the share that takes more calls than at
	deviation float64
	most      float64 // the longest there was
	excess    float64 // how much longer the longest tenth is than all others, on average
	tail      float64 // how many calls more one takes that is longer than all that ended
}

func (l *TimeLeft) survival() *survival {
	open := l.open()
	exposed, risk := 0.0, l.count+len(l.live)
	for calls, n := range open {
		exposed += float64(n * calls)
	}
	s := &survival{}
	share, square, mean := 1.0, 0.0, 0.0
	steps := slices.Sorted(maps.Keys(l.ended))
	begun := slices.Sorted(maps.Keys(open))
	for _, calls := range steps {
		for len(begun) > 0 && begun[0] < calls {
			risk -= open[begun[0]]
			begun = begun[1:]
		}
		n, x := l.ended[calls], float64(calls)
		exposed += float64(n) * x
		gone := share * float64(n) / float64(risk)
		mean, square = mean+gone*x, square+gone*x*x
		share -= gone
		risk -= n
		s.at, s.alive = append(s.at, x), append(s.alive, max(0, share))
	}
	s.most = s.at[len(s.at)-1]
	s.tail = exposed / float64(l.count)
	if share > 1e-9 { // what is longer than all that ended
		x := s.most + s.tail
		mean, square, s.most = mean+share*x, square+share*x*x, x
	}
	if tenth := slices.IndexFunc(s.alive, func(share float64) bool { return share <= 0.1 }); tenth >= 0 && s.alive[tenth] > 1e-9 {
		s.excess = s.beyond(int(s.at[tenth]))
	}
	s.deviation = math.Sqrt(max(0, square-mean*mean))
	return s
}

// beyond is how many calls more an episode takes on average that has taken so many.
func (s *survival) beyond(calls int) float64 {
	from, alive := float64(calls), 1.0
	i, _ := slices.BinarySearch(s.at, from)
	if i < len(s.at) && s.at[i] == from {
		i++
	}
	if i > 0 {
		alive = s.alive[i-1]
	}
	if alive <= 1e-9 || i == len(s.at) {
		return s.tail
	}
	sum, here := 0.0, alive
	for ; i < len(s.at); i++ {
		sum += here * (s.at[i] - from)
		from, here = s.at[i], s.alive[i]
	}
	return (sum + here*s.tail) / alive
}

// Roughly writes a time with the digits that matter.
func Roughly(d time.Duration) string {
	unit := time.Second
	for _, step := range []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute, 6 * time.Hour} {
		if d >= 10*step {
			unit = step
		}
	}
	text := d.Round(unit).String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
