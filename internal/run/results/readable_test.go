package results

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReadable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"public_statement":"We stay.","messages":[{"to":"coop","text":"Wait."}],"coalition":{"members":[],"purpose":""}}`: "public statement: We stay.\nmessages:\n  -\n    to: coop\n    text: Wait.",
		`{"b":1.50,"a":true,"z":["x","y"],"no":null,"f":false}`:                                                             "b: 1.50\na: true\nz:\n  - x\n  - y\nf: false",
		"plain words":            "plain words",
		`{"cut": "off`:           `{"cut": "off`,
		`{"a":1} and then`:       `{"a":1} and then`,
		`{}`:                     `{}`,
		`["a"]`:                  `["a"]`,
		`{"<b>":"<script>x\ny"}`: "<b>: <script>x\ny",
	} {
		if got := Readable(text); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", text, got, want)
		}
	}
	deep := strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)
	if got := Readable(deep); got != deep {
		t.Error("a text that is too deep was changed")
	}
}

func FuzzReadable(f *testing.F) {
	f.Add(`{"a":[{"b":null}],"c":{"d":1e99}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if got := Readable(text); !json.Valid([]byte(strings.TrimSpace(text))) && got != text {
			t.Errorf("%q is not JSON and became %q", text, got)
		}
	})
}
