package terminal

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// TimeLeft estimates how long the known episodes take, from the number of calls that episodes took and the
// recent rate of calls. It returns an interval, or nothing if the interval would be too wide to be useful. It
// reads no clock.
type TimeLeft struct {
	live  map[int]int // calls so far, by episode in progress
	ended map[int]int // number of ended episodes, by the calls they took
	count int         // number of ended episodes

	// bins count calls by time. When all bins are used, each pair is merged into one.
	bins  []int
	width time.Duration // of a bin
}

const (
	maxBins  = 64
	firstBin = 250 * time.Millisecond
	minBins  = 12              // minimum for an estimate, which uses the later half
	minTime  = 5 * time.Second // minimum since the start
	minEnds  = 10              // minimum of ended episodes
	widest   = 3               // maximum ratio of the interval's ends
	shortest = 5 * time.Second // shorter times are not shown
	heavy    = 1.1             // maximum deviation of calls over their mean; it is 1 for episodes that end at random
	normal90 = 1.645           // quantile of a two-sided interval of 90%
	maxCalls = 1 << 20         // maximum number of calls of an episode that are counted
	farthest = 365 * 24 * time.Hour
)

// Replied records that a call of an episode was answered, at a time after the start.
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

// End records that an episode ended.
func (l *TimeLeft) End(episode int) {
	calls := l.live[episode]
	if calls == 0 {
		return // it was played earlier, or made no calls
	}
	delete(l.live, episode)
	l.ended[min(calls, maxCalls)]++
	l.count++
}

// Interval returns a 90% interval for the time until left more episodes have ended. at is the time since the
// start. ok is false if the time is not known.
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
	// An episode makes its calls one after another, so the last episodes end with fewer and fewer others beside
	// them.
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

// rate returns the lowest and highest likely number of answered calls per second, from the later half of the
// time so far. A rate that rises or falls within that half is assumed to continue to do so.
func (l *TimeLeft) rate(at time.Duration) (slow, fast float64, ok bool) {
	full := int(at / l.width)               // without the bin that is being filled
	if full < minBins || full > 2*maxBins { // the latter: no calls for as long as the whole time before
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

// work is the number of calls that are still to be made.
type work struct {
	mean, deviation float64
	longest         float64 // calls of the longest episode
}

// work estimates the calls that left episodes still make, both those in progress and new ones. ok is false if a
// few episodes make far more calls than the others: a single new one may then dominate.
func (l *TimeLeft) work(left int) (_ work, ok bool) {
	s := l.survival()
	if s.deviation > heavy*s.beyond(0) {
		return work{}, false
	}
	// The longest future episode is longer than the longest so far. The difference grows with the number of future
	// episodes and with the weight of the tail.
	s.longest += s.excess * (1 + math.Log1p(float64(left)/float64(l.count)))
	waiting := float64(max(0, left-len(l.live)))
	w := work{mean: waiting * s.beyond(0)}
	if waiting > 0 {
		w.longest = s.longest
	}
	for calls, n := range l.open() {
		more := s.beyond(calls)
		w.mean += float64(n) * more
		w.longest = max(w.longest, more, s.longest-float64(calls))
	}
	n := waiting + float64(len(l.live))
	// The error of the mean, which all share, and the deviation of each, which averages out.
	common := n * s.deviation / math.Sqrt(float64(l.count))
	w.deviation = math.Hypot(common, math.Sqrt(n)*s.deviation)
	return w, true
}

// open counts the episodes in progress by the calls they have made.
func (l *TimeLeft) open() map[int]int {
	open := map[int]int{}
	for _, calls := range l.live {
		open[calls]++
	}
	return open
}

// survival is the Kaplan-Meier estimate of how many calls an episode makes, from episodes that ended and those
// in progress. Counting only ended episodes would favor short ones.
type survival struct {
	at, alive []float64 // alive is the fraction that makes more calls than at
	deviation float64
	longest   float64 // calls of the longest episode
	excess    float64 // mean difference between the longest tenth and the others
	tail      float64 // mean number of additional calls of an episode that is longer than all ended ones
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
	s.longest = s.at[len(s.at)-1]
	s.tail = exposed / float64(l.count)
	if share > 1e-9 { // episodes longer than all ended ones
		x := s.longest + s.tail
		mean, square, s.longest = mean+share*x, square+share*x*x, x
	}
	if tenth := slices.IndexFunc(s.alive, func(share float64) bool { return share <= 0.1 }); tenth >= 0 && s.alive[tenth] > 1e-9 {
		s.excess = s.beyond(int(s.at[tenth]))
	}
	s.deviation = math.Sqrt(max(0, square-mean*mean))
	return s
}

// beyond returns the mean number of additional calls of an episode that has made the given number.
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

// Roughly formats a duration with its significant digits.
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
