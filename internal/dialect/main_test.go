package dialect_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(benchServer) != "" {
		serveBench()
		return
	}
	goleak.VerifyTestMain(m)
}
