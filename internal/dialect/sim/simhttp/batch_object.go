package simhttp

import (
	"time"

	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/wire/body"
	"parley/llm"
)

// batchObject is a batch as OpenAI shows it.
type batchObject struct {
	ID               string            `json:"id"`
	Object           string            `json:"object"`
	Endpoint         string            `json:"endpoint"`
	Model            string            `json:"model,omitempty"`
	Errors           *batchErrors      `json:"errors"`
	InputFileID      string            `json:"input_file_id"`
	CompletionWindow string            `json:"completion_window"`
	Status           string            `json:"status"`
	OutputFileID     *string           `json:"output_file_id"`
	ErrorFileID      *string           `json:"error_file_id"`
	CreatedAt        int64             `json:"created_at"`
	InProgressAt     *int64            `json:"in_progress_at"`
	ExpiresAt        int64             `json:"expires_at"`
	FinalizingAt     *int64            `json:"finalizing_at"`
	CompletedAt      *int64            `json:"completed_at"`
	FailedAt         *int64            `json:"failed_at"`
	ExpiredAt        *int64            `json:"expired_at"`
	CancellingAt     *int64            `json:"cancelling_at"`
	CancelledAt      *int64            `json:"cancelled_at"`
	RequestCounts    requestCounts     `json:"request_counts"`
	Usage            *batchUsage       `json:"usage,omitempty"`
	Metadata         map[string]string `json:"metadata"`
}

type batchErrors struct {
	Object string       `json:"object"`
	Data   []batchError `json:"data"`
}

type requestCounts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

type batchUsage struct {
	InputTokens        int `json:"input_tokens"`
	InputTokensDetails struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens        int `json:"output_tokens"`
	OutputTokensDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int `json:"total_tokens"`
}

func unix(t time.Time) *int64 {
	n := t.Unix()
	return &n
}

// batchObject shows b, which the caller has locked, as it is now.
func (s *Server) batchObject(b *batch, now time.Time) batchObject {
	o := batchObject{
		ID: b.id, Object: "batch", Endpoint: b.endpoint, InputFileID: b.fileID, CompletionWindow: "24h",
		Status: b.state(s, now), CreatedAt: b.created.Unix(), ExpiresAt: b.created.Add(24 * time.Hour).Unix(), Metadata: b.metadata,
	}
	o.Model = b.model
	if len(b.errors) > 0 {
		o.Errors = &batchErrors{Object: "list", Data: b.errors}
	}
	if o.Status != stateValidating && o.Status != stateFailed {
		o.InProgressAt = unix(b.after(validatedAt))
		o.RequestCounts.Total = len(b.lines)
		o.RequestCounts.Completed = b.progress(now)
	}
	if o.Status == stateFinalizing || o.Status == stateCompleted || o.Status == stateExpired {
		o.FinalizingAt = unix(b.after(finalizedAt))
	}
	if !b.cancelled.IsZero() {
		o.CancellingAt = unix(b.cancelled)
		if b.done == nil {
			o.RequestCounts.Completed = b.progress(b.cancelled)
		}
	}
	if b.done != nil {
		o.finished(b.done)
	}
	return o
}

// finished adds what came of the batch.
func (o *batchObject) finished(res *batchResults) {
	at := unix(res.at)
	switch res.state {
	case stateFailed:
		o.FailedAt = at
		return
	case stateExpired:
		o.ExpiredAt = at
	case stateCancelled:
		o.CancelledAt = at
	default:
		o.CompletedAt = at
	}
	if res.outputID != "" {
		o.OutputFileID = &res.outputID
	}
	if res.errorID != "" {
		o.ErrorFileID = &res.errorID
	}
	o.RequestCounts = requestCounts{
		Total: res.succeeded + res.errored + res.expired + res.cancelled, Completed: res.succeeded, Failed: res.errored + res.expired,
	}
	o.Usage = usageOf(res.usage)
}

func usageOf(u llm.Usage) *batchUsage {
	out := &batchUsage{InputTokens: u.Input, OutputTokens: u.Output, TotalTokens: u.Input + u.Output}
	out.InputTokensDetails.CachedTokens = u.Cached
	out.OutputTokensDetails.ReasoningTokens = u.Reasoning
	return out
}

// succeeded writes the line of a request that was answered.
func (b *batch) succeeded(s *Server, l *line, answer []byte) []byte {
	if b.style == quota.Anthropic {
		out := body.Str([]byte{'{'}, "custom_id", l.customID)
		out = append(append(out, `,"result":{"type":"succeeded","message":`...), answer...)
		return append(out, "}}\n"...)
	}
	return b.line(s, l, 200, answer, "null")
}

// failed writes the line of a request that was answered with an error.
func (b *batch) failed(s *Server, l *line, e *check.Error) []byte {
	if b.style == quota.Anthropic {
		out := body.Str([]byte{'{'}, "custom_id", l.customID)
		out = append(out, `,"result":{"type":"errored","error":`...)
		out = appendError(out, b.style, e, s.requestID())
		return append(out, "}}\n"...)
	}
	said := appendError(nil, b.style, e, "")
	return b.line(s, l, e.Status, said[:len(said)-1], "null")
}

// lost writes the line of a request that was not reached.
func (b *batch) lost(s *Server, l *line, why sim.Fault) []byte {
	expired := why == sim.FaultLineExpired
	if b.style == quota.Anthropic {
		kind := "canceled"
		if expired {
			kind = "expired"
		}
		out := body.Str([]byte{'{'}, "custom_id", l.customID)
		return append(out, `,"result":{"type":"`+kind+"\"}}\n"...)
	}
	reason := `{"code":"batch_cancelled","message":"This request was not executed because the batch was cancelled."}`
	if expired {
		reason = `{"code":"batch_expired","message":"This request could not be executed before the completion window expired."}`
	}
	return b.line(s, l, 0, nil, reason)
}

// line writes a line of OpenAI's output or error file.
func (b *batch) line(s *Server, l *line, status int, answer []byte, reason string) []byte {
	out := body.Str(body.Str([]byte{'{'}, "id", s.newID("batch_req_")), "custom_id", l.customID)
	if status == 0 {
		out = append(out, `,"response":null`...)
	} else {
		out = body.Int(append(out, `,"response":{`...), "status_code", int64(status))
		out = append(body.Raw(body.Str(out, "request_id", s.requestID()), "body", answer), '}')
	}
	out = append(append(out, `,"error":`...), reason...)
	return append(out, "}\n"...)
}
