package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// deployFile reads a file of the folder deploy.
func deployFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// composeCommands returns the arguments of the services of compose.yaml, by name.
func composeCommands(t *testing.T) map[string][]string {
	t.Helper()
	var file struct {
		Services map[string]struct{ Command string }
	}
	if err := yaml.Unmarshal(deployFile(t, "compose.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for name, s := range file.Services {
		all[name] = strings.Fields(s.Command)
	}
	return all
}

// kubernetesCommands returns the arguments of the containers of kubernetes.yaml, by name.
func kubernetesCommands(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for decoder := yaml.NewDecoder(bytes.NewReader(deployFile(t, "kubernetes.yaml"))); ; {
		var object struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Name string
							Args []string
						}
					}
				}
			}
		}
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		for _, c := range object.Spec.Template.Spec.Containers {
			all[c.Name] = c.Args
		}
	}
}

// unitCommand returns the arguments of a systemd unit.
func unitCommand(t *testing.T, name string) []string {
	t.Helper()
	for line := range strings.Lines(string(deployFile(t, name))) {
		if command, ok := strings.CutPrefix(line, "ExecStart=/usr/bin/parley "); ok {
			return strings.Fields(command)
		}
	}
	t.Fatalf("%s starts nothing", name)
	return nil
}

// TestDeployFiles starts the parts of each cluster in the folder deploy with the arguments that are there. Only names of hosts, ports and
// folders are replaced by those of this machine.
func TestDeployFiles(t *testing.T) {
	t.Parallel()
	url, _ := provider(t)
	ca, _, _ := authority(t, "localhost")
	compose, kubernetes := composeCommands(t), kubernetesCommands(t)
	for _, c := range []struct {
		name             string
		hub, run, worker []string
	}{
		{"compose", nil, compose["coordinator"], compose["worker"]},
		{"kubernetes", kubernetes["hub"], kubernetes["coordinator"], kubernetes["worker"]},
		{"systemd", unitCommand(t, "parley-hub.service"), unitCommand(t, "parley-run@.service"), unitCommand(t, "parley-worker.service")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDeployment(t, plan(t, url), filepath.Dir(ca))
			if c.hub != nil {
				for node := range 3 {
					d.start(t, node, c.hub)
				}
			}
			run := d.start(t, 0, append(c.run, "--json"))
			for range 2 {
				d.start(t, 0, c.worker)
			}
			var got summary
			if err := run.wait(); err != nil || json.Unmarshal(run.out.Bytes(), &got) != nil || got.State != "complete" {
				t.Errorf("%v: %s%s", err, run.out, run.err)
			}
		})
	}
}

// deployment has the folders and ports that this machine uses instead of others.
type deployment struct {
	plan, tls, folder string
	ports             []string // of three nodes, and then of their routes
}

func newDeployment(t *testing.T, plan, tls string) *deployment {
	t.Helper()
	d := &deployment{plan: plan, tls: tls, folder: t.TempDir()}
	for _, address := range freePorts(t, 6) {
		_, port, _ := strings.Cut(address, ":")
		d.ports = append(d.ports, port)
	}
	if err := os.WriteFile(filepath.Join(d.folder, "token"), []byte("secret-secret-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

// start starts a part, on one of the three machines.
func (d *deployment) start(t *testing.T, node int, args []string) *process {
	t.Helper()
	route := func(n int) string { return "localhost:" + d.ports[3+n] }
	hub := fmt.Sprintf("tls://localhost:%s,tls://localhost:%s,tls://localhost:%s", d.ports[0], d.ports[1], d.ports[2])
	here := strings.NewReplacer(
		// compose and Kubernetes
		"0.0.0.0:4222", "localhost:"+d.ports[node], "tls://coordinator:4222", "tls://localhost:"+d.ports[0], "tls://parley-hub:4222", hub,
		"$(NAME).parley-hub:6222", route(node), "parley-hub-0.parley-hub:6222", route(0), "parley-hub-1.parley-hub:6222", route(1), "parley-hub-2.parley-hub:6222", route(2),
		"0.0.0.0:9100", "127.0.0.1:0", "0.0.0.0:9101", "127.0.0.1:0",
		"/tls/", d.tls+"/", "/plans/plan.yaml", d.plan, "/runs/", d.folder+"/", "/messages", filepath.Join(d.folder, fmt.Sprint(node)),
		// systemd
		"${PARLEY_ADDRESS}:4222", "localhost:"+d.ports[node], "${PARLEY_ADDRESS}:6222", route(node), "${PARLEY_NODES}", route(0)+","+route(1)+","+route(2), "${PARLEY_HUB}", hub,
		"/etc/parley/", d.tls+"/", "${CREDENTIALS_DIRECTORY}", d.folder, "${STATE_DIRECTORY}/%i.yaml", d.plan, "${STATE_DIRECTORY}/%i", filepath.Join(d.folder, "run"), "${STATE_DIRECTORY}", filepath.Join(d.folder, fmt.Sprint(node)),
	)
	mine := make([]string, len(args))
	for i, arg := range args {
		mine[i] = here.Replace(arg)
	}
	p := &process{t: t, args: mine, env: append(os.Environ(), beParley+"=1", "PARLEY_CLUSTER_TOKEN=secret-secret-secret", "PARLEY_METRICS_KEY=secret-secret-secret")}
	p.start()
	t.Cleanup(func() { p.kill() })
	return p
}
