package credential

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/llm"
)

// metadataStatus is how the metadata server answers. It serves all tests: the library decides once in a process whether there
// is one.
var metadataStatus = http.StatusOK

// metadataWait is called before it answers, if it is there.
var metadataWait atomic.Pointer[func()]

// TestMain serves the metadata of a machine.
func TestMain(m *testing.M) {
	switch os.Getenv("CREDENTIAL_TEST") {
	case "print":
		fmt.Print(os.Args[1])
		return
	case "fail":
		fmt.Print("hunter2-on-stdout")
		fmt.Fprint(os.Stderr, "please run login\nfirst \x1b[31m sk-hunter2hunter2hunter2")
		os.Exit(7)
	case "large":
		fmt.Print(strings.Repeat("k", maxPrint+1))
		return
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait := metadataWait.Load(); wait != nil {
			(*wait)()
		}
		if r.Header.Get("Metadata-Flavor") != "Google" || metadataStatus != http.StatusOK {
			http.Error(w, "hunter2 on the metadata server", metadataStatus)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		if strings.HasSuffix(r.URL.Path, "/token") {
			fmt.Fprint(w, `{"access_token":"of-the-machine","expires_in":3600,"token_type":"Bearer"}`)
			return
		}
		fmt.Fprint(w, "machine-project")
	}))
	os.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(srv.URL, "http://"))
	status := m.Run()
	srv.Close()
	os.Exit(status)
}

// clean gives the test a home without credentials.
func clean(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	for name, value := range map[string]string{fileVariable: "", projectVariable: "", programVariable: "", "HOME": home, "APPDATA": home, "CLOUDSDK_CONFIG": ""} {
		t.Setenv(name, value)
	}
	metadataStatus = http.StatusOK
	return home
}

