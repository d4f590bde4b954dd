package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/kit/testkit"
)

// process is a part of a cluster that can be killed and started again.
type process struct {
	t    *testing.T
	args []string
	env  []string
	dir  string // its current folder; "": that of the test
	cmd  *exec.Cmd
	out  *printed
	err  *printed
	done chan error
}

// printed is what a process prints, in a file: it can be read while the process runs, and a pipe would stay open as long as its children do.
type printed struct{ *os.File }

func newPrinted(t *testing.T) *printed {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &printed{f}
}

func (o *printed) String() string { return string(o.Bytes()) }

func (o *printed) Bytes() []byte {
	text, _ := os.ReadFile(o.Name()) // a test that ends removes it
	return text
}

func start(t *testing.T, token string, args ...string) *process {
	t.Helper()
	return startIn(t, "", token, args...)
}

// startIn is start in a folder.
func startIn(t *testing.T, dir, token string, args ...string) *process {
	t.Helper()
	p := &process{t: t, args: args, dir: dir, env: append(os.Environ(), beParley+"=1", "PARLEY_CLUSTER_TOKEN="+token)}
	p.start()
	t.Cleanup(func() { p.kill() })
	return p
}

func (p *process) start() {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd, p.out, p.err, p.done = exec.Command(self, p.args...), newPrinted(p.t), newPrinted(p.t), make(chan error, 1)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = p.dir, p.env, p.out.File, p.err.File
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, done chan error) { done <- cmd.Wait() }(p.cmd, p.done)
}

// kill kills the process, and reports whether it was running.
func (p *process) kill() bool {
	select {
	case err := <-p.done:
		p.done <- err
		return false
	default:
	}
	_ = p.cmd.Process.Kill()
	p.done <- <-p.done
	return true
}

// wait waits until the process has ended by itself.
func (p *process) wait() error {
	err := <-p.done
	p.done <- err
	return err
}

// over reports whether the process has ended by itself.
func (p *process) over() bool { return len(p.done) > 0 }

// takenPorts has what freePorts returned: a test may not have started its process yet, or has killed it.
var takenPorts sync.Map

// freePorts returns addresses that nobody listens at, and nobody else gets.
func freePorts(t *testing.T, n int) (all []string) {
	t.Helper()
	for len(all) < n {
		l := testkit.StablePort(t)
		address := l.Addr().String()
		_ = l.Close()
		if _, taken := takenPorts.LoadOrStore(address, true); !taken {
			all = append(all, address)
		}
	}
	return all
}

// hubOf starts a hub of so many nodes, and returns them and its address. Each of several nodes has a folder of its own.
func hubOf(t *testing.T, nodes int, folders ...string) ([]*process, string) {
	t.Helper()
	listen := freePorts(t, 2*nodes)
	if nodes == 1 {
		return []*process{start(t, "secret-secret-secret", "hub", "--listen", listen[0])}, "nats://" + listen[0]
	}
	var all []*process
	routes := strings.Join(listen[nodes:], ",")
	for i := range nodes {
		if i == len(folders) {
			folders = append(folders, t.TempDir())
		}
		all = append(all, start(t, "secret-secret-secret", "hub", "--listen", listen[i], "--join", routes, "--route", listen[nodes+i], "--folder", folders[i]))
	}
	return all, "nats://" + strings.Join(listen[:nodes], ",nats://")
}

// TestKilledCluster kills workers, coordinators and nodes of the hub at random moments, and wants the outcomes of
// a single process, with every reply once.
func TestKilledCluster(t *testing.T) {
	t.Parallel()
	url, _ := provider(t)
	file := plan(t, url)
	want, _ := program(t, 0, "run", file, "--out", filepath.Join(t.TempDir(), "whole.parley"), "--json", "--quiet")
	for _, c := range []struct {
		name  string
		nodes int // 0: in the coordinator
	}{{"in the coordinator", 0}, {"one node", 1}, {"three nodes", 3}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.nodes == 1 {
				often(t)
			}
			least := enough(t, 4, 2)
			for kills := 0; kills < least; {
				n, got := killedRun(t, file, c.nodes, least-kills)
				t.Logf("%d kills in a run", n)
				if kills += n; got.State != "complete" || got.Digest != want.Digest || got.Calls.Total != want.Calls.Total {
					t.Fatalf("after %d kills: %+v, want %+v", kills, got, want)
				}
			}
		})
	}
}

