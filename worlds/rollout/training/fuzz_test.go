package training

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// FuzzRequests sends bodies and queries to a server without a run. Each gets a JSON answer with a fitting
// status.
func FuzzRequests(f *testing.F) {
	f.Add(`{"episodes": 3, "seed": 18446744073709551615, "params": {"group": 4}}`, "cursor=x&limit=3&wait=0")
	f.Add(`{"episodes": 9223372036854775808}`, "limit=99999999999999999999")
	f.Add(`{"params": {"env": {}}} {}`, "max_lag=1&weight_version=-1")
	f.Add("[[[[", "wait=%zz")
	f.Add("", "status=complete,failed&trainable=maybe")
	f.Fuzz(func(t *testing.T, body, query string) {
		var o Override
		r := httptest.NewRequest(http.MethodPost, "/v1/start", strings.NewReader(body))
		if err := decode(r, &o, ""); err == nil {
			for name := range o.Params {
				if slices.Contains(overridable(), name) && !json.Valid(o.Params[name]) {
					t.Errorf("params.%s is not JSON: %q", name, o.Params[name])
				}
			}
		}
		s, err := New(Config{Plan: func(Override) (Prepared, error) { return Prepared{}, errors.New("no") }})
		if err != nil {
			t.Fatal(err)
		}
		if v, err := url.ParseQuery(query); err == nil {
			v.Del("wait") // the test does not
			query = v.Encode()
		}
		for _, path := range []string{"/v1/groups", "/v1/status", "/health", "/nowhere"} {
			r := httptest.NewRequest(http.MethodGet, path, strings.NewReader(body))
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s?%s: %d %s", path, query, w.Code, w.Body)
			}
		}
	})
}
