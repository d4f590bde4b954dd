package runfile

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/llm"
)

// TestEpisodeTexts: an episode's texts are found in any order, and forgotten texts make room for others.
func TestEpisodeTexts(t *testing.T) {
	t.Parallel()
	k := newKeys()
	var s episodeTexts
	for i := range maxEpisodeTexts {
		if !k.Remember(&s, strconv.Itoa(i), int64(i+1)) {
			t.Fatalf("text %d was not added", i)
		}
	}
	if k.Remember(&s, "one more", 1) {
		t.Errorf("more than %d texts were added", maxEpisodeTexts)
	}
	for _, text := range []int{0, 1, 2, 1, 127, 0, 64} {
		if id := s.Find(strconv.Itoa(text)); id != int64(text+1) {
			t.Errorf("text %d has id %d", text, id)
		}
	}
	if id := s.Find("unknown"); id != 0 {
		t.Errorf("an unknown text has id %d", id)
	}
	k.Drop(&s)
	if id := s.Find("0"); id != 0 || k.kept != 0 {
		t.Errorf("after Drop a text has id %d, and %d bytes are counted", id, k.kept)
	}
	var other episodeTexts
	large := strings.Repeat("x", maxTextBytes-textOverhead)
	if !k.Remember(&s, large, 1) || k.Remember(&other, "", 2) {
		t.Error("the limit on all episodes does not hold")
	}
	k.Drop(&s)
	if !k.Remember(&other, "", 2) {
		t.Error("forgotten texts still count")
	}
}

// TestRecall: texts are recalled once, for their own episode.
func TestRecall(t *testing.T) {
	t.Parallel()
	k := newKeys()
	k.Recall(7, "a", 1)
	k.Recall(7, "b", 2)
	k.Recall(8, "a", 3)
	seven := k.Recalled(7)
	if a, b := seven.Find("a"), seven.Find("b"); a != 1 || b != 2 {
		t.Errorf("the texts of episode 7 have ids %d and %d", a, b)
	}
	again, eight := k.Recalled(7), k.Recalled(8)
	if id := again.Find("a"); id != 0 {
		t.Errorf("a text was recalled twice, as %d", id)
	}
	if id := eight.Find("a"); id != 3 {
		t.Errorf("the text of episode 8 has id %d", id)
	}
}

// TestSettingsKey: the key depends on every setting of a request.
func TestSettingsKey(t *testing.T) {
	t.Parallel()
	var h keyHasher
	base := h.Settings(&llm.Request{})
	without := []string{
		"Messages", "Sample", "Prefix", "Session", "Order", // have columns
		"MaxCost", "Refers", "Begun", // are not stored
	}
	typ := reflect.TypeFor[llm.Request]()
	for i := range typ.NumField() {
		var q llm.Request
		f := reflect.ValueOf(&q).Elem().Field(i)
		switch f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Int, reflect.Int64:
			f.SetInt(1)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Map:
			q.Extra = map[string]json.RawMessage{"a": json.RawMessage("1")}
		default:
			t.Fatalf("%s has a kind that this test does not know", typ.Field(i).Name)
		}
		name := typ.Field(i).Name
		if changed := h.Settings(&q) != base; changed == slices.Contains(without, name) {
			t.Errorf("%s: the key depends on it: %v", name, changed)
		}
	}
}
