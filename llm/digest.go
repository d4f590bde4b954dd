package llm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"math"
	"slices"
)

// Digest returns a fingerprint of a request. It is equal for two requests exactly if everything that can change the
// answer is equal, including the sample number. It is the same on every machine and in every later version.
func (r *Request) Digest() [32]byte {
	h := sha256.New()
	d := digester{hash: h, b: make([]byte, 0, buffered)}
	r.write(&d)
	d.spill()
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

// AppendDigested appends the input of Digest to b, for other kinds of fingerprints. It fails if the request has a value
// that JSON cannot hold, which nothing can send or store.
func (r *Request) AppendDigested(b []byte) ([]byte, error) {
	d := digester{b: b}
	r.write(&d)
	return d.b, d.err
}

func (r *Request) write(d *digester) {
	d.str(r.Model)
	d.messages(r.Messages)
	d.num(len(r.Tools))
	for _, t := range r.Tools {
		d.str(t.Name)
		d.str(t.Description)
		d.raw(t.Parameters)
		d.flag(t.Strict)
	}
	d.str(r.ToolChoice)
	d.flag(r.OneTool)
	d.flag(r.Schema != nil)
	if s := r.Schema; s != nil {
		d.str(s.Name)
		d.str(s.Description)
		d.raw(s.JSON)
	}
	d.str(string(r.Effort))
	d.num(r.MaxTokens)
	d.float(r.Temperature)
	d.float(r.TopP)
	d.flag(r.TopK != nil)
	if r.TopK != nil {
		d.num(*r.TopK)
	}
	d.float(r.FrequencyPenalty)
	d.float(r.PresencePenalty)
	d.flag(r.Seed != nil)
	if r.Seed != nil {
		d.int64(*r.Seed)
	}
	d.num(len(r.Stop))
	for _, s := range r.Stop {
		d.str(s)
	}
	d.flag(r.Logprobs)
	d.num(r.TopLogprobs)
	d.flag(r.TokenIDs)
	d.str(r.Tier)
	d.num(r.Sample)
	d.extra(r.Extra)
}

// digester writes values so that no two sequences look alike: every string follows its length. It buffers short values,
// since prompts consist of many pieces.
type digester struct {
	hash hash.Hash // nil: everything is buffered
	b    []byte
	err  error // a value that JSON cannot hold
}

// buffered is about how much is hashed at once.
const buffered = 1024

// spill hashes the buffer.
func (d *digester) spill() {
	_, _ = d.hash.Write(d.b) // never fails
	d.b = d.b[:0]
}

func (d *digester) int64(n int64) { d.b = binary.AppendVarint(d.b, n) }

func (d *digester) num(n int)      { d.int64(int64(n)) }
func (d *digester) bytes(s []byte) { d.str(string(s)) }

func (d *digester) str(s string) {
	d.num(len(s))
	if d.hash == nil || len(d.b)+len(s) <= buffered {
		d.b = append(d.b, s...)
		return
	}
	d.spill()
	for len(s) > buffered {
		d.b = append(d.b, s[:buffered]...)
		s = s[buffered:]
		d.spill()
	}
	d.b = append(d.b, s...)
}

func (d *digester) float(f *float64) {
	d.flag(f != nil)
	if f != nil {
		d.b = binary.BigEndian.AppendUint64(d.b, math.Float64bits(*f))
		if math.IsNaN(*f) || math.IsInf(*f, 0) {
			d.err = fmt.Errorf("a parameter is %v", *f)
		}
	}
}

func (d *digester) flag(v bool) {
	if v {
		d.b = append(d.b, 1)
		return
	}
	d.b = append(d.b, 0)
}

// raw writes JSON without insignificant white space.
func (d *digester) raw(j json.RawMessage) {
	var b bytes.Buffer
	if err := json.Compact(&b, j); err == nil {
		j = b.Bytes()
	} else if len(j) > 0 {
		d.err = fmt.Errorf("%.40q is not JSON: %w", j, err)
	}
	d.bytes(j)
}

func (d *digester) extra(m map[string]json.RawMessage) {
	d.num(len(m))
	if len(m) == 0 {
		return // the usual case, without an allocation
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if len(m[k]) == 0 && m[k] != nil {
			d.err = fmt.Errorf("extra %q is empty", k)
		}
		d.str(k)
		d.raw(m[k])
	}
}

func (d *digester) messages(ms []Message) {
	d.num(len(ms))
	for i := range ms {
		m := &ms[i]
		d.str(string(m.Role))
		d.num(len(m.Parts))
		for _, p := range m.Parts {
			d.str(p.Text)
			if f := p.File; f != nil {
				d.file(f)
			}
			d.flag(p.Image != nil)
			if im := p.Image; im != nil {
				d.str(im.URL)
				d.str(im.MediaType)
				d.bytes(im.Data)
				d.str(im.Detail)
			}
		}
		d.num(len(m.Thoughts))
		for _, t := range m.Thoughts {
			d.str(t.Text)
			d.str(t.ID)
			d.str(t.Signature)
			d.str(t.Opaque)
		}
		d.num(len(m.ToolCalls))
		for _, c := range m.ToolCalls {
			d.str(c.ID)
			d.str(c.Name)
			d.str(c.Arguments)
		}
		d.str(m.ToolCallID)
		d.flag(m.ToolFailed)
	}
}

// file writes a file, after a byte that no flag is: digests of other requests stay as they are.
func (d *digester) file(f *File) {
	d.b = append(d.b, 2)
	d.str(f.Name)
	d.str(f.URL)
	d.str(f.MediaType)
	d.bytes(f.Data)
	d.err = cmp.Or(d.err, f.place())
}
