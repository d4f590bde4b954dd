package transport

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"parley/internal/provider"
	"parley/llm"
)

// Misplaced adds to an error that tells of an unknown path which address was asked, and what
// may be wrong with the base URL. Other errors stay as they are.
func (a *Answer) Misplaced(e *llm.Error) {
	if e.Status != http.StatusNotFound && e.Status != http.StatusMethodNotAllowed || a.url == nil {
		return
	}
	if strings.Contains(strings.ToLower(e.Message+e.Code), "model") {
		return // the path was right, and the model's name is not
	}
	at := *a.url
	at.RawQuery, at.Fragment = "", ""
	e.Message = fmt.Sprintf("%d from %s: %s%s", e.Status, at.Redacted(), e.Message, advice(&at))
}

// advice is what to do about the base URL of an address that was not found.
func advice(at *url.URL) string {
	path := at.Path
	switch {
	case strings.Contains(path, "/v1/v1/"):
		return "; base_url should end in one /v1"
	case provider.Unversioned(at.String()):
		return "; does base_url lack the /v1 at its end?"
	case strings.Count(path, "/chat/completions")+strings.Count(path, "/messages")+strings.Count(path, "/responses") > 1:
		return "; base_url is everything before the endpoint, and should end in /v1"
	default:
		return ""
	}
}
