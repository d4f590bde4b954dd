package replica

import (
	"strings"
	"testing"
)

func read(page string) (Load, error) {
	var r Reader
	for line := range strings.Lines(page) {
		r.Line([]byte(line))
	}
	return r.Load()
}

func TestLoad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, page string
		want       Load
		bad        bool
	}{
		{name: "vllm", want: Load{Running: 5, Waiting: 2, Cache: 0.75, Preempted: 3}, page: `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="Qwen/Qwen3"} 4.0
vllm:num_requests_running{engine="1",model_name="Qwen/Qwen3"} 1.0
vllm:num_requests_waiting{engine="0",model_name="Qwen/Qwen3"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0
vllm:kv_cache_usage_perc{engine="0",model_name="Qwen/Qwen3"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="Qwen/Qwen3"} 7.5e-01
vllm:num_preemptions_total{engine="0",model_name="Qwen/Qwen3"} 3.0
vllm:num_preemptions_created{engine="0",model_name="Qwen/Qwen3"} 1.7e+09
`},
		{name: "older vllm", page: "vllm:num_requests_running 1\nvllm:gpu_cache_usage_perc{model_name=\"m\"} 0.25 1700000000\n", want: Load{Running: 1, Cache: 0.25}},
		{name: "sglang", want: Load{Running: 8, Waiting: 4, Cache: 0.52, Preempted: 6}, page: `sglang:token_usage{model_name="a}b \" {c"} 0.52
sglang:num_running_reqs{model_name="m"} 8
sglang:num_queue_reqs{model_name="m"}	4
sglang:num_retracted_requests_total{model_name="m"} 6
`},
		{name: "nonsense", page: "vllm:num_requests_running NaN\nvllm:num_requests_waiting -1\nvllm:kv_cache_usage_perc\nvllm:num_requests_running{\nvllm:num_requests_running{a=\"b\"}\n", bad: true},
		{name: "infinite", page: "vllm:num_requests_running +Inf\n", bad: true},
		{name: "another page", page: "<html>hello</html>\nprocess_cpu_seconds_total 5\n", bad: true},
		{name: "empty", bad: true},
	} {
		got, err := read(c.page)
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("vllm:num_requests_running{a=\"b\"} 4 1\nsglang:token_usage 1")
	f.Fuzz(func(t *testing.T, page string) {
		l, err := read(page)
		for _, v := range []float64{l.Running, l.Waiting, l.Cache, l.Preempted} {
			if !(v >= 0) {
				t.Errorf("%q: %+v, %v", page, l, err)
			}
		}
	})
}
