package simhttp

import (
	"strings"
	"testing"
)

// TestTables checks the errors that the tables give, with their paths and codes.
func TestTables(t *testing.T) {
	t.Parallel()
	c := newBodyChecker(false)
	cases := []struct {
		read             func([]byte) (*Ask, *Error)
		body, says, code string
	}{
		{c.Chat, `{"n":"x"}`, "Invalid type for 'n': expected an integer, but got a string instead.", "invalid_type"},
		{c.Chat, `{"n":1.5}`, "expected an integer, but got a number instead.", "invalid_type"},
		{c.Chat, `{"temperature":true}`, "expected a decimal, but got a boolean instead.", "invalid_type"},
		{c.Chat, `{"stream":1}`, "expected a boolean, but got a number instead.", "invalid_type"},
		{c.Chat, `{"model":[]}`, "expected a string, but got an array instead.", "invalid_type"},
		{c.Chat, `{"messages":{}}`, "expected an array, but got an object instead.", "invalid_type"},
		{c.Chat, `{"messages":[null]}`, "Invalid type for 'messages[0]': expected an object, but got null instead.", "invalid_type"},
		{c.Chat, `{"messages":[{"role":"user"},{"odd":1}]}`, "Unknown parameter: 'messages[1].odd'.", "unknown_parameter"},
		{c.Chat, `{"n":0}`, "Invalid 'n': integer below minimum value. Expected a value >= 1, but got 0 instead.", "integer_below_min_value"},
		{c.Chat, `{"service_tier":"x"}`, "Supported values are: 'auto', 'default', 'flex', 'scale', 'priority', and 'fast'.", "invalid_value"},
		{c.Chat, `{"max_tokens":99999999999}`, "you must provide a model parameter", ""},
		{c.Chat, `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":99999999999}`, "want at most", ""},
		{c.Chat, `{"n":1} x`, "could not parse the JSON body", ""},
		{c.Chat, strings.Repeat(`{"a":`, 600) + `1` + strings.Repeat(`}`, 600), "nested too deeply", ""},
		{c.Responses, `{"include":[1]}`, "Invalid type for 'include[0]': expected a string", "invalid_type"},
		{c.Messages, `{"top_k":"x"}`, "top_k: Input should be an integer", ""},
		{c.Messages, `{"top_p":"x"}`, "top_p: Input should be a valid number", ""},
		{c.Messages, `{"tools":[{"odd":1}]}`, "tools.0.odd: Extra inputs are not permitted", ""},
		{c.Messages, `{"output_config":{"effort":"x"}}`, "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'", ""},
	}
	for _, q := range cases {
		if _, err := q.read([]byte(q.body)); err == nil || !strings.Contains(err.Message, q.says) || err.Code != q.code {
			t.Errorf("%.80s: %+v, want %q and code %q", q.body, err, q.says, q.code)
		}
	}
	if _, err := newBodyChecker(true).Chat([]byte(`{"model":"m","odd":1,"messages":[{"role":"user","content":"x","odd":1}]}`)); err != nil {
		t.Errorf("a lax checker refuses unknown members: %v", err)
	}
}
