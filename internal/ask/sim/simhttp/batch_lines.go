package simhttp

import (
	"encoding/json"
	"net/http"

	"parley/internal/ask/wire/batches"
)

// store keeps the result lines: as one list of results, or as files.
func (s *batchStore) store(b *batch, res *results, out, bad []byte) {
	switch {
	case b.vendor == batchAnthropic || b.vendor == xai || b.inline != nil:
		res.content = append(out, bad...)
		return
	case b.vendor == batchGemini: // one file, whose name is the batch's
		out, bad = append(out, bad...), nil
	}
	keep := func(name string, content []byte) string {
		if len(content) == 0 {
			return ""
		}
		f := newFile(s.host.NewID("file-"), b.id+name, "batch_output", content, res.at)
		if !s.files.Add(f) {
			return ""
		}
		return f.ID
	}
	res.outputID, res.errorID = keep("_output.jsonl", out), keep("_error.jsonl", bad)
}

// succeeded returns the line of a request that was answered.
func (s *batchStore) succeeded(b *batch, l *batches.MessageLine, answer []byte) []byte {
	switch b.vendor {
	case batchAnthropic:
		return line(batches.MessageResult{CustomID: l.CustomID, Result: batches.MessageOutcome{Type: "succeeded", Message: answer}})
	case batchGemini:
		return line(batches.GeminiResult{Key: l.CustomID, Response: answer})
	case xai:
		r := batches.XAIResult{ID: l.CustomID}
		r.Result.Response = &batches.XAIResponse{Chat: answer}
		return line(r)
	}
	return s.result(l, &batches.Response{StatusCode: http.StatusOK, Body: answer}, nil)
}

// failed returns the line of a request that was answered with an error.
func (s *batchStore) failed(b *batch, l *batches.MessageLine, e *Error) []byte {
	said := e.Append(nil, b.vendor.style(), s.host.NewID("req_"))
	switch b.vendor {
	case batchAnthropic:
		return line(batches.MessageResult{CustomID: l.CustomID, Result: batches.MessageOutcome{Type: "errored", Error: said}})
	case batchGemini:
		code := 13 // INTERNAL
		if e.Status < http.StatusInternalServerError {
			code = 3 // INVALID_ARGUMENT
		}
		return line(batches.GeminiResult{Key: l.CustomID, Error: line(map[string]any{"code": code, "message": e.Message})})
	case xai:
		return line(xaiError(l, e.Message))
	case mistral: // the error is a string in the line
		quoted, err := json.Marshal(string(said))
		if err != nil {
			return nil
		}
		said = quoted
	}
	return s.result(l, &batches.Response{StatusCode: e.Status, Body: said}, nil)
}

func xaiError(l *batches.MessageLine, message string) batches.XAIResult {
	r := batches.XAIResult{ID: l.CustomID}
	r.Result.Error = batches.XAIError(message)
	return r
}

// lost returns the line of a request that was not reached: the batch expired or was canceled. Some
// vendors leave it out.
func (s *batchStore) lost(b *batch, l *batches.MessageLine, why string) []byte {
	switch b.vendor {
	case batchAnthropic:
		return line(batches.MessageResult{CustomID: l.CustomID, Result: batches.MessageOutcome{Type: why}})
	case xai:
		return line(xaiError(l, batches.XAICancelled))
	case batchGemini, mistral, together:
		return nil
	}
	reason := &batches.ResultError{Code: "batch_cancelled", Message: "This request was not executed because the batch was cancelled."}
	if why == "expired" {
		reason = &batches.ResultError{Code: "batch_expired", Message: "This request could not be executed before the completion window expired."}
	}
	return s.result(l, nil, reason)
}

// result returns a line of OpenAI's output or error file.
func (s *batchStore) result(l *batches.MessageLine, r *batches.Response, e *batches.ResultError) []byte {
	if r != nil {
		r.RequestID = s.host.NewID("req_")
	}
	return line(batches.Result{ID: s.host.NewID("batch_req_"), CustomID: l.CustomID, Response: r, Error: e})
}

func line(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // an answer is always JSON
		return nil
	}
	return append(b, '\n')
}