// until waits for something, or until the run has ended.
func (p *process) until(seen func() bool) {
	for !seen() && !p.over() {
		time.Sleep(10 * time.Millisecond)
	}
}

// TestKilledBudget kills workers of a run with a budget, eight with fifty calls in flight each, and the hub, whose log is then lost.
// What was asked never costs more than that, by the provider's own count.
func TestKilledBudget(t *testing.T) {
	t.Parallel()
	latency, err := sim.ParseDelay("300ms..600ms") // so that many calls are in flight
	if err != nil {
		t.Fatal(err)
	}
	url, server := serve(t, simhttp.Config{Sim: sim.Config{Latency: latency}})
	file := plan(t, url)
	prices := priced(t, 100) // so that no answer can be longer than is paid for in advance
	const budget, members, inFlight = 50.0, 8, 50
	out := filepath.Join(t.TempDir(), "run.parley")
	hubs, address := hubOf(t, 1)
	var workers []*process
	for range members {
		workers = append(workers, start(t, "secret-secret-secret", "worker", "--cluster", address, "--quiet"))
	}
	run := start(t, "secret-secret-secret", "run", file, "--out", out, "--json", "--quiet", "--lease", "500ms", "--cluster", address,
		"--budget", fmt.Sprint(budget), "--set", "episodes=2000", "--set", fmt.Sprint("limits.concurrency=", members*inFlight), "--set", "agents.quiet.max_tokens=60", "--set", "agents.bold.max_tokens=60", "--set", "prices="+prices, "--allow-files", filepath.Dir(prices))
	for kills := range 3 {
		run.until(func() bool { return server.Stats().Requests >= int64(members*inFlight/2*(kills+1)) })
		victim := workers[kills]
		if kills == 1 {
			victim = hubs[0]
		}
		victim.kill()
		victim.start()
	}
	select {
	case err := <-run.done:
		run.done <- err
	case <-time.After(2 * time.Minute):
		t.Fatalf("the run does not end: %s", run.err)
	}
	var got spending
	if err := json.Unmarshal(run.out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %q %s", err, run.out, run.err)
	}
	billed := float64(server.Stats().Tokens.Output) * 1000 / 1e6
	if got.State != "stopped" || !strings.HasPrefix(got.Reason, "budget") || billed > budget || got.Cost > billed || got.Cost+got.Risked > budget || billed == 0 {
		t.Errorf("%+v; the provider bills %g, want at most %g", got, billed, budget)
	}
	t.Logf("%+v; billed %g of %g; at most %d calls in flight", got, billed, budget, server.Stats().InFlightMax)
}

// TestPricesTravel: a worker in another folder, without the file of prices that the plan names, charges what the file says.
func TestPricesTravel(t *testing.T) {
	t.Parallel()
	url, server := serve(t, simhttp.Config{})
	file := plan(t, url)
	if err := os.Rename(priced(t, 100), filepath.Join(filepath.Dir(file), "my-prices.json")); err != nil {
		t.Fatal(err)
	}
	listen := freePorts(t, 1)[0]
	run := start(t, "secret-secret-secret", "run", file, "--out", filepath.Join(t.TempDir(), "run.parley"), "--json", "--listen", listen, "--budget", "1000", "--set", "episodes=3",
		"--set", "prices=my-prices.json", "--set", "agents.quiet.max_tokens=60", "--set", "agents.bold.max_tokens=60")
	worker := startIn(t, t.TempDir(), "secret-secret-secret", "worker", "--cluster", "nats://"+listen)
	var got spending
	if err := errors.Join(run.wait(), json.Unmarshal(run.out.Bytes(), &got)); err != nil {
		t.Fatalf("%v: %s%s", err, run.err, worker.err)
	}
	billed := float64(server.Stats().Tokens.Output) * 1000 / 1e6
	if got.State != "complete" || billed == 0 || math.Abs(got.Cost-billed) > 1e-9 || got.Risked != 0 {
		t.Errorf("%+v; the provider bills %g", got, billed)
	}
}

