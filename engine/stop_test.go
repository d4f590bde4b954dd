package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
	"parley/llm"
)

// TestNotFoundStops: where there is no such model, the run stops before the others at the
// table are paid for nothing, and goes on once it is put right.
func TestNotFoundStops(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, 0, 5)
	synctest.Test(t, func(t *testing.T) {
		j := &journal.Memory{}
		gone := &models{width: 3, pause: time.Second, fail: func(*llm.Request) error {
			return &llm.Error{Kind: llm.KindBadRequest, Status: 404, Message: "no such model"}
		}}
		res, err := Run(t.Context(), config(gone, j, 5))
		if err != nil || res.State != journal.Stopped || res.Ended > 0 || !strings.Contains(res.Reason, "no such model") {
			t.Fatalf("%+v, %v", res, err)
		}
		res, err = Run(t.Context(), config(&models{width: 3, pause: time.Second}, j, 5))
		if err != nil || res.Digest != want.Digest {
			t.Errorf("%+v, %v; want %+v", res, err, want)
		}
	})
}
