package batches

import (
	"encoding/json"
	"time"
)

// GeminiUpload is the request that begins an upload, and the answer to its end.
type GeminiUpload struct {
	File GeminiFile `json:"file"`
}

// GeminiFile is Gemini's object of a file.
type GeminiFile struct {
	Name        string    `json:"name,omitempty"` // files/ID
	DisplayName string    `json:"displayName,omitempty"`
	MimeType    string    `json:"mimeType,omitempty"`
	SizeBytes   int64     `json:"sizeBytes,omitempty,string"`
	CreateTime  time.Time `json:"createTime,omitzero"`
	ExpireTime  time.Time `json:"expirationTime,omitzero"`
	URI         string    `json:"uri,omitempty"`
	State       string    `json:"state,omitempty"`
}

// GeminiCreation is the request that creates one of Gemini's batches. The model is in its address.
type GeminiCreation struct {
	Batch struct {
		DisplayName string      `json:"displayName"`
		InputConfig GeminiInput `json:"inputConfig"`
	} `json:"batch"`
}

// GeminiInput says in which file the requests are.
type GeminiInput struct {
	FileName string `json:"fileName,omitempty"`
}

// The states of one of Gemini's batches, without the prefix BATCH_STATE_. Earlier servers have
// JOB_STATE_.
const (
	GeminiPending   = "PENDING"
	GeminiRunning   = "RUNNING"
	GeminiSucceeded = "SUCCEEDED"
	GeminiFailed    = "FAILED"
	GeminiCancelled = "CANCELLED"
	GeminiExpired   = "EXPIRED"
)

// GeminiBatch is an operation of Google's, whose metadata is a batch.
type GeminiBatch struct {
	Name     string          `json:"name"` // batches/ID
	Metadata GeminiMetadata  `json:"metadata"`
	Done     bool            `json:"done,omitempty"`
	Error    json.RawMessage `json:"error,omitempty"` // why it failed, or an error instead of a batch
}

// GeminiMetadata is what Gemini shows of a batch.
type GeminiMetadata struct {
	Type        string        `json:"@type,omitempty"`
	Model       string        `json:"model,omitempty"`
	DisplayName string        `json:"displayName,omitempty"`
	InputConfig *GeminiInput  `json:"inputConfig,omitempty"`
	Output      *GeminiOutput `json:"output,omitempty"`
	CreateTime  time.Time     `json:"createTime,omitzero"`
	EndTime     *time.Time    `json:"endTime,omitempty"`
	UpdateTime  time.Time     `json:"updateTime,omitzero"`
	Stats       GeminiStats   `json:"batchStats,omitzero"`
	State       string        `json:"state"`
}

// GeminiOutput says in which file the answers are.
type GeminiOutput struct {
	ResponsesFile string `json:"responsesFile,omitempty"`
}

// GeminiStats are the numbers of requests in one of Gemini's batches.
type GeminiStats struct {
	Requests   int64 `json:"requestCount,omitempty,string"`
	Successful int64 `json:"successfulRequestCount,omitempty,string"`
	Failed     int64 `json:"failedRequestCount,omitempty,string"`
	Pending    int64 `json:"pendingRequestCount,omitempty,string"`
}

// GeminiList is a page of Gemini's batches.
type GeminiList struct {
	Operations    []GeminiBatch `json:"operations"`
	NextPageToken string        `json:"nextPageToken,omitempty"`
}

// GeminiLine is a request in an input file.
type GeminiLine struct {
	Key     string          `json:"key"`
	Request json.RawMessage `json:"request"`
}

// GeminiResult is a line of an output file: an answer, or an error.
type GeminiResult struct {
	Key      string          `json:"key"`
	Response json.RawMessage `json:"response,omitempty"`
	Error    json.RawMessage `json:"error,omitempty"`
}
