// Package format reads what clients of the vendors' APIs ask, writes what they are
// answered with, and takes streams of server-sent events apart without changing a byte.
//
// Decode is the one place where a request is read: limits, price, route, cache, record and
// relay all go by what it returns. It promises pure functions. What a request says that
// llm.Request has a word for is put there, and everything else is kept in Extra as it stands.
// An error is a body that is not a JSON object, that servers could read in different ways,
// or whose limits are not numbers. Nothing here waits or keeps state.
//
// It is not for the formats themselves, which are packages of internal/wire, nor for telling a client that its request is wrong in detail:
// the provider does that, in its own words.
package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley/internal/serve/gateway/match"
	"parley/internal/wire/body"
	"parley/internal/wire/chat"
	"parley/internal/wire/messages"
	"parley/internal/wire/request"
	"parley/internal/wire/responses"
	"parley/llm"
)

// API is an endpoint of a vendor's API.
type API string

// The endpoints that are known.
const (
	Chat       API = "chat"         // OpenAI's chat completions
	Responses  API = "responses"    // OpenAI's responses
	Embeddings API = "embeddings"   // OpenAI's
	Models     API = "models"       // of either vendor
	Messages   API = "messages"     // Anthropic's
	Count      API = "count_tokens" // Anthropic's
)

// Path is the endpoint below a base URL.
func (a API) Path() string {
	switch a {
	case Chat:
		return "/chat/completions"
	case Messages:
		return "/messages"
	case Count:
		return "/messages/count_tokens"
	default:
		return "/" + string(a)
	}
}

// Asks says whether a call of this endpoint has a model answer, so that it has a price.
func (a API) Asks() bool {
	switch a {
	case Chat, Responses, Messages, Embeddings:
		return true
	default:
		return false
	}
}

// Dialect names the dialect in which providers answer the endpoint.
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

// Anthropic says whether the endpoint is of Anthropic's family of formats, and not OpenAI's.
func (a API) Anthropic() bool { return a == Messages || a == Count }

// Call is what a client asks for.
type Call struct {
	API API
	// Reader has what the body says. What has no word there is in the Extra of its Request.
	request.Reader
	// Digest is of all that can change the answer.
	Digest [sha256.Size]byte
}

// Turn is the part of the digest by which calls of a session are told apart in the record.
func (c *Call) Turn() (d [16]byte) {
	copy(d[:], c.Digest[:])
	return d
}

// Most is the most tokens that all answers together may have. 0: it is not said.
func (c *Call) Most() int {
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
	if err := c.finish(); err != nil {
		return nil, err
	}
	c.digest(members)
	return c, nil
}

// finish says what is wrong with the numbers of the call.
func (c *Call) finish() error {
	if c.Unlimited {
		c.Request.MaxTokens = 0
	}
	if many := max(c.Choices, c.Drafts); c.Err == nil && c.Request.MaxTokens > request.MaxCount/many {
		c.Err = fmt.Errorf("%d answers of %d tokens each: want at most %d tokens in all", many, c.Request.MaxTokens, request.MaxCount)
	}
	return c.Err
}

// setter returns what takes a member of the body in, or says that it has no place for it.
func (c *Call) setter() func(key string, value []byte) bool {
	read := chat.ReadMember
	switch c.API {
	case Responses:
		read = responses.ReadMember
	case Messages, Count:
		read = messages.ReadMember
	case Embeddings:
		return c.embeddings
	}
	return func(key string, value []byte) bool { return read(&c.Reader, key, value) }
}

// field is a member of the body: its name, and its value as it stands.
type field struct{ key, value []byte }

// digest hashes a canonical form of the body: its members in the order of their names, each
// name and value led by its length. Members that only tell whose call it is are left out.
func (c *Call) digest(members []field) {
	slices.SortFunc(members, func(a, b field) int { return bytes.Compare(a.key, b.key) })
	h := sha256.New()
	var lead [binary.MaxVarintLen64]byte
	add := func(b []byte) {
		h.Write(lead[:binary.PutUvarint(lead[:], uint64(len(b)))])
		h.Write(b)
	}
	add([]byte(c.API)) // the same words to another endpoint are another question
	for _, m := range members {
		if match.Personal(string(m.key)) {
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
