package planfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"parley/internal/kit/yamltree"
)

// Combinations lists every choice of one value for each param; the last param by name changes
// fastest. Without params it is one empty choice.
func (m *Matrix) Combinations() []map[string]any {
	all := []map[string]any{{}}
	for _, name := range slices.Sorted(maps.Keys(m.Params)) {
		var longer []map[string]any
		for _, before := range all {
			for _, v := range m.Params[name] {
				one := maps.Clone(before)
				one[name] = v
				longer = append(longer, one)
			}
		}
		all = longer
	}
	return all
}

// Variant is a variation with a combination of params.
type Variant struct {
	Name string // of the variation; empty: there are none
	Variation
	Change map[string]any // the combination
}

// Variants lists every variation with every combination.
func (m *Matrix) Variants() (all []Variant) {
	combinations := m.Combinations()
	for _, name := range m.VariationNames() {
		for _, change := range combinations {
			all = append(all, Variant{name, m.Variations[name], change})
		}
	}
	return all
}

// Place returns where the matrix has the params of a variant, and which values of its own params that has, by their indexes.
func (m *Matrix) Place(v Variant) (at yamltree.Path, tried map[string]int) {
	at = yamltree.Path{"plan", "matrix", "params"}
	if v.Name != "" {
		at = yamltree.Path{"plan", "matrix", "variations", v.Name, "params"}
	}
	tried = map[string]int{}
	for name, value := range v.Change {
		tried[name] = slices.IndexFunc(m.Params[name], func(one any) bool { return reflect.DeepEqual(one, value) })
	}
	return at, tried
}

// CellLabel is Label without the params with one value, which do not distinguish cells.
func (m *Matrix) CellLabel(change map[string]any) string {
	change = maps.Clone(change)
	maps.DeleteFunc(change, func(name string, _ any) bool { return len(m.Params[name]) < 2 })
	return label(change)
}

// label describes a combination, as "messages=4, mode=standard".
func label(change map[string]any) string {
	parts := make([]string, 0, len(change))
	for _, name := range slices.Sorted(maps.Keys(change)) {
		b, err := json.Marshal(change[name])
		if err != nil {
			b = fmt.Append(nil, change[name]) // not reached: the value is from JSON
		}
		parts = append(parts, name+"="+strings.Trim(string(b), `"`))
	}
	return strings.Join(parts, ", ")
}

// matrixSet sets a param, or a value at a path within one, in a copy of that param.
func matrixSet(values map[string]any, s *Shape, name string, value any) {
	head, rest, dotted := strings.Cut(name, ".")
	if !dotted || s == nil || s.Free != "" || s.Key(name) != nil {
		values[name] = value
		return
	}
	inner, _ := values[head].(map[string]any)
	if inner = maps.Clone(inner); inner == nil {
		inner = map[string]any{}
	}
	matrixSet(inner, s.Under(head), rest, value)
	values[head] = inner
}

// merge returns base with over on top: mappings are merged by key, other values replaced. It
// changes neither.
func merge(base, over any) any {
	b, ok := base.(map[string]any)
	o, ok2 := over.(map[string]any)
	if !ok || !ok2 {
		return over
	}
	out := maps.Clone(b)
	if out == nil {
		out = map[string]any{}
	}
	for name, v := range o {
		if old, there := out[name]; there {
			v = merge(old, v)
		}
		out[name] = v
	}
	return out
}

// VariationNames lists the names of the variations, sorted. Without variations it is one empty name.
func (m *Matrix) VariationNames() []string {
	if len(m.Variations) == 0 {
		return []string{""}
	}
	return slices.Sorted(maps.Keys(m.Variations))
}
