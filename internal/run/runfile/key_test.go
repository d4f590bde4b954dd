package runfile

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"parley/llm"
)

// TestSettingsKey: the key depends on every setting of a request.
func TestSettingsKey(t *testing.T) {
	t.Parallel()
	var h contentHasher
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
