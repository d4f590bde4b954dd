package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/internal/kit/text"
	"parley/world/exhibit"
)

// Speed formats a rate with at most two decimals.
func Speed(v float64) string {
	if v >= 10 {
		return Number(int(v + 0.5))
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// Number formats n with commas between thousands.
func Number(n int) string { return text.GroupDigits(n) }

// Several formats a count with its noun.
func Several(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + many
}

// OrDash returns s, or "-" if there is no value.
func OrDash(s string, none bool) string {
	if none {
		return "-"
	}
	return s
}

// OneLine joins a text into one line.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Cut shortens a text to width characters, and ends it with … if it was longer.
func Cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(0, width-1)]) + "…"
}

// Safe makes control characters visible, as \u001b.
func Safe(text string) string { return exhibit.Visible(text) }

// Quoted prepares text from outside for use within a line.
func Quoted(text string) string { return Cut(Safe(OneLine(text)), 200) }

// ShellWord quotes a word if a shell would split or interpret it.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./=:@%+,", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Marshal encodes v as JSON without escaping < > &.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// PrintJSON prints v as one line of JSON.
func PrintJSON(w io.Writer, v any) error {
	b, err := Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, string(b))
	return err
}
