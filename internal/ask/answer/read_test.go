package answer

import (
	"encoding/json"
	"strings"
	"testing"
)

// The schemas of the table below, by name.
const (
	object   = `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	texts    = `{"type":"array","items":{"type":"string"}}`
	anything = `{}`
	mixed    = `{"type":"object","properties":{"n":{"type":"number"},"i":{"type":"integer"},"ok":{"type":"boolean"},"s":{"type":"string"},"o":{"type":"object"},"e":{"enum":[1,2,"x"]},"m":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`
)

func mustCompile(t testing.TB, schema string) *Schema {
	t.Helper()
	s, err := Compile(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type readCase struct {
	name, schema, in string
	want             string // the value; "" for an error
	how              How
	err              string // part of the error; "cut" for a truncated answer
}

func nativeCases() []readCase {
	return []readCase{
		{"object", object, `{"a":1,"b":"x"}`, `{"a":1,"b":"x"}`, native, ""},
		{"white space around", object, "\r\n {\"a\":1}\t\n", `{"a":1}`, native, ""},
		{"white space inside is kept", object, `{ "a" : 1 }`, `{ "a" : 1 }`, native, ""},
		{"escapes are kept", object, `{"a":1,"b":"\u0041\n"}`, `{"a":1,"b":"\u0041\n"}`, native, ""},
		{"array", texts, `["a","b"]`, `["a","b"]`, native, ""},
		{"string", `{"type":"string"}`, `"yes"`, `"yes"`, native, ""},
		{"number", `{"type":"number"}`, ` 12.5 `, `12.5`, native, ""},
		{"null", `{"type":"null"}`, `null`, `null`, native, ""},
		{"a whole float is an integer", object, `{"a":1.0}`, `{"a":1.0}`, native, ""},
		{"anything", anything, `[{"x":null}]`, `[{"x":null}]`, native, ""},
		{"markup in a string", object, `{"a":1,"b":"<think>` + "```" + `</think>"}`, `{"a":1,"b":"<think>` + "```" + `</think>"}`, native, ""},
		{"schema true", `true`, `{}`, `{}`, native, ""},
	}
}

func tolerantCases() []readCase {
	f := "```"
	return []readCase{
		{"byte order mark", object, "\ufeff{\"a\":1}", `{"a":1}`, Tolerant, ""},
		{"fence", object, f + "json\n{\"a\":1}\n" + f, `{"a":1}`, Tolerant, ""},
		{"fence without a tag", object, f + "\n{\"a\":1}\n" + f, `{"a":1}`, Tolerant, ""},
		{"fence with another tag", object, f + "python\n{'a': 1}\n" + f, `{"a":1}`, Tolerant, ""},
		{"fence on one line", object, f + "json {\"a\":1} " + f, `{"a":1}`, Tolerant, ""},
		{"long fence", object, "````json\n{\"a\":1}\n````", `{"a":1}`, Tolerant, ""},
		{"fence that never closes", object, f + "json\n{\"a\":1}", `{"a":1}`, Tolerant, ""},
		{"two fences, the last that fits", object, f + "\n{\"a\":1}\n" + f + "\nno:\n" + f + "\n{\"a\":2}\n" + f, `{"a":2}`, Tolerant, ""},
		{"two fences, only the first fits", object, f + "\n{\"a\":1}\n" + f + "\n" + f + "\n{\"z\":2}\n" + f, `{"a":1}`, Tolerant, ""},
		{"fence before a bare value", object, f + "\n{\"a\":1}\n" + f + "\nsuch as {\"a\":2}", `{"a":1}`, Tolerant, ""},
		{"fence inside a string", object, f + "\n{\"a\":1,\"b\":\"" + f + "x" + f + "\",}\n" + f, `{"a":1,"b":"` + f + "x" + f + `"}`, Tolerant, ""},
		{"prose around", object, `Sure! Here it is: {"a":1}. Anything else?`, `{"a":1}`, Tolerant, ""},
		{"prose with braces", object, `In {curly} style {of mine}: {"a":1}`, `{"a":1}`, Tolerant, ""},
		{"prose with a stray quote", object, `{"oops} then {"a":1}`, `{"a":1}`, Tolerant, ""},
		{"prose with a footnote", object, `As said [1], {"a":1} [2]`, `{"a":1}`, Tolerant, ""},
		{"inline code", object, "The answer is `{\"a\":1}`.", `{"a":1}`, Tolerant, ""},
		{"several values, the last that fits", object, `{"a":1}{"a":2} {"b":"x"}`, `{"a":2}`, Tolerant, ""},
		{"a list of lines", object, "{\"a\":1}\n{\"a\":2}\n{\"a\":3}", `{"a":3}`, Tolerant, ""},
		{"think", object, "<think>maybe {\"a\":9}?</think>{\"a\":1}", `{"a":1}`, Tolerant, ""},
		{"think afterwards", object, "{\"a\":1}<think>or {\"a\":9}</think>", `{"a":1}`, Tolerant, ""},
		{"thinking", object, "<thinking>\n{\"a\":9}\n</thinking>\n{\"a\":1}", `{"a":1}`, Tolerant, ""},
		{"reasoning in capitals", object, "<REASONING>{\"a\":9}</Reasoning> {\"a\":1}", `{"a":1}`, Tolerant, ""},
		{"two thoughts", object, "<think>{\"a\":8}</think> <think>{\"a\":9}</think> {\"a\":1}", `{"a":1}`, Tolerant, ""},
		{"a thought with another tag in it", object, "<think>x</thinking>{\"a\":9}</think>{\"a\":1}", `{"a":1}`, Tolerant, ""},
		{"a thought that began in the prompt", object, "so {\"a\": it \"is\n</think>\n{\"a\":1}", `{"a":1}`, Tolerant, ""},
		{"a thought's end inside the answer", object, `{"a":1,"b":"</think>",}`, `{"a":1,"b":"</think>"}`, Tolerant, ""},
		{"other tags", object, `<answer>{"a":1}</answer>`, `{"a":1}`, Tolerant, ""},
		{"trailing comma in an object", object, `{"a":1,}`, `{"a":1}`, Tolerant, ""},
		{"trailing comma in an array", texts, `["a","b",]`, `["a","b"]`, Tolerant, ""},
		{"single quotes", object, `{'a':1,'b':'x'}`, `{"a":1,"b":"x"}`, Tolerant, ""},
		{"an apostrophe in single quotes", object, `{'a':1,'b':'it's "so"'}`, `{"a":1,"b":"it's \"so\""}`, Tolerant, ""},
		{"an escaped quote in single quotes", object, `{'a':1,'b':'it\'s'}`, `{"a":1,"b":"it's"}`, Tolerant, ""},
		{"curly quotes", object, `{“a”:1,“b”:“x”}`, `{"a":1,"b":"x"}`, Tolerant, ""},
		{"curly quotes in straight ones", object, `{"a":1,"b":"“x”",}`, `{"a":1,"b":"“x”"}`, Tolerant, ""},
		{"curly single quotes", object, `{‘a’:1,‘b’:‘it’s’}`, `{"a":1,"b":"it’s"}`, Tolerant, ""},
		{"bare keys", object, `{a:1, b:"x"}`, `{"a":1,"b":"x"}`, Tolerant, ""},
		{"odd bare keys", anything, `{$ref-1:1, ключ:2, 3:4}`, `{"$ref-1":1,"ключ":2,"3":4}`, Tolerant, ""},
		{"line comments", object, "{\"a\":1, // one\n\"b\":\"x\" # two\n}", `{"a":1,"b":"x"}`, Tolerant, ""},
		{"block comments", object, `{/* a */"a"/* is */:/* one */1/**/}`, `{"a":1}`, Tolerant, ""},
		{"no comment in a string", object, `{"a":1,"b":"http://x#y /* z */",}`, `{"a":1,"b":"http://x#y /* z */"}`, Tolerant, ""},
		{"Python's words", anything, `{"x":True,"y":False,"z":None}`, `{"x":true,"y":false,"z":null}`, Tolerant, ""},
		{"raw line breaks and tabs", object, "{\"a\":1,\"b\":\"x\n\ty\r\"}", `{"a":1,"b":"x\n\ty\r"}`, Tolerant, ""},
		{"raw control letters", object, "{\"a\":1,\"b\":\"\x01\"}", `{"a":1,"b":"\u0001"}`, Tolerant, ""},
		{"unknown escapes", object, `{"a":1,"b":"\d\_\*"}`, `{"a":1,"b":"\\d\\_\\*"}`, Tolerant, ""},
		{"escapes of letters", object, `{"a":1,"b":"\u00e9\ud83d\ude00\ud800",}`, `{"a":1,"b":"é😀�"}`, Tolerant, ""},
		{"numbers without a digit", anything, `[+1, .5, 5., -0.5e+3, 1E2]`, `[1,0.5,5,-0.5e+3,1e2]`, Tolerant, ""},
		{"not UTF-8", object, "{\"a\":1,\"b\":\"\xff\"}", "{\"a\":1,\"b\":\"\ufffd\"}", Tolerant, ""},
		{"no-break spaces", object, "{\u00a0\"a\":\u00a01}", `{"a":1}`, Tolerant, ""},
		{"JSON in a string", object, `"{\"a\":1}"`, `{"a":1}`, Tolerant, ""},
		{"tolerable JSON in a string", object, `"Here: {'a':1,}"`, `{"a":1}`, Tolerant, ""},
		{"JSON in a string in a property", mixed, `{"o":"{\"x\":1}"}`, `{"o":{"x":1}}`, Tolerant, ""},
		{"a number in a string", object, `{"a":"12"}`, `{"a":12}`, Tolerant, ""},
		{"numbers in strings, deep", `{"type":"array","items":` + mixed + `}`, `[{"n":"1.50"},{"i":"-3"}]`, `[{"n":1.50},{"i":-3}]`, Tolerant, ""},
		{"booleans in strings", mixed, `{"ok":"true"}`, `{"ok":true}`, Tolerant, ""},
		{"a number in a string of alternatives", mixed, `{"m":"7"}`, `{"m":7}`, Tolerant, ""},
		{"an allowed number in a string", mixed, `{"e":"2"}`, `{"e":2}`, Tolerant, ""},
		{"the last bracket before a fence's end", object, f + "json\n{\"a\":1\n" + f, `{"a":1}`, Tolerant, ""},
		{"all brackets before a fence's end", anything, f + "json\n{\"x\":[1,{\"y\":2\n" + f, `{"x":[1,{"y":2}]}`, Tolerant, ""},
		{"the last bracket, when all properties are there", object, `{"a":1,"b":"x"`, `{"a":1,"b":"x"}`, Tolerant, ""},
		{"bare word", `{"enum":["yes","no"]}`, "yes\n", `"yes"`, Tolerant, ""},
		{"bold word", `{"enum":["yes","no"]}`, "**no**", `"no"`, Tolerant, ""},
		{"word in backticks", `{"const":"yes"}`, "`yes`", `"yes"`, Tolerant, ""},
		{"word in a fence", `{"type":"string"}`, f + "text\nyes\n" + f, `"yes"`, Tolerant, ""},
		{"word after a thought", `{"type":"string"}`, "<think>hm {</think>\nIt's so.", `"It's so."`, Tolerant, ""},
		{"word in single quotes", `{"type":"string"}`, "'yes'", `"yes"`, Tolerant, ""},
		{"Python's word", `{"type":["boolean","null"]}`, "True", `true`, Tolerant, ""},
		{"bare number", `{"type":"number"}`, "+5.", `5`, Tolerant, ""},
		{"number in a string, alone", `{"type":"number"}`, `"42"`, `42`, Tolerant, ""},
	}
}

func failingCases() []readCase {
	return []readCase{
		{"nothing", object, "", "", "", "expected a JSON value, found none"},
		{"only prose", object, "I would rather not.", "", "", "expected a JSON value, found none"},
		{"cut in a string", object, `{"a":1,"b":"he`, "", "", "cut"},
		{"cut after a comma", object, `{"a":1,`, "", "", "cut"},
		{"cut after a colon", object, `{"a":`, "", "", "cut"},
		{"cut in a number", object, `{"b":"x","a":1`, "", "", "cut"},
		{"cut in a word", anything, `{"x":tr`, "", "", "cut"},
		{"cut in an escape", object, `{"a":1,"b":"\u00`, "", "", "cut"},
		{"cut in an array", texts, `["a","b"`, "", "", "cut"},
		{"cut where a property may be missing", `{"properties":{"a":{},"b":{}}}`, `{"a":"x"`, "", "", "cut"},
		{"cut in a fence", object, "```json\n{\"a\":1,", "", "", "cut"},
		{"cut, with a whole part", anything, `{"x":{"y":1},"z":[`, "", "", "cut"},
		{"cut in a comment", object, `{"a":1 /* so`, "", "", "cut"},
		{"cut in a thought", object, `<think>perhaps {"a":1}`, "", "", "cut"},
		{"cut in a word of its own", `{"type":"string"}`, `"hel`, "", "", "cut"},
		{"NaN", anything, `{"x":NaN}`, "", "", `expected a value, found "NaN"`},
		{"Infinity", anything, `[-Infinity]`, "", "", `expected a number`},
		{"an ellipsis", texts, `["a", ...]`, "", "", `expected a number, found "..."`},
		{"a missing comma", object, `{"a":1 "b":"x"}`, "", "", `expected , or }, found "\"b\""`},
		{"two commas", texts, `["a",,"b"]`, "", "", `expected a value, found ","`},
		{"a missing value", object, `{"a":}`, "", "", `expected a value, found "}"`},
		{"a number with a unit", object, `{"a":12px}`, "", "", `expected a number, found "12px"`},
		{"a number with zeros before", object, `{"a":007}`, "", "", `expected a number`},
		{"a part is not an answer", texts, `{"x": ["a"], "y": oops}`, "", "", `not valid JSON: expected a value, found "oops"`},
		{"a part after the mistake is not an answer", texts, `{"x": "a", "y": oops, "z": ["a"]}`, "", "", `not valid JSON`},
		{"wrong type", object, `{"a":"one"}`, "", "", `a: expected integer, found the string "one"`},
		{"wrong type, deep", `{"type":"array","items":` + object + `}`, `[{"a":1},{"a":null}]`, "", "", `[1].a: expected integer, found null`},
		{"missing property", object, `{"b":"x"}`, "", "", `the answer: expected the property "a", found none`},
		{"another property", object, `{"a":1,"c":2}`, "", "", `expected no other properties, found "c"`},
		{"not allowed", mixed, `{"e":3}`, "", "", `e: expected one of 1, 2, "x", found the number 3`},
		{"alternatives", mixed, `{"m":"x"}`, "", "", `m: expected integer or null, found the string "x"`},
		{"the nearest alternative", `{"anyOf":[{"type":"string"},` + object + `]}`, `{"a":true}`, "", "", `a: expected integer, found true`},
		{"not one of", `{"oneOf":[{"type":"number"},{"type":"integer"}]}`, `1`, "", "", `expected exactly one of the allowed forms`},
		{"limits", `{"properties":{"x":{"minimum":5},"y":{"maxLength":2},"z":{"minItems":1}}}`, `{"x":1,"y":"abc","z":[]}`, "", "",
			`x: expected at least 5, found the number 1; y: expected at most 2 letters, found the string "abc"; z: expected at least 1 items, found an array of 0`},
		{"not a number in a string", object, `{"a":"12 apples"}`, "", "", `a: expected integer, found the string "12 apples"`},
		{"a fraction is no integer", object, `{"a":"1.5"}`, "", "", `a: expected integer, found the string "1.5"`},
		{"a number that would choke", `{"type":"integer"}`, `1e999999999`, "", "", "far out of range"},
		{"a fraction that would choke", `{"minimum":0}`, `[1e-999999999]`, "", "", "far out of range"},
		{"wrong word", `{"enum":["yes","no"]}`, "Maybe", "", "", `expected one of "yes", "no", found the string "Maybe"`},
		{"empty word", `{"type":"string"}`, " ", "", "", "found nothing"},
		{"too deep", anything, strings.Repeat("[", 300) + "1,", "", "", "nested more than 64 deep"},
		{"too deep, but JSON", anything, strings.Repeat("[", 65) + strings.Repeat("]", 65), "", "", "nested at most 64 deep"},
		{"a string where an object is wanted", object, `"just words"`, "", "", `the answer: expected object, found the string "just words"`},
		{"nothing fits", `false`, `{}`, "", "", "expected nothing here"},
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	cases := append(append(nativeCases(), tolerantCases()...), failingCases()...)
	t.Logf("%d cases", len(cases))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := mustCompile(t, c.schema)
			got, how, err := s.Read(c.in)
			if c.want != "" {
				if err != nil || string(got) != c.want || how != c.how {
					t.Fatalf("read %s (%s), %v, want %s (%s)", got, how, err, c.want, c.how)
				}
				again, how, err := s.Read(string(got))
				if err != nil || how != native || string(again) != string(got) {
					t.Fatalf("read again it is %s (%s), %v", again, how, err)
				}
				return
			}
			var e *Error
			if e, _ = err.(*Error); e == nil {
				t.Fatalf("read %s (%s), want an error", got, how)
			}
			if e.Truncated != (c.err == "cut") || !strings.Contains(e.Error(), c.err) {
				t.Fatalf("error is %v (truncated %v), want %s", e, e.Truncated, c.err)
			}
		})
	}
}
