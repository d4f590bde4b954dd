package llm_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/llm"
)

// notInDigest are the fields that say how to serve a request and cannot change its answer.
func notInDigest() []string {
	return []string{"Headers", "Begun", "Prefix", "Session", "Order", "Deadline", "MaxCost", "Refers", "Fallbacks"}
}

// TestDigestOfEveryField changes every field of a request, however deep, and every
// element: each change must show in the digest, except those of notInDigest.
func TestDigestOfEveryField(t *testing.T) {
	t.Parallel()
	var req llm.Request
	n := 0
	fill(t, reflect.ValueOf(&req).Elem(), &n)
	base := req.Digest()
	seen := map[[32]byte]string{base: "no change"}
	changes := 0
	walk(reflect.ValueOf(&req).Elem(), "", func(path string) {
		changes++
		got := req.Digest()
		top := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[ ", r) })[0]
		if slices.Contains(notInDigest(), top) {
			if got != base {
				t.Errorf("%s changes the digest", path)
			}
			return
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%s gives the digest of %s", path, other)
		}
		seen[got] = path
	})
	if req.Digest() != base {
		t.Error("the walk did not put everything back")
	}
	if changes < 80 {
		t.Errorf("only %d changes were tried", changes)
	}
	for _, name := range notInDigest() {
		if _, ok := reflect.TypeFor[llm.Request]().FieldByName(name); !ok {
			t.Errorf("there is no field %s", name)
		}
	}
}

// fill sets v and everything in it to values that are all different.
func fill(t *testing.T, v reflect.Value, n *int) {
	*n++
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes(fmt.Appendf(nil, `{"k":%d}`, *n))
		return
	case v.Type() == reflect.TypeFor[[]byte]():
		v.SetBytes(fmt.Appendf(nil, "bytes %d", *n))
		return
	case v.Type() == reflect.TypeFor[*llm.Response](): // Begun: a response holds others of its kind
		v.Set(reflect.ValueOf(&llm.Response{Text: fmt.Sprint("text ", *n)}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field, n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, n)
			fill(t, value, n)
			v.SetMapIndex(key, value)
		}
	default:
		t.Fatalf("a field of type %s: teach this test about it", v.Type())
	}
}