// tokens serves tokens as Google's server does, and counts them.
func tokens(t *testing.T, answer func(n int, form map[string]string) (int, string)) string {
	t.Helper()
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		_ = r.ParseForm()
		form := map[string]string{}
		for k := range r.PostForm {
			form[k] = r.PostForm.Get(k)
		}
		status, body := answer(n, form)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func write(t *testing.T, path string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// user is a file as gcloud auth application-default login writes it.
func user(address string) map[string]any {
	return map[string]any{
		"type": "authorized_user", "client_id": "id", "client_secret": "hunter2-client", "refresh_token": "hunter2-refresh", "token_uri": address, "quota_project_id": "my-project",
	}
}

// TestChain finds credentials in each place, in the order of Google's own programs.
func TestChain(t *testing.T) {
	home := clean(t)
	got, err := findGoogle(t.Context())
	if err != nil || got.Value != "of-the-machine" || got.Project != "" || time.Until(got.Expires) < 50*time.Minute {
		t.Fatalf("%+v, %v", got, err)
	}
	address := tokens(t, func(n int, form map[string]string) (int, string) {
		if form["refresh_token"] != "hunter2-refresh" || form["grant_type"] != "refresh_token" {
			return http.StatusBadRequest, `{"error":"invalid_request"}`
		}
		return http.StatusOK, fmt.Sprintf(`{"access_token":"of-the-user-%d","expires_in":3599,"token_type":"Bearer"}`, n)
	})
	write(t, filepath.Join(home, ".config", "gcloud", "application_default_credentials.json"), user(address))
	write(t, filepath.Join(home, "gcloud", "application_default_credentials.json"), user(address)) // on Windows
	for n := 1; n < 3; n++ {                                                                       // each is new: the last one may have been refused
		if got, err = findGoogle(t.Context()); err != nil || got.Value != fmt.Sprintf("of-the-user-%d", n) || got.Project != "my-project" {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	named := filepath.Join(home, "named.json")
	write(t, named, serviceAccount(t, tokens(t, func(_ int, form map[string]string) (int, string) {
		if strings.Count(form["assertion"], ".") != 2 {
			return http.StatusBadRequest, `{"error":"invalid_grant"}`
		}
		return http.StatusOK, `{"access_token":"of-the-service","expires_in":3599}`
	})))
	t.Setenv(fileVariable, named)
	t.Setenv(projectVariable, "other-project")
	if got, err = findGoogle(t.Context()); err != nil || got.Value != "of-the-service" || got.Project != "other-project" {
		t.Fatalf("%+v, %v", got, err)
	}
	subject := filepath.Join(home, "subject")
	if err := os.WriteFile(subject, []byte("subject-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	federated := external(tokens(t, func(_ int, form map[string]string) (int, string) {
		if form["subject_token"] != "subject-token" {
			return http.StatusBadRequest, `{"error":"invalid_grant"}`
		}
		return http.StatusOK, `{"access_token":"federated","expires_in":3599,"token_type":"Bearer","issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}`
	}))
	federated["credential_source"] = map[string]any{"file": subject}
	write(t, named, federated)
	if got, err = findGoogle(t.Context()); err != nil || got.Value != "federated" {
		t.Fatalf("%+v, %v", got, err)
	}
}

func serviceAccount(t *testing.T, address string) map[string]any {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	secret := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return map[string]any{"type": "service_account", "client_email": "a@b.iam.gserviceaccount.com", "private_key": secret, "private_key_id": "1", "token_uri": address}
}

// external is a file of workload identity federation.
func external(address string) map[string]any {
	return map[string]any{
		"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": address,
	}
}

// TestRefusals: every error says what to do, and none has anything of a file or of an answer.
func TestRefusals(t *testing.T) {
	home := clean(t)
	named := filepath.Join(home, "named.json")
	marker := filepath.Join(home, "ran")
	program := external("http://127.0.0.1:1/")
	program["credential_source"] = map[string]any{"executable": map[string]any{"command": "touch " + marker, "timeout_millis": 5000}}
	refuses := func(body string) string {
		return tokens(t, func(int, map[string]string) (int, string) { return http.StatusBadRequest, body })
	}
	for name, c := range map[string]struct {
		file any
		want string
		kind llm.Kind
	}{
		"no file":  {nil, "cannot be read", llm.KindAuth},
		"no JSON":  {"hunter2", "no file of Google credentials", llm.KindAuth},
		"unknown":  {map[string]any{"type": "hunter2"}, "no file of Google credentials", llm.KindAuth},
		"expired":  {user(refuses(`{"error":"invalid_grant","error_description":"hunter2"}`)), "(invalid_grant)", llm.KindAuth},
		"strange":  {user(refuses(`{"error":"hunter2 said"}`)), "says what is wrong", llm.KindAuth},
		"service":  {serviceAccount(t, refuses(`{"error":"invalid_grant","error_description":"hunter2"}`)), "(invalid_grant)", llm.KindAuth},
		"offline":  {user("http://127.0.0.1:1/hunter2"), "cannot be reached", llm.KindTransport},
		"offline2": {serviceAccount(t, "http://127.0.0.1:1/hunter2"), "cannot be reached", llm.KindTransport},
		"program":  {program, programVariable, llm.KindAuth},
	} {
		_ = os.Remove(named)
		if c.file != nil {
			write(t, named, c.file)
		}
		t.Setenv(fileVariable, named)
		_, err := findGoogle(t.Context())
		if llm.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: %v", name, err)
		}
		if llm.AsError(err).Unreachable != (c.kind == llm.KindTransport) {
			t.Errorf("%s: %+v", name, err)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program ran that was not allowed")
	}
	t.Setenv(fileVariable, "")
	metadataStatus = http.StatusForbidden
	if _, err := findGoogle(t.Context()); llm.KindOf(err) != llm.KindAuth || !strings.Contains(err.Error(), "metadata server") || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	if err := missing(); !strings.Contains(err.Error(), "gcloud auth application-default login") {
		t.Error(err)
	}
}

// TestGoogleGivenUp: who no longer waits gets the reason.
func TestGoogleGivenUp(t *testing.T) {
	home := clean(t)
	ctx, cancel := context.WithCancel(t.Context())
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client is gone
		cancel()
		<-r.Context().Done()
	}))
	defer srv.Close()
	named := filepath.Join(home, "named.json")
	write(t, named, serviceAccount(t, srv.URL))
	t.Setenv(fileVariable, named)
	if _, err := findGoogle(ctx); err != context.Canceled {
		t.Error(err)
	}
}

// TestMetadataGivenUp: a metadata server that does not answer holds up nobody who no longer waits.
func TestMetadataGivenUp(t *testing.T) {
	clean(t)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	wait := func() {
		cancel()
		<-over
	}
	metadataWait.Store(&wait)
	_, err := findGoogle(ctx)
	metadataWait.Store(nil)
	close(over)
	if err != context.Canceled {
		t.Error(err)
	}
}
