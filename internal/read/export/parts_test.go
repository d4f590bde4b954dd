package export

import (
	"reflect"
	"slices"
	"testing"

	"parley/internal/run/runfile"
	"parley/journal"
)

// TestParts: List and Spent agree with reading the whole run file, even while it is written.
func TestParts(t *testing.T) {
	t.Parallel()
	store := recorded(t, exportSample()...)
	r, err := runfile.OpenRead(store.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	whole := journal.InParts(struct{ journal.Journal }{store})
	for since := range 30 {
		got, err := r.Ends(t.Context(), since)
		want, err2 := whole.Ends(t.Context(), since)
		if err != nil || err2 != nil || !slices.Equal(got, want) || since == 0 && len(want) == 0 {
			t.Errorf("since %d: %v, %v; want %v, %v", since, got, err, want, err2)
		}
	}
	for from := range 6 {
		got, err := r.Planned(t.Context(), from, 2)
		want, err2 := whole.Planned(t.Context(), from, 2)
		if err != nil || err2 != nil || len(got) != len(want) {
			t.Fatalf("from %d: %v, %v; want %v, %v", from, got, err, want, err2)
		}
		for i := range want {
			if got[i].Episode != want[i].Episode || got[i].Stage != want[i].Stage || (got[i].Ended == nil) != (want[i].Ended == nil) || got[i].Spec.Deal != want[i].Spec.Deal {
				t.Errorf("%+v, want %+v", got[i], want[i])
			}
		}
	}
	for after := range 4 {
		begun, stages, err := r.Plan(t.Context(), after)
		_, want, err2 := whole.Plan(t.Context(), after)
		if err != nil || err2 != nil || (begun == nil) != (after > 0) || after == 0 && begun.Run != "00ff" || !reflect.DeepEqual(stages, want) && len(stages)+len(want) > 0 {
			t.Errorf("%+v %+v, want %+v: %v, %v", begun, stages, want, err, err2)
		}
	}
}
