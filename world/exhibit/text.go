package exhibit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Visible replaces characters that a terminal or an editor could obey, or that can hide text, by escapes such as
// \u001b, which JSON uses too: control characters, changes of direction, tags. It keeps newlines and tabs.
func Visible(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, hostile) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "\\x%02x", text[i])
		case r > 0xffff && hostile(r):
			fmt.Fprintf(&b, "\\U%08x", r)
		case hostile(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// hostile reports whether a terminal may obey r, or text may hide behind it.
func hostile(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c: // direction
		return true
	case r == 0x2028, r == 0x2029, r == 0xfeff: // line and paragraph ends, byte order mark
		return true
	case r == 0x200b, r >= 0x2060 && r <= 0x2064, r >= 0xe0000 && r <= 0xe007f: // invisible; tags can hide whole prompts
		return true
	default:
		return false
	}
}

// Markdown escapes a text of others so that Markdown shows it unchanged: it makes no HTML, image, link, heading, rule
// or code block, and nothing is fetched. It also applies Visible. The result stays readable, and removing the escapes
// returns the text.
func Markdown(text string) string {
	text = Visible(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
	var b strings.Builder
	for line := range strings.Lines(text) {
		rest := strings.TrimLeft(line, " \t")
		b.WriteString(line[:len(line)-len(rest)])
		// A line of dashes is a rule, or makes a heading of the line before.
		if strings.HasPrefix(rest, ">") || len(rest) > 0 && strings.Trim(rest, rest[:1]+" \t\n") == "" && strings.ContainsAny(rest[:1], "=-_*+~") {
			b.WriteByte('\\')
			b.WriteByte(rest[0])
			rest = rest[1:]
		}
		markdownLine(&b, rest)
	}
	return b.String()
}

// markdownLine escapes characters that have a meaning anywhere in a line.
func markdownLine(b *strings.Builder, line string) {
	for i := range len(line) {
		next := line[i+1:]
		switch c := line[i]; {
		case c == '<':
			b.WriteString("&lt;")
		case c == '&' && next != "" && (next[0] == '#' || isLetter(next[0])): // an entity
			b.WriteString("&amp;")
		case strings.IndexByte("\\`[]#$", c) >= 0,
			c == '~' && strings.HasPrefix(next, "~~"),
			c == ':' && strings.HasPrefix(next, "//"), // addresses become links
			c == '.' && i >= 3 && strings.EqualFold(line[i-3:i], "www"):
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// Formula reports whether a text of a CSV file needs a ' in front, because a spreadsheet would read it as a formula. A text
// that begins with a ' needs one too, so that removing one ' restores every text.
func Formula(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	switch r {
	case '=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠', '\'':
		return true
	default:
		return false
	}
}

// Shorten returns at most limit bytes of a text, followed by " …" if the text is longer.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + " …"
}

// maxFileName is the largest length of a file name, in bytes, that works on every system.
const maxFileName = 120

// FileName makes a file name that works on every system: no path, no special character, no device name of Windows,
// not hidden and not too long. It does not change a name that is already valid. Different names stay different when
// they are cut.
func FileName(name string) string {
	out := strings.Map(func(r rune) rune {
		if hostile(r) || r == utf8.RuneError || strings.ContainsRune("<>:\"/\\|?*\n\t", r) {
			return '_'
		}
		return r
	}, name)
	out = strings.TrimRight(out, ". ")
	if strings.HasPrefix(out, ".") || strings.HasPrefix(out, " ") || out == "" || reserved(out) {
		out = "_" + out
	}
	if len(out) > maxFileName {
		sum := sha256.Sum256([]byte(name))
		end := ""
		if i := strings.LastIndexByte(out, '.'); i > 0 && len(out)-i <= 8 {
			end = out[i:]
		}
		out = strings.ToValidUTF8(out[:maxFileName-17-len(end)], "") + "-" + hex.EncodeToString(sum[:8]) + end
	}
	return out
}

// reserved reports whether Windows uses a name for a device, with any extension.
func reserved(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	number, ok := strings.CutPrefix(stem, "COM")
	if !ok {
		number, ok = strings.CutPrefix(stem, "LPT")
	}
	return ok && utf8.RuneCountInString(number) == 1 && strings.ContainsAny(number, "0123456789¹²³")
}
