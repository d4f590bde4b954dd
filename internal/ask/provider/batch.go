package provider

import (
	"cmp"
	"slices"
	"strings"
)

// Batch describes a batch API and its limits. Zero means what is usual for the dialect, or for the API.
type Batch struct {
	API      string `json:"api,omitempty" doc:"The vendor whose batch API it is." default:"the preset's, or the dialect's"`
	Requests int    `json:"requests,omitempty" doc:"The most requests of one batch." default:"the API's: 50000 for openai, 100000 for anthropic" range:"1..1000000"`
	Bytes    int64  `json:"bytes,omitempty" doc:"The most bytes of one batch." default:"the API's: 200 MB for openai, 256 MB for anthropic" range:"10000..1099511627776"`
	PerHour  int    `json:"per_hour,omitempty" doc:"The most batches created in an hour." default:"2000" range:"1..1000000"`
	Tokens   int    `json:"tokens,omitempty" doc:"The most prompt tokens of one model that may wait in batches." default:"learned when a batch is refused" aliases:"enqueued_tokens" range:"1..1125899906842624"`
}

// batchAPI is a batch API: who speaks it, and how much a batch may hold there.
type batchAPI struct {
	name     string
	dialects []string // that it takes requests of; the API of the first one's name is its own
	requests int
	bytes    int64
}

// batchAPIs lists the batch APIs. The limits are from the vendors' pages, as far as they could be read in November 2026: OpenAI, API
// reference; Anthropic, Batch processing; Microsoft, Azure OpenAI batch deployments; Google, Batch API (2 GB; no number of requests).
func batchAPIs() []batchAPI {
	return []batchAPI{
		{"anthropic", []string{"anthropic"}, 100_000, 256_000_000},
		{"azure", []string{"openai", "responses"}, 100_000, 200_000_000},
		{"gemini", []string{"gemini"}, 100_000, 2_000_000_000},
		{"openai", []string{"openai", "responses"}, 50_000, 200_000_000},
	}
}

// BatchAPIs lists the names of the batch APIs.
func BatchAPIs() (names []string) {
	for _, a := range batchAPIs() {
		names = append(names, a.name)
	}
	return names
}

// BatchAPI returns the name of p's batch API, or "" if it has none.
func (p Provider) BatchAPI() string {
	if p.Batch == nil || p.InProcess() {
		return ""
	}
	name := p.Batch.API
	if name == "" {
		name = p.Dialect
	}
	if name == "responses" {
		name = "openai"
	}
	for _, a := range batchAPIs() {
		if a.name == name && slices.Contains(a.dialects, p.Dialect) {
			return name
		}
	}
	return ""
}

// OnVertex reports whether p is Gemini's format on Vertex AI, which differs in tiers and batches.
func (p Provider) OnVertex() bool {
	return p.Dialect == "gemini" && strings.Contains(p.BaseURL, "/publishers/")
}

// BatchBucket returns who keeps the requests and results of p's batches in a bucket of the user's, which is not supported, or "".
func (p Provider) BatchBucket() string {
	switch {
	case p.Dialect == "bedrock":
		return "AWS Bedrock"
	case p.OnVertex(), p.Dialect == "anthropic" && p.APIVersion == VertexVersion:
		return "Vertex AI"
	}
	return ""
}

// WhyNoBatch says why p cannot have a batch API, to follow its name, or "".
func (p Provider) WhyNoBatch() string {
	if p.BatchBucket() == "" {
		return ""
	}
	return ", which reads the requests of batches from a bucket and writes the results to one, and that is not supported"
}

// BatchLimits returns the limits of p's batch API, and false if it has none.
func (p Provider) BatchLimits() (Batch, bool) {
	name := p.BatchAPI()
	for _, a := range batchAPIs() {
		if a.name == name {
			b := *p.Batch
			b.Requests, b.Bytes, b.PerHour = cmp.Or(b.Requests, a.requests), cmp.Or(b.Bytes, a.bytes), cmp.Or(b.PerHour, 2000)
			return b, true
		}
	}
	return Batch{}, false
}

// checkBatch refuses a batch API that the dialect does not have.
func (p Provider) checkBatch(bad complain) {
	b := p.Batch
	if b == nil {
		return
	}
	switch who := p.BatchBucket(); {
	case who != "":
		bad(fieldPath{"batch"}, "%s reads the requests of batches from a bucket and writes the results to one, which is not supported: leave batch out", who)
	case p.InProcess() || !slices.Contains(Dialects(), p.Dialect) || p.BatchAPI() != "":
	case b.API == "":
		bad(fieldPath{"batch"}, "the dialect %s has no batch API: leave batch out", p.Dialect)
	case !slices.Contains(BatchAPIs(), b.API):
		bad(fieldPath{"batch", "api"}, "%s", unknownName(b.API, BatchAPIs()))
	default:
		bad(fieldPath{"batch", "api"}, "the batch API %s does not take requests of the dialect %s", b.API, p.Dialect)
	}
}
