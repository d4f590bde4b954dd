package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Fault is something that goes wrong, by its name on the command line.
type Fault string

// The faults of a request. At most one befalls it, and a retry draws again.
const (
	FaultError500   Fault = "error500"   // status 500
	FaultOverloaded Fault = "overloaded" // status 503, or 529 in Anthropic's format, or 429 in the flex tier; no Retry-After
	FaultQuota      Fault = "quota"      // status 429 or 400 that says the account is out of credit
	FaultReset      Fault = "reset"      // the connection is reset before an answer
	FaultCut        Fault = "cut"        // the connection is reset in the middle of the answer
	FaultStall      Fault = "stall"      // no answer, or no more of it, for StallFor
	FaultTruncated  Fault = "truncated"  // half the answer, cleanly ended
	FaultHTML       Fault = "html"       // status 200 with a web page
	FaultType       Fault = "type"       // the right answer under the wrong content type
	FaultStreamErr  Fault = "stream_err" // an error event in the middle of a stream; status 500 where there is none
	FaultNoDone     Fault = "no_done"    // a stream that ends without saying so; truncated where there is none
	FaultClose      Fault = "close"      // the right answer, after which the connection is closed unannounced
	FaultSlow       Fault = "slow"       // ten times as late
)

// The faults of an answer. They are part of what is said: a retry hears the same.
const (
	FaultBadJSON Fault = "bad_json" // a structured answer in fences, amid prose, with a trailing comma
	FaultRefuse  Fault = "refuse"   // the model will not answer
)

// The faults of batches. Those of lines befall each line by itself.
const (
	FaultLineExpired   Fault = "line_expired"   // the line was not reached in time
	FaultLineErrored   Fault = "line_errored"   // the line failed on the server's side
	FaultLineMissing   Fault = "line_missing"   // the line is in no output
	FaultLineDuplicate Fault = "line_duplicate" // the line is there twice
	FaultBatch429      Fault = "batch_429"      // the batch is refused when it is created
	FaultBatchFails    Fault = "batch_fails"    // the batch is taken, and later fails with token_limit_exceeded (OpenAI's format)
	FaultBatchVanishes Fault = "batch_vanishes" // the batch is taken, and later is not found
)

func liveFaults() []Fault {
	return []Fault{
		FaultError500, FaultOverloaded, FaultQuota, FaultReset, FaultCut, FaultStall, FaultTruncated, FaultHTML,
		FaultType, FaultStreamErr, FaultNoDone, FaultClose, FaultSlow,
	}
}

func contentFaults() []Fault { return []Fault{FaultBadJSON, FaultRefuse} }

func lineFaults() []Fault {
	return []Fault{FaultLineExpired, FaultLineErrored, FaultLineMissing, FaultLineDuplicate}
}

func batchFaults() []Fault { return []Fault{FaultBatch429, FaultBatchFails, FaultBatchVanishes} }

// AllFaults lists every Fault.
func AllFaults() []Fault {
	return slices.Concat(liveFaults(), contentFaults(), lineFaults(), batchFaults())
}

// Faults are probabilities by name.
type Faults map[Fault]float64

// ParseFaults reads a list such as error500=0.01,reset=0.005.
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

// Check says what is wrong with f: an unknown name, or no probability.
func (f Faults) Check() error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !slices.Contains(AllFaults(), name) {
			return fmt.Errorf("sim: faults: %q is not known: use one of %v", name, AllFaults())
		}
		if p := f[name]; !(p >= 0 && p <= 1) {
			return fmt.Errorf("sim: faults: %s: %v is not between 0 and 1", name, p)
		}
	}
	return nil
}

// String writes f as ParseFaults reads it.
func (f Faults) String() string {
	var items []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		items = append(items, string(name)+"="+strconv.FormatFloat(f[name], 'g', -1, 64))
	}
	return strings.Join(items, ",")
}

// chance is a fault and where its share of the numbers from 0 to 1 ends.
type chance struct {
	fault Fault
	below float64
}

// chances lays the faults in names side by side, so that one number draws one at most.
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

// draw returns the fault that a seed stands for, or "".
func draw(chances []chance, seed uint64) Fault {
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
