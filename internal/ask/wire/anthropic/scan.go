package anthropic

import (
	"encoding/json"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
)

// The functions below read the usual members of answers. They leave the others to json.Unmarshal, and
// return false if it must read the whole answer.

func (w *wireMessage) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		switch string(key) {
		case "type":
			return request.Text(v, &w.Type)
		case "id":
			return request.Text(v, &w.ID)
		case "model":
			return request.Text(v, &w.Model)
		case "content":
			w.Content = v
		case "stop_reason":
			return request.Text(v, &w.StopReason)
		case "stop_details":
			return json.Unmarshal(v, &w.StopDetails) == nil
		case "usage":
			return w.Usage.Scan(v)
		case "error":
			return json.Unmarshal(v, &w.Error) == nil
		}
		return true
	})
}

func (w *wireBlock) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		switch string(key) {
		case "type":
			return request.Text(v, &w.Type)
		case "text":
			return request.Text(v, &w.Text)
		case "thinking":
			return request.Text(v, &w.Thinking)
		case "signature":
			return request.Text(v, &w.Signature)
		case "data":
			return request.Text(v, &w.Data)
		case "id":
			return request.Text(v, &w.ID)
		case "name":
			return request.Text(v, &w.Name)
		case "input":
			w.Input = request.Raw(v)
		}
		return true
	})
}

func (u *wireUsage) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		switch string(key) {
		case "input_tokens":
			return request.Integer(v, &u.Input)
		case "cache_creation_input_tokens":
			return request.Integer(v, &u.CacheCreation)
		case "cache_read_input_tokens":
			return request.Integer(v, &u.CacheRead)
		case "output_tokens":
			return request.Integer(v, &u.Output)
		case "service_tier":
			return request.Text(v, &u.ServiceTier)
		case "cache_creation":
			return body.Optional(v, &u.ByTTL)
		case "output_tokens_details":
			return body.Optional(v, &u.OutputDetails)
		}
		return true
	})
}

func (w *wireTTL) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		return string(key) != "ephemeral_1h_input_tokens" || request.Whole(v, &w.Hour)
	})
}

func (w *wireOutputParts) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		return string(key) != "thinking_tokens" || request.Whole(v, &w.Thinking)
	})
}

func (w *wireEvent) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		switch string(key) {
		case "type":
			return request.Text(v, &w.Type)
		case "index":
			return request.Whole(v, &w.Index)
		case "message":
			return json.Unmarshal(v, &w.Message) == nil
		case "content_block":
			return json.Unmarshal(v, &w.ContentBlock) == nil
		case "delta":
			return w.scanDelta(v)
		case "usage":
			return body.Optional(v, &w.Usage)
		case "error":
			return json.Unmarshal(v, &w.Error) == nil
		}
		return true
	})
}

func (w *wireEvent) scanDelta(b []byte) bool {
	d := &w.Delta
	return body.Values(b, func(key, v []byte) bool {
		switch string(key) {
		case "text":
			return request.Text(v, &d.Text)
		case "thinking":
			return request.Text(v, &d.Thinking)
		case "signature":
			return request.Text(v, &d.Signature)
		case "partial_json":
			return request.Text(v, &d.PartialJSON)
		case "stop_reason":
			return request.Text(v, &d.StopReason)
		case "stop_details":
			return json.Unmarshal(v, &d.StopDetails) == nil
		}
		return true
	})
}
