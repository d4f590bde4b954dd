package seat

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/world"
)

const everything = `{"type":"object","properties":{
	"reason":{"type":"string","description":"why"},"count":{"type":"integer"},"share":{"type":["number","null"]},"sure":{"type":"boolean"},
	"vote":{"type":"string","enum":["yes","Yes",3]},"orders":{"type":"array","items":{"type":"string"}},"colors":{"type":"array","items":{"enum":["red","blue"]}},
	"who":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},
	"messages":{"type":"array","items":{"type":"object","properties":{"to":{"type":"string","enum":["a","b"]},"text":{"type":"string"}},"required":["to","text"]}}},
	"required":["reason","count","share","vote","orders","colors","who","messages"]}`

// TestFormAnswer: what is filled in becomes the answer, and what is missing or wrong has a problem beside its field.
func TestFormAnswer(t *testing.T) {
	t.Parallel()
	offer := &world.Offer{Field: "orders", Choices: []world.Choice{{Name: "Paris", At: "PAR", Options: []string{"A PAR H"}}}}
	f, ok := FormOf(json.RawMessage(everything), offer)
	if !ok || len(f.Fields) != 9 || len(f.Fields[5].Offered) != 1 {
		t.Fatalf("%+v %v", f, ok)
	}
	for _, c := range []struct {
		filled   map[string][]string
		want     string
		problems string // by key
	}{
		{map[string][]string{
			"f0": {"<b>\n"}, "f1": {" 12 "}, "f3": {"No"}, "f4": {"Yes"}, "f5": {"A PAR H", "", "x"}, "f6": {"blue", "red"}, "f7.0": {"Bo"},
			"f8.0.0": {"a"}, "f8.0.1": {"hi"}, "f8.2.0": {"b"}, "f8.2.1": {"you"},
		}, `{"reason":"<b>\n","count":12,"share":null,"sure":false,"vote":"Yes","orders":["A PAR H","x"],"colors":["blue","red"],"who":{"name":"Bo"},"messages":[{"to":"a","text":"hi"},{"to":"b","text":"you"}]}`, ""},
		{map[string][]string{"f1": {"1"}, "f4": {"3"}}, `{"reason":"","count":1,"share":null,"vote":3,"orders":[],"colors":[],"who":{"name":""},"messages":[]}`, ""},
		{map[string][]string{"f1": {"12x"}, "f2": {"null"}, "f3": {"perhaps"}, "f4": {""}, "f6": {"green"}, "f8.1.1": {"hi"}}, "", "f1 f2 f3 f4 f6 f8.1.0"},
		{map[string][]string{"f1": {`"5"`}, "f4": {"yes"}}, "", "f1"},
	} {
		got, problems := f.Answer(func(key string) []string { return c.filled[key] })
		for key := range strings.FieldsSeq(c.problems) {
			if problems[key] == "" {
				t.Errorf("%v: no problem at %s", c.filled, key)
			}
			delete(problems, key)
		}
		if len(problems) > 0 {
			t.Errorf("%v: %v", c.filled, problems)
		}
		if c.want != "" && !same(t, got, c.want) {
			t.Errorf("%v:\n%s\nwant\n%s", c.filled, got, c.want)
		}
	}
}

func same(t *testing.T, got json.RawMessage, want string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// TestForms: which schemas have a form.
func TestForms(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"string"}`: "f0", `{"type":"number"}`: "f0", `{"enum":["a","b"]}`: "f0", `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}`: "f0 b f1 a",
		`{}`: "", `true`: "", `[`: "", `{"type":"array","items":{"type":"string"}}`: "", `{"type":"object"}`: "", `{"type":"object","properties":{}}`: "",
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]}}}`: "", `{"type":"object","properties":{"a":{"$ref":"#/x"}}}`: "",
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"array","items":{"type":"string"}}}}}`:                         "",
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"object","properties":{"c":{"type":"string"}}}}}}}`: "",
	} {
		f, ok := FormOf(json.RawMessage(schema), nil)
		got := ""
		if ok {
			for _, one := range f.Fields {
				got += " " + strings.TrimSpace(one.Key+" "+one.Name)
			}
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, want %q", schema, got, want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(everything, "x")
	f.Add(`{"type":"string"}`, "12")
	f.Fuzz(func(t *testing.T, schema, text string) {
		form, ok := FormOf(json.RawMessage(schema), nil)
		if !ok {
			return
		}
		got, problems := form.Answer(func(string) []string { return []string{text, text} })
		if len(problems) == 0 && !json.Valid(got) {
			t.Errorf("not JSON: %s", got)
		}
	})
}
