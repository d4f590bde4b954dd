// Package dialect opens a provider: it picks the wire format that the provider
// names, and makes a model of the two.
//
// It promises nothing of its own; each format is a package below. It is not for the
// simulated provider, which is no wire format and is opened where a run is put together.
package dialect

import (
	"fmt"

	"parley/internal/dialect/anthropic"
	"parley/internal/dialect/openai"
	"parley/internal/dialect/responses"
	"parley/internal/provider"
	"parley/llm"
)

// Open makes a model of a provider. It reads the provider's key from the environment,
// and opens no connection. The result is an io.Closer too, which closes idle connections.
func Open(p provider.Provider) (llm.Model, error) {
	switch p.Dialect {
	case "openai":
		return open(openai.New(p))
	case "responses":
		return open(responses.New(p))
	case "anthropic":
		return open(anthropic.New(p))
	case "sim", "go":
		return nil, fmt.Errorf("dialect: provider %s: the %s dialect is not a wire format: package app opens it", p.Name, p.Dialect)
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("dialect: %w", err)
	}
	return nil, fmt.Errorf("dialect: provider %s: %q is not a dialect", p.Name, p.Dialect)
}

// open keeps a nil pointer from becoming a model that is not nil.
func open[M llm.Model](m M, err error) (llm.Model, error) {
	if err != nil {
		return nil, err // it names the provider
	}
	return m, nil
}
