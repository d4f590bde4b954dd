package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
)

// shardedPlan is played to its end, resumed and read: with shards, without, and merged.
const shardedPlan = `kind: secrets
seed: 5
agents: {a: sim/small, b: sim/large}
plan: {matrix: {agents: [a, b], repeat: 6}}
params: {messages: 2}
`

// TestShards: a run file with shards has the results of one file, all commands read it, and merge makes one file of it.
func TestShards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plan := write(t, "plan.yaml", shardedPlan)
	at := func(name string) string { return filepath.Join(dir, name+".parley") }
	digest := func(name string, flags ...string) string {
		var sum app.Summary
		for _, repeat := range []string{"3", "6"} { // the second resumes the file
			sum, _ = summed(t, exit.OK, append([]string{"run", plan, "--out", at(name), "--set", "plan.matrix.repeat=" + repeat}, flags...)...)
		}
		return sum.Digest
	}
	one, many := digest("one"), digest("many", "--shards", "3")
	if many != one || many == "" {
		t.Errorf("digest %q with shards, %q without", many, one)
	}
	parley(t, State{}, "merge", at("many"), at("merged")).want(t, exit.OK)
	for _, args := range [][]string{{"show"}, {"show", "--episode", "3"}, {"report"}, {"export", "--format", "jsonl"}, {"check"}} {
		read := func(name string) string {
			got := parley(t, State{}, append([]string{args[0], at(name)}, args[1:]...)...).want(t, exit.OK)
			return strings.ReplaceAll(got.stdout, at(name), "FILE")
		}
		if many, merged := read("many"), read("merged"); args[0] != "check" && many != merged || many == "" {
			t.Errorf("%v:\n%s\nmerged:\n%s", args, many, merged)
		}
	}
	again, _ := summed(t, exit.OK, "run", at("merged"))
	if again.Digest != one {
		t.Errorf("digest %q of the merged file, want %q", again.Digest, one)
	}
	if names, err := filepath.Glob(filepath.Join(dir, "merged*")); err != nil || len(names) != 1 {
		t.Errorf("merge left %v (%v)", names, err)
	}
}

// TestShardsRefused: what cannot be played or merged is refused, with the reason.
func TestShardsRefused(t *testing.T) {
	t.Parallel()
	sequential(t)
	dir := t.TempDir()
	plan := write(t, "plan.yaml", shardedPlan)
	file, other := filepath.Join(dir, "run.parley"), filepath.Join(dir, "other.parley")
	for _, f := range []string{file, other} {
		parley(t, State{}, "run", plan, "--out", f, "--shards", "2", "--quiet", "--set", "plan.matrix.repeat=1").want(t, exit.OK)
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if got := parley(t, State{}, args...).want(t, exit.Misuse); !strings.Contains(got.stderr, want) {
			t.Errorf("%v: %s, want %q", args, got.stderr, want)
		}
	}
	fresh := filepath.Join(dir, "new.parley")
	refused("want a number from 1 to 8", "run", plan, "--out", fresh, "--shards", "9")
	refused("want a number from 1 to 8", "run", plan, "--out", fresh, "--shards", "0")
	refused("it has 2, and not 3", "run", plan, "--out", file, "--shards", "3")
	refused("already exists", "merge", file, other)
	refused("there is no such run file", "merge", fresh, filepath.Join(dir, "x.parley"))
	refused("a shard of one", "show", filepath.Join(file+".d", "01"))
	if err := os.Rename(filepath.Join(other+".d", "02"), filepath.Join(file+".d", "02")); err != nil {
		t.Fatal(err)
	}
	refused("a shard of another run", "run", file)
	refused("is missing", "show", other)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refused("put that file back", "run", plan, "--out", file, "--shards", "2")
}
