package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/run/planfile"
	"parley/worlds"
)

// TestWorlds checks that the list has every kind, and that each kind has a page of details.
func TestWorlds(t *testing.T) {
	t.Parallel()
	sequential(t)
	all := parley(t, State{}, "worlds").want(t, exit.OK).stdout
	for _, k := range worlds.Standard() {
		if !strings.Contains(all, k.Name) || !strings.Contains(all, k.Doc) {
			t.Errorf("%s is not in the list:\n%s", k.Name, all)
		}
		one := parley(t, State{}, "worlds", k.Name).want(t, exit.OK).stdout
		known := describeKind(k)
		wants := []string{k.Doc, "seats", "parley init " + k.Name}
		wants = append(append(wants, known.Seats...), known.Bots...)
		for _, p := range known.Params {
			wants = append(wants, "  "+p.Name+": ", p.Doc)
		}
		for _, want := range wants {
			if !strings.Contains(one, want) {
				t.Errorf("%s: it does not say %q:\n%s", k.Name, want, one)
			}
		}
	}
}

func TestWorldsSlip(t *testing.T) {
	t.Parallel()
	parley(t, State{}, "worlds", "sekrets").want(t, exit.Misuse).wantErr(t, "did you mean secrets?")
}

func TestWorldsJSON(t *testing.T) {
	t.Parallel()
	var all []knownKind
	if err := json.Unmarshal([]byte(parley(t, State{}, "worlds", "--json").want(t, exit.OK).stdout), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != len(worlds.Standard()) {
		t.Errorf("%d kinds", len(all))
	}
	var one knownKind
	if err := json.Unmarshal([]byte(parley(t, State{}, "worlds", "secrets", "--json").want(t, exit.OK).stdout), &one); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(one.Params, func(p planfile.Param) bool { return p.Name == "messages" })
	if one.Name != "secrets" || len(one.Seats) != 2 || i < 0 || len(one.Params[i].Default) == 0 || len(one.Bots) == 0 {
		t.Errorf("%+v", one)
	}
}
