package batches

import (
	"encoding/json"
	"strings"
	"time"
)

// MistralCreation is the request that creates one of Mistral's batches.
type MistralCreation struct {
	InputFiles   []string       `json:"input_files"`
	Model        string         `json:"model"`
	Endpoint     string         `json:"endpoint"`
	Metadata     map[string]any `json:"metadata,omitempty"`
	TimeoutHours int            `json:"timeout_hours,omitempty"`
}

// The states of one of Mistral's batches.
const (
	MistralQueued     = "QUEUED"
	MistralRunning    = "RUNNING"
	MistralSuccess    = "SUCCESS"
	MistralFailed     = "FAILED"
	MistralTimeout    = "TIMEOUT_EXCEEDED"
	MistralCancelling = "CANCELLATION_REQUESTED"
	MistralCancelled  = "CANCELLED"
)

// MistralBatch is Mistral's object of a batch. Times are in Unix seconds. Completed counts the
// requests that failed too.
type MistralBatch struct {
	ID          string         `json:"id"`
	Object      string         `json:"object"`
	InputFiles  []string       `json:"input_files"`
	Metadata    map[string]any `json:"metadata"`
	Endpoint    string         `json:"endpoint"`
	Model       string         `json:"model"`
	OutputFile  *string        `json:"output_file"`
	ErrorFile   *string        `json:"error_file"`
	Errors      []MistralFault `json:"errors"`
	Status      string         `json:"status"`
	CreatedAt   int64          `json:"created_at"`
	StartedAt   *int64         `json:"started_at"`
	CompletedAt *int64         `json:"completed_at"`
	Total       int            `json:"total_requests"`
	Completed   int            `json:"completed_requests"`
	Succeeded   int            `json:"succeeded_requests"`
	Failed      int            `json:"failed_requests"`
}

// MistralFault is an error that requests of a batch had, and how many.
type MistralFault struct {
	Message string `json:"message"`
	Count   int    `json:"count"`
}

// MistralList is a page of Mistral's batches, the newest first.
type MistralList struct {
	Data   []MistralBatch `json:"data"`
	Object string         `json:"object"`
	Total  int            `json:"total"`
}

// TogetherCreation is the request that creates one of Together's batches.
type TogetherCreation struct {
	InputFileID      string `json:"input_file_id"`
	Endpoint         string `json:"endpoint"`
	CompletionWindow string `json:"completion_window,omitempty"`
}

// TogetherCreated is the answer to it.
type TogetherCreated struct {
	Batch   *TogetherBatch `json:"job"`
	Warning string         `json:"warning,omitempty"`
}

// The states of one of Together's batches.
const (
	TogetherValidating = "VALIDATING"
	TogetherInProgress = "IN_PROGRESS"
	TogetherCompleted  = "COMPLETED"
	TogetherFailed     = "FAILED"
	TogetherExpired    = "EXPIRED"
	TogetherCancelled  = "CANCELLED"
)

// TogetherBatch is Together's object of a batch. Progress is in percent.
type TogetherBatch struct {
	ID            string     `json:"id"`
	UserID        string     `json:"user_id,omitempty"`
	InputFileID   string     `json:"input_file_id"`
	FileSizeBytes int        `json:"file_size_bytes,omitempty"`
	Status        string     `json:"status"`
	Deadline      time.Time  `json:"job_deadline,omitzero"`
	CreatedAt     time.Time  `json:"created_at,omitzero"`
	Endpoint      string     `json:"endpoint"`
	Progress      float64    `json:"progress"`
	ModelID       string     `json:"model_id,omitempty"`
	OutputFileID  string     `json:"output_file_id,omitempty"`
	ErrorFileID   string     `json:"error_file_id,omitempty"`
	Error         string     `json:"error,omitempty"`
	CompletedAt   *time.Time `json:"completed_at,omitempty"`
}

// XAICreation is the request that creates one of xAI's batches.
type XAICreation struct {
	Name        string `json:"name"`
	InputFileID string `json:"input_file_id"`
}

