package responses

import (
	"encoding/json"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
)

// The functions below read the usual members of answers. They leave the others to json.Unmarshal, and
// return false if it must read the whole answer.

func (w *wireResponse) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		switch string(key) {
		case "id":
			return request.Text(v, &w.ID)
		case "model":
			return request.Text(v, &w.Model)
		case "status":
			return request.Text(v, &w.Status)
		case "service_tier":
			return request.Text(v, &w.ServiceTier)
		case "error":
			return json.Unmarshal(v, &w.Error) == nil
		case "incomplete_details":
			return json.Unmarshal(v, &w.Incomplete) == nil
		case "output":
			return body.List(v, &w.Output)
		case "usage":
			return json.Unmarshal(v, &w.Usage) == nil
		}
		return true
	})
}

func (it *wireItem) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		switch string(key) {
		case "type":
			return request.Text(v, &it.Type)
		case "id":
			return request.Text(v, &it.ID)
		case "call_id":
			return request.Text(v, &it.CallID)
		case "name":
			return request.Text(v, &it.Name)
		case "arguments":
			return request.Text(v, &it.Arguments)
		case "encrypted_content":
			return request.Text(v, &it.Encrypted)
		case "content":
			return body.List(v, &it.Content)
		case "summary":
			return body.List(v, &it.Summary)
		}
		return true
	})
}

func (p *wirePart) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		switch string(key) {
		case "type":
			return request.Text(v, &p.Type)
		case "text":
			return request.Text(v, &p.Text)
		case "refusal":
			return request.Text(v, &p.Refusal)
		case "logprobs":
			return json.Unmarshal(v, &p.Logprobs) == nil
		}
		return true
	})
}
