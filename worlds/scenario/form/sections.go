package form

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// **NAME**, **NAME:** or **NAME**:, with text after it on the same line or not.
	boldHeader = regexp.MustCompile(`^\s*\*\*\s*([A-Za-z][A-Za-z _-]*?)\s*:?\s*\*\*\s*:?\s*(.*)$`)
	// NAME: in capitals.
	capsHeader = regexp.MustCompile(`^\s*([A-Z][A-Z _-]*?)\s*:\s*(.*)$`)
	// ## Name
	markHeader = regexp.MustCompile(`^\s*#{1,6}\s+([A-Za-z][A-Za-z _-]*?)\s*:?\s*$`)
	ruleLine   = regexp.MustCompile(`^\s*([-*_]\s*){3,}$`)
	pointLine  = regexp.MustCompile(`^\s*[-*•]\s+(.*)$`)
)

// sections splits a text by the headers that are wanted. A section ends with the next of
// them or with a horizontal rule; of two with one name the first counts; what stands in a
// code block is no header. One that is missing is "".
func sections(text string, wanted ...string) map[string]string {
	found := map[string]string{}
	name, fenced := "", false
	var body []string
	end := func() {
		if _, twice := found[name]; name != "" && !twice {
			found[name] = strings.TrimSpace(strings.Join(body, "\n"))
		}
		name, body = "", nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		header, rest := headerOf(line)
		switch {
		case fenced:
			body = append(body, line)
		case slices.Contains(wanted, header):
			end()
			name, body = header, []string{rest}
		case ruleLine.MatchString(line):
			end()
		default:
			body = append(body, line)
		}
	}
	end()
	return found
}

// headerOf returns the name of a header as words in lower case, and what follows it.
func headerOf(line string) (name, rest string) {
	for _, re := range []*regexp.Regexp{boldHeader, capsHeader, markHeader} {
		m := re.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if len(m) > 2 {
			rest = m[2]
		}
		return strings.Join(strings.FieldsFunc(strings.ToLower(m[1]), func(r rune) bool { return r == ' ' || r == '-' || r == '_' }), " "), rest
	}
	return "", ""
}

// points lists the lines of a text that are points of a list; numbered ones are not. A
// text without points is one.
func points(text string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if m := pointLine.FindStringSubmatch(line); m != nil {
			out = append(out, m[1])
		}
	}
	if len(out) == 0 && strings.TrimSpace(text) != "" {
		out = []string{text}
	}
	return out
}