// TestSharedCache: three workers in folders of their own share the cache of a run. What they paid for is not paid again by three others in another
// run: the provider gets each question once.
func TestSharedCache(t *testing.T) {
	t.Parallel()
	url, server := provider(t)
	file := plan(t, url)
	var first summary
	for n := range 2 {
		listen := freePorts(t, 1)[0]
		run := start(t, "secret-secret-secret", "run", file, "--out", filepath.Join(t.TempDir(), "run.parley"), "--json", "--listen", listen, "--set", "cache=answers")
		for range 3 {
			startIn(t, t.TempDir(), "secret-secret-secret", "worker", "--cluster", "nats://"+listen, "--quiet")
		}
		var got summary
		if err := errors.Join(run.wait(), json.Unmarshal(run.out.Bytes(), &got)); err != nil {
			t.Fatalf("%v: %s", err, run.err)
		}
		if n == 0 {
			first = got
		}
		if got.State != "complete" || got.Digest != first.Digest || got.Calls.Total == 0 || got.Calls.Cached != n*first.Calls.Total || int(server.Stats().Requests) != first.Calls.Total {
			t.Errorf("run %d: %+v, with %d requests so far; the first: %+v", n, got, server.Stats().Requests, first)
		}
	}
}

// TestDrainedWorker drains one of two workers. It ends without an error, the other plays its lots, and the provider is asked nothing twice. All that
// parley cluster prints agrees.
func TestDrainedWorker(t *testing.T) {
	t.Parallel()
	direct, _ := provider(t)
	want, _ := program(t, 0, "run", plan(t, direct), "--set", long, "--out", filepath.Join(t.TempDir(), "whole.parley"), "--json", "--quiet")
	url, server, quick := slowed(t)
	_, address := hubOf(t, 1)
	workers := map[int]*process{}
	for range 2 {
		p := start(t, "secret-secret-secret", "worker", "--cluster", address, "--quiet")
		workers[p.cmd.Process.Pid] = p
	}
	run := start(t, "secret-secret-secret", "run", plan(t, url), "--set", long, "--out", filepath.Join(t.TempDir(), "run.parley"), "--json", "--quiet", "--cluster", address)
	var view struct {
		Runs []struct {
			Workers []struct {
				Worker  string
				Process int
			}
			Lots struct {
				Waiting, Leased int
				Open            []struct{ Worker string }
			}
		}
		Drained string
	}
	look := func(args ...string) {
		t.Helper()
		p := start(t, "secret-secret-secret", append([]string{"cluster", "--cluster", address, "--json"}, args...)...)
		if err := errors.Join(p.wait(), json.Unmarshal(p.out.Bytes(), &view)); err != nil {
			t.Fatalf("%v: %s%s", err, p.out, p.err)
		}
	}
	run.until(func() bool {
		if server.Stats().OK < 20 {
			return false
		}
		look()
		return len(view.Runs) == 1 && len(view.Runs[0].Workers) == 2 && view.Runs[0].Lots.Leased > 1
	})
	if run.over() {
		t.Fatal(run.err)
	}
	of := view.Runs[0]
	played := 0
	for _, lot := range of.Lots.Open {
		if lot.Worker != "" {
			played++
		}
	}
	if played != of.Lots.Leased || played+of.Lots.Waiting != len(of.Lots.Open) {
		t.Errorf("%+v: the list and the numbers differ", of)
	}
	drained := of.Workers[0]
	unknown := start(t, "secret-secret-secret", "cluster", "--cluster", address, "drain", "NOBODY")
	if err := unknown.wait(); err == nil || !strings.Contains(unknown.err.String(), "no run has a worker of this name") {
		t.Errorf("%v: %s", err, unknown.err)
	}
	look("drain", drained.Worker)
	if err := workers[drained.Process].wait(); err != nil || view.Drained != drained.Worker || len(view.Runs) != 1 || len(view.Runs[0].Workers) != 1 {
		t.Errorf("%v: %+v: %s", err, view, workers[drained.Process].err)
	}
	quick()
	var got summary
	if err := errors.Join(run.wait(), json.Unmarshal(run.out.Bytes(), &got)); err != nil || got.State != "complete" || got.Digest != want.Digest || int(server.Stats().Requests) != want.Calls.Total {
		t.Errorf("%v: %+v with %d requests, want %+v: %s", err, got, server.Stats().Requests, want, run.err)
	}
}

