// Package format reads the requests of clients of the vendors' APIs, writes their answers, and splits streams
// of events without changing a byte.
//
// Decode is the one place where a request is read: limits, price, route, cache, record and relay all use its
// result. It keeps members that llm.Request has no field for in Extra, unchanged. It refuses a body that is
// not a JSON object, that servers could read in different ways, or whose limits are not numbers. All functions
// are pure.
//
// format.go reads requests, answer.go writes answers and reads the events of streams, and match.go compares requests
// with recorded ones. The formats themselves are packages of internal/ask/wire. The provider checks a request in
// detail.
package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/gemini"
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
	Models     API = "models"       // OpenAI's
	Messages   API = "messages"     // Anthropic's
	Count      API = "count_tokens" // Anthropic's
	Tokens     API = "tokens"       // vLLM's, from token ids to token ids
	Generate   API = "generate"     // SGLang's, from token ids to token ids

	Gemini      API = "generate_content"    // Gemini's
	GeminiCount API = "gemini_count_tokens" // Gemini's

	Files          API = "files"           // OpenAI's, of requests and results of batches
	Batches        API = "batches"         // OpenAI's
	MessageBatches API = "message_batches" // Anthropic's

	AnthropicModels API = "anthropic_models" // Anthropic's
	GeminiModels    API = "gemini_models"    // Gemini's
)

// APIs returns all endpoints.
func APIs() []API {
	return []API{Chat, Responses, Embeddings, Models, Messages, Count, Tokens, Generate, Gemini, GeminiCount, Files, Batches, MessageBatches, AnthropicModels, GeminiModels}
}

// PathOf returns the path of the endpoint below a base URL. Only Gemini's depends on the model.
func (a API) PathOf(model string, stream bool) string {
	switch a {
	case Gemini:
		return gemini.Path(model, stream)
	case GeminiCount:
		return gemini.CountPath(model)
	default:
		return a.Path()
	}
}

// Path is PathOf for an endpoint whose path does not depend on the model.
func (a API) Path() string {
	switch a {
	case Chat:
		return "/chat/completions"
	case Messages:
		return "/messages"
	case Count:
		return "/messages/count_tokens"
	case Tokens:
		return openai.VLLMGeneratePath
	case Generate:
		return openai.SGLangGeneratePath
	case MessageBatches:
		return "/messages/batches"
	case AnthropicModels, GeminiModels:
		return Models.Path()
	default:
		return "/" + string(a)
	}
}

// Asks reports whether a model answers this endpoint, so that a call has a price.
func (a API) Asks() bool {
	switch a {
	case Chat, Responses, Messages, Embeddings, Tokens, Generate, Gemini:
		return true
	default:
		return false
	}
}

// Dialect returns the dialect of the endpoint.
func (a API) Dialect() string {
	switch a {
	case Messages, Count, MessageBatches, AnthropicModels:
		return "anthropic"
	case Gemini, GeminiCount, GeminiModels:
		return "gemini"
	case Responses:
		return "responses"
	default:
		return "openai"
	}
}

// Anthropic reports whether the endpoint has Anthropic's format.
func (a API) Anthropic() bool {
	return a == Messages || a == Count || a == MessageBatches || a == AnthropicModels
}

// Batched reports whether the endpoint is of a batch API.
func (a API) Batched() bool { return a == Files || a == Batches || a == MessageBatches }

// Google reports whether the endpoint has Gemini's format.
func (a API) Google() bool { return a == Gemini || a == GeminiCount || a == GeminiModels }

// Counts reports whether the endpoint counts tokens.
func (a API) Counts() bool { return a == Count || a == GeminiCount }

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
	// Limited is the limit on the tokens of an answer that LimitOutput has set; 0: the call has its own.
	Limited int
	// limit is the member of the body that limits them, as the client wrote it.
	limit string
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

// LimitOutput makes the call ask for at most n tokens for each answer, also where it does not say how many it wants. Its Digest is about
// what the client sent. 0: there is no limit.
func (c *Call) LimitOutput(n int) {
	if n > 0 && c.API.Asks() && c.API != Embeddings && (c.Request.MaxTokens == 0 || c.Request.MaxTokens > n) {
		c.Request.MaxTokens, c.Limited = n, n
	}
}

// LimitName returns the name of the member that limits the tokens of an answer, for errors.
func (c *Call) LimitName() string {
	if c.limit != "" {
		return c.limit
	}
	within, names := limitMembers(c.API, "max_completion_tokens")
	return strings.TrimPrefix(within+"."+names[0], ".")
}

