package oracle

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"parley/llm"
	"parley/world"
)

// TestCachedContent stores a prompt with Google's SDK. The SDK and an agent with that cached content read the same from the simulated
// provider, and both are told when it is gone.
func TestCachedContent(t *testing.T) {
	t.Parallel()
	url := startSim(t)
	cl := geminiClient(t, url)
	made, err := cl.Caches.Create(t.Context(), "m", &genai.CreateCachedContentConfig{
		TTL: time.Hour, DisplayName: "handbook", Contents: genai.Text(strings.Repeat("All is written here. ", 400)), SystemInstruction: genai.NewContentFromText("Know it.", genai.RoleUser),
	})
	if err != nil {
		t.Fatal(err)
	}
	if made.Model != "models/m" || made.ExpireTime.Sub(made.CreateTime) != time.Hour || made.UsageMetadata.TotalTokenCount < 1024 {
		t.Errorf("%+v", made)
	}
	later, err := cl.Caches.Update(t.Context(), made.Name, &genai.UpdateCachedContentConfig{TTL: 2 * time.Hour})
	if err != nil || !later.ExpireTime.After(made.ExpireTime) {
		t.Errorf("%+v %v", later, err)
	}
	found := 0
	for c, err := range cl.Caches.All(t.Context()) {
		if err != nil || c.Name != made.Name || c.DisplayName != "handbook" {
			t.Errorf("%+v %v", c, err)
		}
		found++
	}
	theirs, err := cl.Models.GenerateContent(t.Context(), "m", genai.Text("Hello."), &genai.GenerateContentConfig{MaxOutputTokens: 300, CachedContent: made.Name})
	if err != nil || found != 1 {
		t.Fatal(err, found)
	}
	agent := world.Agent{Model: "lab/m", CachedContent: made.Name}
	req := agent.Request(llm.Request{MaxTokens: 300, Messages: []llm.Message{llm.User("Hello.")}})
	ours := ask(t, "gemini", url, false, &req)
	if ours.Text != theirs.Text() || ours.Text == "" || ours.Usage.Cached != int(theirs.UsageMetadata.CachedContentTokenCount) || ours.Usage.Cached != int(made.UsageMetadata.TotalTokenCount) {
		t.Errorf("ours %+v, theirs %q %+v", ours, theirs.Text(), theirs.UsageMetadata)
	}
	_, err = cl.Models.GenerateContent(t.Context(), "m", genai.Text("Hello."), &genai.GenerateContentConfig{CachedContent: made.Name, SystemInstruction: genai.NewContentFromText("No.", genai.RoleUser)})
	var e genai.APIError
	if !errors.As(err, &e) || e.Code != 400 {
		t.Errorf("a system instruction beside cached content: %v", err)
	}
	if _, err := cl.Caches.Delete(t.Context(), made.Name, nil); err != nil {
		t.Error(err)
	}
	_, err = cl.Models.GenerateContent(t.Context(), "m", genai.Text("Hello."), &genai.GenerateContentConfig{CachedContent: made.Name})
	if !errors.As(err, &e) || e.Code != 403 || e.Status != "PERMISSION_DENIED" {
		t.Errorf("deleted: %v", err)
	}
}
