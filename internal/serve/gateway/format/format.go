// Package format reads what clients of the vendors' APIs ask, writes what they are
// answered with, and takes streams of server-sent events apart without changing a byte.
//
// It promises pure functions that make something of any bytes: what a request says that
// llm.Request has a word for is put there, everything else is kept in Extra as it stands,
// and only a body that is no JSON object is an error. Nothing here waits or keeps state.
//
// It is not for speaking to providers (package dialect and below), whose formats these are
// seen from the other side, nor for telling a client that its request is wrong in detail:
// the provider does that, in its own words.
package format

import (
	"crypto/sha256"
	"errors"

	"parley/internal/dialect/wire/body"
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

// Anthropic says whether the endpoint is of Anthropic's family of formats, and not OpenAI's.
func (a API) Anthropic() bool { return a == Messages || a == Count }

// Call is what a client asks for.
type Call struct {
	API API
	// Request is the question, as far as llm.Request has words for it; its Model is as the
	// client wrote it. The rest is in its Extra.
	Request llm.Request
	Stream  bool
	// Usage says that the stream is to end with what was used.
	Usage bool
	// Choices is how many answers are wanted.
	Choices int
	// Strange names what was put into Request as mere text, since there is no word for it:
	// it cannot be said in another format.
	Strange []string
	// Digest is of all that can change the answer.
	Digest [16]byte
}

var errNoObject = errors.New("the body is not a JSON object")

// Decode reads the body of a call.
func Decode(api API, b []byte) (*Call, error) {
	c := &Call{API: api, Choices: 1}
	if api == Models {
		return c, nil
	}
	set := c.setter()
	ok := body.Members(b, func(key, value []byte) bool {
		c.hash(key, value)
		if string(value) != "null" && !set(string(key), value) {
			c.extra(string(key), value)
		}
		return true
	})
	if !ok {
		return nil, errNoObject
	}
	c.Digest[0] ^= byte(len(api)) // the same words to another endpoint are another question
	return c, nil
}

// setter returns what takes a member of the body in, or says that it has no place for it.
func (c *Call) setter() func(key string, value []byte) bool {
	switch c.API {
	case Responses:
		return c.responses
	case Messages, Count:
		return c.messages
	case Embeddings:
		return c.embeddings
	default:
		return c.chat
	}
}

// hash adds a member to the digest. The order of members does not matter, and neither do
// those that only tell whose call it is.
func (c *Call) hash(key, value []byte) {
	switch string(key) {
	case "user", "metadata", "safety_identifier", "prompt_cache_key", "session_id", "cache_salt":
		return
	}
	h := sha256.New()
	h.Write(key)
	h.Write([]byte{0})
	h.Write(value)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	for i := range c.Digest {
		c.Digest[i] ^= sum[i]
	}
}

func (c *Call) extra(key string, value []byte) {
	if c.Request.Extra == nil {
		c.Request.Extra = map[string]jsonRaw{}
	}
	c.Request.Extra[key] = append(jsonRaw(nil), value...)
}

func (c *Call) strange(what string) { c.Strange = append(c.Strange, what) }

// embeddings reads a request for embeddings: each text is a message.
func (c *Call) embeddings(key string, v []byte) bool {
	switch key {
	case "model":
		return text(v, &c.Request.Model)
	case "input":
		var one string
		if text(v, &one) {
			c.Request.Messages = []llm.Message{llm.User(one)}
			return true
		}
		return body.Elements(v, func(e []byte) bool {
			one := string(e)
			text(e, &one)
			c.Request.Messages = append(c.Request.Messages, llm.User(one))
			return true
		})
	default:
		return false
	}
}
