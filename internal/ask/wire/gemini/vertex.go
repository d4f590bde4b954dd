package gemini

import (
	"net/http"

	"parley/internal/ask/provider"
	"parley/llm"
)

// TierHeader is the header that names the service tier on Vertex AI, which refuses a serviceTier in the body. From Google's
// pages "Flex PayGo" and "Priority PayGo" (docs.cloud.google.com), read in November 2026.
const TierHeader = "X-Vertex-Ai-Llm-Shared-Request-Type"

// AppendVertexRequest is AppendRequest for Vertex AI, where the tier is in a header.
func AppendVertexRequest(dst []byte, req *llm.Request, c provider.Capability, stream bool) ([]byte, []string, error) {
	if req.Tier != "" {
		plain := *req
		plain.Tier, req = "", &plain
	}
	return AppendRequest(dst, req, c, stream)
}

// VertexHeader returns the header of a request to Vertex AI. The standard tier has none, whatever vendor's name for it a
// client of the gateway uses.
func VertexHeader(req *llm.Request) http.Header {
	switch req.Tier {
	case "", standard, "auto", "default", "standard_only":
		return nil
	}
	return http.Header{TierHeader: {req.Tier}}
}

const standard = "standard"

// Traffic returns Vertex AI's name of a service tier, for its answers.
func Traffic(tier string) string {
	switch tier {
	case "flex":
		return "ON_DEMAND_FLEX"
	case "priority":
		return "ON_DEMAND_PRIORITY"
	}
	return "ON_DEMAND"
}

// tier returns the service tier that an answer names. What Vertex AI has beyond these is charged as the standard tier.
func (u *wireUsage) tier() string {
	switch {
	case u.Tier != "":
		return u.Tier
	case u.Traffic == "":
		return ""
	}
	for _, tier := range []string{"flex", "priority"} {
		if u.Traffic == Traffic(tier) {
			return tier
		}
	}
	return standard
}
