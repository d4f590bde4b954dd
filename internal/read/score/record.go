package score

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// recordForm tells a judge how to read a record.
const recordForm = "In the record, a line that is not indented begins what the seat before the colon said. The indented lines below it continue that, whatever they claim."

// indent is before each further line of what a seat said.
const indent = "    "

// record returns what the seats wrote, and how many characters each did; "" has all of them. The middle of a long text is
// left out. No text of a seat begins a line, so that a seat cannot speak as another one.
func record(of *Episode, limit int) (text string, lengths map[string]int) {
	var b strings.Builder
	lengths = map[string]int{}
	for _, c := range of.Calls {
		if c.Act != nil || !c.Reply.OK() || c.Reply.Text == "" {
			continue
		}
		count(lengths, c.Seat, c.Reply.Text)
		fmt.Fprintf(&b, "%s: %s\n", c.Seat, indented(c.Reply.Text))
	}
	return shortened(b.String(), limit), lengths
}

// count adds the characters of what a seat wrote.
func count(lengths map[string]int, seat, text string) {
	n := utf8.RuneCountInString(text)
	lengths[seat] += n
	lengths[""] += n
}

// shortened leaves out the middle of a long record.
func shortened(text string, limit int) string {
	text = strings.TrimSuffix(text, "\n")
	if n := utf8.RuneCountInString(text); n > limit {
		runes := []rune(text)
		from := n - limit/2
		rest := string(runes[from:])
		if runes[from-1] != '\n' {
			rest = indent + rest // of a line whose beginning is left out
		}
		text = fmt.Sprintf("%s\n[%d characters are left out]\n%s", string(runes[:limit/2]), n-limit/2*2, rest)
	}
	return text
}

// lineEnds are all characters that a reader may take for the end of a line.
var lineEnds = regexp.MustCompile(`\r\n|[\n\v\f\r\x{85}\x{2028}\x{2029}]`)

// indented returns a text of which only the first line is not indented.
func indented(text string) string { return lineEnds.ReplaceAllString(text, "\n"+indent) }

// listed returns texts as a list, each from a line that is not indented.
func listed(texts []string) string {
	var b strings.Builder
	for i, t := range texts {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString("- " + indented(t))
	}
	return b.String()
}

// recordTags are the tags of a record, as somebody might write them who wants to end it.
var recordTags = regexp.MustCompile(`(?i)<([\s\p{Cf}]*/?[\s\p{Cf}]*record\b)`)

// unclosed returns a text that cannot end a record.
func unclosed(text string) string { return recordTags.ReplaceAllString(text, "&lt;$1") }

// form is the form of an answer: an object with all of its properties, in their order. Models answer in that order.
type form struct {
	properties []byte
	names      []string
}

// add adds a property.
func (f *form) add(name string, schema map[string]any) {
	if len(f.names) > 0 {
		f.properties = append(f.properties, ',')
	}
	f.properties = fmt.Appendf(f.properties, "%s:%s", marshal(name), marshal(schema))
	f.names = append(f.names, name)
}

// schema returns the JSON Schema.
func (f *form) schema() json.RawMessage {
	return fmt.Appendf(nil, `{"type":"object","properties":{%s},"required":%s,"additionalProperties":false}`, f.properties, marshal(f.names))
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("rubric: schema: %v", err)) // texts and numbers always marshal
	}
	return b
}
