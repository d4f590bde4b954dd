package hub

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Log names the streams of a run. Number is random for each life of the streams, so that nobody who
// wrote to an earlier one can write to this one.
type Log struct {
	Run    string
	Number int64
}

// version is of what lots and chains hold.
const version = "v1"

// Stream returns the name of the stream of all chains.
func (l Log) Stream() string { return "P_" + l.Run + "_LOG" }

// Lots returns the name of the work queue.
func (l Log) Lots() string { return "P_" + l.Run + "_LOTS" }

// Workers is the name of the consumer of the work queue.
const Workers = "workers"

func (l Log) prefix() string { return "p." + l.Run + "." + strconv.FormatInt(l.Number, 36) }

// Chains returns the subjects of all chains.
func (l Log) Chains() string { return l.prefix() + ".log.>" }

// Chain returns the subject of the chain of some episodes: up to, but not including, to.
func (l Log) Chain(from, to int) string { return fmt.Sprintf("%s.log.%d-%d", l.prefix(), from, to) }

// Begun returns the subject of the chain that says how the run was set up.
func (l Log) Begun() string { return l.prefix() + ".log.run" }

// Queue returns the subjects of all lots.
func (l Log) Queue() string { return l.prefix() + ".lot." + version + ".>" }

// Lot returns the subject of a lot in the queue.
func (l Log) Lot(from, to int) string {
	return fmt.Sprintf("%s.lot.%s.%d-%d", l.prefix(), version, from, to)
}

// EpisodesOf returns the episodes of a chain or a lot, given its subject.
func EpisodesOf(subject string) (from, to int, ok bool) {
	name := subject[strings.LastIndexByte(subject, '.')+1:]
	first, last, ok := strings.Cut(name, "-")
	if !ok {
		return 0, 0, false
	}
	from, err := strconv.Atoi(first)
	to, lastErr := strconv.Atoi(last)
	return from, to, err == nil && lastErr == nil && 0 <= from && from < to
}

// OverStream is the stream of runs that are over, of all that more than one process coordinated.
const OverStream = "P_OVER"

// OverSubject returns the subject of a run in OverStream, or of any if it is *.
func OverSubject(run string) string { return "p." + run + ".over" }

// BeatSubject returns the subject of what a coordinator says about a run, or about any if it is *.
func BeatSubject(run string) string { return "p." + run + ".beat" }

// TakenSubject returns the subject of how far the log is in the run file.
func TakenSubject(run string) string { return "p." + run + ".taken" }

// AppendTaken appends a message for TakenSubject. It names the log, so that nobody believes one about another log.
func (l Log) AppendTaken(b []byte, through uint64) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, l.Number), through)
}

// ReadTaken reads what AppendTaken writes.
func (l Log) ReadTaken(b []byte) (through uint64, ok bool) {
	number, n := binary.Varint(b)
	if n <= 0 || number != l.Number {
		return 0, false
	}
	through, n = binary.Uvarint(b[n:])
	return through, n > 0
}

// logHeader names the log in a report for LeaseSubject.
const logHeader = "Parley-Log"

// Ask returns a message for LeaseSubject. It names the log, so that a coordinator ignores the sessions of an earlier log: the epochs
// of keepers grow only within one log.
func (l Log) Ask(to string, data []byte) *nats.Msg {
	return &nats.Msg{Subject: to, Data: data, Header: nats.Header{logHeader: {strconv.FormatInt(l.Number, 10)}}}
}

// Asks reports whether m was made by Ask of this log.
func (l Log) Asks(m *nats.Msg) bool {
	return m.Header.Get(logHeader) == strconv.FormatInt(l.Number, 10)
}

// StatsSubject returns the subject of what workers report.
func StatsSubject(run string) string { return "p." + run + ".stats" }

// What is leased to workers: limits of accounts, and money.
const (
	Limits = "limits"
	Money  = "money"
)

// LeaseSubject returns the subject at which a coordinator answers the reports of workers about what is leased to them.
func LeaseSubject(run, what string) string { return "p." + run + "." + what }

// GrantSubject returns the subject of what a coordinator grants a worker unasked.
func GrantSubject(run, what, worker string) string {
	return "p." + run + ".grant." + what + "." + worker
}

// StatusSubject returns the subject at which a coordinator answers how the run is divided.
func StatusSubject(run string) string { return "p." + run + ".status" }

// CacheSubject returns the subject at which a coordinator answers what workers ask about the cache of the run.
func CacheSubject(run string) string { return "p." + run + ".cache" }

// DrainSubject returns the subject at which a worker is told to drain. It is outside of what the tokens of runs may publish to.
func DrainSubject(worker string) string { return "drain." + worker }

// Drain tells a worker to drain.
func Drain(nc *nats.Conn, worker string) error {
	return nc.Publish(DrainSubject(worker), []byte(drainText))
}

const drainText = "drain"

// Drains reports whether an operator sent m to drain a worker. Who has the token of a run can have other messages sent to DrainSubject, as the
// answers to its requests.
func Drains(m *nats.Msg, worker string) bool {
	return m.Subject == DrainSubject(worker) && string(m.Data) == drainText
}

// PlaysSubject returns the subject at which a worker answers whether it plays a lot.
func PlaysSubject(run, worker string) string { return "p." + run + ".plays." + worker }

// BeatInterval is how often beats and stats are sent. Silent is how long somebody may say nothing who is not gone.
const (
	BeatInterval = time.Second
	Silent       = 5 * time.Second
)

// Beating is what a coordinator says about its run.
type Beating struct {
	Run   string `json:"run"`
	Log   int64  `json:"log"`
	Build string `json:"build"`
	// Durable means that the log survives the loss of a node. Otherwise workers wait until an entry is in the run
	// file.
	Durable bool `json:"durable"`
	// Taken is the message of the log up to which everything is in the run file.
	Taken uint64 `json:"taken"`
	// Paused, Draining and Ended say that workers send no calls for now, give their lots back, or leave the run.
	Paused   bool `json:"paused,omitempty"`
	Draining bool `json:"draining,omitempty"`
	Ended    bool `json:"ended,omitempty"`
	// AckWait is how long a worker may keep a lot without a sign of life.
	AckWait time.Duration `json:"ack_wait"`
}

// Working is what a worker says about itself and a run.
type Working struct {
	// Worker names the process, and Session its part in the run.
	Worker  string `json:"worker"`
	Session string `json:"session"`
	Host    string `json:"host"`
	Process int    `json:"process"`
	Build   string `json:"build"`
	Run     string `json:"run"`
	Lots    int    `json:"lots"`
	// Waiting are the first episodes of lots that the worker has and does not play now, because it plays another with nothing beside it.
	Waiting []int `json:"waiting,omitempty"`
	// Calls is what its calls are so far: a tally.Report. Waits says for people what they wait for, as a provider that cannot be reached; hostile.
	Calls json.RawMessage `json:"calls,omitempty"`
	Waits []string        `json:"waits,omitempty"`
	// HubFull means that the worker waits until the hub has room.
	HubFull bool `json:"hub_full,omitempty"`
	// Refused says why the worker does not play the run.
	Refused string `json:"refused,omitempty"`
	// Leaves means that the worker ends. Owes means that it then leaves calls that may be billed and are not recorded.
	Leaves bool `json:"leaves,omitempty"`
	Owes   bool `json:"owes,omitempty"`
}

// Idle says why the worker does not play; "" if it does.
func (w Working) Idle() string {
	if w.HubFull {
		return "it waits: the hub is full"
	}
	return w.Refused
}
