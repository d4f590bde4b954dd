package script

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

// sections splits a text at the wanted headers. A section ends at the next wanted header
// or at a horizontal rule. If two have the same name, the first counts. A header in a
// code block does not count. A missing section is "".
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

// headerOf returns the name of a header as words in lower case, and the rest of the line.
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

// points returns the bullet points of a text; numbered points do not count. A
// text without bullet points is one point.
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
