package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// nohub replaces package hub.
//
//go:embed nohub.txt
var nohub []byte

// built is what a build takes, and the size of the program.
type built struct{ cpu, megabytes float64 }

// clusterBinary measures what the hub adds to the program: it builds it with and without, from an empty cache.
func clusterBinary(b *bench) ([]clusterRow, error) {
	whole, err := b.build("")
	if err != nil {
		return nil, err
	}
	overlay, err := b.overlay()
	if err != nil {
		return nil, err
	}
	less, err := b.build(overlay)
	if err != nil {
		return nil, err
	}
	return []clusterRow{{
		"what the hub adds to the stripped program, and to the CPU time of its first build", "",
		fmt.Sprintf("%.1f of %.1f MB; %.0f of %.0f s", whole.megabytes-less.megabytes, whole.megabytes, whole.cpu-less.cpu, whole.cpu),
	}}, nil
}

// overlay writes a file that makes the compiler read a package hub without the hub.
func (b *bench) overlay() (string, error) {
	hub, err := filepath.Abs("../internal/cluster/hub")
	if err != nil {
		return "", err
	}
	stub := filepath.Join(b.dir, "nohub.go")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(hub, "hub.go"): stub, filepath.Join(hub, "auth.go"): "",
	}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(stub, nohub, 0o600); err != nil {
		return "", err
	}
	file := filepath.Join(b.dir, "overlay.json")
	return file, os.WriteFile(file, replace, 0o600)
}

// build builds the stripped program from an empty cache.
func (b *bench) build(overlay string) (r built, err error) {
	dir, err := os.MkdirTemp(b.dir, "build")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "parley")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-overlay", overlay, "-o", file, "./cmd/parley")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "GOCACHE="+filepath.Join(dir, "cache"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return r, fmt.Errorf("%w\n%s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		return r, err
	}
	return built{(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), float64(info.Size()) / 1e6}, nil
}
