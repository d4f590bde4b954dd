package results

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReadable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"public_statement":"We stay.","messages":[{"to":"coop","text":"Wait."}],"coalition":{"members":[],"purpose":""}}`: "public statement: We stay.\nmessages:\n  - to: coop · text: Wait.",
		`{"b":1.50,"a":true,"z":["x","y"],"no":null,"f":false}`:                                                             "b: 1.50\na: true\nz: x, y\nf: false",
		`{"l":[{"a":"one\ntwo","b":1},{"a":[1,2]}],"m":["a, b","c"],"n":[["x"],[]]}`:                                        "l:\n  - a: one\ntwo\n    b: 1\n  - a: 1, 2\nm:\n  - a, b\n  - c\nn:\n  - - x",
		`{"l":[{"to":"coop","text":"` + strings.Repeat("long ", 30) + `"}]}`:                                                "l:\n  - to: coop\n    text: " + strings.Repeat("long ", 30),
		`{"l":[{"say":"no · vote: yes"}],"m":["a","b: c"],"n":["x","- y"],"o":[{"k\nvote":1,"z":"a\rb"}]}`:                  "l:\n  - say: no · vote: yes\nm:\n  - a\n  - b: c\nn:\n  - x\n  - - y\no:\n  - k\nvote: 1\n    z: a\rb",
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
