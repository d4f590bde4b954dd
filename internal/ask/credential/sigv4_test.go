package credential

import (
	"net/http"
	"strings"
	"testing"

	"parley/internal/ask/redact"
	"parley/llm"
)

// TestHosts: only requests to AWS and to this machine are signed, for the region in the address.
func TestHosts(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://bedrock-runtime.eu-central-1.amazonaws.com":                  "eu-central-1",
		"https://vpce-0a1-x.bedrock-runtime.us-gov-west-1.vpce.amazonaws.com": "us-gov-west-1",
		"http://127.0.0.1:8080": "",
		"https://bedrock-runtime.eu-central-1.amazonaws.com.evil.example": "refused",
		"https://evilamazonaws.com":                                       "refused",
		"http://bedrock-runtime.eu-central-1.amazonaws.com":               "refused", // anybody could read it
		"https://ec2-1-2-3-4.compute-1.amazonaws.com":                     "refused", // anybody may rent it
		"https://x.execute-api.us-east-1.amazonaws.com":                   "refused",
	} {
		s, err := NewSigner("bedrock", address)
		switch {
		case want == "refused":
			if err == nil || !strings.Contains(err.Error(), "key_env") {
				t.Errorf("%s: %v", address, err)
			}
		case err != nil || s.region != want:
			t.Errorf("%s: %+v, %v", address, s, err)
		}
	}
}

// TestSign: the credentials of the environment sign a request, and a missing region or key is an error that says so.
func TestSign(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "",
	} {
		t.Setenv(name, value)
	}
	var hide *redact.Redactor
	sign := func(address string) (http.Header, error) {
		s, err := NewSigner("bedrock", address)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(http.MethodPost, address+"/model/m/converse", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header["X-Idempotency-Key"] = []string{}
		hide, err = s.Sign(t.Context(), r, []byte("{}"))
		return r.Header, err
	}
	if _, err := sign("http://127.0.0.1:1"); llm.KindOf(err) != llm.KindAuth || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Error(err)
	}
	if _, err := sign("https://bedrock-runtime.eu-central-1.amazonaws.com"); llm.KindOf(err) != llm.KindAuth || !strings.Contains(err.Error(), "AWS_PROFILE") {
		t.Error(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	h, err := sign("https://bedrock-runtime.eu-central-1.amazonaws.com")
	got := h.Get("Authorization")
	if err != nil || !strings.HasPrefix(got, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/") || !strings.Contains(got, "/eu-central-1/bedrock/") || strings.Contains(got, "idempotency") {
		t.Errorf("%v, %v", h, err)
	}
	t.Setenv("AWS_SESSION_TOKEN", "hunter3-session")
	h, err = sign("https://bedrock-runtime.eu-central-1.amazonaws.com")
	_, signature, _ := strings.Cut(h.Get("Authorization"), "Signature=")
	echo := string(hide.Bytes([]byte(h.Get("X-Amz-Security-Token") + " " + signature)))
	if err != nil || h.Get("X-Amz-Security-Token") != "hunter3-session" || len(signature) != 64 || echo != "[key] [key]" {
		t.Errorf("%q, %v, %v", echo, h, err)
	}
}