// XAIBatch is xAI's object of a batch. It has no state: its counts show it. Times may be dates.
type XAIBatch struct {
	ID          string          `json:"batch_id"`
	Name        string          `json:"name"`
	CreateTime  string          `json:"create_time,omitempty"`
	ExpireTime  string          `json:"expire_time,omitempty"`
	CancelTime  *string         `json:"cancel_time"`
	CancelledBy *string         `json:"cancel_by_xai_message"` // why xAI ended it
	State       XAIState        `json:"state"`
	InputFileID string          `json:"input_file_id,omitempty"`
	Error       json.RawMessage `json:"error,omitempty"` // instead of a batch
}

// XAIState are the numbers of requests in one of xAI's batches.
type XAIState struct {
	Requests  int `json:"num_requests"`
	Pending   int `json:"num_pending"`
	Success   int `json:"num_success"`
	Error     int `json:"num_error"`
	Cancelled int `json:"num_cancelled"`
}

// XAIList is a page of xAI's batches.
type XAIList struct {
	Batches []XAIBatch `json:"batches"`
	Next    string     `json:"pagination_token,omitempty"`
}

// XAIResults is a page of the results of one of xAI's batches.
type XAIResults struct {
	Results []XAIResult `json:"results"`
	Next    string      `json:"pagination_token,omitempty"`
}

// XAIResult is the result of a request in one of xAI's batches: an answer, or what went wrong.
type XAIResult struct {
	ID     string `json:"batch_request_id"`
	Result struct {
		Response *XAIResponse `json:"response,omitempty"`
		Error    XAIError     `json:"error,omitempty"`
	} `json:"batch_result"`
}

// XAIError says why a request has no answer. It is a text by xAI's pages and its client for TypeScript, and an object with a
// message by its protocol buffers and other clients.
type XAIError string

// UnmarshalJSON reads either. What is neither is taken as it is.
func (e *XAIError) UnmarshalJSON(raw []byte) error {
	var text string
	var object struct {
		Message string `json:"message"`
	}
	switch {
	case json.Unmarshal(raw, &text) == nil:
	case json.Unmarshal(raw, &object) == nil && object.Message != "":
		text = object.Message
	default:
		text = string(raw)
	}
	*e = XAIError(text)
	return nil
}

// XAIResponse holds the answer to a chat completion.
type XAIResponse struct {
	Chat json.RawMessage `json:"chat_get_completion"`
}

// XAICancelled is the error of a request in a batch that was cancelled first.
const XAICancelled = "Batch cancelled"

// AzureBatch is Azure's object of a batch: as OpenAI's, but its times may be texts, and its status may begin with a capital letter.
type AzureBatch struct {
	ID            string          `json:"id"`
	Status        string          `json:"status"`
	InputFileID   string          `json:"input_file_id"`
	OutputFileID  *string         `json:"output_file_id"`
	ErrorFileID   *string         `json:"error_file_id"`
	CreatedAt     Moment          `json:"created_at"`
	ExpiresAt     Moment          `json:"expires_at"`
	RequestCounts Counts          `json:"request_counts"`
	Errors        *Faults         `json:"errors"`
	Metadata      map[string]any  `json:"metadata"`
	Error         json.RawMessage `json:"error,omitempty"` // instead of a batch
}

// OpenAI returns the batch as OpenAI writes it.
func (b *AzureBatch) OpenAI() *Batch {
	return &Batch{
		ID: b.ID, Status: strings.ToLower(b.Status), InputFileID: b.InputFileID, OutputFileID: b.OutputFileID, ErrorFileID: b.ErrorFileID,
		CreatedAt: int64(b.CreatedAt), ExpiresAt: int64(b.ExpiresAt), RequestCounts: b.RequestCounts, Errors: b.Errors, Metadata: b.Metadata, Error: b.Error,
	}
}

// Moment is a time in seconds since 1970, written as such or as a text. Zero: unknown.
type Moment int64

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
