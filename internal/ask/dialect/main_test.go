package dialect_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-prints-file" { // printsFile
		b, err := os.ReadFile(os.Args[2])
		if err != nil {
			panic(err)
		}
		os.Stdout.Write(b)
		return
	}
	if os.Getenv(benchServer) != "" {
		serveBench()
		return
	}
	goleak.VerifyTestMain(m)
}
