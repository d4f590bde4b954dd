package text

import (
	"reflect"
	"slices"
	"strings"
)

// FieldNames lists the JSON names of a struct's fields, including those of embedded structs, in
// alphabetical order.
func FieldNames(v any) []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
