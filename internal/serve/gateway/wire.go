package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"parley/internal/ask/wire/body"
	"parley/world"
)

// Wire is the answer that a client got.
type Wire struct {
	Status int
	Type   string // content type
	Body   []byte
	// Cut means that the client went away before the end.
	Cut bool
}

// wireKind is the kind of the note that holds a Wire.
const wireKind = "wire"

// wireNote is a stored Wire: the body as text, or compressed.
type wireNote struct {
	Status int    `json:"status"`
	Type   string `json:"type"`
	Cut    bool   `json:"cut"`
	Body   string `json:"body"`
	Zstd   []byte `json:"zstd"`
}

// compressFrom is the length from which a body is compressed; a stream shrinks to a tenth.
const compressFrom = 1 << 10

// sessionNote is the kind of the note that holds the Note of a call.
const sessionNote = "session"

// notes returns the notes of the turn of c.
func (c *Call) notes(zip *zstd.Encoder) []world.Note {
	notes := c.Wire.notes(zip)
	if c.Note != "" {
		notes = append(notes, world.Note{Kind: sessionNote, Data: body.String(nil, c.Note)})
	}
	return notes
}

// noteOf returns the Note of a call.
func noteOf(notes []world.Note) (text string) {
	for _, n := range notes {
		if n.Kind == sessionNote {
			_ = json.Unmarshal(n.Data, &text) // anything else is ignored
		}
	}
	return text
}

// notes returns the notes of w. Calls may share zip.
func (w *Wire) notes(zip *zstd.Encoder) []world.Note {
	if w.Status == 0 && len(w.Body) == 0 {
		return nil
	}
	b := make([]byte, 0, 128+min(len(w.Body)+len(w.Body)/4, 4096))
	b = body.Int(append(b, '{'), "status", int64(w.Status))
	b = body.Str(b, "type", w.Type)
	if w.Cut {
		b = body.Bool(b, "cut", true)
	}
	if len(w.Body) < compressFrom && utf8.Valid(w.Body) {
		b = body.Str(b, "body", string(w.Body))
	} else {
		b = append(body.Key(b, "zstd"), '"')
		b = append(base64.StdEncoding.AppendEncode(b, zip.EncodeAll(w.Body, nil)), '"')
	}
	return []world.Note{{Kind: wireKind, Data: append(b, '}')}}
}

const maxBody = 256 << 20 // limit for a damaged length

func wireOf(notes []world.Note) (w Wire, err error) {
	for _, n := range notes {
		if n.Kind != wireKind {
			continue
		}
		var v wireNote
		if err := json.Unmarshal(n.Data, &v); err != nil {
			return w, fmt.Errorf("ledger: recorded answer: %w", err)
		}
		w = Wire{Status: v.Status, Type: v.Type, Cut: v.Cut, Body: []byte(v.Body)}
		if len(v.Zstd) > 0 {
			if w.Body, err = decompress(v.Zstd); err != nil {
				return w, fmt.Errorf("ledger: recorded answer: %w", err)
			}
		}
	}
	return w, nil
}

func decompress(b []byte) ([]byte, error) {
	r, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out bytes.Buffer
	_, err = out.ReadFrom(r)
	return out.Bytes(), err
}
