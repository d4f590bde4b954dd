package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/kit/process"
	"parley/internal/run/cluster"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/engine"
	"parley/internal/run/runfile"
)

// clusterFlags say which other processes play.
type clusterFlags struct {
	Workers int           `group:"cluster" placeholder:"N" help:"Play with this many worker processes on this machine, at most 256."`
	Listen  string        `group:"cluster" placeholder:"HOST:PORT" help:"Let workers on other machines join the run at this address."`
	Cluster string        `group:"cluster" placeholder:"URL" help:"Play with the workers of this hub, such as tls://host:4222, or nats://127.0.0.1:4222 on this machine."`
	Lease   time.Duration `group:"cluster" placeholder:"DURATION" help:"After how long without a sign of life a worker's episodes are given to others. Default: 15s."`
	Retain  bool          `group:"cluster" help:"Keep everything in the hub until the run is over, so that a lost run file can be made again: see --rebuild of parley run. It takes effect when the run begins."`
	hubFlags
}

const (
	maxLocalWorkers = 256 // processes on one machine
	minLease        = 100 * time.Millisecond
	maxLease        = 24 * time.Hour
)

// check refuses what no machine can do, before anything is started.
func (f *clusterFlags) check() error {
	switch {
	case f.Workers < 0 || f.Workers > maxLocalWorkers:
		return exit.Usagef("--workers %d: want 0 to %d; workers on other machines join with parley worker", f.Workers, maxLocalWorkers)
	case f.Lease != 0 && (f.Lease < minLease || f.Lease > maxLease):
		return exit.Usagef("--lease %v: want %v to %v", f.Lease, minLease, maxLease)
	case f.Lease != 0 && !f.withWorkers():
		return exit.Usagef("--lease needs workers: --workers, --listen or --cluster")
	case f.TokenFile+f.TLSCA != "" && !f.withWorkers():
		return exit.Usagef("--token-file and --tls-ca need workers: --workers, --listen or --cluster")
	case f.TLSCert+f.TLSKey != "" && f.Listen == "":
		return exit.Usagef("--tls-cert and --tls-key need --listen: they are for the hub of this run")
	case f.Listen != "" && f.Cluster != "":
		return exit.Usagef("--listen and --cluster exclude each other: the run listens itself, or uses a hub that does")
	case f.Retain && f.Cluster == "":
		return exit.Usagef("--retain needs --cluster: a hub that is part of this process is lost with it")
	default:
		return nil
	}
}

// withWorkers reports whether other processes play.
func (f *clusterFlags) withWorkers() bool { return f.Workers > 0 || f.Listen != "" || f.Cluster != "" }

// runCluster is what a run with workers uses. A nil one is a run without.
type runCluster struct {
	hub   *hub.Hub // nil: it is elsewhere
	conn  *hubConn
	stop  context.CancelFunc
	local sync.WaitGroup
}

// refuseWorkers refuses what cannot be played with workers.
func (s *State) refuseWorkers() error {
	if s.scores {
		return exit.Usagef("scores are computed by one process, which reads the run file: leave out --workers, --listen and --cluster")
	}
	if s.conn != nil {
		return exit.Usagef("the world is in the program that plays it, which workers do not have: put it into a file, and name it in a plan as kind: file.py:Class")
	}
	return nil
}

// openCluster connects the run with its workers, and starts those on this machine. It returns nil without workers.
func (f *playFlags) openCluster(ctx context.Context, s *State, g *exit.Gate, p *app.Play) (_ *runCluster, err error) {
	if !f.withWorkers() {
		return nil, nil
	}
	if err := s.refuseWorkers(); err != nil {
		return nil, err
	}
	token, err := f.token(s)
	if err != nil {
		return nil, err
	}
	j, url := &runCluster{stop: func() {}}, f.Cluster
	defer func() {
		if err != nil {
			j.close()
		}
	}()
	if url == "" {
		secure, err := f.serverTLS()
		if err := cmp.Or(err, checkToken(token)); err != nil {
			return nil, err
		}
		if j.hub, err = hub.Start(hub.Config{Listen: f.Listen, Token: token, TLS: secure}); err != nil {
			return nil, exit.AsUsage(err)
		}
		url, token = j.hub.LocalURL(), j.hub.Token()
		if f.Listen != "" && !f.Quiet {
			fmt.Fprintf(s.Stderr, "parley: workers can join at %s\n", j.hub.URL())
		}
		if f.TLSName, err = certificateName(secure); err != nil {
			return nil, err
		}
		nc, err := j.hub.Connect()
		if err != nil {
			return nil, err
		}
		j.conn = &hubConn{nc, &hubWatch{cancel: func() {}}}
	} else if j.conn, err = f.connectAndWait(ctx, g.Shut, url, token, s.tell); err != nil {
		return nil, err
	}
	if f.Retain && j.conn.ConnectedClusterName() == "" {
		return nil, exit.Usagef("--retain: this hub has one node, which keeps everything in memory: it would become full, and be lost with its process. Use a hub of three nodes, or leave out --retain")
	}
	here := j.hub != nil && f.Listen == "" // all workers are on this machine
	c := &cluster.Coordinator{Conn: j.conn.Conn, Build: buildID(), AckWait: f.Lease, Retain: f.Retain, Alone: here, Strict: here}
	if j.hub == nil && j.conn.ConnectedClusterName() != "" {
		c.Replicas = 3
	}
	p.Remote = c
	ctx, j.stop = context.WithCancel(ctx)
	for range f.Workers {
		j.local.Go(func() {
			f.superviseWorker(ctx, s, url, token, append(slices.Clone(s.codeFolders), filepath.Dir(cmp.Or(p.PlanFile, p.File))))
		})
	}
	return j, nil
}

