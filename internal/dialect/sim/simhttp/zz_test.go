package simhttp

import (
	"os"
	"os/exec"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/internal/dialect/sim"
)

func TestZZServer(t *testing.T) {
	if os.Getenv("ZZ") == "" { t.Skip() }
	lat, _ := sim.ParseDelay(os.Getenv("ZZ"))
	ln, _ := net.Listen("tcp", "127.0.0.1:18080")
	s := newServer(t, Config{Sim: sim.Config{Latency: lat}})
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	go func() { for ctx.Err()==nil { time.Sleep(time.Second); var ru syscall.Rusage; syscall.Getrusage(0,&ru); st := s.Stats(); var m runtime.MemStats; runtime.ReadMemStats(&m)
		cpu := time.Duration(ru.Utime.Nano()+ru.Stime.Nano())
		fmt.Fprintln(os.Stderr, st.OK, st.InFlightMax, "cpu/req", float64(cpu.Microseconds())/float64(max(1,st.OK)), "maxrss MB", ru.Maxrss/1024, "sys MB", m.Sys>>20) } }()
	s.Run(ctx, ln)
}

func TestZZLoad(t *testing.T) {
	if os.Getenv("ZZN") == "" { t.Skip() }
	var n, rounds int
	fmt.Sscan(os.Getenv("ZZN"), &n, &rounds)
	_ = exec.Command
	tr := &http.Transport{MaxIdleConnsPerHost: n}
	c := &http.Client{Transport: tr}
	start := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for k := range rounds {
				resp, err := c.Post("http://127.0.0.1:18080"+chatPath, "application/json", strings.NewReader(strings.Replace(chatBody, "river", fmt.Sprint(i, k), 1)))
				if err != nil { t.Error(err); return }
				io.Copy(io.Discard, resp.Body); resp.Body.Close()
			}
		})
	}
	wg.Wait()
	fmt.Fprintln(os.Stderr, n*rounds, "in", time.Since(start))
	tr.CloseIdleConnections()
}
