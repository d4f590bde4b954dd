// Package dialect opens a provider: it combines the provider's wire format with a connection. There are two ways to use
// one: as a model (Open), and over its batch API (OpenBatches).
//
// Each wire format is a package below internal/ask/wire. The simulated provider has none: package app opens it. Package
// batch follows batches; here are only the requests to the batch APIs.
package dialect

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"parley/internal/ask/credential"
	"parley/internal/ask/provider"
	"parley/internal/ask/redact"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/bedrock"
	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/responses"
	"parley/llm"
)

// Codec returns the codec of a dialect, and false if the dialect is not a wire format.
func Codec(dialect string) (transport.Codec, bool) {
	bearer := transport.Config{KeyPrefix: "Bearer "}
	switch dialect {
	case "openai":
		return transport.Codec{
			Path: openai.Path, Continue: openai.ContinuePath, Config: bearer, Append: openai.AppendRequest, Decode: openai.DecodeResponse,
			Assemble: func() transport.Assembler { return new(openai.Assembler) },
		}, true
	case "responses":
		return transport.Codec{
			Path: responses.Path, Config: bearer, Append: responses.AppendRequest, Decode: responses.DecodeResponse,
			Assemble: func() transport.Assembler { return new(responses.Assembler) },
		}, true
	case "anthropic":
		return transport.Codec{
			Path: anthropic.Path, Append: anthropic.AppendRequest, Decode: anthropic.DecodeResponse, MaxTokens: anthropic.MaxTokens,
			Assemble: func() transport.Assembler { return new(anthropic.Assembler) },
			Config:   transport.Config{KeyHeader: "X-Api-Key", Header: map[string]string{"Anthropic-Version": anthropic.Version}},
		}, true
	case "gemini":
		return transport.Codec{
			PathOf: gemini.Path, Append: gemini.AppendRequest, Decode: gemini.DecodeResponse,
			Assemble: func() transport.Assembler { return new(gemini.Assembler) },
			Config:   transport.Config{KeyHeader: "X-Goog-Api-Key"},
		}, true
	}
	if dialect == "bedrock" {
		return transport.Codec{
			PathOf: bedrock.Path, Append: bedrock.AppendRequest, Decode: bedrock.DecodeResponse, Config: bearer,
			Assemble: func() transport.Assembler { return new(bedrock.Assembler) },
		}, true
	}
	return transport.Codec{}, false
}

// CodecOf returns the codec of a provider: that of its dialect, at the provider's paths.
func CodecOf(p provider.Provider) (transport.Codec, bool) {
	codec, ok := Codec(p.Dialect)
	switch {
	case p.Signs():
		codec.Config.Sign = lateSigner(p.BaseURL)
	case p.OnVertex():
		codec.Append, codec.Header = gemini.AppendVertexRequest, gemini.VertexHeader
	case p.APIVersion == "":
	case p.Dialect == "anthropic":
		codec.PathOf, codec.Append, codec.Config.Header = anthropic.VertexPath, anthropic.AppendVertexRequest, nil
	default:
		path := codec.Path
		codec.PathOf = func(model string, _ bool) string { return AzurePath(p.APIVersion, path, model) }
	}
	return codec, ok
}

// Dropped returns the parameters of a request that its model does not take, as Response.Dropped has them. The request has messages. A
// provider without a wire format takes everything.
func Dropped(p provider.Provider, req *llm.Request) []string {
	codec, ok := CodecOf(p)
	if !ok {
		return nil
	}
	_, model := llm.SplitModel(req.Model)
	_, dropped, _ := codec.Append(nil, req, p.Capability(model), false) // an error is that of the call
	return dropped
}

// AzurePath returns the path of an endpoint of Azure. Only responses name the model in the body.
func AzurePath(version, path, model string) string {
	query := "?api-version=" + version
	if path == responses.Path {
		return path + query
	}
	return "/deployments/" + url.PathEscape(model) + path + query
}

// lateSigner returns a function that signs requests to Bedrock.
func lateSigner(address string) func(context.Context, *http.Request, []byte) (*redact.Redactor, error) {
	signer, err := credential.NewSigner("bedrock", address)
	return func(ctx context.Context, r *http.Request, body []byte) (*redact.Redactor, error) {
		if err != nil {
			return nil, &llm.Error{Kind: llm.KindAuth, Message: err.Error(), Err: err}
		}
		return signer.Sign(ctx, r, body)
	}
}

// Open returns the model of a provider, with keys that several models may share; nil: it reads the provider's key from the environment. It opens
// no connection. The result is also an io.Closer, which closes idle connections.
func Open(p provider.Provider, keys *credential.Source) (llm.Model, error) {
	codec, ok := CodecOf(p)
	if !ok && (p.Dialect == "sim" || p.Dialect == "go") {
		return nil, fmt.Errorf("provider %s: the %s dialect is not a wire format: package app opens it", p.Name, p.Dialect)
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("provider %s: unknown dialect %q; want one of openai, responses, anthropic, bedrock, gemini", p.Name, p.Dialect)
	}
	m, err := transport.Open(p, codec, keys)
	if err != nil {
		return nil, err // it names the provider
	}
	return m, nil
}