// certificateName returns a name that a certificate is for. Workers on this machine reach the hub by another one.
func certificateName(c *tls.Config) (string, error) {
	if c == nil {
		return "", nil
	}
	leaf, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
	switch {
	case err != nil:
		return "", exit.AsUsage(fmt.Errorf("--tls-cert: %w", err))
	case len(leaf.DNSNames) > 0:
		return strings.Replace(leaf.DNSNames[0], "*", "any", 1), nil
	case len(leaf.IPAddresses) > 0:
		return leaf.IPAddresses[0].String(), nil
	default:
		return "", exit.Usagef("--tls-cert: the certificate names no host and no address, so nobody can check it: make one with a subject alternative name")
	}
}

// tellIdle says that a run with workers waits or goes on, or why a worker does not play it. Workers on this machine print that themselves.
func (f *clusterFlags) tellIdle(s *State, i *engine.Idle) {
	switch {
	case i.Why == "":
		s.say("the hub has room again", maxMessage)
	case i.Worker == "":
		s.say("the hub is full, and the run waits until it has room: "+i.Why+". It gets room as lots are played and recorded. Give it more memory or disk if that takes long.", maxMessage)
	case f.Listen+f.Cluster != "":
		s.say(i.Worker+": "+i.Why, maxMessage)
	}
}

// close ends the workers of this machine and the hub.
func (j *runCluster) close() {
	if j == nil {
		return
	}
	j.stop()
	j.local.Wait()
	if j.conn != nil {
		j.conn.Close()
	}
	if j.hub != nil {
		_ = j.hub.Close() // what is left is in a temporary folder
	}
}

// restartDelay is how long after its death a worker process is started again.
const restartDelay = 500 * time.Millisecond

// superviseWorker keeps a worker process running until ctx is done, or an operator drains it. The code that the plan names is in folders.
func (f *playFlags) superviseWorker(ctx context.Context, s *State, url, token string, folders []string) {
	args := []string{"worker", "--cluster", url, "--attached", "--quiet"}
	for _, t := range f.Trust {
		args = append(args, "--trust", t)
	}
	for _, folder := range append(folders, f.AllowFiles...) {
		args = append(args, "--allow-files", folder)
	}
	if f.TLSCA != "" {
		args = append(args, "--tls-ca", f.TLSCA)
	}
	if f.TLSName != "" {
		args = append(args, "--tls-name", f.TLSName)
	}
	for ctx.Err() == nil {
		err := runWorker(ctx, s, args, token)
		if err == nil {
			return // it was drained
		}
		if ctx.Err() == nil {
			s.tell("a worker process ended, and is started again: " + err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(restartDelay):
		}
	}
}

// runWorker runs a worker process. It ends when its standard input does: when ctx is done, or this process is killed.
func runWorker(ctx context.Context, s *State, args []string, token string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	cmd := exec.Command(self, args...) //nolint:gosec,noctx // this program; it ends with its input
	cmd.Env = append(os.Environ(), tokenEnv+"="+token)
	cmd.Stderr, cmd.Stdout, cmd.SysProcAttr = s.err, io.Discard, process.OwnSession()
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = in.Close() })()
	return cmd.Wait()
}

// rebuild makes the run file again that a run with --retain lost.
func (f *playFlags) rebuild(ctx context.Context, s *State, run, file string) (err error) {
	if f.Cluster == "" {
		return exit.Usagef("--rebuild needs --cluster: the hub that has the run")
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return exit.Usagef("--rebuild: %s exists: resume it without --rebuild, or name another file", file)
	}
	token, err := f.token(s)
	if err != nil {
		return err
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	nc, err := f.connectAndWait(ctx, nil, f.Cluster, token, s.tell)
	if err != nil {
		return err
	}
	defer nc.Close()
	store, err := runfile.Open(ctx, file, runfile.Either)
	if err != nil {
		return exit.AsUsage(err)
	}
	if err := errors.Join(cluster.Rebuild(ctx, nc.Conn, run, store), store.Close()); err != nil {
		_ = os.Remove(file) // it has nothing
		return exit.AsUsage(fmt.Errorf("--rebuild: %w", err))
	}
	return nil
}
