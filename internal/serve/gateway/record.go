package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"parley/internal/ask/wire/body"
	"parley/journal"
	"parley/world"
)

// Call is one call of a client and its result.
type Call struct {
	journal.Replied
	Digest [16]byte
	Wire   wireAnswer
	Notes  []world.Note // of a batch
}

// entries returns what is recorded of the call of an agent.
func (c *Call) entries(agent string, zip *zstd.Encoder) (*journal.Turned, *journal.Replied) {
	replied := c.Replied
	replied.Seat, replied.Agent = clientSeat, agent
	return &journal.Turned{Turn: c.Turn, Digest: c.Digest, Calls: 1, Notes: append(c.Wire.notes(zip), c.Notes...)}, &replied
}

// newZip returns what compresses the answers of a record.
func newZip() (*zstd.Encoder, error) {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return zip, nil
}

// wireAnswer is the answer that a client got.
type wireAnswer struct {
	Status int
	Type   string // content type
	Body   []byte
	// Cut means that the client went away before the end.
	Cut bool
}

// wireKind is the kind of the note that holds a wireAnswer.
const wireKind = "wire"

// wireNote is a stored wireAnswer: the body as text, or compressed.
type wireNote struct {
	Status int    `json:"status"`
	Type   string `json:"type"`
	Cut    bool   `json:"cut"`
	Body   string `json:"body"`
	Zstd   []byte `json:"zstd"`
}

// compressFrom is the length from which a body is compressed; a stream shrinks to a tenth.
const compressFrom = 1 << 10

// notes returns the notes of w. Calls may share zip.
func (w *wireAnswer) notes(zip *zstd.Encoder) []world.Note {
	if w.Status == 0 && len(w.Body) == 0 {
		return nil
	}
	b := make([]byte, 0, 128+min(len(w.Body)+len(w.Body)/4, 4096))
	b = body.Int(append(b, '{'), "status", int64(w.Status))
	b = body.Str(b, "type", w.Type)
	if w.Cut {
		b = body.Bool(b, "cut", true)
	}
	return []world.Note{{Kind: wireKind, Data: append(appendPacked(b, w.Body, zip), '}')}}
}

// appendPacked appends content as text, or compressed.
func appendPacked(b, content []byte, zip *zstd.Encoder) []byte {
	if len(content) < compressFrom && utf8.Valid(content) {
		return body.Str(b, "body", string(content))
	}
	b = append(body.Key(b, "zstd"), '"')
	return append(base64.StdEncoding.AppendEncode(b, zip.EncodeAll(content, nil)), '"')
}

// unpack returns the content of a note.
func (n *wireNote) unpack() ([]byte, error) {
	if len(n.Zstd) > 0 {
		return decompress(n.Zstd)
	}
	return []byte(n.Body), nil
}

const maxRecordedBody = 256 << 20 // limit for a damaged length

func readWire(notes []world.Note) (w wireAnswer, err error) {
	for _, n := range notes {
		if n.Kind != wireKind {
			continue
		}
		var v wireNote
		if err := json.Unmarshal(n.Data, &v); err != nil {
			return w, fmt.Errorf("recorded answer: %w", err)
		}
		w = wireAnswer{Status: v.Status, Type: v.Type, Cut: v.Cut}
		if w.Body, err = v.unpack(); err != nil {
			return w, fmt.Errorf("recorded answer: %w", err)
		}
	}
	return w, nil
}

func decompress(b []byte) ([]byte, error) {
	r, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRecordedBody))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out bytes.Buffer
	_, err = out.ReadFrom(r)
	return out.Bytes(), err
}

// ReadCalls reads the calls of an episode, in the order of their turns.
func ReadCalls(ctx context.Context, j journal.Journal, episode int) ([]Call, error) {
	entries, err := journal.Episode(ctx, j, episode)
	if err != nil {
		return nil, err
	}
	return callsOf(entries)
}

// callsOf returns the calls of a strand, in the order of their turns.
func callsOf(entries []journal.Entry) ([]Call, error) {
	byTurn := map[int]*Call{}
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			w, err := readWire(e.Notes)
			if err != nil {
				return nil, fmt.Errorf("%w (episode %d, turn %s%d)", err, e.Episode, e.Strand, e.Turn.Turn)
			}
			byTurn[e.Turn.Turn] = &Call{Digest: e.Digest, Wire: w}
		case *journal.Replied:
			if c := byTurn[e.Turn.Turn]; c != nil {
				c.Replied = *e
			}
		}
	}
	out := make([]Call, 0, len(byTurn))
	for _, turn := range slices.Sorted(maps.Keys(byTurn)) {
		if c := byTurn[turn]; c.Response != nil || c.Error != nil {
			out = append(out, *c)
		}
	}
	return out, nil
}
