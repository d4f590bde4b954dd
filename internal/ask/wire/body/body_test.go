package body

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/llm"
)

func TestString(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", `"\`, "\n\t\r\x00\x1f\x7f", "é漢𝄞\u2028", "\xff\xc0x", "<a&b>", strings.Repeat("x\\", 300)} {
		checkString(t, s)
	}
}

func FuzzString(f *testing.F) {
	f.Add("a\"b\\c\x00\xff\u2028")
	f.Fuzz(func(t *testing.T, s string) { checkString(t, s) })
}

func checkString(t *testing.T, s string) {
	t.Helper()
	b := String(nil, s)
	var got string
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatalf("%q became %s: %v", s, b, err)
	}
	want := s
	if !utf8.ValidString(s) {
		j, _ := json.Marshal(s)
		json.Unmarshal(j, &want)
	}
	if got != want || !Valid(b) {
		t.Errorf("%q became %q", s, got)
	}
	if after := Text([]byte("1"), s); string(after) != "1"+string(b) {
		t.Errorf("%q after a digit became %s", s, after)
	}
}

func TestCommas(t *testing.T) {
	t.Parallel()
	b := Open(nil, '{')
	b = Str(b, "s", "{[,:")
	b = Int(b, "i", -3)
	b = Float(b, "f", 0.25)
	b = Float(b, "nan", math.NaN())
	b = Bool(b, "b", true)
	b = Raw(b, "r", []byte(`[1]`))
	b = Strings(b, "l", []string{"a", ","})
	b = Open(Key(b, "o"), '{')
	b = append(b, '}', '}')
	const want = `{"s":"{[,:","i":-3,"f":0.25,"b":true,"r":[1],"l":["a",","],"o":{}}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestExtra(t *testing.T) {
	t.Parallel()
	req := &llm.Request{Extra: map[string]json.RawMessage{"b": json.RawMessage(`{"x":1}`), "a": json.RawMessage("2")}}
	b, err := Extra([]byte(`{"m":1`), req, "model")
	if err != nil || string(b) != `{"m":1,"a":2,"b":{"x":1}` {
		t.Errorf("got %s, %v", b, err)
	}
	for k, v := range map[string]string{"model": "1", "x": "nonsense", "y": "", "z": "1,\"q\":2"} {
		if _, err := Extra(nil, &llm.Request{Extra: map[string]json.RawMessage{k: json.RawMessage(v)}}, "model"); err == nil {
			t.Errorf("%s: %s was taken", k, v)
		}
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"1", " -0.5e+3 ", `"a\u00e9\n"`, "null", "true", "false", "[]", "{}", `[1,{"a":[2]}]`, `{"a":1 , "b":"x"}`,
		"", " ", "01", "1.", "-", "1e", "tru", "[1,]", "[,1]", `{"a"}`, `{"a":}`, `{a:1}`, `"\x"`, `"\u12g4"`, "\"\n\"", "1 2", "[1", `"abc`, `{"a":1`, "nul", "+1", ".5", "[1}",
	} {
		if got, want := Valid([]byte(s)), json.Valid([]byte(s)); got != want {
			t.Errorf("Valid(%q) = %v, want %v", s, got, want)
		}
	}
	if Valid([]byte(strings.Repeat("[", 1_000_000))) {
		t.Error("a million brackets are valid")
	}
}

func FuzzValid(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5e3,"x\u0041",null,true]}`))
	f.Add([]byte(`[01]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := Valid(b), json.Valid(b); got != want && len(b) < maxDepth {
			t.Errorf("Valid(%q) = %v, want %v", b, got, want)
		}
		Members(b, func(k, v []byte) bool { return true })
		Elements(b, func(v []byte) bool { return true })
		Strict(b)
		if out, ok := AppendClosed(nil, b); ok && Valid(b) && !json.Valid(out) {
			t.Errorf("AppendClosed(%q) = %q", b, out)
		}
	})
}

const place = `{"type":"object","properties":{"city":{"type":"string"},"tags":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"additionalProperties":false}}},"required":["city","tags"],"additionalProperties":false}`

func TestStrict(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		place: true,
		`{"type":"object","properties":{},"additionalProperties":false}`: true,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/x"}]}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"string","enum":["p"]}}}`: true,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                                                                              false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                                                          false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":2}},"required":["a"],"additionalProperties":false}`:                                                               false,
		`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`:                                                                             false,
		`{"type":"object","properties":{"a":{"oneOf":[{"type":"null"}]}},"required":["a"],"additionalProperties":false}`:                                                                   false,
		`{"type":"array","items":{"type":"string"}}`:                                                                                                                                       false,
		`{}`: false, `true`: false, `nonsense`: false, ``: false,
	} {
		if got := Strict([]byte(s)); got != want {
			t.Errorf("Strict(%s) = %v, want %v", s, got, want)
		}
	}
}

func TestAppendClosed(t *testing.T) {
	t.Parallel()
	in := `{"type":"object","title":"T","properties":{"a":{"type":"string","minLength":2,"pattern":"x"},"b":{"oneOf":[{"type":"null"},{"type":"object","properties":{"c":{"type":"integer","maximum":9}}}]}},"required":["a"]}`
	want := `{"type":"object","title":"T","properties":{"a":{"type":"string"},"b":{"anyOf":[{"type":"null"},{"type":"object","properties":{"c":{"type":"integer"}},"additionalProperties":false}]}},"required":["a"],"additionalProperties":false}`
	if got, ok := AppendClosed(nil, []byte(in)); !ok || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, ok, want)
	}
	for _, s := range []string{
		`{"type":"object"}`, `{"type":"object","properties":{},"additionalProperties":true}`,
		`{"type":"object","properties":{"a":{"not":{}}}}`, `{"type":"array","items":{"type":"object"}}`, `7`,
	} {
		if got, ok := AppendClosed(nil, []byte(s)); ok {
			t.Errorf("%s became %s", s, got)
		}
	}
}

func TestSchemaName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "answer", "ok_1-A": "ok_1-A", "a b/ç": "a_b___", strings.Repeat("x", 99): strings.Repeat("x", 64)} {
		if got := SchemaName(in); got != want {
			t.Errorf("SchemaName(%q) = %q, want %q", in, got, want)
		}
	}
}

func BenchmarkString(b *testing.B) {
	s := strings.Repeat("The quick brown fox jumps over the lazy dog. \"Quoted\"\n", 100)
	buf := make([]byte, 0, 2*len(s))
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		buf = String(buf[:0], s)
	}
}

func BenchmarkStrict(b *testing.B) {
	b.SetBytes(int64(len(place)))
	for b.Loop() {
		Strict([]byte(place))
	}
}
