package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// laughs is a YAML file whose aliases of aliases are a row of 10^depth words.
func laughs(depth int) string {
	var b strings.Builder
	b.WriteString("- &a0 lol\n")
	for i := 1; i <= depth; i++ {
		fmt.Fprintf(&b, "- &a%d [%s]\n", i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return b.String()
}

func parquetOf[T any](t testing.TB, rows []T, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type listed struct {
	X []*int64 `parquet:"x,list,optional"`
}

type named struct {
	X string `parquet:"x,dict"`
}

type plainText struct {
	X string `parquet:"x,plain"`
}

// TestBombs: small files that stand for very much end in an error, with little memory. It
// measures memory, and so runs alone.
func TestBombs(t *testing.T) { //nolint:paralleltest // see above
	long := strings.Repeat("x", 1<<20)
	merges := "- &a0 {k0: 1}\n"
	for i := 1; i < 12; i++ {
		merges += fmt.Sprintf("- &a%d {k%d: 1, <<: [%s]}\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	prefixes := parquet.NewSchema("x", parquet.Group{"x": parquet.Encoded(parquet.String(), &parquet.DeltaByteArray)})
	dir := t.TempDir()
	small := limits{bytes: 8 << 20, row: 1 << 20, rows: 1000}
	for _, c := range []struct {
		name, text, want string
		limits           limits
	}{
		{"laughs.yaml", laughs(9), "when its aliases (*) are followed", small},
		{"texts.yaml", "- &a " + long[:500_000] + "\n- [" + strings.TrimSuffix(strings.Repeat("*a, ", 5000), ", ") + "]\n", "when its aliases (*) are followed", small},
		{"merges.yaml", merges, "when its aliases (*) are followed", small},
		{"marks.yaml", strings.Repeat("[", 8<<20), "words and signs", small},
		{"deep.yaml", "- " + strings.Repeat("[", 10000), "nested too deeply", small},
		{"large.yaml", "- " + strings.Repeat(long, 9), "write a dataset of this size as JSON lines", small},
		{"line.jsonl", `"` + long + long + `"`, "line 1: is larger than 1 MiB", small},
		{"rows.jsonl", strings.Repeat("1\n", 2000), "has more than 1000 rows", small},
		{"bytes.jsonl", strings.Repeat(`"`+long[:500_000]+"\"\n", 30), "more than 8 MiB of JSON", small},
		{"row.json", `["` + long + long + `"]`, "row 1: is larger than 1 MiB", small},
		{"huge.json", `["` + strings.Repeat(long, 16) + `"]`, "row 1: is larger than 1 MiB", small},
		{"bytes.json", "[" + strings.Repeat(`"`+long[:500_000]+`",`, 30) + "1]", "more than 8 MiB of JSON", small},
		{"deep.json", strings.Repeat("[", 1<<20), "row 1: ", small},
		{"list.parquet", string(parquetOf(t, []listed{{X: make([]*int64, 1_000_000)}}, parquet.Compression(&parquet.Zstd))), "is larger than 1 MiB of JSON", small},
		{"dictionary.parquet", string(parquetOf(t, slicesOf(named{long[:900_000]}, 900))), "more than 8 MiB of JSON", small},
		{"zstd.parquet", string(parquetOf(t, slicesOf(plainText{long}, 32), parquet.Compression(&parquet.Zstd))), "hold more than 8 MiB", small},
		{"snappy.parquet", string(parquetOf(t, slicesOf(plainText{long}, 32), parquet.Compression(&parquet.Snappy))), "hold more than 8 MiB", small},
		{"rows.parquet", string(parquetOf(t, slicesOf(named{"a"}, 2000))), "has more than 1000 rows", small},
		{"values.parquet", string(parquetOf(t, []listed{{X: make([]*int64, 17_000_000)}}, parquet.Compression(&parquet.Zstd))), "a row group holds more than 16000000 values", limits{bytes: 1 << 30, row: 1 << 20, rows: 1000}},
		{"prefixes.parquet", string(parquetOf(t, slicesOf(plainText{long[:10_000]}, 100), prefixes)), "DELTA_BYTE_ARRAY are not read", small},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		texts, err := collect(t.Context(), path, c.limits)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "dataset: "+path) {
			t.Errorf("%s: %d rows, %.200v, want %q", c.name, len(texts), err, c.want)
		}
		// All that was ever allocated, not what was held at once.
		if used := after.TotalAlloc - before.TotalAlloc; used > 200<<20 {
			t.Errorf("%s: %d bytes, read with %d MiB", c.name, len(c.text), used>>20)
		}
	}
}

func slicesOf[T any](v T, n int) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// TestPagesThatLie: pages that are not what the footer says give rows or an error, and no panic.
func TestPagesThatLie(t *testing.T) {
	t.Parallel()
	for _, whole := range [][]byte{
		parquetOf(t, slicesOf(named{"a text"}, 100)),
		parquetOf(t, []listed{{X: make([]*int64, 30)}, {}}, parquet.Compression(&parquet.Snappy)),
		parquetOf(t, []problem{{Question: "q", Answer: 1, Hints: []string{"a", "b"}}}, parquet.Compression(&parquet.Gzip), parquet.DataPageVersion(1)),
	} {
		footer := int(binary.LittleEndian.Uint32(whole[len(whole)-8:]))
		failed := 0
		for at := 4; at < len(whole)-8-footer; at++ {
			b := bytes.Clone(whole)
			b[at] ^= 0x55
			if err := fromParquet(t.Context(), bytes.NewReader(b), int64(len(b)), standard(), func(json.RawMessage) error { return nil }); err != nil {
				failed++
			}
		}
		if failed == 0 {
			t.Error("no damage was noticed")
		}
	}
}

// TestFootersThatLie: a list that says it is longer than its file is refused before room is
// made for it, and what is nested before the stack is full.
func TestFootersThatLie(t *testing.T) {
	t.Parallel()
	with := func(footer []byte) []byte {
		b := append([]byte("PAR1"), footer...)
		return append(binary.LittleEndian.AppendUint32(b, uint32(len(footer))), "PAR1"...)
	}
	list := append([]byte{0x15, 2, 0x19, 0xFC}, binary.AppendUvarint(nil, 1<<30)...) // version; schema: 2^30 structs
	text := append([]byte{0x68}, binary.AppendUvarint(nil, 1<<40)...)
	many := append([]byte{0x15, 2, 0x19, 0xFC}, binary.AppendUvarint(nil, 1<<20)...)
	for name, b := range map[string][]byte{
		"a list": with(list), "a text": with(text), "structs": with(append(many, make([]byte, 1<<20+1)...)),
		"nested structs": with(bytes.Repeat([]byte{0x1C}, maxFooter)), "nested lists": with(append([]byte{0xF9}, bytes.Repeat([]byte{0x19}, maxFooter-1)...)),
		"structs in lists": with(append([]byte{0xF9}, bytes.Repeat([]byte{0x1C, 0x19}, maxFooter/2-1)...)), "a set": with([]byte{0xFA, 0x13, 0, 0}), "a map": with([]byte{0xFB, 0, 0}),
		"its own size": append([]byte("PAR1xxxx"), "\xff\xff\xff\xffPAR1"...), "nothing": []byte("PAR1"), "encrypted": []byte("PAR1xxxxxxxxPARE"), "empty": with([]byte{0}),
	} {
		if err := fromParquet(t.Context(), bytes.NewReader(b), int64(len(b)), standard(), func(json.RawMessage) error { return nil }); !errors.Is(err, errDamaged) && !errors.Is(err, errParts) && !errors.Is(err, errEncrypted) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

// TestCancelled: reading ends when the context does, in every format and between rows.
func TestCancelled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.json": "[1,2,3]", "a.jsonl": "1\n2\n3\n", "a.yaml": "- 1\n- 2\n- 3\n", "a.parquet": string(parquetOf(t, slicesOf(named{"a"}, 100))),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		why := errors.New("stopped by a signal")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		n := 0
		var last error
		for _, err := range Rows(ctx, path) {
			n++
			last = err
			cancel(why)
		}
		if n != 2 || !errors.Is(last, why) {
			t.Errorf("%s: %d rows, then %v", name, n-1, last)
		}
		if _, err := collect(ctx, path, standard()); !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
		n = 0
		for range Rows(t.Context(), path) {
			n++
			break
		}
		if n != 1 {
			t.Errorf("%s: %d rows", name, n)
		}
	}
}

// FuzzRows wants no panic, little memory, and JSON for every row that is read.
func FuzzRows(f *testing.F) {
	for i, text := range []string{`[{"q":1},2]`, "1\n{\"a\":2}\n", laughs(3), string(parquetOf(f, slicesOf(named{"a"}, 10)))} {
		f.Add(i, []byte(text))
	}
	f.Add(2, []byte("- &a {b: [1, .inf, !!str 2]}\n- <<: *a\n  c: |\n    x\n"))
	f.Add(3, parquetOf(f, []listed{{X: make([]*int64, 3)}, {}}, parquet.Compression(&parquet.Zstd)))
	f.Add(3, parquetOf(f, []problem{{Question: "q", Answer: 1, Hints: []string{"a", "b"}}}, parquet.Compression(&parquet.Gzip), parquet.DataPageVersion(1)))
	f.Fuzz(func(t *testing.T, format int, data []byte) {
		ext := []string{".json", ".jsonl", ".yaml", ".parquet"}[uint(format)%4]
		l := limits{bytes: 1 << 20, row: 1 << 16, rows: 1000}
		_ = read(t.Context(), ext, bytes.NewReader(data), int64(len(data)), l, l.guard(t.Context(), func(row json.RawMessage) bool {
			if !json.Valid(row) {
				t.Errorf("%s: %q is not JSON", ext, row)
			}
			return true
		}))
	})
}
