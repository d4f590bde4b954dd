package simhttp

import (
	"fmt"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/bedrock"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
)

// bedrockFields are the members of POST /model/MODEL/converse.
func bedrockFields() fields {
	block := fields{"text": {kind: text}, "image": {kind: object}, "toolUse": {kind: object}, "toolResult": {kind: object}, "reasoningContent": {kind: object}, "cachePoint": {kind: object}, "document": {kind: object}, "audio": {kind: object}}
	return fields{
		"messages":        {kind: array, fields: fields{"role": {kind: text, values: []string{"user", "assistant"}}, "content": {kind: array, fields: block}}},
		"system":          {kind: array, fields: fields{"text": {kind: text}, "cachePoint": {kind: object}}},
		"inferenceConfig": {kind: object, fields: fields{"maxTokens": {kind: integer, limits: []float64{1}}, "temperature": {kind: decimal, limits: []float64{0, 1}}, "topP": {kind: decimal, limits: []float64{0, 1}}, "stopSequences": {kind: array, texts: true}}},
		"toolConfig":      {kind: object, fields: fields{"tools": {kind: array, fields: fields{"toolSpec": {kind: object}, "cachePoint": {kind: object}}}, "toolChoice": {kind: object}}},
		"outputConfig":    {kind: object, fields: fields{"effort": {kind: text, values: []string{"low", "medium", "high", "xhigh", "max"}}, "textFormat": {kind: object}}},
		"serviceTier":     {kind: object, fields: fields{"type": {kind: text, values: []string{"default", "flex", "priority", "reserved"}}}},
	}.ignore("additionalModelRequestFields", "additionalModelResponseFieldPaths", "guardrailConfig", "performanceConfig", "promptVariables", "requestMetadata")
}

// amazon writes a fault as AWS does.
func amazon(what fault, at string, f field, got string) *Error {
	why := fmt.Sprintf("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", got, at, f.kind)
	if what == badSyntax {
		why = "Unable to parse request body: " + got
	}
	return invalid("", "%s", why)
}

// Bedrock reads the body of POST /model/MODEL/converse.
func (c *bodyChecker) Bedrock(b []byte) (*Ask, *Error) {
	a, err := c.bedrock.open(b)
	if err == nil {
		err = first(a.bedrockMessages, a.cachePoints, func() *Error { return a.read(bedrock.ReadMember) })
	}
	if err != nil {
		return nil, err
	}
	return &a.Ask, nil
}

// bedrockMessages checks that the roles alternate, beginning with the user's, and that results follow their calls.
func (a *ask) bedrockMessages() *Error {
	if !a.has("messages") || string(a.members["messages"]) == "[]" {
		return a.missing("messages")
	}
	calls, names := 0, map[string]bool{}
	return each(a.members["messages"], func(i int, m []byte) *Error {
		if request.Str(m, "role") != [2]string{"user", "assistant"}[i%2] {
			return invalid("", "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.")
		}
		called, results := 0, 0
		body.Elements(request.Member(m, "content"), func(p []byte) bool {
			if request.Member(p, "toolResult") != nil {
				results++
			} else if request.Member(p, "toolUse") != nil {
				called++
			}
			return true
		})
		if why := mediaBedrock(fmt.Sprintf("messages.%d.content", i), request.Member(m, "content"), names); why != "" {
			return invalid("", "%s", why)
		}
		if results != calls {
			return invalid("", "The number of toolResult blocks at messages.%d.content does not match the number of toolUse blocks of previous turn.", i)
		}
		calls = called
		return nil
	})
}

// cachePoints notes the cache points. It counts messages as the format's reader does: each result of a tool is its own message,
// and comes before the rest of the message that holds it.
func (a *ask) cachePoints() *Error {
	point := func(b []byte, message, parts int) bool {
		found := request.Member(b, "cachePoint") != nil
		if found {
			a.Breaks = append(a.Breaks, sim.Break{Message: message, Part: max(0, parts-1)})
		}
		return found
	}
	body.Elements(request.Member(a.members["toolConfig"], "tools"), func(t []byte) bool { point(t, -1, 0); return true })
	message, parts := 0, 0
	body.Elements(a.members["system"], func(b []byte) bool {
		if message = 1; !point(b, 0, parts) {
			parts++
		}
		return true
	})
	body.Elements(a.members["messages"], func(m []byte) bool {
		parts, blocks := 0, 0
		body.Elements(request.Member(m, "content"), func(b []byte) bool {
			switch at := message; {
			case request.Member(b, "toolResult") != nil:
				message++
			case point(b, max(0, at-1+min(blocks, 1)), parts):
			default:
				blocks++
				if request.Member(b, "toolUse") == nil && request.Member(b, "reasoningContent") == nil {
					parts++
				}
			}
			return true
		})
		message += min(blocks, 1)
		return true
	})
	if len(a.Breaks) > maxBreaks {
		return invalid("", "You have exceeded the maximum number of cache points (%d). Remove cache points and try again.", maxBreaks)
	}
	return nil
}
