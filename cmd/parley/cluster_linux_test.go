package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// disk mounts a small disk on a folder, if this machine allows it.
func disk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("parley", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("not allowed on this machine: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill writes a file until its disk is full. It returns how to make room again.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for part := make([]byte, 1<<16); len(part) > 0; {
		if _, err := f.Write(part); errors.Is(err, syscall.ENOSPC) {
			part = part[:len(part)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(f.Name()); err != nil {
			t.Error(err)
		}
	}
}

// TestFullNodes fills the disks of one, then of all nodes of a hub of three. Each node says where it needs room. With one full disk the run
// goes on; with three it waits, and goes on when there is room again.
func TestFullNodes(t *testing.T) {
	t.Parallel()
	often(t)
	direct, _ := provider(t)
	want, _ := program(t, 0, "run", plan(t, direct), "--set", long, "--out", filepath.Join(t.TempDir(), "whole.parley"), "--json", "--quiet")
	url, server, quick := slowed(t)
	var disks []string
	for range 3 {
		disks = append(disks, disk(t))
	}
	hubs, address := hubOf(t, 3, disks...)
	run := start(t, "secret-secret-secret", "run", plan(t, url), "--set", long, "--out", filepath.Join(t.TempDir(), "run.parley"), "--json", "--quiet", "--cluster", address)
	for range 2 {
		start(t, "secret-secret-secret", "worker", "--cluster", address, "--quiet")
	}
	answered := func(more int64) {
		t.Helper()
		n := server.Stats().OK + more
		run.until(func() bool { return server.Stats().OK >= n })
	}
	says := func(i int, text string, times int) {
		t.Helper()
		run.until(func() bool { return strings.Count(hubs[i].err.String(), text) >= times })
		if run.over() {
			t.Fatalf("the run has ended: %s%s; node %d: %s", run.out, run.err, i, hubs[i].err)
		}
	}
	const stopped, back = "it cannot write to its folder ", "the node is back"
	answered(50)
	free := fill(t, disks[1])
	says(1, stopped+disks[1], 1)
	answered(100) // the others go on
	free()
	says(1, back, 1)
	var room []func()
	for i, dir := range disks {
		room = append(room, fill(t, dir))
		says(i, stopped+dir, 1+i%2)
	}
	for i, free := range room {
		free()
		says(i, back, 1+i%2)
	}
	quick()
	var got summary
	if err := errors.Join(run.wait(), json.Unmarshal(run.out.Bytes(), &got)); err != nil || got.State != "complete" || got.Digest != want.Digest || got.Calls.Total != want.Calls.Total {
		t.Errorf("%v: %+v, want %+v: %s", err, got, want, run.err)
	}
	t.Logf("%d calls were answered more than once", int(server.Stats().OK)-want.Calls.Total)
}
