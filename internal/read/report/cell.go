package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/statmath"
	"parley/internal/kit/text"
	"parley/internal/run/results"
	"parley/llm"
	"parley/world"
)

// Key returns a column that names the row.
func Key(name string) Column { return Column{Name: name, Key: true} }

// Number returns a column of numbers.
func Number(name string) Column { return Column{Name: name, Number: true} }

// pageWords returns a column of texts.
func pageWords(name string) Column { return Column{Name: name} }

// Word returns a cell with a text.
func Word(s string) Cell { return Cell{Text: s, Value: s} }

// whole returns a cell with a count.
func whole(n int) Cell { return Cell{Text: text.GroupDigits(n), Value: n} }

// pageSome returns a cell with a count, and a dash for 0.
func pageSome(n int) Cell {
	if n == 0 {
		return Cell{Text: "–", Value: 0}
	}
	return whole(n)
}

// money returns a cell with an amount, and a dash for 0.
func money(m llm.Money) Cell {
	if m == 0 {
		return Cell{Text: "–", Value: m}
	}
	return Cell{Text: Dollars(m), Value: m}
}

// pageP returns a cell with the pageP of a test, to three decimals.
func pageP(p float64) Cell {
	switch {
	case math.IsNaN(p):
		return Cell{Text: "–"}
	case p < 0.001:
		return Cell{Text: "< 0.001", Value: p}
	default:
		return Cell{Text: strconv.FormatFloat(p, 'f', 3, 64), Value: p}
	}
}

// Real returns a cell with any number.
func Real(x float64) Cell {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return Cell{Text: "–"}
	}
	return Cell{Text: digits(x), Value: x}
}

// pageSeconds returns a cell with a duration, whose value is in seconds.
func pageSeconds(d time.Duration) Cell { return Cell{Text: Duration(d), Value: d.Seconds()} }

// Quantity returns a cell with a number and its interval.
func Quantity(q statmath.Quantity) Cell { return Cell{Text: Interval(q), Value: q} }

// pageSample returns the estimate of a sample. A share is from 0 to 1.
func pageSample(s *world.Sample, share bool) statmath.Quantity {
	if s == nil {
		return statmath.Unknown(0, "")
	}
	if share && s.Bounds.Any() {
		s.Bounds = world.Share()
	}
	return s.Estimate(results.Confidence)
}

// Interval formats a number with its interval: 0.42 [0.35, 0.49].
func Interval(q statmath.Quantity) string {
	if !q.Known() {
		return "–"
	}
	half := q.Half()
	if math.IsInf(half, 0) || math.IsNaN(half) {
		return digits(q.Value) + " [unknown]"
	}
	n := decimals(half)
	f := func(x float64) string { return strconv.FormatFloat(x, 'f', n, 64) }
	return fmt.Sprintf("%s [%s, %s]", f(q.Value), f(q.Low), f(q.High))
}

// decimals returns the number of decimals for a number that is known to ±half: usually two, so
// that numbers line up, and more or fewer for very small or large intervals.
func decimals(half float64) int {
	switch {
	case half >= 100:
		return 0
	case half >= 10:
		return 1
	case half >= 0.005 || half <= 0:
		return 2
	default:
		return min(6, -int(math.Floor(math.Log10(half))))
	}
}

// digits formats a number with four digits.
func digits(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e7 {
		return text.GroupDigits(int(x))
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// Dollars formats an amount with its significant digits: $0.0042, $1.23, $1,234.
func Dollars(m llm.Money) string {
	d := m.Dollars()
	switch a := math.Abs(d); {
	case a >= 1000:
		return "$" + text.GroupDigits(int(math.Round(d)))
	case a >= 1 || a == 0:
		return fmt.Sprintf("$%.2f", d)
	default:
		return "$" + strconv.FormatFloat(d, 'f', min(6, 1-int(math.Floor(math.Log10(max(a, 1e-9))))), 64)
	}
}

// Duration formats a duration: 340 ms, 1.52 s, 4 min 20 s, 3 h 05 min.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "–"
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
}

// SecondsTick formats a number of seconds for an axis.
func SecondsTick(x float64) string {
	d := time.Duration(x * float64(time.Second))
	if d >= time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	if d >= time.Second && d < time.Minute {
		return fmt.Sprintf("%.4g s", x)
	}
	return Duration(d)
}

// ScoresText writes n scores by seat, as "first: points 3, revealed 0; second: …". score returns the seat and the
// text of one.
func ScoresText(n int, score func(i int) (seat, text string)) string {
	var b strings.Builder
	last := ""
	for i := range n {
		seat, text := score(i)
		switch {
		case i > 0 && seat == last:
			b.WriteString(", ")
		case i > 0:
			b.WriteString("; ")
		}
		if seat != "" && (i == 0 || seat != last) {
			b.WriteString(seat + ": ")
		}
		b.WriteString(text)
		last = seat
	}
	return b.String()
}
