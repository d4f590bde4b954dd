package simhttp

import (
	"bytes"
	"encoding/json"
	"slices"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// Ask is a request that the server accepts.
type Ask struct {
	Request *llm.Request
	Breaks  []sim.Break // where the client wants the prompt cached
	Stored  int         // tokens of the prompt that the client stored before

	Stream       bool
	IncludeUsage bool // the stream ends with the usage
	NoOutput     bool // the request only warms the prompt cache

	// LateSystem is the first system message after the first message, which needs a header of Anthropic's. 0: there is none.
	LateSystem int
}

// bodyChecker reads requests, and refuses what the vendors refuse, in their words: unknown members, wrong
// types, values out of range, and conversations that make no sense. A table for each endpoint says which
// members a request may have; what a table cannot say is a few lines of code for each format. It may be used from several goroutines at once.
type bodyChecker struct {
	chat, responses, messages, gemini, bedrock checkFormat
}

// newBodyChecker returns a bodyChecker. A lax one accepts unknown members, and schemas that vendors refuse.
func newBodyChecker(lax bool) *bodyChecker {
	return &bodyChecker{
		chat:      checkFormat{chatFields(), checkOpenAI, lax},
		responses: checkFormat{responsesFields(), checkOpenAI, lax},
		messages:  checkFormat{messagesFields(), checkAnthropic, lax},
		gemini:    checkFormat{geminiFields(), google, lax},
		bedrock:   checkFormat{bedrockFields(), amazon, lax},
	}
}

// ask is a request that is being checked.
type ask struct {
	*checkFormat
	Ask
	members map[string][]byte // those that are not null
}

// open checks a request against the table of its format.
func (f *checkFormat) open(b []byte) (*ask, *Error) {
	if b = bytes.TrimSpace(b); !body.Valid(b) || b[0] != '{' {
		why := "it is not an object, or nested too deeply"
		if err := json.Unmarshal(b, new(any)); err != nil {
			why = err.Error()
		}
		return nil, f.vendor(badSyntax, "", field{}, why)
	}
	a := &ask{checkFormat: f, members: make(map[string][]byte, 8)}
	err := f.object(b, nil, f.fields, func(key string, v []byte) { a.members[key] = v })
	return a, err
}

// read reads the request with the reader of its format.
func (a *ask) read(read func(r *request.Reader, key string, v []byte) bool) *Error {
	var r request.Reader
	for key, v := range a.members {
		read(&r, key, v)
	}
	if r.Err != nil {
		return invalid("", "%s", r.Err)
	}
	a.Request, a.Stream, a.IncludeUsage = &r.Request, r.Stream, r.Usage
	return nil
}

// first returns the first error of the rules, in order.
func first(rules ...func() *Error) *Error {
	for _, rule := range rules {
		if err := rule(); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether the request has the member.
func (a *ask) has(name string) bool { return a.members[name] != nil }

// str returns a member that is a string, or "".
func (a *ask) str(name string) string { return request.String(a.members[name]) }

// number returns a member that is an integer, or 0.
func (a *ask) number(name string) (n int) {
	request.Whole(a.members[name], &n)
	return n
}

// named reports whether the request has a tool with the name.
func (a *ask) named(name string) bool {
	return slices.ContainsFunc(a.Request.Tools, func(t llm.Tool) bool { return t.Name == name })
}

// each calls check with every element of a list until it returns an error.
func each(list []byte, check func(i int, v []byte) *Error) (err *Error) {
	i := 0
	body.Elements(list, func(v []byte) bool {
		err = check(i, v)
		i++
		return err == nil
	})
	return err
}