// limitMembers returns the members that limit the tokens of an answer, and the object that has them; empty: the body itself. The first is the
// one to add to a body without any; of chat completions it depends on the server.
func limitMembers(api API, chat string) (within string, names []string) {
	switch api {
	case Responses:
		return "", []string{"max_output_tokens"}
	case Messages:
		return "", []string{"max_tokens"}
	case Gemini:
		return "generationConfig", []string{"maxOutputTokens"}
	case Tokens:
		return "sampling_params", []string{"max_tokens", "max_new_tokens"}
	case Generate:
		return "sampling_params", []string{"max_new_tokens", "max_tokens"}
	default:
		return "", []string{chat, "max_tokens", "max_completion_tokens"}
	}
}

var errNoObject = errors.New("the body is not a JSON object")

// Address is what the address of a call says, in formats that do not say it in the body.
type Address struct {
	Model  string
	Stream bool
}

// ParseGemini reads the escaped path of a method of Gemini's models, without its version: /models/m:generateContent.
func ParseGemini(path string) (api API, at Address, ok bool) {
	call, ok := strings.CutPrefix(path, "/models/")
	name, method := gemini.SplitCall(call)
	model, err := url.PathUnescape(name)
	if !ok || err != nil || model == "" {
		return "", at, false
	}
	at.Model = model
	switch method {
	case gemini.Generate, gemini.Stream:
		at.Stream = method == gemini.Stream
		return Gemini, at, true
	case gemini.Count:
		return GeminiCount, at, true
	}
	return "", at, false
}

