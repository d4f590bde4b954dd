package fault

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// fault is the content of an error's body, in any provider's form.
type fault struct {
	message    string
	code       string // the provider's own, when it is a word
	kind       string // the type, in the provider's words
	status     int    // of HTTP, when the body repeats it
	requestID  string
	retryAfter time.Duration
	bare       bool // the body is not JSON, such as a proxy's page
}

// wireFault covers OpenAI, Anthropic, Gemini, vLLM, SGLang, Ollama, llama.cpp,
// Mistral and FastAPI. Any of its fields may be of any type.
type wireFault struct {
	Error     json.RawMessage `json:"error"`
	Message   json.RawMessage `json:"message"`
	Detail    json.RawMessage `json:"detail"`
	Type      json.RawMessage `json:"type"`
	Code      json.RawMessage `json:"code"`
	Status    json.RawMessage `json:"status"`
	Details   json.RawMessage `json:"details"`
	RequestID json.RawMessage `json:"request_id"`
}

func parseFault(body []byte) fault {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' { // Gemini wraps its errors in a list
		var list []json.RawMessage
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			body = list[0]
		}
	}
	var w wireFault
	if json.Unmarshal(body, &w) != nil {
		return fault{message: textFault(body), bare: true}
	}
	f := readFault(w)
	inner := bytes.TrimSpace(w.Error)
	if len(inner) > 0 && inner[0] == '{' {
		var in wireFault
		if json.Unmarshal(inner, &in) == nil {
			id := f.requestID
			if f = readFault(in); f.requestID == "" {
				f.requestID = id
			}
		}
	} else if s := word(w.Error); s != "" { // Ollama: {"error":"…"}
		f.message = s
	}
	return f
}

func readFault(w wireFault) fault {
	f := fault{message: word(w.Message), kind: word(w.Type), requestID: word(w.RequestID)}
	if f.message == "" {
		f.message = word(w.Detail)
	}
	if f.kind == "error" { // the type of the envelope, not of the error
		f.kind = ""
	}
	for _, raw := range [...]json.RawMessage{w.Code, w.Status} {
		s := word(raw)
		if n, err := strconv.Atoi(s); err == nil {
			if n >= 400 && n <= 599 {
				f.status = n
			}
		} else if f.code == "" {
			f.code = s
		}
	}
	f.retryAfter = retryInfo(w.Details)
	return f
}

// textFault returns a message for a body that is not JSON.
func textFault(body []byte) string {
	switch {
	case len(body) == 0:
		return ""
	case isHTML(body):
		return "an HTML page" + title(body) + ": is base_url right, or is a proxy in the way?"
	}
	return excerpt(body)
}

// word returns a JSON value as text: the content of a string, "" for null, and the JSON of anything
// else.
func word(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return s
	}
	return string(raw)
}

// retryInfo returns the delay in Google's error details.
func retryInfo(details json.RawMessage) time.Duration {
	if !bytes.Contains(details, []byte("retryDelay")) {
		return 0
	}
	var list []struct {
		Type  string          `json:"@type"`
		Delay json.RawMessage `json:"retryDelay"`
	}
	if json.Unmarshal(details, &list) != nil {
		return 0
	}
	for _, d := range list {
		if strings.HasSuffix(d.Type, "RetryInfo") {
			return capped(parseWait(word(d.Delay)))
		}
	}
	return 0
}
