"""The chance of a strand is Go's: vectors.json was written by the program below, which is run again where Go is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import Start
from parley import Rand

VECTORS = Path(__file__).with_name("vectors.json")

PROGRAM = """
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
)

type vector struct {
	Seed1, Seed2 uint64
	Uint64       []uint64
	IntN         map[string]int
	Float64      float64
	Perm         []int
	Shuffled     []string
}

func main() {
	var all []vector
	for _, s := range [][2]uint64{{0, 0}, {1, 2}, {1<<64 - 1, 1<<64 - 1}, {1 << 63, 12345678901234567890}} {
		r := rand.New(rand.NewPCG(s[0], s[1]))
		v := vector{Seed1: s[0], Seed2: s[1], IntN: map[string]int{}}
		for range 5 {
			v.Uint64 = append(v.Uint64, r.Uint64())
		}
		v.IntN["1"], v.IntN["7"], v.IntN["64"] = r.IntN(1), r.IntN(7), r.IntN(64)
		v.IntN["6148914691236517205"], v.IntN["9223372036854775807"] = r.IntN(6148914691236517205), r.IntN(1<<63-1)
		v.Float64, v.Perm = r.Float64(), r.Perm(20)
		v.Shuffled = []string{"a", "b", "c", "d", "e", "f"}
		r.Shuffle(6, func(i, j int) { v.Shuffled[i], v.Shuffled[j] = v.Shuffled[j], v.Shuffled[i] })
		all = append(all, v)
	}
	strand := func(seed uint64, deal int, path string) []int {
		b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, seed), uint64(deal))
		h := sha256.Sum256(append(b, path...))
		return rand.New(rand.NewPCG(binary.BigEndian.Uint64(h[:8]), binary.BigEndian.Uint64(h[8:16]))).Perm(12)
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"rand": all, "strands": [][]int{strand(1, 0, ""), strand(1<<64-1, 7, "0.1/")}})
}
"""


def test_vectors_are_those_of_go(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    (tmp_path / "main.go").write_text(PROGRAM)
    made = subprocess.run(["go", "run", "main.go"], cwd=tmp_path, check=True, capture_output=True).stdout
    if not VECTORS.exists():
        VECTORS.write_bytes(made)
    assert made == VECTORS.read_bytes()


def test_rand() -> None:
    for v in json.loads(VECTORS.read_text())["rand"]:
        r = Rand(v["Seed1"], v["Seed2"])
        assert [r.uint64() for _ in range(5)] == v["Uint64"]
        for n in (1, 7, 64, 6148914691236517205, 2**63 - 1):
            assert r.int_n(n) == v["IntN"][str(n)]
        assert r.random() == v["Float64"]
        assert r.perm(20) == v["Perm"]
        letters = list("abcdef")
        r.shuffle(letters)
        assert letters == v["Shuffled"]


def test_rand_of_strands(start: Start) -> None:
    want = json.loads(VECTORS.read_text())["strands"]
    e = start("async def f(t): t.note('perm', t.rand.perm(12))\nif t.rand.perm(12) != " + str(want[0]) + ":\n    await t.fork(f, f)\n")
    assert e.begin(seed=1, deal=0) == {"end": {}}
    assert e.begin(seed=2**64 - 1, deal=7) == {"fork": 2}
    assert e.ask("strand", episode="e", strand="0.1/", of="", index=1)["notes"][0]["data"] == want[1]


@pytest.mark.parametrize("wrong", [lambda r: r.int_n(-1), lambda r: r.int_n(2**64), lambda r: r.choice([]), lambda r: r.randint(2, 1), lambda r: r.sample([1], 2)])  # fmt: skip
def test_wrong_arguments(wrong: object) -> None:
    with pytest.raises(ValueError):
        wrong(Rand(1, 2))  # type: ignore[operator]


def test_conveniences() -> None:
    r = Rand(1, 2)
    assert {r.randint(3, 5) for _ in range(100)} == {3, 4, 5}
    assert all(2 <= r.uniform(2, 3) < 3 for _ in range(100))
    assert sorted(r.sample("abc", 3)) == ["a", "b", "c"]
    assert Rand(5, 6).python().random() == Rand(5, 6).python().random()
