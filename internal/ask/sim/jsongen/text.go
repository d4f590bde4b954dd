package jsongen

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"parley/internal/ask/wire/body"
)

// text appends a JSON string of n.
func (w *writer) text(dst []byte, n *node, name string) []byte {
	switch {
	case n.pattern != nil:
		return body.Text(dst, n.pattern.Draw(w.r, n.minLen, n.maxLen))
	case n.format != "":
		if s, ok := w.formatted(n.format); ok {
			return body.Text(dst, s)
		}
	}
	return body.Text(dst, w.fit(w.phrase(name), n.minLen, n.maxLen))
}

// phrase makes up a string that fits the name of a member.
func (w *writer) phrase(name string) string {
	name = strings.ToLower(name)
	// members whose names have these parts hold whole sentences
	talkative := [...]string{"answer", "analysis", "content", "description", "explanation", "message", "reason", "summary", "text", "thought"}
	for _, t := range talkative {
		if strings.Contains(name, t) {
			return string(w.words.AppendText(nil, w.r, "", 20+w.r.IntN(160)))
		}
	}
	switch {
	case strings.HasSuffix(name, "name") || name == "author":
		return w.words.Name(w.r)
	case w.r.IntN(2) == 0:
		return w.words.Word(w.r)
	default:
		return w.words.Phrase(w.r)
	}
}

// fit returns s with at least lo and at most hi characters. A negative hi is no limit.
func (w *writer) fit(s string, lo, hi int) string {
	if len(s) < lo {
		b := append([]byte(s), ' ')
		for len(b) < lo {
			b = w.words.AppendText(b, w.r, "", lo-len(b))
		}
		s = string(b)
		if hi < 0 {
			hi = max(lo, len(s))
		}
	}
	if hi < 0 || utf8.RuneCountInString(s) <= hi {
		return s
	}
	cut := s[:hi] // what we make up is ASCII
	if t := strings.TrimRight(cut, " "); len(t) >= lo {
		return t
	}
	return cut
}

// formatted makes up a string in a format.
func (w *writer) formatted(format string) (string, bool) {
	r, l := w.r, w.words
	date := func() string { return fmt.Sprintf("%04d-%02d-%02d", 1990+r.IntN(50), 1+r.IntN(12), 1+r.IntN(28)) }
	clock := func() string { return fmt.Sprintf("%02d:%02d:%02dZ", r.IntN(24), r.IntN(60), r.IntN(60)) }
	host := func() string { return l.Word(r) + ".example" }
	switch format {
	case "date":
		return date(), true
	case "time":
		return clock(), true
	case "date-time":
		return date() + "T" + clock(), true
	case "duration":
		return fmt.Sprintf("P%dDT%dH", r.IntN(30), 1+r.IntN(23)), true
	case "email", "idn-email":
		return strings.ToLower(l.Name(r)) + "@" + host(), true
	case "hostname", "idn-hostname":
		return host(), true
	case "ipv4":
		return fmt.Sprintf("192.0.2.%d", r.IntN(256)), true
	case "ipv6":
		return fmt.Sprintf("2001:db8::%x", 1+r.IntN(65000)), true
	case "uri", "iri", "url", "uri-reference", "iri-reference":
		return "https://" + host() + "/" + l.Word(r), true
	case "uuid":
		return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), 0x8000|r.IntN(1<<14), r.Int64N(1<<48)), true
	case "json-pointer":
		return "/" + l.Word(r) + "/" + l.Word(r), true
	case "relative-json-pointer":
		return fmt.Sprintf("%d/%s", r.IntN(3), l.Word(r)), true
	case "regex":
		return "^" + l.Word(r) + "+$", true
	default:
		return "", false
	}
}

func unquote(b []byte) string {
	var s string
	if json.Unmarshal(b, &s) != nil {
		return string(b)
	}
	return s
}
