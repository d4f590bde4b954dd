package simhttp

import (
	"fmt"
	"net/http"
	"strings"

	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/request"
)

// geminiFields are the members of POST …:generateContent.
func geminiFields() fields {
	part := fields{"text": {kind: text}, "thought": {kind: boolean}, "thoughtSignature": {kind: text}, "functionCall": {kind: object}, "functionResponse": {kind: object}, "inlineData": {kind: object}, "fileData": {kind: object}}
	content := fields{"role": {kind: text}, "parts": {kind: array, fields: part}}
	tool := fields{"name": {kind: text}, "description": {kind: text}}.ignore("parametersJsonSchema", "parameters_json_schema", "parameters", "responseJsonSchema", "behavior")
	thinking := fields{"thinkingBudget": {kind: integer, limits: []float64{-1}}, "includeThoughts": {kind: boolean}, "thinkingLevel": {kind: text, values: []string{"MINIMAL", "LOW", "MEDIUM", "HIGH", "minimal", "low", "medium", "high"}}}
	return fields{
		"contents":          {kind: array, fields: content},
		"systemInstruction": {kind: object, fields: content},
		"tools":             {kind: array, fields: fields{"functionDeclarations": {kind: array, fields: tool}}},
		"toolConfig": {kind: object, fields: fields{"functionCallingConfig": {kind: object, fields: fields{
			"mode": {kind: text, values: []string{"AUTO", "ANY", "NONE", "VALIDATED"}}, "allowedFunctionNames": {kind: array, texts: true},
		}}}},
		"generationConfig": {kind: object, fields: fields{
			"maxOutputTokens":  {kind: integer, limits: []float64{1}},
			"temperature":      {kind: decimal, limits: []float64{0, 2}},
			"topP":             {kind: decimal, limits: []float64{0, 1}},
			"topK":             {kind: decimal, limits: []float64{1}},
			"seed":             {kind: integer},
			"stopSequences":    {kind: array, texts: true},
			"responseMimeType": {kind: text, values: []string{"text/plain", "application/json", "text/x.enum"}},
			"frequencyPenalty": {kind: decimal}, "presencePenalty": {kind: decimal}, "responseLogprobs": {kind: boolean}, "logprobs": {kind: integer},
			"candidateCount": {kind: integer, limits: []float64{1, 1}},
			"thinkingConfig": {kind: object, fields: thinking},
		}.ignore("responseJsonSchema", "responseSchema", "responseModalities")},
		"serviceTier": {kind: text, values: []string{"unspecified", "standard", "flex", "priority"}},
	}.ignore("safetySettings", "cachedContent", "labels", "model")
}

// google writes a fault as Google's APIs do.
func google(what fault, at string, f field, got string) *Error {
	var why string
	switch what {
	case badSyntax:
		why = "Invalid JSON payload received. " + got
	case unknownMember:
		name := at[strings.LastIndexByte(at, '.')+1:]
		why = fmt.Sprintf("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", name, strings.TrimSuffix(strings.TrimSuffix(at, name), "."))
	case missingMember:
		why = fmt.Sprintf("* GenerateContentRequest.%s: %s is not specified", at, at)
	case badValue:
		why = fmt.Sprintf("Invalid value at '%s': %q", at, got)
	case belowMin, aboveMax:
		why = fmt.Sprintf("* GenerateContentRequest.%s: the value %s is out of range", at, got)
	default:
		why = fmt.Sprintf("Invalid value at '%s': expected %s, but got %s", at, f.kind, got)
	}
	return &Error{Status: http.StatusBadRequest, Type: "INVALID_ARGUMENT", Message: why}
}

// Gemini reads the body of POST …:generateContent.
func (c *bodyChecker) Gemini(b []byte) (*Ask, *Error) {
	a, err := c.gemini.open(b)
	if err != nil {
		return nil, err
	}
	read := func() *Error { return a.read(gemini.ReadMember) }
	if err := first(a.geminiContents, a.geminiConfig, read, a.geminiChoice); err != nil {
		return nil, err
	}
	return &a.Ask, nil
}

// geminiContents checks the turns: each has parts, and the result of a tool follows its call.
func (a *ask) geminiContents() *Error {
	if !a.has("contents") || string(a.members["contents"]) == "[]" {
		return a.missing("contents")
	}
	calls := 0 // of the turn before
	return each(a.members["contents"], func(i int, m []byte) *Error {
		parts, role := request.Member(m, "parts"), request.Str(m, "role")
		switch {
		case role != "" && role != "user" && role != "model":
			return google(badValue, fmt.Sprintf("contents[%d].role", i), field{}, role)
		case parts == nil || string(parts) == "[]":
			return a.missing(fmt.Sprintf("contents[%d].parts", i))
		}
		called, results := 0, 0
		err := each(parts, func(k int, p []byte) *Error {
			at := fmt.Sprintf("contents[%d].parts[%d]", i, k)
			f := request.Member(p, "functionResponse")
			switch {
			case f != nil && request.Str(f, "name") == "":
				return a.missing(at + ".function_response.name")
			case f != nil:
				results++
			case request.Member(p, "functionCall") != nil:
				called++
			case request.Member(p, "text") == nil && request.Member(p, "inlineData") == nil && request.Member(p, "fileData") == nil:
				return a.missing(at + ".data")
			}
			if why := mediaGemini(request.Member(p, "inlineData")); why != "" {
				return &Error{Status: http.StatusBadRequest, Type: "INVALID_ARGUMENT", Message: why}
			}
			return nil
		})
		if err == nil && results != calls && results+calls > 0 {
			err = &Error{Status: http.StatusBadRequest, Type: "INVALID_ARGUMENT", Message: "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."}
		}
		calls = called
		return err
	})
}

func (a *ask) geminiConfig() *Error {
	c := a.members["generationConfig"]
	if request.Member(c, "responseJsonSchema") != nil && request.Str(c, "responseMimeType") != "application/json" {
		return &Error{Status: http.StatusBadRequest, Type: "INVALID_ARGUMENT", Message: "* GenerateContentRequest.generation_config.response_mime_type: a response schema needs application/json"}
	}
	t := request.Member(c, "thinkingConfig")
	if request.Member(t, "thinkingBudget") != nil && request.Member(t, "thinkingLevel") != nil {
		return &Error{Status: http.StatusBadRequest, Type: "INVALID_ARGUMENT", Message: "You can only set only one of thinking budget and thinking level."}
	}
	return nil
}

// geminiChoice checks that the tools that may be called exist.
func (a *ask) geminiChoice() *Error {
	names := request.Member(request.Member(a.members["toolConfig"], "functionCallingConfig"), "allowedFunctionNames")
	return each(names, func(_ int, v []byte) *Error {
		if name := request.String(v); !a.named(name) {
			return &Error{Status: http.StatusBadRequest, Type: "INVALID_ARGUMENT", Message: fmt.Sprintf("tool_config.function_calling_config.allowed_function_names contains %q, which is not declared", name)}
		}
		return nil
	})
}
