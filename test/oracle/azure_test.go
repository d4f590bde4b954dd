package oracle

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/azure"
	openaiopt "github.com/openai/openai-go/v3/option"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/llm"
)

const azureVersion = "2024-10-21"

// azureClient returns a client of OpenAI's SDK for Azure's older paths.
func azureClient(url string) openai.Client {
	return openai.NewClient(azure.WithEndpoint(url, azureVersion), azure.WithAPIKey("hunter2"), azure.WithUnsafeAllowHTTP(), openaiopt.WithMaxRetries(0))
}

// azureAccount returns our preset for a server: with its older paths, or with v1.
func azureAccount(t *testing.T, url string, old, stream bool) llm.Model {
	t.Helper()
	p, ok := provider.Lookup("azure")
	if !ok {
		t.Fatal("there is no preset")
	}
	p.Name, p.KeyEnv, p.BaseURL, p.Stream = "lab", "PARLEY_AZURE_TEST_KEY", url+"/openai/v1", "never"
	if old {
		p.BaseURL, p.APIVersion = url+"/openai", azureVersion
	}
	if stream {
		p.Stream = "always"
	}
	m, err := dialect.Open(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.(io.Closer).Close() })
	return m
}

// TestAzureAddress checks that our requests go where those of OpenAI's SDK in its Azure mode go, with the same header.
func TestAzureAddress(t *testing.T) {
	t.Setenv("PARLEY_AZURE_TEST_KEY", "hunter2")
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.String()+" "+r.Header.Get("Api-Key")+" "+r.Header.Get("Authorization"))
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, chatText)
	}))
	t.Cleanup(srv.Close)
	cl := azureClient(srv.URL)
	if _, err := cl.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "my deployment", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}}); err != nil {
		t.Fatal(err)
	}
	req := hello()
	req.Model = "lab/my deployment"
	if _, err := azureAccount(t, srv.URL, true, false).Ask(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != got[1] {
		t.Errorf("%q", got)
	}
}

// TestAzureSim checks that OpenAI's SDK in its Azure mode and our preset read the same from the simulated provider.
func TestAzureSim(t *testing.T) {
	t.Setenv("PARLEY_AZURE_TEST_KEY", "hunter2")
	s, err := simhttp.New(simhttp.Config{Grace: 10 * time.Millisecond, KeyEnv: "PARLEY_AZURE_TEST_KEY"})
	if err != nil {
		t.Fatal(err)
	}
	url := serveUntilEnd(t, s.Run)
	cl := azureClient(url)
	params := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}, MaxCompletionTokens: openai.Int(100)}
	for _, stream := range []bool{false, true} {
		var theirs seen
		if stream {
			var acc openai.ChatCompletionAccumulator
			st := cl.Chat.Completions.NewStreaming(t.Context(), params)
			for st.Next() {
				acc.AddChunk(st.Current())
			}
			if st.Err() != nil {
				t.Fatal(st.Err())
			}
			theirs = seeChat(&acc.ChatCompletion)
		} else {
			r, err := cl.Chat.Completions.New(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			theirs = seeChat(r)
		}
		for _, old := range []bool{false, true} {
			r, err := azureAccount(t, url, old, stream).Ask(t.Context(), hello())
			if err != nil {
				t.Fatal(err)
			}
			if r.Text == "" || r.Text != theirs.Text || string(r.Finish) != theirs.Finish {
				t.Errorf("old %v, stream %v:\nours   %+v\ntheirs %+v", old, stream, see(r), theirs)
			}
		}
	}
}

// TestAzureErrors checks that the SDK and our preset read the simulated errors as Azure's.
func TestAzureErrors(t *testing.T) {
	t.Setenv("PARLEY_AZURE_TEST_KEY", "hunter2")
	s, err := simhttp.New(simhttp.Config{Grace: 10 * time.Millisecond, KeyEnv: "PARLEY_AZURE_TEST_KEY", Sim: sim.Config{Limits: sim.Limits{RPM: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	url := serveUntilEnd(t, s.Run)
	cl := azureClient(url)
	params := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}}
	for _, want := range []int{0, 429} {
		_, err := cl.Chat.Completions.New(t.Context(), params)
		var e *openai.Error
		if errors.As(err, &e); want != 0 && (e == nil || e.StatusCode != want || e.Code != fmt.Sprint(want)) {
			t.Errorf("%v, want %d", err, want)
		}
	}
	_, err = azureAccount(t, url, true, false).Ask(t.Context(), hello())
	if e := llm.AsError(err); e.Kind != llm.KindRateLimited || e.RetryAfter == 0 {
		t.Errorf("%+v", err)
	}
	t.Setenv("PARLEY_AZURE_TEST_KEY", "another")
	_, err = azureAccount(t, url, false, false).Ask(t.Context(), hello())
	if e := llm.AsError(err); e.Kind != llm.KindAuth || e.Status != 401 {
		t.Errorf("%+v", err)
	}
}
