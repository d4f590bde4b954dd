package telemetry

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPage compares a page with what Prometheus' own library writes.
func TestPage(t *testing.T) {
	t.Parallel()
	h := NewHistogram(.5, 1)
	for _, v := range []float64{.25, .5, .75, 1, 1.5} {
		h.Observe(v)
	}
	var p Page
	p.Add(Counter, "a_total", "Some.", 3, "x", "\"\\\n\xff", "y", "")
	p.Add(Counter, "a_total", "Some.", 1e21, "x", "", "y", "z")
	p.Add(Gauge, "b", "Other.", math.Inf(1))
	p.AddHistogram("c", "Times.", h, "x", "1")
	const want = `# HELP a_total Some.
# TYPE a_total counter
a_total{x="\"\\\n` + "\uFFFD" + `",y=""} 3
a_total{x="",y="z"} 1e+21
# HELP b Other.
# TYPE b gauge
b +Inf
# HELP c Times.
# TYPE c histogram
c_bucket{x="1",le="0.5"} 2
c_bucket{x="1",le="1"} 4
c_bucket{x="1",le="+Inf"} 5
c_sum{x="1"} 4
c_count{x="1"} 5
`
	if got := string(p.text()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestProcess checks that Go still has all the metrics that the page names, and reads those of Linux.
func TestProcess(t *testing.T) {
	t.Parallel()
	var p Page
	p.AddProcess(time.UnixMilli(1500))
	for _, m := range runtimeMetrics() {
		if !strings.Contains(string(p.text()), "\n"+m.name+" ") {
			t.Errorf("no %s in\n%s", m.name, p.text())
		}
	}
	if !strings.Contains(string(p.text()), "\nprocess_start_time_seconds 1.5\n") {
		t.Errorf("%s", p.text())
	}
	dir := t.TempDir()
	stat := "7 (a) (b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 8 0 900 4096000 3 18446744073709551615"
	if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o600); err != nil {
		t.Fatal(err)
	}
	var proc, short Page
	proc.addProc(dir)
	for _, want := range []string{"process_cpu_seconds_total 3\n", "process_virtual_memory_bytes 4.096e+06\n", "process_resident_memory_bytes "} {
		if !strings.Contains(string(proc.text()), "\n"+want) {
			t.Errorf("no %s in\n%s", want, proc.text())
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "stat"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	short.addProc(dir) // a damaged file is no reason to panic
}
