// Package format reads the requests of clients of the vendors' APIs, writes their answers, and splits streams
// of events without changing a byte.
//
// Decode is the one place where a request is read: limits, price, route, cache, record and relay all use its
// result. It keeps members that llm.Request has no field for in Extra, unchanged. It refuses a body that is
// not a JSON object, that servers could read in different ways, or whose limits are not numbers. All functions
// are pure.
//
// It is not for the formats themselves, which are packages of internal/wire, or for checking a request in
// detail: the provider does that.
package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/ask/wire/responses"
	"parley/llm"
)

// API is an endpoint of a vendor's API.
type API string

// The endpoints.
const (
	Chat       API = "chat"         // OpenAI's chat completions
	Responses  API = "responses"    // OpenAI's responses
	Embeddings API = "embeddings"   // OpenAI's
	Models     API = "models"       // of either vendor
	Messages   API = "messages"     // Anthropic's
	Count      API = "count_tokens" // Anthropic's
	Tokens     API = "tokens"       // vLLM's, from token ids to token ids
	Generate   API = "generate"     // SGLang's, from token ids to token ids
)

// APIs returns all endpoints.
func APIs() []API {
	return []API{Chat, Responses, Embeddings, Models, Messages, Count, Tokens, Generate}
}

// Path returns the path of the endpoint below a base URL.
func (a API) Path() string {
	switch a {
	case Chat:
		return "/chat/completions"
	case Messages:
		return "/messages"
	case Count:
		return "/messages/count_tokens"
	case Tokens:
		return openai.VLLM
	case Generate:
		return openai.SGLang
	default:
		return "/" + string(a)
	}
}

// Asks reports whether a model answers this endpoint, so that a call has a price.
func (a API) Asks() bool {
	switch a {
	case Chat, Responses, Messages, Embeddings, Tokens, Generate:
		return true
	default:
		return false
	}
}

// Dialect returns the dialect of the endpoint.
func (a API) Dialect() string {
	switch a {
	case Messages, Count:
		return "anthropic"
	case Responses:
		return "responses"
	default:
		return "openai"
	}
}

// Anthropic reports whether the endpoint has Anthropic's format, and not OpenAI's.
func (a API) Anthropic() bool { return a == Messages || a == Count }

// Exact reports whether prompts and answers are token ids. Such an endpoint is at the root of a server's address, and names
// no model.
func (a API) Exact() bool { return a == Tokens || a == Generate }

// Served returns the name of the model of a call that names none and asks the one that the server serves, or "" if a call
// must name one.
func (a API) Served() string {
	if a.Exact() {
		return "served"
	}
	return ""
}

// Call is a decoded request.
type Call struct {
	API API
	// Reader has what the body says. Members without a field are in the Extra of its Request.
	request.Reader
	// Digest hashes everything that can change the answer.
	Digest [sha256.Size]byte
}

// Turn returns the part of the digest that identifies the call in the record of a session.
func (c *Call) Turn() (d [16]byte) {
	copy(d[:], c.Digest[:])
	return d
}

// MaxTokens returns the maximum number of tokens of all answers together. 0: the request does not say.
func (c *Call) MaxTokens() int {
	return llm.MulTokens(c.Request.MaxTokens, max(c.Choices, c.Drafts))
}

var errNoObject = errors.New("the body is not a JSON object")

// Decode reads the body of a call.
func Decode(api API, b []byte) (*Call, error) {
	c := &Call{API: api, Reader: request.Reader{Choices: 1}}
	if api == Models {
		return c, nil
	}
	if err := check(b); err != nil {
		return nil, err
	}
	set := c.setter()
	members := make([]field, 0, 16)
	ok := body.Members(b, func(key, value []byte) bool {
		members = append(members, field{key, value})
		if string(value) != "null" && !set(string(key), value) {
			c.extra(string(key), value)
		}
		return true
	})
	if !ok {
		return nil, errNoObject
	}
	if api.Exact() {
		if err := openai.Check(&c.Reader); err != nil {
			return nil, err
		}
	}
	if err := c.finish(); err != nil {
		return nil, err
	}
	c.digest(members)
	return c, nil
}

// finish checks the numbers of the call.
func (c *Call) finish() error {
	if c.Unlimited {
		c.Request.MaxTokens = 0
	}
	if many := max(c.Choices, c.Drafts); c.Err == nil && c.Request.MaxTokens > request.MaxCount/many {
		c.Err = fmt.Errorf("%d answers of %d tokens each: want at most %d tokens in all", many, c.Request.MaxTokens, request.MaxCount)
	}
	return c.Err
}

// setter returns the function that reads a member of the body. It returns false for a member without a field.
func (c *Call) setter() func(key string, value []byte) bool {
	read := openai.ReadMember
	switch c.API {
	case Responses:
		read = responses.ReadMember
	case Messages, Count:
		read = anthropic.ReadMember
	case Embeddings:
		return c.embeddings
	case Tokens, Generate:
		return func(key string, value []byte) bool { return openai.Read(&c.Reader, c.API.Path(), key, value) }
	}
	return func(key string, value []byte) bool { return read(&c.Reader, key, value) }
}

// field is a member of the body.
type field struct{ key, value []byte }

// digest hashes the members of the body in the order of their names, each name and value with its length. It
// leaves out members that only say whose call it is.
func (c *Call) digest(members []field) {
	slices.SortFunc(members, func(a, b field) int { return bytes.Compare(a.key, b.key) })
	h := sha256.New()
	var lead [binary.MaxVarintLen64]byte
	add := func(b []byte) {
		h.Write(lead[:binary.PutUvarint(lead[:], uint64(len(b)))])
		h.Write(b)
	}
	add([]byte(c.API)) // the same body for another endpoint is another question
	for _, m := range members {
		if Personal(string(m.key)) {
			continue
		}
		add(m.key)
		add(m.value)
	}
	h.Sum(c.Digest[:0])
}

func (c *Call) extra(key string, value []byte) {
	if c.Request.Extra == nil {
		c.Request.Extra = map[string]json.RawMessage{}
	}
	c.Request.Extra[key] = request.Raw(value)
}

// embeddings reads a request for embeddings: each text is a message.
func (c *Call) embeddings(key string, v []byte) bool {
	switch key {
	case "model":
		return c.ReadModel(v)
	case "input":
		var one string
		if request.Text(v, &one) {
			c.Request.Messages = []llm.Message{llm.User(one)}
			return true
		}
		return body.Elements(v, func(e []byte) bool {
			one := string(e)
			request.Text(e, &one)
			c.Request.Messages = append(c.Request.Messages, llm.User(one))
			return true
		})
	default:
		return false
	}
}
