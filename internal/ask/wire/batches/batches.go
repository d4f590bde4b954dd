// Package batches holds the objects of the vendors' batch APIs, as JSON has them. A client reads
// them and the simulated server writes them.
//
// It promises nothing beyond the types: requests and answers inside a batch are raw JSON, which
// the packages of the formats read.
package batches

import (
	"encoding/json"
	"time"
)

// File is OpenAI's object of an uploaded file, or of the output of a batch.
type File struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Bytes     int    `json:"bytes"`
	CreatedAt int64  `json:"created_at"`
	ExpiresAt int64  `json:"expires_at,omitempty"`
	Filename  string `json:"filename"`
	Purpose   string `json:"purpose"`
	Status    string `json:"status"`
}

// Creation is the request that creates one of OpenAI's batches.
type Creation struct {
	InputFileID        string          `json:"input_file_id"`
	Endpoint           string          `json:"endpoint"`
	CompletionWindow   string          `json:"completion_window"`
	Metadata           map[string]any  `json:"metadata,omitempty"`
	OutputExpiresAfter json.RawMessage `json:"output_expires_after,omitempty"`
}

// The states of one of OpenAI's batches.
const (
	Validating = "validating"
	Failed     = "failed"
	InProgress = "in_progress"
	Finalizing = "finalizing"
	Completed  = "completed"
	Expired    = "expired"
	Cancelling = "cancelling"
	Cancelled  = "cancelled"
)

// Batch is the object of a batch, OpenAI's or Azure's.
type Batch struct {
	ID               string          `json:"id"`
	Object           string          `json:"object"`
	Endpoint         string          `json:"endpoint"`
	Model            string          `json:"model,omitempty"`
	Errors           *Faults         `json:"errors"`
	InputFileID      string          `json:"input_file_id"`
	CompletionWindow string          `json:"completion_window"`
	Status           string          `json:"status"`
	OutputFileID     *string         `json:"output_file_id"`
	ErrorFileID      *string         `json:"error_file_id"`
	CreatedAt        Moment          `json:"created_at"`
	InProgressAt     *Moment         `json:"in_progress_at"`
	ExpiresAt        Moment          `json:"expires_at"`
	FinalizingAt     *Moment         `json:"finalizing_at"`
	CompletedAt      *Moment         `json:"completed_at"`
	FailedAt         *Moment         `json:"failed_at"`
	ExpiredAt        *Moment         `json:"expired_at"`
	CancellingAt     *Moment         `json:"cancelling_at"`
	CancelledAt      *Moment         `json:"cancelled_at"`
	RequestCounts    Counts          `json:"request_counts"`
	Metadata         map[string]any  `json:"metadata"`
	Error            json.RawMessage `json:"error,omitempty"` // some servers send it instead of a batch
}

// Moment is a time in seconds since 1970, written as such, or as a text at Azure. Zero: unknown.
type Moment int64

// Time returns m, or the zero time if it is unknown.
func (m Moment) Time() time.Time {
	if m <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(m), 0)
}

// UnmarshalJSON reads either. What is neither is unknown.
func (m *Moment) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			*m = Moment(at.Unix())
		}
		return nil
	}
	var seconds float64
	if json.Unmarshal(raw, &seconds) == nil && seconds > 0 && seconds < 1e11 {
		*m = Moment(seconds)
	}
	return nil
}

// Faults are the reasons why a batch failed.
type Faults struct {
	Object string  `json:"object"`
	Data   []Fault `json:"data"`
}

// Fault is one reason why a batch failed.
type Fault struct {
	Code    string  `json:"code"`
	Line    *int    `json:"line"` // of the input file, from 1
	Message string  `json:"message"`
	Param   *string `json:"param"`
}

// Counts are the numbers of requests in a batch.
type Counts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

// Line is a request in an input file.
type Line struct {
	CustomID string          `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
}

// Result is a line of an output or error file.
type Result struct {
	ID       string       `json:"id"`
	CustomID string       `json:"custom_id"`
	Response *Response    `json:"response"`
	Error    *ResultError `json:"error"`
}

// Response is the answer to a request in a batch.
type Response struct {
	StatusCode int             `json:"status_code"`
	RequestID  string          `json:"request_id"`
	Body       json.RawMessage `json:"body"`
}

// ResultError is the reason why a request in a batch has no answer.
type ResultError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// MessageCreation is the request that creates one of Anthropic's batches.
type MessageCreation struct {
	Requests []MessageLine `json:"requests"`
}

// MessageLine is a request in one of Anthropic's batches.
type MessageLine struct {
	CustomID string          `json:"custom_id"`
	Params   json.RawMessage `json:"params"`
}

// The states of one of Anthropic's batches.
const (
	MessagesInProgress = "in_progress"
	MessagesCanceling  = "canceling"
	MessagesEnded      = "ended"
)

// MessageBatch is Anthropic's object of a batch.
type MessageBatch struct {
	ID                string          `json:"id"`
	Type              string          `json:"type"`
	ProcessingStatus  string          `json:"processing_status"`
	RequestCounts     MessageCounts   `json:"request_counts"`
	CreatedAt         time.Time       `json:"created_at"`
	ExpiresAt         time.Time       `json:"expires_at"`
	EndedAt           *time.Time      `json:"ended_at"`
	CancelInitiatedAt *time.Time      `json:"cancel_initiated_at"`
	ArchivedAt        *time.Time      `json:"archived_at"`
	ResultsURL        *string         `json:"results_url"`
	Error             json.RawMessage `json:"error,omitempty"` // some servers send it instead of a batch
}

// MessageCounts are the numbers of requests in one of Anthropic's batches.
type MessageCounts struct {
	Processing int `json:"processing"`
	Succeeded  int `json:"succeeded"`
	Errored    int `json:"errored"`
	Canceled   int `json:"canceled"`
	Expired    int `json:"expired"`
}

// Failed is the number of requests without an answer.
func (c MessageCounts) Failed() int { return c.Errored + c.Canceled + c.Expired }

// Total is the number of all requests.
func (c MessageCounts) Total() int { return c.Processing + c.Succeeded + c.Failed() }

// MessageResult is a line of the results of one of Anthropic's batches.
type MessageResult struct {
	CustomID string         `json:"custom_id"`
	Result   MessageOutcome `json:"result"`
}

// MessageOutcome is the answer to a request in one of Anthropic's batches. Its type is succeeded,
// errored, canceled or expired.
type MessageOutcome struct {
	Type    string          `json:"type"`
	Message json.RawMessage `json:"message,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// List is a page of objects.
type List[T any] struct {
	Object  string  `json:"object,omitempty"` // Anthropic has none
	Data    []T     `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}
