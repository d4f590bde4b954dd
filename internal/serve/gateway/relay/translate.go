package relay

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"parley/internal/serve/gateway/format"
	"parley/internal/wire/fault"
)

// translated writes the call in the provider's format. Members without a counterpart are dropped by name,
// unless they are a part of the messages: then the call cannot be made.
func (u *Upstream) translated(f *Flight, model string) (*outgoing, error) {
	c := f.Call
	switch {
	case c.API == format.Responses || c.API == format.Embeddings || c.API == format.Count || c.API.Exact():
		return nil, fault.BadRequest("%s cannot be translated to the format of %s: route the model to a provider that speaks it", c.API, u.p.Name)
	case len(c.Strange) > 0:
		return nil, fault.BadRequest("this cannot be said in the format of %s: %s", u.p.Name, strings.Join(c.Strange, ", "))
	case c.Choices > 1:
		return nil, fault.BadRequest("n: %s gives one answer a call", u.p.Name)
	}
	req := c.Request
	req.Model = u.p.Name + "/" + model
	dropped := slices.Sorted(maps.Keys(req.Extra))
	req.Extra = nil
	out := &outgoing{client: c.API, api: format.Messages}
	if c.API == format.Messages {
		out.api = format.Chat
	}
	var err error
	out.body, out.dropped, err = codecOf(out.api).Append(nil, &req, u.capability(model), c.Stream)
	if err != nil {
		return nil, fault.BadRequest("%v", err)
	}
	out.dropped = append(dropped, out.dropped...)
	return out, nil
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }
