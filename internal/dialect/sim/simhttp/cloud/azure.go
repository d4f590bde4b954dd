// Package cloud is what Azure, AWS and Google change about the formats of the simulated server: where the model and the version
// are, and how errors read.
//
// It promises nothing of its own. It does not answer: package simhttp does, with the formats of the vendors.
package cloud

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/dialect/sim/simhttp/endpoint"
)

// IsAzure reports whether a request is for one of Azure's paths.
func IsAzure(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/openai/") }

// AzureAddress reads the deployment in the address, which counts instead of the model in the body.
func AzureAddress(r *http.Request, a *check.Ask) *endpoint.Error {
	if r.URL.Query().Get("api-version") == "" {
		return &endpoint.Error{Status: http.StatusNotFound}
	}
	if model := r.PathValue("model"); model != "" {
		a.Request.Model = model
	}
	return nil
}

// Versioned is an endpoint at one of Azure's older paths, which need a version.
func Versioned(inner endpoint.Func) endpoint.Func {
	return func(w http.ResponseWriter, r *http.Request) *endpoint.Error {
		if r.URL.Query().Get("api-version") == "" {
			return AzureError(&endpoint.Error{Status: http.StatusNotFound}, r)
		}
		return inner(w, r)
	}
}

// AzureError writes an error as Azure does: its code is the status, and there is no type.
func AzureError(e *endpoint.Error, r *http.Request) *endpoint.Error {
	out := *e
	switch e.Status {
	case http.StatusUnauthorized:
		out.Message = "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource."
	case http.StatusNotFound:
		out.Message = "Resource not found"
	case http.StatusTooManyRequests:
		if e.Refusal == nil {
			return e
		}
		version, what := r.URL.Query().Get("api-version"), "token"
		if version == "" {
			version = "v1"
		}
		if e.Refusal.What == "requests" {
			what = "call"
		}
		out.Message = fmt.Sprintf("Requests to the ChatCompletions_Create Operation under Azure OpenAI API version %s have exceeded %s rate limit of your current OpenAI S0 pricing tier. Please retry after %d seconds.",
			version, what, int(math.Ceil(e.Refusal.After.Seconds())))
	default:
		return e
	}
	out.Type, out.Code = "", strconv.Itoa(e.Status)
	return &out
}
