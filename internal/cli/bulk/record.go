package bulk

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"

	"parley/llm"
)

// Record is a line of the output: the result of one request, which may be a failure.
type Record struct {
	ID     json.RawMessage `json:"id"`               // of the request; null if the line has none
	Line   int             `json:"line,omitempty"`   // of the input, for a line that is not a request
	Sample int             `json:"sample,omitempty"` // which of --samples, from 0
	Digest string          `json:"digest,omitempty"` // of the request

	Response *llm.Response `json:"response,omitempty"`
	Error    *llm.Error    `json:"error,omitempty"`
}

// recordStart begins every record. It distinguishes a truncated record from a line of another file.
const recordStart = `{"id":`

// cost returns what the request cost.
func (r *Record) cost() llm.Money {
	switch {
	case r.Response != nil:
		return r.Response.Metadata.Cost
	case r.Error != nil:
		return r.Error.Metadata.Cost
	default:
		return 0
	}
}

// bytes returns r as a line with its newline.
func (r *Record) bytes() ([]byte, error) {
	var b bytes.Buffer
	err := r.writeTo(&b)
	return b.Bytes(), err
}

// writeTo writes r as a line with its newline.
func (r *Record) writeTo(b *bytes.Buffer) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// digest is the part of a request's digest that is kept: enough to distinguish any two requests.
type digest [16]byte

func digestOf(req *llm.Request) digest {
	whole := req.Digest()
	return digest(whole[:16])
}

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// recordKey identifies a record: a hash of its id and sample. Two of a million records collide once in about
// thirty million runs; the digest then still distinguishes their answers.
type recordKey uint64

// Keyer makes record keys. Its zero value is not usable: see NewKeyer.
type Keyer struct{ seed maphash.Seed }

// NewKeyer returns a Keyer with a seed that only this process knows.
func NewKeyer() Keyer { return Keyer{seed: maphash.MakeSeed()} }

func (p Keyer) key(id json.RawMessage, sample int) recordKey {
	var h maphash.Hash
	h.SetSeed(p.seed)
	var number [20]byte
	_, _ = h.Write(id) // it cannot fail
	_ = h.WriteByte('#')
	_, _ = h.Write(strconv.AppendInt(number[:0], int64(sample), 10))
	return recordKey(h.Sum64())
}

// oldRecord is the part of a record that a later run needs.
type oldRecord struct {
	id     json.RawMessage
	sample int
	digest digest
	ok     bool // it is an answer, not a failure
	cost   llm.Money
}

var errNoRecord = errors.New("not a record of parley ask")

// readRecord parses a line of an output file.
func readRecord(line []byte) (oldRecord, error) {
	if !bytes.HasPrefix(line, []byte(recordStart)) {
		return oldRecord{}, errNoRecord
	}
	type tried struct{ Metadata struct{ Cost llm.Money } }
	var r struct {
		ID       json.RawMessage `json:"id"`
		Sample   int             `json:"sample"`
		Digest   string          `json:"digest"`
		Response *tried          `json:"response"`
		Error    *tried          `json:"error"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return oldRecord{}, errNoRecord
	}
	old := oldRecord{id: r.ID, sample: r.Sample, ok: r.Response != nil && r.Error == nil}
	for _, t := range []*tried{r.Response, r.Error} {
		if t != nil {
			old.cost = old.cost.Plus(max(0, t.Metadata.Cost))
		}
	}
	if b, err := hex.DecodeString(r.Digest); err == nil && len(b) == len(old.digest) {
		old.digest = digest(b)
	} else {
		old.ok = false
	}
	return old, nil
}
