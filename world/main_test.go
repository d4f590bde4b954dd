package world_test

import (
	"testing"

	"go.uber.org/goleak"
)

// A strand is a coroutine: one that is not stopped is a leak.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