// walk makes one change after another to v, calls visit, and takes the change back.
func walk(v reflect.Value, path string, visit func(path string)) {
	with := func(what string, to reflect.Value) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		v.Set(to.Convert(v.Type()))
		visit(path + what)
		v.Set(old)
	}
	zero := reflect.Zero(v.Type())
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		with("", reflect.ValueOf(`{"k":-1}`))
		with(" empty", zero)
		return
	case v.Type() == reflect.TypeFor[[]byte]():
		with("", reflect.ValueOf("other bytes"))
		with(" empty", zero)
		return
	}
	switch v.Kind() {
	case reflect.String:
		with("", reflect.ValueOf(v.String()+"!"))
		with(" empty", zero)
	case reflect.Bool:
		with("", zero)
	case reflect.Int, reflect.Int64:
		with("", reflect.ValueOf(v.Int()+1000))
		with(" negative", reflect.ValueOf(-v.Int()))
	case reflect.Float64:
		with("", reflect.ValueOf(v.Float()+1000))
	case reflect.Pointer:
		with(" nil", zero)
		if v.Type() != reflect.TypeFor[*llm.Response]() {
			walk(v.Elem(), path, visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			walk(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case reflect.Slice:
		with(" none", zero)
		with(" fewer", v.Slice(0, 1))
		swapped := reflect.MakeSlice(v.Type(), 2, 2)
		swapped.Index(0).Set(v.Index(1))
		swapped.Index(1).Set(v.Index(0))
		with(" swapped", swapped)
		for i := range v.Len() {
			walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case reflect.Map:
		with(" none", zero)
		walkMap(v, path, visit)
	}
}

func walkMap(v reflect.Value, path string, visit func(path string)) {
	for i, key := range v.MapKeys() {
		value := v.MapIndex(key)
		v.SetMapIndex(key, reflect.Value{})
		visit(fmt.Sprintf("%s fewer %d", path, i))
		v.SetMapIndex(key, reflect.ValueOf(`"other"`).Convert(v.Type().Elem()))
		visit(fmt.Sprintf("%s[%v]", path, key))
		v.SetMapIndex(key, value)
	}
}

// TestDigestIsPinned holds the digest of one request for ever: caches and run files
// depend on it. If this fails, the digest must be put back, not the test.
func TestDigestIsPinned(t *testing.T) {
	t.Parallel()
	half, k, seed := 0.5, 40, int64(-7)
	req := llm.Request{
		Model: "lab/any",
		Messages: []llm.Message{
			llm.System("be brief"),
			{Role: llm.RoleUser, Parts: []llm.Part{{Text: "what is this?"}, {Image: &llm.Image{MediaType: "image/png", Data: []byte{1, 2, 3}, Detail: "low"}}}},
			{Role: llm.RoleAssistant, Thoughts: []llm.Thought{{Text: "hm", ID: "t1", Signature: "sig", Opaque: "xyz"}}, ToolCalls: []llm.ToolCall{{ID: "c1", Name: "look", Arguments: `{"at":1}`}}},
			llm.ToolResult("c1", "a cat"),
		},
		Tools:      []llm.Tool{{Name: "look", Description: "look closer", Parameters: json.RawMessage(`{ "type" : "object" }`), Strict: true}},
		ToolChoice: "auto", OneTool: true,
		Schema: &llm.Schema{Name: "reply", Description: "the reply", JSON: json.RawMessage(`{"type":"object"}`)},
		Effort: llm.EffortLow, MaxTokens: 1000, Temperature: &half, TopP: &half, TopK: &k, FrequencyPenalty: &half, PresencePenalty: &half,
		Seed: &seed, Stop: []string{"END"}, Logprobs: true, TopLogprobs: 3, TokenIDs: true, Tier: "flex", Sample: 2,
		Extra: map[string]json.RawMessage{"b": json.RawMessage(`[1, 2]`), "a": json.RawMessage(`true`)},
	}
	pin(t, "full", &req, "bd18ae3dbb866a886e30d23953fdc1da9bee46c959614937e68504343bd74b54")
	pin(t, "empty", &llm.Request{}, "c90232586b801f9558a76f2f963eccd831d9fe6775e4c8f1446b2331aa2132f2")
}

func pin(t *testing.T, name string, req *llm.Request, want string) {
	t.Helper()
	sum := req.Digest()
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the digest of the %s request is %s, want %s", name, got, want)
	}
}

// TestDigestIgnoresSpaceInJSON: a schema written over several lines is the same schema.
func TestDigestIgnoresSpaceInJSON(t *testing.T) {
	t.Parallel()
	with := func(j string) [32]byte {
		return (&llm.Request{Schema: &llm.Schema{JSON: json.RawMessage(j)}, Extra: map[string]json.RawMessage{"x": json.RawMessage(j)}}).Digest()
	}
	if with(`{"a":[1,2]}`) != with("{\n  \"a\": [1, 2]\n}") {
		t.Error("white space changes the digest")
	}
	if with(`{"a":" "}`) == with(`{"a":""}`) {
		t.Error("white space in a string does not change the digest")
	}
	if with(`{broken `) == with(`{broken`) {
		t.Error("text that is not JSON is not used unchanged")
	}
}

// TestDigestIsNotAmbiguous compares requests that are nearly alike: the same letters in
// neighbouring fields.
func TestDigestIsNotAmbiguous(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := genRequest(t, "a"), genRequest(t, "b")
		same := a.Digest() == b.Digest()
		if equal := reflect.DeepEqual(a, b); equal != same {
			t.Fatalf("equal is %v, equal digests %v:\n%+v\n%+v", equal, same, a, b)
		}
	})
}

// genRequest draws from so few requests that two are often equal or neighbours.
func genRequest(t *rapid.T, label string) *llm.Request {
	word := rapid.SampledFrom([]string{"", "x", "xx", "\x00", "\x02x"})
	draw := func(what string) string { return word.Draw(t, label+what) }
	few := rapid.IntRange(0, 2)
	r := &llm.Request{Model: draw("model"), ToolChoice: draw("choice"), Tier: draw("tier")}
	for range few.Draw(t, label+"messages") {
		m := llm.Message{Role: llm.Role(draw("role")), ToolCallID: draw("id")}
		for range few.Draw(t, label+"parts") {
			m.Parts = append(m.Parts, llm.Part{Text: draw("text")})
		}
		for range few.Draw(t, label+"calls") {
			m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: draw("call"), Name: draw("name"), Arguments: draw("arguments")})
		}
		r.Messages = append(r.Messages, m)
	}
	for range few.Draw(t, label+"stops") {
		r.Stop = append(r.Stop, draw("stop"))
	}
	return r
}

func FuzzDigestNeighbours(f *testing.F) {
	f.Add("ab", "c", "a", "bc")
	f.Add("", "x", "x", "")
	f.Fuzz(func(t *testing.T, a1, a2, b1, b2 string) {
		forms := []func(x, y string) *llm.Request{
			func(x, y string) *llm.Request { return &llm.Request{Model: x, ToolChoice: y} },
			func(x, y string) *llm.Request { return &llm.Request{Stop: []string{x, y}} },
			func(x, y string) *llm.Request {
				return &llm.Request{Messages: []llm.Message{{Parts: []llm.Part{{Text: x}, {Text: y}}}}}
			},
			func(x, y string) *llm.Request {
				return &llm.Request{Tools: []llm.Tool{{Name: x, Description: y}}}
			},
		}
		for i, form := range forms {
			if same := form(a1, a2).Digest() == form(b1, b2).Digest(); same != (a1 == b1 && a2 == b2) {
				t.Errorf("form %d: %q %q and %q %q: equal digests is %v", i, a1, a2, b1, b2, same)
			}
		}
	})
}
