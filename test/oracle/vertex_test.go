package oracle

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/vertex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/genai"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim/simhttp"
	"parley/llm"
)

// toSim sends every request of an SDK to the simulated server, with a token.
type toSim struct{ host string }

func (s toSim) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = "http", s.host, ""
	r.Header.Set("Authorization", "Bearer hunter2")
	return http.DefaultTransport.RoundTrip(r)
}

// vertexSim serves the simulated provider with a key, and returns its address.
func vertexSim(t *testing.T) *url.URL {
	t.Helper()
	t.Setenv("PARLEY_VERTEX_TEST_KEY", "hunter2")
	s, err := simhttp.New(simhttp.Config{Grace: 10 * time.Millisecond, KeyEnv: "PARLEY_VERTEX_TEST_KEY"})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(serveUntilEnd(t, s.Run))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// vertexAsk asks with one of our presets.
func vertexAsk(t *testing.T, preset, publisher string, u *url.URL, stream bool) *llm.Response {
	t.Helper()
	p, ok := provider.Lookup(preset)
	if !ok {
		t.Fatal("there is no preset " + preset)
	}
	p.DropKey()
	p.Name, p.KeyEnv, p.Stream = "lab", "PARLEY_VERTEX_TEST_KEY", "never"
	p.BaseURL = u.String() + "/v1/projects/p/locations/us-east5/publishers/" + publisher
	if stream {
		p.Stream = "always"
	}
	m, err := dialect.Open(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.(io.Closer).Close()
	r, err := m.Ask(t.Context(), &llm.Request{Model: "lab/m@20250929", MaxTokens: 300, Messages: []llm.Message{llm.System("Be brief."), llm.User("Hello.")}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Text == "" {
		t.Errorf("%+v", r)
	}
	return r
}

// TestVertexGemini checks that Google's SDK on Vertex AI and our preset read the same from the simulated provider.
func TestVertexGemini(t *testing.T) {
	u := vertexSim(t)
	cl, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		Backend: genai.BackendVertexAI, Project: "p", Location: "us-east5", HTTPClient: &http.Client{Transport: toSim{u.Host}}, HTTPOptions: genai.HTTPOptions{APIVersion: "v1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := &genai.GenerateContentConfig{MaxOutputTokens: 300, SystemInstruction: genai.NewContentFromText("Be brief.", genai.RoleUser)}
	for _, stream := range []bool{false, true} {
		text := ""
		if stream {
			for r, err := range cl.Models.GenerateContentStream(t.Context(), "m@20250929", genai.Text("Hello."), cfg) {
				if err != nil {
					t.Fatal(err)
				}
				text += r.Text()
			}
		} else {
			r, err := cl.Models.GenerateContent(t.Context(), "m@20250929", genai.Text("Hello."), cfg)
			if err != nil {
				t.Fatal(err)
			}
			text = r.Text()
		}
		if ours := vertexAsk(t, "vertex", "google", u, stream); ours.Text != text {
			t.Errorf("stream %v: ours %q, theirs %q", stream, ours.Text, text)
		}
	}
}

// TestVertexAnthropic checks that Anthropic's SDK on Vertex AI and our preset read the same from the simulated provider.
func TestVertexAnthropic(t *testing.T) {
	u := vertexSim(t)
	creds := &google.Credentials{TokenSource: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "hunter2"})}
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: toSim{u.Host}})
	cl := anthropic.NewClient(anthropicopt.WithHTTPClient(&http.Client{Transport: toSim{u.Host}}), vertex.WithCredentials(ctx, "us-east5", "p", creds), anthropicopt.WithMaxRetries(0))
	params := anthropic.MessageNewParams{
		Model: "m@20250929", MaxTokens: 300, System: []anthropic.TextBlockParam{{Text: "Be brief."}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hello."))},
	}
	for _, stream := range []bool{false, true} {
		var theirs anthropic.Message
		if stream {
			st := cl.Messages.NewStreaming(t.Context(), params)
			for st.Next() {
				if err := theirs.Accumulate(st.Current()); err != nil {
					t.Fatal(err)
				}
			}
			if st.Err() != nil {
				t.Fatal(st.Err())
			}
		} else {
			m, err := cl.Messages.New(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			theirs = *m
		}
		ours := vertexAsk(t, "vertex-anthropic", "anthropic", u, stream)
		a, b := see(ours), seeMessage(&theirs)
		a.ID, b.ID = "", ""
		if !reflect.DeepEqual(a, b) {
			t.Errorf("stream %v:\nours   %+v\ntheirs %+v", stream, a, b)
		}
	}
	_, err := cl.Messages.New(t.Context(), anthropic.MessageNewParams{Model: "m", MaxTokens: 5})
	if e, ok := err.(*anthropic.Error); !ok || e.StatusCode != 400 {
		t.Errorf("%v", fmt.Sprint(err))
	}
}
