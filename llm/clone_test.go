package llm

import (
	"reflect"
	"testing"
)

// TestCloneSharesNothing fills every field of a request, and wants a clone that is equal and has no memory in common with
// it: a field that is added to Request is copied too.
func TestCloneSharesNothing(t *testing.T) {
	t.Parallel()
	var r Request
	fill(reflect.ValueOf(&r).Elem())
	c := r.Clone()
	if !reflect.DeepEqual(&r, c) {
		t.Errorf("a clone is %+v, want %+v", c, r)
	}
	apart(t, "Request", reflect.ValueOf(&r).Elem(), reflect.ValueOf(c).Elem())
	empty := (&Request{}).Clone()
	if !reflect.DeepEqual(empty, &Request{}) {
		t.Errorf("a clone of nothing is %+v", empty)
	}
}

// fill sets v to something that is not zero, with two of everything.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i))
		}
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*Response]() { // Begun is shared
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value)
		v.SetMapIndex(reflect.ValueOf("key"), value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Uint8:
		v.SetUint(1)
	default:
		v.SetInt(1)
	}
}

// apart wants no memory in common.
func apart(t *testing.T, name string, a, b reflect.Value) {
	t.Helper()
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			apart(t, name+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	case reflect.Slice, reflect.Pointer, reflect.Map:
		if a.Kind() == reflect.Pointer && a.IsNil() {
			return
		}
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", name)
		}
		switch a.Kind() {
		case reflect.Slice:
			for i := range a.Len() {
				apart(t, name+"[]", a.Index(i), b.Index(i))
			}
		case reflect.Pointer:
			apart(t, name, a.Elem(), b.Elem())
		default:
			for _, k := range a.MapKeys() {
				apart(t, name+"[key]", a.MapIndex(k), b.MapIndex(k))
			}
		}
	default:
	}
}
