package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
	"time"

	"parley/llm"
)

func TestErrorText(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  llm.Error
		want string
	}{
		{llm.Error{Kind: llm.KindTimeout}, "timeout"},
		{llm.Error{Kind: llm.KindRateLimited, Message: "slow down"}, "rate limited: slow down"},
		{llm.Error{Kind: llm.KindServer, Status: 502}, "server (502)"},
		{llm.Error{Kind: llm.KindQuota, Status: 429, Code: "insufficient_quota", Provider: "openai", Model: "gpt-5", Message: "no credit"},
			"openai/gpt-5: quota (429 insufficient_quota): no credit"},
		{llm.Error{Kind: llm.KindAuth, Provider: "openai"}, "openai: auth"},
		{llm.Error{Kind: llm.KindAuth, Model: "a/b", Code: "x"}, "a/b: auth (x)"},
		{llm.Error{}, ""},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("error is %q, want %q", got, tt.want)
		}
	}
}

func TestAsError(t *testing.T) {
	t.Parallel()
	ours := &llm.Error{Kind: llm.KindRefused, Message: "no"}
	tests := []struct {
		name string
		err  error
		want llm.Kind
	}{
		{"ours", ours, llm.KindRefused},
		{"ours, wrapped", fmt.Errorf("dispatch: ask: %w", ours), llm.KindRefused},
		{"ours among others", errors.Join(io.EOF, ours), llm.KindRefused},
		{"canceled", fmt.Errorf("post: %w", context.Canceled), llm.KindCanceled},
		{"deadline", fmt.Errorf("post: %w", context.DeadlineExceeded), llm.KindTimeout},
		{"anything else", io.ErrUnexpectedEOF, llm.KindTransport},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := llm.AsError(tt.err)
			if got.Kind != tt.want || llm.KindOf(tt.err) != tt.want {
				t.Errorf("kind is %s, want %s", got.Kind, tt.want)
			}
			if got != ours && (!errors.Is(got, tt.err) || got.Message != tt.err.Error()) {
				t.Errorf("%v is lost in %+v", tt.err, got)
			}
		})
	}
	if llm.AsError(nil) != nil || llm.KindOf(nil) != "" {
		t.Error("nil is an error")
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	retryable := map[llm.Kind]bool{
		llm.KindRateLimited: true, llm.KindOverloaded: true, llm.KindTimeout: true,
		llm.KindTransport: true, llm.KindServer: true, llm.KindMalformed: true,
	}
	seen := map[llm.Kind]bool{}
	for _, k := range llm.Kinds() {
		if seen[k] || k == "" {
			t.Errorf("%q is listed twice or empty", k)
		}
		seen[k] = true
		if k.Retryable() != retryable[k] {
			t.Errorf("%s: retryable is %v", k, k.Retryable())
		}
	}
	if len(seen) != 16 || llm.Kind("new").Retryable() {
		t.Errorf("%d kinds", len(seen))
	}
}

// TestErrorJSON holds that a failure can be kept and read back, without what is only
// of the moment.
func TestErrorJSON(t *testing.T) {
	t.Parallel()
	e := &llm.Error{
		Kind: llm.KindInvalid, Message: "m", Status: 200, Code: "c", Provider: "p", Model: "x", RequestID: "r", RetryAfter: time.Second,
		Final: true, Uncertain: true, Usage: llm.Usage{Input: 3, Output: 4}, Metadata: llm.Metadata{Attempts: 2, Cost: 5 * llm.Dollar},
	}
	kept := *e
	e.Rate, e.Err = &llm.Rate{}, io.EOF
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back llm.Error
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, kept) {
		t.Errorf("%s is read as %+v, %v", b, back, err)
	}
}