// TestBudgetSurvivesKills kills everything at random moments, in a run with a budget of five times what it costs. It
// completes, within the budget by the provider's own count, and no more is at risk than the calls that were open at the kills can have cost: those
// in flight, and as many that were answered and not recorded yet.
func TestBudgetSurvivesKills(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{0, 1} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			t.Parallel()
			if nodes == 1 {
				often(t)
			}
			url, server := serve(t, simhttp.Config{})
			file, prices := plan(t, url), priced(t, 100)
			const tokens = 60
			priced := []string{"--set", fmt.Sprint("agents.quiet.max_tokens=", tokens), "--set", fmt.Sprint("agents.bold.max_tokens=", tokens), "--set", "prices=" + prices, "--allow-files", filepath.Dir(prices)}
			billed := func() float64 { return float64(server.Stats().Tokens.Output) / 1000 }
			want, _ := program(t, 0, append([]string{"run", file, "--out", filepath.Join(t.TempDir(), "whole.parley"), "--json", "--quiet"}, priced...)...)
			cost := billed()
			least, kills := enough(t, 6, 3), 0
			for kills < least {
				before := billed()
				n, got := killedRun(t, file, nodes, least-kills, append(priced, "--budget", fmt.Sprint(5*cost))...)
				kills += n
				bill, risk := billed()-before, float64(2*n*planCalls*tokens)/1000
				t.Logf("%d kills: $%.2f of $%.2f spent, $%.2f billed, $%.2f at risk; the open calls can have cost $%.2f", n, got.Cost, 5*cost, bill, got.Risked, risk)
				if got.State != "complete" || got.Digest != want.Digest || got.Calls.Total != want.Calls.Total || bill > 5*cost || got.Cost > bill+1e-9 || got.Cost+got.Risked < bill-1e-9 || got.Risked > risk {
					t.Errorf("after %d kills: %+v", n, got)
				}
				if n == 0 {
					break // it was over too soon
				}
			}
		})
	}
}

// TestSharedQuota: workers together keep to the limit of a provider that says nothing about it, also when one is killed and
// started again. The provider counts what it refuses.
func TestSharedQuota(t *testing.T) {
	t.Parallel()
	const rpm, episodes, calls = 3000, 300, 2 // lots for everybody
	// A client does not know what the provider lets it save up, so only requests that are late together use that.
	limits := sim.Limits{RPM: rpm, Burst: 3 * time.Second}
	url, server := serve(t, simhttp.Config{NoLimitHeaders: true, Sim: sim.Config{Limits: limits}})
	_, address := hubOf(t, 1)
	var workers []*process
	for range 3 {
		workers = append(workers, start(t, "secret-secret-secret", "worker", "--cluster", address, "--quiet"))
	}
	run := start(t, "secret-secret-secret", "run", plan(t, url), "--out", filepath.Join(t.TempDir(), "run.parley"), "--json", "--quiet", "--lease", "1s", "--cluster", address,
		"--set", fmt.Sprint("episodes=", episodes), "--set", "params.messages=1", "--set", fmt.Sprint("providers.lab.limits.rpm=", rpm), "--set", "limits.concurrency=100")
	run.until(func() bool { return server.Stats().Requests >= episodes*calls/3 })
	workers[0].kill()
	workers[0].start()
	if err := run.wait(); err != nil {
		t.Fatalf("%v: %s", err, run.err)
	}
	st := server.Stats()
	if st.RateLimited*200 > st.Requests || st.OK < episodes*calls {
		t.Errorf("%d of %d requests were refused, want at most 0.5%%; %d answered, want at least %d", st.RateLimited, st.Requests, st.OK, episodes*calls)
	}
	t.Logf("%d of %d requests were refused", st.RateLimited, st.Requests)
}