// Decode reads the body of a call.
func Decode(api API, at Address, b []byte) (*Call, error) {
	c := &Call{API: api, Reader: request.Reader{Choices: 1}}
	if api.Lists() {
		return c, nil
	}
	if err := checkBody(api, b); err != nil {
		return nil, err
	}
	set := c.setter()
	members := make([]field, 0, 16)
	if api.Google() {
		c.Request.Model, c.Stream = at.Model, at.Stream
	}
	ok := body.Members(b, func(key, value []byte) bool {
		members = append(members, field{key, value})
		if k := string(key); k == "max_tokens" || k == "max_completion_tokens" {
			c.limit = k
		}
		if string(value) != "null" && !set(string(key), value) {
			c.extra(string(key), value)
		}
		return true
	})
	if !ok {
		return nil, errNoObject
	}
	if api.Exact() {
		if err := openai.CheckGenerate(&c.Reader); err != nil {
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
	case Gemini, GeminiCount:
		return c.gemini
	case Embeddings:
		return c.embeddings
	case Tokens, Generate:
		return func(key string, value []byte) bool { return openai.ReadGenerate(&c.Reader, c.API.Path(), key, value) }
	}
	return func(key string, value []byte) bool { return read(&c.Reader, key, value) }
}

// gemini reads a member of a request in Gemini's format. Members of generationConfig that are not read are kept by their own names.
func (c *Call) gemini(key string, v []byte) bool {
	switch {
	case key == "generateContentRequest" && c.API == GeminiCount:
		return body.Members(v, func(key, value []byte) bool { return string(key) == "model" || c.gemini(string(key), value) })
	case key == "generationConfig":
		return gemini.ReadConfig(&c.Reader, v, func(key, value []byte) { c.extra(string(key), value) })
	}
	return gemini.ReadMember(&c.Reader, key, v)
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
	if c.API.Google() {
		add([]byte(c.Request.Model))
		add(strconv.AppendBool(nil, c.Stream))
	}
	for _, m := range members {
		if personal(string(m.key)) {
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

// A body is checked before anything is read from it, since servers read an odd one in different ways: some
// take the first of two members with the same name and some the last, some ignore case. Price, limits, route
// and cache must depend on what the provider sees.

// The states of body.CheckNames.
const (
	outermost = iota
	ours      // an object that is read here
	theirs    // an object with the client's own names, such as a schema
)

// checkBody refuses a body that servers could read in different ways.
func checkBody(api API, b []byte) error {
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
		return fmt.Errorf("%w: it begins with a byte order mark", errNoObject)
	}
	if t := bytes.TrimLeft(b, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return errNoObject
	}
	check := checkName
	if api.Google() {
		check = checkGeminiName
	}
	if err := body.CheckNames(b, check); err != nil {
		return fmt.Errorf("%w that all servers read alike: %w", errNoObject, err)
	}
	return nil
}

// checkName refuses a name that differs only in case from one that is read here.
func checkName(state int, key []byte) (int, error) {
	if state == theirs {
		return theirs, nil
	}
	if !isLower(key) {
		for _, word := range knownNames() {
			if string(key) != word && bytes.EqualFold(key, []byte(word)) {
				return 0, fmt.Errorf("the name %q is not %q, but some servers take it for that: use lower case", key, word)
			}
		}
	}
	switch string(key) {
	case "messages", "system", "tools", "tool_choice", "stream_options", "response_format", "text", "thinking", "output_config", "reasoning", "sampling_params":
		return ours, nil
	case "input": // of responses, or of a tool
		if state == outermost {
			return ours, nil
		}
		return theirs, nil
	case "arguments", "input_schema", "metadata", "parameters", "schema":
		return theirs, nil
	}
	if state == outermost {
		return theirs, nil
	}
	return ours, nil
}

// checkGeminiName is checkName for Gemini's format. Its servers read a name with underscores too, as in generation_config.
func checkGeminiName(state int, key []byte) (int, error) {
	if state == theirs {
		return theirs, nil
	}
	plain := strings.ReplaceAll(string(key), "_", "")
	for _, word := range geminiNames() {
		if string(key) != word && strings.EqualFold(plain, word) && string(key) != "parameters_json_schema" { // of Google's SDKs, and read
			return 0, fmt.Errorf("the name %q: write it %q, so that it is read in one way only", key, word)
		}
	}
	switch string(key) {
	case "model":
		if state == outermost {
			return 0, errors.New("\"model\": the model is in the address: leave it out of the body")
		}
	case "args", "response", "parameters", "parametersJsonSchema", "parameters_json_schema", "responseJsonSchema", "responseSchema", "labels":
		return theirs, nil
	}
	return ours, nil
}

// geminiNames returns the names of members that are read here, or that change the price of a call.
func geminiNames() []string {
	return []string{
		"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "serviceTier", "cachedContent", "model", "role", "parts",
		"text", "thought", "thoughtSignature", "functionCall", "functionResponse", "inlineData", "fileData", "mimeType", "data", "fileUri", "id", "name", "args",
		"response", "functionDeclarations", "description", "parameters", "parametersJsonSchema", "functionCallingConfig", "mode", "allowedFunctionNames",
		"maxOutputTokens", "candidateCount", "temperature", "topP", "topK", "frequencyPenalty", "presencePenalty", "seed", "stopSequences",
		"responseLogprobs", "logprobs", "responseMimeType", "responseJsonSchema", "responseSchema", "responseModalities", "thinkingConfig", "thinkingLevel", "thinkingBudget",
	}
}

// isLower reports whether a name has neither an upper case letter nor one beyond ASCII.
func isLower(key []byte) bool {
	for _, c := range key {
		if 'A' <= c && c <= 'Z' || c >= 0x80 {
			return false
		}
	}
	return true
}

// knownNames returns the names of members that are read here.
func knownNames() []string {
	return []string{
		"model", "messages", "input", "instructions", "system", "stream", "stream_options", "include_usage",
		"max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of", "service_tier", "reasoning_effort", "reasoning", "thinking",
		"budget_tokens", "output_config", "effort", "format", "response_format", "json_schema", "schema", "tools", "tool_choice", "function",
		"parameters", "input_schema", "name", "description", "role", "content", "type", "text", "image_url", "url", "source", "data",
		"tool_calls", "tool_call_id", "arguments", "temperature", "top_p", "user", "metadata", "output",
		"audio", "input_audio", "prediction", "models", "provider", "route", "preset", "plugins", "search_parameters", "web_search_options",
		"sampling_params", "token_ids", "input_ids", "max_new_tokens", "container", "mcp_servers", "speed", "inference_geo", "modalities",
	}
}

// SetModel returns the body b with another model and every other byte unchanged.
func SetModel(b []byte, model string) []byte {
	return SetMember(b, "model", model)
}

// SetMember returns the body b with another text as a member and every other byte unchanged.
func SetMember(b []byte, name, value string) []byte {
	return setMember(b, name, body.String(nil, value))
}

// AskUsage returns the body b of a streamed chat completion with a request for the usage and every other byte
// unchanged.
func AskUsage(b []byte) []byte {
	const ask = `{"include_usage":true}`
	if options := request.Member(b, "stream_options"); options != nil {
		if request.Member(options, "include_usage") != nil {
			return setMember(b, "stream_options", setMember(options, "include_usage", []byte("true")))
		}
		return setMember(b, "stream_options", insertMember(options, `"include_usage":true`))
	}
	if hasMember(b, "stream_options") { // null
		return setMember(b, "stream_options", []byte(ask))
	}
	return insertMember(b, `"stream_options":`+ask)
}

// SetLimit returns the body b of the call with the limit of LimitOutput, and every other byte unchanged. chat is the member to add to a chat
// completion without a limit.
func (c *Call) SetLimit(b []byte, chat string) []byte {
	if c.Limited == 0 {
		return b
	}
	within, names := limitMembers(c.API, chat)
	if within == "" {
		return c.limitThinking(c.limitIn(b, names))
	}
	switch inner := request.Member(b, within); {
	case inner != nil:
		return setMember(b, within, c.limitIn(inner, names))
	case hasMember(b, within): // null
		return setMember(b, within, c.limitIn([]byte("{}"), names))
	default:
		return insertMember(b, `"`+within+`":`+string(c.limitIn([]byte("{}"), names)))
	}
}

// limitIn lowers the limits in the object b that are too high, or adds one.
func (c *Call) limitIn(b []byte, names []string) []byte {
	limit, found := strconv.AppendInt(nil, int64(c.Limited), 10), false
	for _, name := range names {
		if hasMember(b, name) {
			found = true
			if n, err := strconv.ParseFloat(string(request.Member(b, name)), 64); err != nil || n < 1 || n > float64(c.Limited) {
				b = setMember(b, name, limit)
			}
		}
	}
	if !found {
		b = insertMember(b, `"`+names[0]+`":`+string(limit))
	}
	return b
}

// limitThinking lowers the tokens that Anthropic's models may think with to half of the limit: Anthropic refuses as many as the limit, and fewer
// than minThinking.
func (c *Call) limitThinking(b []byte) []byte {
	thinking, n := request.Member(b, "thinking"), 0
	if c.API != Messages || thinking == nil || !request.Whole(request.Member(thinking, "budget_tokens"), &n) || n < c.Limited {
		return b
	}
	return setMember(b, "thinking", setMember(thinking, "budget_tokens", strconv.AppendInt(nil, int64(max(minThinking, c.Limited/2)), 10)))
}

const minThinking = 1024

// ForVertex returns the body b of messages as Vertex AI wants it: with its version and without the model, which is in the address.
func ForVertex(b []byte) []byte {
	members := make([]byte, 0, len(b)+48)
	members = append(members, `{"anthropic_version":"`+provider.VertexVersion+`"`...)
	body.Members(b, func(key, value []byte) bool {
		if string(key) != "model" && string(key) != "anthropic_version" {
			members = append(append(append(members, ',', '"'), key...), '"', ':')
			members = append(members, value...)
		}
		return true
	})
	return append(members, '}')
}

// CutIDs returns the body b with each id of a tool call and of its result cut off before mark, and every other byte unchanged.
func CutIDs(b []byte, mark string) []byte {
	if !bytes.Contains(b, []byte(mark)) {
		return b
	}
	out, from := make([]byte, 0, len(b)), 0
	cut := func(id []byte) {
		if end := bytes.Index(id, []byte(mark)); end > 0 && id[0] == '"' {
			at := cap(b) - cap(id) // id is a slice of b
			out = append(append(out, b[from:at+end]...), '"')
			from = at + len(id)
		}
	}
	body.Members(b, func(key, list []byte) bool {
		if string(key) == "messages" || string(key) == "input" {
			body.Elements(list, func(message []byte) bool {
				idsOf(message, cut)
				return true
			})
		}
		return true
	})
	return append(out, b[from:]...)
}

// idsOf calls each with the ids of the tool calls and their results in a message of any format, in their order.
func idsOf(message []byte, each func(id []byte)) {
	body.Members(message, func(key, value []byte) bool {
		switch string(key) {
		case "tool_call_id", "call_id":
			each(value)
		case "tool_calls":
			body.Elements(value, func(call []byte) bool {
				return body.Members(call, func(key, value []byte) bool {
					if string(key) == "id" {
						each(value)
					}
					return true
				})
			})
		case "content":
			body.Elements(value, func(block []byte) bool {
				kind := request.Str(block, "type")
				return body.Members(block, func(key, value []byte) bool {
					if string(key) == "id" && kind == "tool_use" || string(key) == "tool_use_id" && kind == "tool_result" {
						each(value)
					}
					return true
				})
			})
		}
		return true
	})
}

func hasMember(b []byte, name string) (found bool) {
	body.Members(b, func(key, _ []byte) bool {
		found = found || string(key) == name
		return true
	})
	return found
}

// insertMember adds a first member to the object b.
func insertMember(b []byte, member string) []byte {
	for i, c := range b {
		if c != '{' {
			continue
		}
		out := append(make([]byte, 0, len(b)+len(member)+1), b[:i+1]...)
		out = append(out, member...)
		if empty := body.Members(b, func(_, _ []byte) bool { return false }); !empty {
			out = append(out, ',')
		}
		return append(out, b[i+1:]...)
	}
	return b
}

// setMember sets the value of a member, wherever it occurs.
func setMember(b []byte, name string, value []byte) []byte {
	out, from := make([]byte, 0, len(b)+len(value)), 0
	body.Members(b, func(key, old []byte) bool {
		if string(key) == name {
			at := cap(b) - cap(old) // old is a slice of b
			out = append(append(out, b[from:at]...), value...)
			from = at + len(old)
		}
		return true
	})
	return append(out, b[from:]...)
}
