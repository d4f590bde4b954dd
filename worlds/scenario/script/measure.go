package script

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Reading is a value that was measured.
type Reading struct {
	Value    Value
	Evidence string
	Unknown  string // why the value is unknown
}

// Measure measures a text by keywords or by a pattern, or returns the value given by hand for the turn.
func (m *Metric) Measure(words string, turn int) Reading {
	switch e := m.Extraction; e.Type {
	case ByKeyword:
		return m.inRange(countWords(words, e.Keywords, e.Scoring))
	case ByPattern:
		found, ok := firstMatch(e.Pattern, words)
		if !ok {
			return Reading{Unknown: "nothing matches the pattern"}
		}
		if v, ok := m.Read(found); ok {
			return Reading{Value: v, Evidence: Cut(found, 200)}
		}
		if n, ok := parseNumber(found); ok {
			return m.inRange(n)
		}
		return Reading{Unknown: "what matches is no value", Evidence: Cut(found, 200)}
	default:
		if i := turn - 1; i >= 0 && i < len(e.Values) {
			if v, ok := m.Read(e.Values[i]); ok {
				return Reading{Value: v}
			}
		}
		return Reading{Unknown: "none was given by hand"}
	}
}

// inRange returns the reading of a number, which is unknown if it is out of range.
func (m *Metric) inRange(n float64) Reading {
	if v, ok := m.Number(n); ok {
		return Reading{Value: v}
	}
	return Reading{Unknown: "out of range", Evidence: strconv.FormatFloat(n, 'g', -1, 64)}
}

// countWords counts keywords anywhere in a text, as a count, as presence (0 or 1), or per
// hundred words.
func countWords(text string, keywords []string, scoring string) float64 {
	n, lower := 0, strings.ToLower(text)
	for _, k := range keywords {
		n += strings.Count(lower, strings.ToLower(k))
	}
	switch words := len(strings.Fields(text)); {
	case scoring == "presence":
		return float64(min(n, 1))
	case scoring == "density" && words == 0:
		return 0
	case scoring == "density":
		return 100 * float64(n) / float64(words)
	}
	return float64(n)
}

// firstMatch returns the last match of a pattern: its first group that is not empty, or the whole match.
func firstMatch(pattern, text string) (string, bool) {
	re, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return "", false // checked before play
	}
	all := re.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return "", false
	}
	last := all[len(all)-1]
	for _, group := range last[1:] {
		if group != "" {
			return group, true
		}
	}
	return last[0], last[0] != ""
}

var powerRE = regexp.MustCompile(`^([-+]?[\d.]+)\s*\^\s*([-+]?\d+)$`)

// parseNumber reads 1,200, 45%, 3.5e6 and 10^25.
func parseNumber(text string) (float64, bool) {
	text = strings.TrimSuffix(strings.ReplaceAll(strings.TrimSpace(text), ",", ""), "%")
	if m := powerRE.FindStringSubmatch(text); m != nil {
		base, err := strconv.ParseFloat(m[1], 64)
		exponent, err2 := strconv.Atoi(m[2])
		f := math.Pow(base, float64(exponent))
		return f, err == nil && err2 == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}
