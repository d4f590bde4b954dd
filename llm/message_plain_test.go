package llm

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// longWay reads a message without plainMessage, which does not know the key that is put in.
func longWay(b string) (m Message, err error) {
	b = strings.TrimLeft(b, " \t\r\n")
	err = json.Unmarshal([]byte(strings.Replace(b, "{", `{"tool_failed":false,`, 1)), &m)
	return m, err
}

// agree fails where the short way reads something that the long way reads differently.
func agree(t *testing.T, in string) (short bool) {
	t.Helper()
	m, ok := plainMessage([]byte(in))
	if !ok {
		return false
	}
	want, err := longWay(in)
	if err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%q: %+v, want %+v %v", in, m, want, err)
	}
	return true
}

func TestPlainMessage(t *testing.T) {
	t.Parallel()
	for in, short := range map[string]bool{
		`{"role":"user","content":"hi"}`: true, ` { "content" : "a\n\"b\"\\ \/\t" , "role" : "system" } `: true, `{"role":"assistant","content":""}`: true,
		`{"role":"user"}`: true, `{"role":"user","content":"ünïcode ✓"}`: true,
		`{"role":"user","content":"\u00e9"}`: false, `{"role":"user","content":"a","content":"b"}`: false, `{"Role":"user","content":"x"}`: false,
		`{"role":"tool","content":"x"}`: false, `{"role":"developer","content":"x"}`: false, `{"role":"user","content":null}`: false, `{"role":"user","content":["x"]}`: false,
		`{"role":"user","content":"x","name":"y"}`: false, "{\"role\":\"user\",\"content\":\"a\x01\"}": false, "{\"role\":\"user\",\"content\":\"\xff\"}": false,
		`{"role":"user","content":"x"} {}`: false, `{"role":"user","content":"x\"}`: false, `{"role":"user","content":"\q"}`: false, `{}`: false, ``: false, `{"role":"user",}`: false, `{"role":"user","content":"x\`: false,
	} {
		if got := agree(t, in); got != short {
			t.Errorf("%q: the short way: %v", in, got)
		}
	}
}

func FuzzPlainMessage(f *testing.F) {
	f.Add(`{"role":"user","content":"a\nb"}`)
	f.Add(`{"content":"\\","role":"system"}`)
	f.Fuzz(func(t *testing.T, in string) { agree(t, in) })
}