// TestRebuilt kills a coordinator, and makes its run file again elsewhere, from what the hub kept.
func TestRebuilt(t *testing.T) {
	t.Parallel()
	often(t)
	direct, _ := provider(t)
	want, _ := program(t, 0, "run", plan(t, direct), "--out", filepath.Join(t.TempDir(), "whole.parley"), "--json", "--quiet")
	address, release := gated(t)
	_, hub := hubOf(t, 3)
	for range 2 {
		start(t, "secret-secret-secret", "worker", "--cluster", hub, "--quiet")
	}
	out := filepath.Join(t.TempDir(), "run.parley")
	run := start(t, "secret-secret-secret", "run", plan(t, address), "--out", out, "--quiet", "--cluster", hub, "--retain")
	for callsIn(t, out) == 0 && !run.over() {
		time.Sleep(10 * time.Millisecond)
	}
	run.kill()
	release()
	left := start(t, "secret-secret-secret", "cluster", "--cluster", hub, "--json")
	_ = left.wait()
	var view struct {
		Left []string
		Runs []any // a list even if no run answers
	}
	if err := json.Unmarshal(left.out.Bytes(), &view); err != nil || len(view.Left) != 1 || view.Runs == nil {
		t.Fatalf("%v: %s%s", err, left.out, left.err)
	}
	again := start(t, "secret-secret-secret", "run", filepath.Join(t.TempDir(), "again.parley"), "--cluster", hub, "--rebuild", view.Left[0], "--json", "--quiet")
	err := again.wait()
	var got summary
	if err := errors.Join(err, json.Unmarshal(again.out.Bytes(), &got)); err != nil || got.State != "complete" || got.Digest != want.Digest || got.Calls.Total != want.Calls.Total {
		t.Errorf("%v: %+v, want %+v: %s", err, got, want, again.err)
	}
}

// timeout is how long a run may make no progress: lots at which several workers died are played alone, which can take minutes.
func timeout(t *testing.T) time.Duration {
	t.Helper()
	limit := 8 * time.Minute
	if end, ok := t.Deadline(); ok {
		limit = min(limit, time.Until(end)-30*time.Second)
	}
	return limit
}

// stuck ends a test whose run makes no progress, with what the parts of the cluster printed.
func stuck(t *testing.T, parts []*process) {
	t.Helper()
	for _, p := range parts {
		_ = p.cmd.Process.Signal(os.Interrupt)
	}
	time.Sleep(2 * time.Second) // they say why they stop
	for _, p := range parts {
		t.Logf("%q: %s", p.args, p.err)
	}
	t.Fatal("the run makes no progress")
}

// killedRun plays a run on a cluster and kills its parts until there were enough, or it is complete.
func killedRun(t *testing.T, file string, nodes, enough int, more ...string) (kills int, got summary) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "run.parley")
	args := append([]string{"run", file, "--out", out, "--json", "--quiet", "--lease", "500ms"}, more...)
	var parts []*process
	if nodes == 0 {
		args = append(args, "--workers", "2")
	} else {
		hubs, url := hubOf(t, nodes)
		args = append(args, "--cluster", url)
		parts = append(parts, hubs...)
		for range 3 {
			parts = append(parts, start(t, "secret-secret-secret", "worker", "--cluster", url, "--quiet"))
		}
	}
	run := start(t, "secret-secret-secret", args...)
	parts = append(parts, run)
	for before := -1; !run.over() && kills < enough; {
		time.Sleep(time.Duration(200+rand.IntN(700)) * time.Millisecond) // kills come at random moments
		// An episode at which workers die again and again fails, if nothing is recorded meanwhile.
		n := callsIn(t, out)
		for began := time.Now(); n <= before && !run.over(); n = callsIn(t, out) {
			if time.Sleep(20 * time.Millisecond); time.Since(began) > timeout(t) {
				stuck(t, parts)
			}
		}
		before = n
		if run.over() {
			break
		}
		killed := rand.Perm(len(parts))[:min(1+rand.IntN(2), len(parts))] // often two at once, as when a machine is lost
		for _, i := range killed {
			if parts[i].kill() {
				kills++
			}
		}
		for _, i := range killed {
			parts[i].start()
		}
	}
	select {
	case err := <-run.done:
		run.done <- err
		if err != nil {
			t.Fatalf("%v: %s%s", err, run.out, run.err)
		}
	case <-time.After(timeout(t)):
		stuck(t, parts)
	}
	if err := json.Unmarshal(run.out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %q %s", err, run.out, run.err)
	}
	for _, p := range parts {
		p.kill()
	}
	return kills, got
}
