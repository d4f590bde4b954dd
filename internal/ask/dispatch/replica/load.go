package replica

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

// Load is how busy a server reports to be.
type Load struct {
	Running float64 // requests being answered
	Waiting float64 // requests that wait in the server
	Cache   float64 // share of the key-value cache that is in use: 0 to 1
	// Preempted counts requests that lost their part of the cache and were started again.
	Preempted float64
}

// Reader reads a Load from a Prometheus page, line by line. The zero value is ready to use.
type Reader struct {
	load  Load
	found bool
}

// gauges returns where the value of a metric of vLLM or SGLang goes, or nil. A server with several engines
// has a line for each: requests are added up, and of the caches the fullest counts.
func gauges(name string, l *Load) (to *float64, fullest bool) {
	switch name {
	case "vllm:num_requests_running", "sglang:num_running_reqs":
		return &l.Running, false
	case "vllm:num_requests_waiting", "sglang:num_queue_reqs":
		return &l.Waiting, false
	case "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage":
		return &l.Cache, true
	case "vllm:num_preemptions_total", "sglang:num_retracted_requests_total":
		return &l.Preempted, false
	default:
		return nil, false
	}
}

// Line reads a line of the page. It ignores lines that it does not know.
func (r *Reader) Line(line []byte) {
	line = bytes.TrimSpace(line)
	end := bytes.IndexAny(line, "{ \t")
	if end <= 0 || line[0] == '#' {
		return
	}
	to, fullest := gauges(string(line[:end]), &r.load)
	if to == nil {
		return
	}
	rest := line[end:]
	if rest[0] == '{' { // labels may hold anything in quotes; a value never contains a brace
		rest = rest[bytes.LastIndexByte(rest, '}')+1:]
	}
	fields := bytes.Fields(rest) // the value, and perhaps a time
	if len(fields) == 0 {
		return
	}
	v, err := strconv.ParseFloat(string(fields[0]), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return
	}
	if to != &r.load.Preempted {
		r.found = true
	}
	if fullest {
		*to = max(*to, v)
	} else {
		*to += v
	}
}

// Load returns the load that the page reports.
func (r *Reader) Load() (Load, error) {
	if !r.found {
		return Load{}, errors.New("replica: the page has no metrics of vLLM or SGLang: running and waiting requests, use of the cache")
	}
	return r.load, nil
}
