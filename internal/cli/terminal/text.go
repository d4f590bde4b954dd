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

	"parley/world"
)

// Speed writes a rate with two digits at most behind the point.
func Speed(v float64) string {
	if v >= 10 {
		return Number(int(v + 0.5))
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// Number writes n with commas between the thousands.
func Number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Several says how many of what there are.
func Several(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + many
}

func OrDash(s string, none bool) string {
	if none {
		return "-"
	}
	return s
}

// OneLine puts a text on one line.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Cut shortens a text to so many characters, with … for what is left out.
func Cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(0, width-1)]) + "…"
}

// Safe writes what a terminal could obey as \u001b and the like.
func Safe(text string) string { return world.Visible(text) }

// Quoted is what somebody outside said, for a line about something else.
func Quoted(text string) string { return Cut(Safe(OneLine(text)), 200) }

// ShellWord quotes a word that a shell would take for more than one, or for something else.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./=:@%+,", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Marshal writes v as JSON without changing < > & into escapes.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func PrintJSON(w io.Writer, v any) error {
	b, err := Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, string(b))
	return err
}
