package world

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Visible writes what a terminal or an editor could obey, or hide text behind, as \u001b and
// the like, which is also how JSON writes it: control characters, changes of direction, tags.
// Ends of lines and tabs stay.
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

// hostile says whether a terminal may obey r, or hide text behind it.
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
	case r == 0x200b, r >= 0x2060 && r <= 0x2064, r >= 0xe0000 && r <= 0xe007f: // nothing to see: tags hide whole prompts
		return true
	default:
		return false
	}
}

// Markdown writes a text that others wrote so that a reader of Markdown shows it as it is:
// no HTML, no image or link, no heading, rule or block of code comes of it, and nothing is
// fetched. What Visible makes visible is visible here too. It stays readable as it stands,
// and taking the escapes away gives the text back.
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

// markdownLine escapes what means something anywhere in a line.
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
			c == ':' && strings.HasPrefix(next, "//"), // addresses become links by themselves
			c == '.' && i >= 3 && strings.EqualFold(line[i-3:i], "www"):
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// maxFileName is how long a name may be, in bytes, so that every system takes it.
const maxFileName = 120

// FileName makes a name that every system takes for a file in a folder: no path, no sign
// that means something, no name that Windows keeps for devices, not hidden and not too long.
// A name that is already so stays as it is; others do not become the same by being cut.
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

// reserved says whether Windows keeps a name for a device, whatever it ends in.
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
