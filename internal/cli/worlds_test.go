package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/worlds"
)

// TestWorlds wants every kind in the list, with its line, and all about each by name.
func TestWorlds(t *testing.T) {
	t.Parallel()
	all := parley(t, State{}, "worlds").want(t, ExitOK).stdout
	for _, k := range worlds.Standard() {
		if !strings.Contains(all, k.Name) || !strings.Contains(all, k.Doc) {
			t.Errorf("%s is not in the list:\n%s", k.Name, all)
		}
		one := parley(t, State{}, "worlds", k.Name).want(t, ExitOK).stdout
		known := knowKind(k)
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

func TestWorldsOne(t *testing.T) {
	t.Parallel()
	golden(t, "worlds-secrets", parley(t, State{}, "worlds", "secrets").want(t, ExitOK).stdout)
	parley(t, State{}, "worlds", "sekrets").want(t, ExitUsage).wantErr(t, "did you mean secrets?")
}

func TestWorldsJSON(t *testing.T) {
	t.Parallel()
	var all []knownKind
	if err := json.Unmarshal([]byte(parley(t, State{}, "worlds", "--json").want(t, ExitOK).stdout), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != len(worlds.Standard()) {
		t.Errorf("%d kinds", len(all))
	}
	var one knownKind
	if err := json.Unmarshal([]byte(parley(t, State{}, "worlds", "secrets", "--json").want(t, ExitOK).stdout), &one); err != nil {
		t.Fatal(err)
	}
	if one.Name != "secrets" || len(one.Seats) != 2 || len(one.Params) == 0 || string(one.Params[1].Default) != "6" || len(one.Bots) != 3 {
		t.Errorf("%+v", one)
	}
}
