package bulk

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"

	"parley/internal/cli/terminal"
	"parley/llm"
)

// Record is a line of the output: what became of one request. A failure is a
// record too.
type Record struct {
	ID     json.RawMessage `json:"id"`               // of the request; null if the line has none of its own
	Line   int             `json:"line,omitempty"`   // of the input, for a line that is no request
	Sample int             `json:"sample,omitempty"` // which of --samples, from 0
	Digest string          `json:"digest,omitempty"` // of the request: what the answer answers

	Response *llm.Response `json:"response,omitempty"`
	Error    *llm.Error    `json:"error,omitempty"`
}

// recordStart is how every record begins: what tells a torn one from a stranger's file.
const recordStart = `{"id":`

// bytes returns r as a line, with its end.
func (r *Record) bytes() ([]byte, error) {
	b, err := terminal.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return append(b, '\n'), nil
}

// digest is the part of a request's digest that is kept: enough to tell any two apart.
type digest [16]byte

func digestOf(req *llm.Request) digest {
	whole := req.Digest()
	return digest(whole[:16])
}

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// recordKey is where a record belongs: the id and the sample, hashed. Two of a million
// places fall together once in some thirty million runs; the digest then still
// tells their answers apart.
type recordKey uint64

// Keyer makes places. Its zero value is not usable: see newPlacer.
type Keyer struct{ seed maphash.Seed }

func NewKeyer() Keyer { return Keyer{seed: maphash.MakeSeed()} }

func (p Keyer) of(id json.RawMessage, sample int) recordKey {
	var h maphash.Hash
	h.SetSeed(p.seed)
	fmt.Fprintf(&h, "%s#%d", id, sample)
	return recordKey(h.Sum64())
}

// oldRecord is what a later run needs of a record.
type oldRecord struct {
	id     json.RawMessage
	sample int
	digest digest
	ok     bool // it holds an answer, not a failure
}

var errNoRecord = errors.New("not a record of parley ask")

// readRecord reads a line of an output file.
func readRecord(line []byte) (oldRecord, error) {
	if !bytes.HasPrefix(line, []byte(recordStart)) {
		return oldRecord{}, errNoRecord
	}
	var r struct {
		ID       json.RawMessage `json:"id"`
		Sample   int             `json:"sample"`
		Digest   string          `json:"digest"`
		Response json.RawMessage `json:"response"`
		Error    json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return oldRecord{}, errNoRecord
	}
	old := oldRecord{id: r.ID, sample: r.Sample, ok: len(r.Response) > 0 && len(r.Error) == 0}
	if b, err := hex.DecodeString(r.Digest); err == nil && len(b) == len(old.digest) {
		old.digest = digest(b)
	} else {
		old.ok = false
	}
	return old, nil
}
