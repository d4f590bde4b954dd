package dialect

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/ask/provider"
	"parley/llm"
)

// TestList reads the lists of the vendors, over several pages.
func TestList(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect, first, more string // more is the second page
		want                 string
	}{
		{"openai", `{"object":"list","data":[{"id":"b","context_window":100},{"id":"a"},{"id":"b"},{"id":"bad\u001b[31m"},{"id":""},7]}`, "", "a b(100)"},
		{"openai", `[{"id":"org/x","context_length":8,"pricing":{"input":1}}]`, "", "org/x(8)"},
		{"openai", `{"data":[{"id":"odd","max_model_len":"many"}]}`, "", "odd"},
		{"anthropic", `{"data":[{"id":"claude-a","max_input_tokens":5}],"has_more":true,"last_id":"claude-a"}`, `{"data":[{"id":"claude-b"}],"has_more":false}`, "claude-a(5) claude-b"},
		{"gemini", `{"models":[{"name":"models/g1","inputTokenLimit":9}],"nextPageToken":"t"}`, `{"models":[{"name":"models/g2"}]}`, "g1(9) g2"},
	} {
		n := 0
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if n++; n > 1 && (r.URL.Query().Get("after_id") == "claude-a" || r.URL.Query().Get("pageToken") == "t") {
				_, _ = io.WriteString(w, c.more)
				return
			}
			_, _ = io.WriteString(w, c.first)
		}))
		all, err := ListModels(t.Context(), provider.Provider{Name: "lab", Dialect: c.dialect, BaseURL: front.URL + "/v1"})
		front.Close()
		var names []string
		for _, m := range all {
			name := m.Name
			if m.Context > 0 {
				name += "(" + strconv.Itoa(m.Context) + ")"
			}
			names = append(names, name)
		}
		if got := strings.Join(names, " "); err != nil || got != c.want {
			t.Errorf("%s: %q %v", c.first, got, err)
		}
	}
}

// TestListBedrock reads both lists of AWS: models that are answered on demand, and inference profiles, in pages.
func TestListBedrock(t *testing.T) {
	t.Setenv("LAB_KEY", "KEY-123")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/foundation-models" && r.URL.Query().Get("byOutputModality") == "TEXT":
			_, _ = io.WriteString(w, `{"modelSummaries":[{"modelId":"amazon.nova-lite-v1:0","modelName":"Nova Lite","inferenceTypesSupported":["ON_DEMAND"]}]}`)
		case r.URL.Path == "/inference-profiles" && r.URL.Query().Get("nextToken") == "t+":
			_, _ = io.WriteString(w, `{"inferenceProfileSummaries":[{"inferenceProfileId":"us.x","models":[{"modelArn":"a"}]}]}`)
		case r.URL.Path == "/inference-profiles":
			_, _ = io.WriteString(w, `{"inferenceProfileSummaries":[{"inferenceProfileId":"eu.x","inferenceProfileName":"EU"}],"nextToken":"t+"}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer front.Close()
	all, err := ListModels(t.Context(), provider.Provider{Name: "bedrock", Dialect: "bedrock", BaseURL: front.URL, KeyEnv: "LAB_KEY"})
	if err != nil || len(all) != 3 || all[0].Name != "amazon.nova-lite-v1:0" || all[1].Name != "eu.x" || all[2].Name != "us.x" {
		t.Errorf("%+v, %v", all, err)
	}
	p, _ := provider.Lookup("bedrock")
	p.BaseURL = "https://bedrock-runtime.eu-west-1.amazonaws.com"
	if address, _, err := listPaths(p); err != nil || address != "https://bedrock.eu-west-1.amazonaws.com" || p.Validate() != nil {
		t.Errorf("%s, %v", address, err)
	}
	for preset, address := range map[string]string{
		"vertex": "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google", "vertex-anthropic": "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic",
		"bedrock": "https://vpce-0a1.bedrock-runtime.eu-west-1.vpce.amazonaws.com",
	} {
		p, _ := provider.Lookup(preset)
		p.BaseURL = address
		if _, err := ListModels(t.Context(), p); err == nil || !strings.Contains(err.Error(), "Model Garden") && !strings.Contains(err.Error(), "bedrock-runtime.REGION") {
			t.Errorf("%s: %v", preset, err)
		}
	}
}

func TestListFails(t *testing.T) {
	t.Setenv("LAB_KEY", "KEY-123")
	for body, kind := range map[string]llm.Kind{`{"error":"KEY-123 is wrong"}`: llm.KindMalformed, `no`: llm.KindMalformed} {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		}))
		_, err := ListModels(t.Context(), provider.Provider{Name: "lab", Dialect: "openai", BaseURL: front.URL + "/v1", KeyEnv: "LAB_KEY"})
		front.Close()
		if llm.KindOf(err) != kind || strings.Contains(err.Error(), "KEY-123") {
			t.Errorf("%s: %v", body, err)
		}
	}
	if _, err := ListModels(t.Context(), provider.Provider{Name: "sim", Dialect: "sim"}); err == nil {
		t.Error("sim has no list")
	}
}

// TestListEnds: a list that does not end is an error, and not read for ever.
func TestListEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page  string
		want  string
		pages int // at the most
	}{
		"always another page": {`{"models":[{"name":"models/g"}],"nextPageToken":"t"}`, "more than 100 pages", 100},
		"many models":         {`{"models":[` + strings.Repeat(`{"name":"g"},`, 2_000) + `{}],"nextPageToken":"t"}`, "too long", 26},
		"large models":        {`{"models":[{"name":"g","description":"` + strings.Repeat("x", 3<<20) + `"}],"nextPageToken":"t"}`, "too long", 6},
		"one large page":      {`{"models":[{"name":"g","description":"` + strings.Repeat("x", 17<<20) + `"}]}`, "larger than 16 MB", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int32
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				n.Add(1)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, c.page)
			}))
			defer front.Close()
			_, err := ListModels(t.Context(), provider.Provider{Name: "lab", Dialect: "gemini", BaseURL: front.URL + "/v1"})
			if llm.KindOf(err) != llm.KindMalformed || !strings.Contains(err.Error(), c.want) || int(n.Load()) > c.pages {
				t.Errorf("after %d pages: %v", n.Load(), err)
			}
		})
	}
}
