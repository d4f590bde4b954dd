package envhttp

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // most tests wait; go test -parallel sets another number
	goleak.VerifyTestMain(m)
}
