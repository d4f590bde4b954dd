package worlds_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"

	"parley/worlds"
)

// TestExamplesShowDefaults checks that the params that init writes have their default values, except those that a first
// plan needs to be different.
func TestExamplesShowDefaults(t *testing.T) {
	t.Parallel()
	otherwise := []string{ // a first run is to be short, and to show what there is
		"diplomacy.max_year", "diplomacy.rounds", "evolve.preset", "evolve.problems.validation", "rollout.group", "rollout.max_steps", "scenario.folder", "task.tasks",
	}
	for _, k := range worlds.Standard() {
		var plan struct{ Params map[string]any }
		if err := yaml.Unmarshal([]byte(k.Example), &plan); err != nil {
			t.Fatal(k.Name, err)
		}
		b, err := json.Marshal(k.Defaults().Pointer())
		if err != nil {
			t.Fatal(k.Name, err)
		}
		var defaults map[string]any
		if err := json.Unmarshal(b, &defaults); err != nil {
			t.Fatal(k.Name, err)
		}
		for path, pair := range differing(k.Name, plan.Params, defaults) {
			if !slices.Contains(otherwise, path) {
				t.Errorf("%s: the example has %v, the default is %v", path, pair[0], pair[1])
			}
		}
	}
}

// differing returns the keys that two trees both have with different values.
func differing(path string, a, b any) map[string][2]any {
	one, isMap := a.(map[string]any)
	other, both := b.(map[string]any)
	out := map[string][2]any{}
	if isMap && both {
		for _, key := range slices.Sorted(maps.Keys(one)) {
			if value, ok := other[key]; ok {
				maps.Copy(out, differing(path+"."+key, one[key], value))
			}
		}
		return out
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	var left, right any
	_ = json.Unmarshal(x, &left)
	_ = json.Unmarshal(y, &right)
	if !reflect.DeepEqual(left, right) && fmt.Sprint(left) != fmt.Sprint(right) {
		out[path] = [2]any{string(x), string(y)}
	}
	return out
}
