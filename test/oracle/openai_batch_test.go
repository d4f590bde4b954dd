package oracle

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"

	"parley/internal/ask/provider"
)

// TestOpenAIBatches plays batches with OpenAI's SDK, with Azure's v1 address and in the way that Groq's pages have it, and with our client. Both
// send the same creation to the same address, and read the same answers.
func TestOpenAIBatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		client   func(url string) openai.Client
		p        func(url string) provider.Provider
		endpoint string // of a batch
		done     string
	}{
		"azure": {
			func(url string) openai.Client {
				return openai.NewClient(openaiopt.WithBaseURL(url+"/openai/v1"), openaiopt.WithAPIKey("k"), openaiopt.WithMaxRetries(0))
			}, func(url string) provider.Provider {
				return provider.Provider{Dialect: "openai", BaseURL: url + "/openai/v1", Batch: &provider.Batch{API: "azure"}}
			}, "/chat/completions", "Completed",
		},
		"groq": {
			func(url string) openai.Client { return openaiClient(url, "k") }, func(url string) provider.Provider {
				p, _ := provider.Lookup("groq")
				p.BaseURL, p.KeyEnv = url+"/v1", ""
				return p
			}, "/v1/chat/completions", "completed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveBatches(t, time.Millisecond)
			cl, api := c.client(s.url), account(t, c.p(s.url))
			ours, lines, file := run(t, api)
			by := s.take()
			uploaded := sentLines(t, cl, file)
			again, err := cl.Files.New(t.Context(), openai.FileNewParams{Purpose: openai.FilePurposeBatch, File: openai.File(bytes.NewReader(uploaded), "in.jsonl", "application/jsonl")})
			if err != nil {
				t.Fatal(err)
			}
			b, err := cl.Batches.New(t.Context(), openai.BatchNewParams{
				InputFileID: again.ID, Endpoint: openai.BatchNewParamsEndpoint(c.endpoint), CompletionWindow: openai.BatchNewParamsCompletionWindow24h,
				Metadata: map[string]string{"parley": "parley-x"},
			})
			for err == nil && string(b.Status) != c.done {
				if strings.EqualFold(string(b.Status), "failed") {
					t.Fatalf("%+v", b)
				}
				b, err = cl.Batches.Get(t.Context(), b.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
			theirs := answers(t, content(t, cl, b.OutputFileID))
			slices.Sort(theirs)
			if !slices.Equal(ours, theirs) || len(ours) != 3 || len(lines) != 3 || b.RequestCounts.Completed != 3 {
				t.Errorf("ours %q, theirs %q, %+v", ours, theirs, b.RequestCounts)
			}
			page, err := cl.Batches.List(t.Context(), openai.BatchListParams{Limit: openai.Int(100)})
			if err != nil || len(page.Data) != 2 || page.Data[0].ID != b.ID || page.Data[1].Metadata["parley"] == "" {
				t.Errorf("%+v %v", page, err)
			}
			sameCreation(t, by, s.take())
		})
	}
}

// sameCreation compares the creation of a batch by our client with that by the SDK.
func sameCreation(t *testing.T, ours, theirs []asked) {
	t.Helper()
	pick := func(all []asked) asked {
		for _, one := range all {
			u, err := url.Parse(strings.TrimPrefix(one.At, "POST "))
			if strings.HasPrefix(one.At, "POST ") && err == nil && strings.HasSuffix(u.Path, "/batches") {
				m, ok := one.Body.(map[string]any)
				if !ok {
					t.Fatalf("%+v", one)
				}
				if keys, ok := m["metadata"].(map[string]any); ok && keys["parley"] != "" {
					keys["parley"] = "KEY"
				}
				return asked{strings.Replace(u.Path, "/v1", "", 1), m}
			}
		}
		t.Fatalf("nobody created a batch: %+v", all)
		return asked{}
	}
	if a, b := pick(ours), pick(theirs); !reflect.DeepEqual(a, b) {
		t.Errorf("ours   %+v\ntheirs %+v", a, b)
	}
}

// sentLines reads the file that our client uploaded, and checks each line with the SDK's types: it is a chat completion's request.
func sentLines(t *testing.T, cl openai.Client, file string) []byte {
	t.Helper()
	all := content(t, cl, file)
	for line := range bytes.Lines(all) {
		var l struct {
			ID     string                         `json:"custom_id"`
			Method string                         `json:"method"`
			URL    string                         `json:"url"`
			Body   openai.ChatCompletionNewParams `json:"body"`
		}
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&l); err != nil || l.ID == "" || l.Method != "POST" || l.URL != "/v1/chat/completions" || l.Body.Model != "m" || len(l.Body.Messages) != 2 {
			t.Errorf("%s: %+v %v", line, l, err)
		}
	}
	return all
}

// content reads a file with the SDK.
func content(t *testing.T, cl openai.Client, id string) []byte {
	t.Helper()
	res, err := cl.Files.Content(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// answers reads a file of results with the SDK's types.
func answers(t *testing.T, file []byte) (texts []string) {
	t.Helper()
	for line := range bytes.Lines(file) {
		var l struct {
			Response struct {
				Status int                   `json:"status_code"`
				Body   openai.ChatCompletion `json:"body"`
			} `json:"response"`
		}
		if err := json.Unmarshal(line, &l); err != nil || l.Response.Status != 200 || len(l.Response.Body.Choices) != 1 {
			t.Fatalf("%s: %v", line, err)
		}
		texts = append(texts, l.Response.Body.Choices[0].Message.Content)
	}
	return texts
}
