// Part jsondiff finds the differences between two JSON values, for errors that name the key and both values.

package text

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Difference is a key under which two values differ, and both values.
type Difference struct {
	Key  string // as params.messages
	A, B json.RawMessage
}

// FirstJSONDifference returns the first difference between two values under key, or nil.
func FirstJSONDifference(key string, a, b any) *Difference {
	if all := JSONDifferences(key, a, b); len(all) > 0 {
		return &all[0]
	}
	return nil
}

// JSONDifferences returns the differences between two values under key. Values that JSON cannot hold differ from all others.
func JSONDifferences(key string, a, b any) []Difference {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	if errA == nil && errB == nil && bytes.Equal(x, y) {
		return nil
	}
	return within(key, x, y)
}

func within(key string, a, b json.RawMessage) (all []Difference) {
	var as, bs map[string]json.RawMessage
	if json.Unmarshal(a, &as) != nil || json.Unmarshal(b, &bs) != nil || as == nil || bs == nil {
		return []Difference{{key, a, b}}
	}
	keys := slices.Sorted(maps.Keys(as))
	for _, k := range slices.Sorted(maps.Keys(bs)) {
		if _, ok := as[k]; !ok {
			keys = append(keys, k)
		}
	}
	for _, k := range keys {
		if !bytes.Equal(as[k], bs[k]) {
			all = append(all, within(key+"."+k, as[k], bs[k])...)
		}
	}
	if len(all) == 0 {
		return []Difference{{key, a, b}} // the order of keys or white space
	}
	return all
}

// BriefJSON writes a value for an error, at most 80 characters of it.
func BriefJSON(v json.RawMessage) string {
	if len(v) == 0 || string(v) == "null" {
		return "not set"
	}
	return Excerpt(v, 80)
}
