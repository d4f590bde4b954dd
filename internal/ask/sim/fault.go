package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Fault is the name of a simulated failure, as on the command line.
type Fault string

// The faults of a request. A request has at most one, and a retry draws again.
const (
	FaultError500   Fault = "error500"   // status 500
	FaultOverloaded Fault = "overloaded" // status 503, or 529 in Anthropic's format, or 429 in the flex tier; no Retry-After
	FaultQuota      Fault = "quota"      // status 429 or 400 that says the account is out of credit
	FaultReset      Fault = "reset"      // the connection is reset before an answer
	FaultCut        Fault = "cut"        // the connection is reset in the middle of the answer
	FaultStall      Fault = "stall"      // no answer, or no more of it, for StallFor
	FaultTruncated  Fault = "truncated"  // half the answer, with a clean end
	FaultHTML       Fault = "html"       // status 200 with a web page
	FaultStreamErr  Fault = "stream_err" // an error event in the middle of a stream; status 500 without a stream
)

// The faults of an answer. They are part of the answer: a retry gets the same.
const (
	faultBadJSON Fault = "bad_json" // a structured answer in fences, within prose, with a trailing comma
	FaultRefuse  Fault = "refuse"   // the model will not answer
)

// The faults of batches. Each line draws its own.
const (
	FaultLineExpired   Fault = "line_expired"   // the line was not reached in time
	FaultLineErrored   Fault = "line_errored"   // the line failed on the server's side
	FaultLineMissing   Fault = "line_missing"   // the line is in no output
	FaultLineDuplicate Fault = "line_duplicate" // the line is there twice
	FaultBatch429      Fault = "batch_429"      // the batch is refused when it is created
	FaultBatchFails    Fault = "batch_fails"    // the batch is created, and later fails with token_limit_exceeded (OpenAI's format)
	FaultBatchVanishes Fault = "batch_vanishes" // the batch is created, and later is not found
)

func liveFaults() []Fault {
	return []Fault{
		FaultError500, FaultOverloaded, FaultQuota, FaultReset, FaultCut, FaultStall, FaultTruncated, FaultHTML, FaultStreamErr,
	}
}

func contentFaults() []Fault { return []Fault{faultBadJSON, FaultRefuse} }

func lineFaults() []Fault {
	return []Fault{FaultLineExpired, FaultLineErrored, FaultLineMissing, FaultLineDuplicate}
}

func batchFaults() []Fault { return []Fault{FaultBatch429, FaultBatchFails, FaultBatchVanishes} }

// AllFaults lists every Fault.
func AllFaults() []Fault {
	return slices.Concat(liveFaults(), contentFaults(), lineFaults(), batchFaults())
}

// Faults are the probabilities of faults.
type Faults map[Fault]float64

// ParseFaults parses a list such as error500=0.01,reset=0.005.
func ParseFaults(s string) (Faults, error) {
	f := Faults{}
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, value, ok := strings.Cut(item, "=")
		p, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("sim: faults: %q: want name=probability, such as error500=0.01", item)
		}
		f[Fault(name)] = p
	}
	return f, f.Check()
}

// Check returns an error for an unknown name or a bad probability.
func (f Faults) Check() error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !slices.Contains(AllFaults(), name) {
			return fmt.Errorf("sim: faults: unknown fault %q; want one of %v", name, AllFaults())
		}
		if p := f[name]; !(p >= 0 && p <= 1) {
			return fmt.Errorf("sim: faults: %s: %v is not between 0 and 1", name, p)
		}
	}
	return nil
}

// chance is a fault with the end of its share of the interval from 0 to 1.
type chance struct {
	fault Fault
	below float64
}

// chances gives each fault in names its own share of the interval, so that a number draws at most
// one.
func (f Faults) chances(names []Fault) []chance {
	var out []chance
	sum := 0.0
	for _, name := range names {
		if p := f[name]; p > 0 {
			sum += p
			out = append(out, chance{name, sum})
		}
	}
	return out
}

// drawFault returns the fault that seed draws, or "".
func drawFault(chances []chance, seed uint64) Fault {
	if len(chances) == 0 {
		return ""
	}
	u := float64(seed>>11) / (1 << 53)
	for _, c := range chances {
		if u < c.below {
			return c.fault
		}
	}
	return ""
}
