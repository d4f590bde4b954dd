package transport

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// printsFile makes the test program print a file, as a program that prints a key.
const printsFile = "-prints-file"

// TestMain makes this process trust the certificate of httptest's servers, through the environment as
// a user would.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == printsFile {
		b, err := os.ReadFile(os.Args[2])
		if err != nil {
			panic(err)
		}
		os.Stdout.Write(b)
		return
	}
	srv := httptest.NewTLSServer(nil)
	f, err := os.CreateTemp("", "parley-test-*.pem")
	if err != nil {
		panic(err)
	}
	pem.Encode(f, &pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	f.Close()
	srv.Close()
	os.Setenv("SSL_CERT_FILE", f.Name())
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { os.Remove(f.Name()); os.Exit(code) }))
}
