package terminal

import (
	"strings"
	"time"
)

// TimeLeft estimates how long the known episodes take: from how many calls an episode makes on average, and how many calls were answered a second
// in the last part of the run. It reads no clock.
type TimeLeft struct {
	live         map[int]int // calls so far, by episode in progress
	ended, calls int         // episodes that ended, and their calls
	answered     int         // calls
	marks        []mark      // the oldest first
}

// mark is how many calls were answered until a time after the start.
type mark struct {
	at       time.Duration
	answered int
}

const (
	minTime  = 5 * time.Second // since the start, for an estimate
	minEnds  = 10              // ended episodes
	maxMarks = 128
	shortest = 5 * time.Second // shorter times are not shown
	farthest = 365 * 24 * time.Hour
)

// Replied records that a call of an episode was answered, at a time after the start.
func (l *TimeLeft) Replied(episode int, at time.Duration) {
	if l.live == nil {
		l.live = map[int]int{}
	}
	l.live[episode]++
	l.answered++
	if n := len(l.marks); n == 0 || at-l.marks[n-1].at >= max(time.Second, at/maxMarks) {
		l.marks = append(l.marks, mark{at, l.answered})
	}
	for len(l.marks) > 2 && l.marks[1].at < at/2 { // only the later half counts
		l.marks = l.marks[1:]
	}
}

// End records that an episode ended.
func (l *TimeLeft) End(episode int) {
	if n := l.live[episode]; n > 0 { // else it was played earlier, or made no calls
		delete(l.live, episode)
		l.ended++
		l.calls += n
	}
}

// About returns the time until left more episodes have ended. at is the time since the start. ok is false if it is not known.
func (l *TimeLeft) About(left int, at time.Duration) (about time.Duration, ok bool) {
	if left <= 0 || l.ended < minEnds || at < minTime || len(l.marks) == 0 {
		return 0, false
	}
	each := float64(l.calls) / float64(l.ended)
	todo := each * float64(max(0, left-len(l.live)))
	for _, made := range l.live {
		todo += max(1, each-float64(made))
	}
	from := l.marks[0]
	speed := float64(l.answered-from.answered) / (at - from.at).Seconds()
	if !(speed > 0) || todo/speed < shortest.Seconds() || todo/speed > farthest.Seconds() {
		return 0, false
	}
	return time.Duration(todo / speed * float64(time.Second)), true
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
