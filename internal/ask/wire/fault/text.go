package fault

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"parley/llm"
)

// Malformed returns the error of an answer that cannot be read. It may have been billed.
func Malformed(message string, err error) *llm.Error {
	if err != nil {
		message += ": " + err.Error()
	}
	return &llm.Error{Kind: llm.KindMalformed, Message: message, Uncertain: true, Err: err}
}

// BadRequest returns the error of a request that cannot be sent.
func BadRequest(format string, args ...any) *llm.Error {
	return &llm.Error{Kind: llm.KindBadRequest, Message: fmt.Sprintf(format, args...)}
}

// LooksJSON returns an error if a body cannot be JSON, by its content type and its first bytes. The
// most common faults are a proxy's page and an empty body.
func LooksJSON(b []byte, contentType string) error {
	t := bytes.TrimLeft(b, " \t\r\n")
	switch {
	case len(t) == 0:
		return Malformed("the answer is empty", nil)
	case isHTML(t):
		return Malformed("the answer is an HTML page"+title(t)+": is base_url right, or is a proxy in the way?", nil)
	case contentType != "" && !strings.Contains(strings.ToLower(contentType), "json"):
		return Malformed(fmt.Sprintf("the content type is %q, not JSON: %s", contentType, excerpt(t)), nil)
	case t[0] != '{' && t[0] != '[':
		return Malformed("the answer is not JSON: "+excerpt(t), nil)
	}
	return nil
}

func isHTML(b []byte) bool {
	if len(b) == 0 || b[0] != '<' {
		return false
	}
	head := bytes.ToLower(b[:min(len(b), 512)])
	return bytes.Contains(head, []byte("<html")) || bytes.Contains(head, []byte("<!doctype")) ||
		bytes.Contains(head, []byte("<head")) || bytes.Contains(head, []byte("<body"))
}

// title returns the title of an HTML page, in quotes.
func title(b []byte) string {
	low := bytes.ToLower(b[:min(len(b), 4096)])
	_, rest, ok := bytes.Cut(low, []byte("<title>"))
	t, _, end := bytes.Cut(rest, []byte("</title>"))
	if !ok || !end {
		return ""
	}
	return fmt.Sprintf(" (%q)", Clean(string(bytes.TrimSpace(t)), 80))
}

func excerpt(b []byte) string { return Clean(string(b[:min(len(b), 200)]), 200) }

// MaxMessage is the maximum size of a server's text that is kept, in bytes.
const MaxMessage = 1000

// Clean makes a server's text safe for a line on a terminal: valid, without control characters, and
// at most n bytes long.
func Clean(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// RequestID returns the server's ID of the exchange.
func RequestID(h http.Header) string {
	for _, k := range [...]string{"X-Request-Id", "Request-Id", "X-Amzn-Requestid", "X-Generation-Id", "Cf-Ray"} {
		if v := h[k]; len(v) > 0 {
			return v[0]
		}
	}
	return ""
}
