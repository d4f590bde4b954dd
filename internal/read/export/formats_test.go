package export

import (
	"bytes"
	stdcsv "encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
)

// grid is a table as rows of values, as JSON lines have them.
func grid(t *testing.T, s *runfile.Store, table Table) (out [][]any) {
	t.Helper()
	for _, row := range objects(t, written(t, s, table, JSONL)) {
		var values []any
		for _, name := range columnNames(table) {
			values = append(values, row[name])
		}
		out = append(out, values)
	}
	return out
}

// inText is a value as it stands in a CSV file that was read, with one ' taken away where
// the column is of texts.
func inText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return string(appendDouble(nil, v))
	default:
		return strings.ReplaceAll(fmt.Sprint(v), "\x00", "\uFFFD")
	}
}

func unguarded(row []string, columns []Column) []string {
	for i, c := range columns {
		if c.Type == Text || c.Type == JSON {
			row[i] = strings.TrimPrefix(row[i], "'")
		}
	}
	return row
}

// TestCSV reads CSV with the standard library.
func TestCSV(t *testing.T) {
	t.Parallel()
	s := recorded(t, exportSample()...)
	for _, table := range tables() {
		rows, err := stdcsv.NewReader(bytes.NewReader(written(t, s, table, CSV))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(rows[0], columnNames(table)) {
			t.Errorf("%s: the head is %v", table, rows[0])
		}
		want := grid(t, s, table)
		if len(rows) != len(want)+1 {
			t.Fatalf("%s: %d rows, want %d", table, len(rows)-1, len(want))
		}
		for i, row := range rows[1:] {
			for k, is := range unguarded(row, Columns(table)) {
				// The reader makes \n of \r\n, wherever it is.
				if should := strings.ReplaceAll(inText(want[i][k]), "\r\n", "\n"); is != should {
					t.Errorf("%s: row %d: %s is %q, want %q", table, i, columnNames(table)[k], is, should)
				}
			}
		}
	}
}

// TestCSVCell: no cell is a formula, and null differs from an empty text.
func TestCSVCell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                  `""`,
		"plain text":        `plain text`,
		"a,b":               `"a,b"`,
		`say "hi"`:          `"say ""hi"""`,
		"two\nlines":        "\"two\nlines\"",
		" padded ":          `" padded "`,
		"=HYPERLINK(1)":     `"'=HYPERLINK(1)"`,
		"+1":                `"'+1"`,
		"- a list":          `"'- a list"`,
		"@SUM(A1)":          `"'@SUM(A1)"`,
		"\t=1":              "\"'\t=1\"",
		"\r=1":              "\"'\r=1\"",
		"\uff1d1":           "\"'\uff1d1\"",
		"'already":          `"''already"`,
		"nul\x00":           "nul\uFFFD",
		`=cmd|'/c calc'!A0`: `"'=cmd|'/c calc'!A0"`,
	} {
		if got := string(appendCell(nil, text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	var b bytes.Buffer
	c := newCSV(&b, []Column{{Name: "x", Type: Text}, {Name: "y", Type: Double}, {Name: "z", Type: Text}})
	if err := errors.Join(c.row([]cell{{}, double(-1), text("")}), c.close()); err != nil || b.String() != "x,y,z\n,-1,\"\"\n" {
		t.Errorf("%v: %q", err, b.String())
	}
}

func FuzzQuoted(f *testing.F) {
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, in string) {
		s := text(in).text
		var got string
		if err := json.Unmarshal(appendQuoted(nil, s), &got); err != nil || got != s {
			t.Errorf("JSON: %v: %q, want %q", err, got, s)
		}
		rows, err := stdcsv.NewReader(bytes.NewReader(append(appendCell(nil, s), ",x\n"...))).ReadAll()
		want := strings.ReplaceAll(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\r\n", "\n")
		if err != nil || len(rows) != 1 || len(rows[0]) != 2 || strings.TrimPrefix(rows[0][0], "'") != want {
			t.Errorf("CSV: %v: %q, want %q", err, rows, want)
		}
	})
}

// TestParquet reads Parquet with the library that wrote it: values, types and compression.
func TestParquet(t *testing.T) {
	t.Parallel()
	s := recorded(t, exportSample()...)
	for _, table := range tables() {
		text := written(t, s, table, Parquet)
		f, err := pq.OpenFile(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		columns := Columns(table)
		for i, field := range f.Schema().Fields() {
			if field.Name() != columns[i].Name || !field.Optional() || field.Type().String() != parquetType(columns[i].Type) {
				t.Errorf("%s: column %d is %s, %s", table, i, field.Name(), field.Type())
			}
		}
		var got [][]any
		for _, group := range f.RowGroups() {
			rows := group.Rows()
			buf := make([]pq.Row, 100)
			n, _ := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				var values []any
				for i, v := range row {
					values = append(values, parquetValue(v, columns[i].Type))
				}
				got = append(got, values)
			}
			if err := rows.Close(); err != nil {
				t.Error(err)
			}
		}
		if want := grid(t, s, table); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%v\nwant\n%v", table, got, want)
		}
	}
}

func parquetType(t Type) string {
	return map[Type]string{Text: "STRING", JSON: "STRING", Integer: "INT(64,true)", Double: "DOUBLE", Boolean: "BOOLEAN", Time: "TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)"}[t]
}

func parquetValue(v pq.Value, t Type) any {
	switch {
	case v.IsNull():
		return nil
	case t == Integer:
		return float64(v.Int64())
	case t == Time:
		return time.UnixMicro(v.Int64()).UTC().Format(timeLayout)
	case t == Boolean:
		return v.Boolean()
	case t == Double:
		if name, ok := results.NonFinite(v.Double()); ok {
			return name
		}
		return v.Double()
	default:
		return string(v.ByteArray())
	}
}

// TestOtherReaders reads the files with Python: its csv module, and pyarrow, DuckDB and polars if they
// are installed.
func TestOtherReaders(t *testing.T) {
	t.Parallel()
	python := os.Getenv("PARLEY_PYTHON")
	if python == "" {
		python = "python3"
	}
	if _, err := exec.LookPath(python); err != nil {
		t.Skipf("no %s here: set PARLEY_PYTHON to a Python with pyarrow, duckdb and polars", python)
	}
	s := recorded(t, append(exportSample(), huge())...)
	for _, reader := range []string{"csv", "pyarrow", "duckdb", "polars"} {
		t.Run(reader, func(t *testing.T) {
			if out, err := exec.CommandContext(t.Context(), python, "-c", "import "+reader).CombinedOutput(); err != nil {
				t.Skipf("%s has no %s: set PARLEY_PYTHON to one that has (%s)", python, reader, bytes.TrimSpace(out))
			}
			for _, table := range tables() {
				readByPython(t, python, reader, s, table)
			}
		})
	}
}

func readByPython(t *testing.T, python, reader string, s *runfile.Store, table Table) {
	t.Helper()
	format := Parquet
	if reader == "csv" {
		format = CSV
	}
	file := filepath.Join(t.TempDir(), string(table)+"."+string(format))
	if err := os.WriteFile(file, written(t, s, table, format), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/read.py", reader, file)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v", reader, table, err)
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var names []string
	if err := json.Unmarshal(lines[0], &names); err != nil || !reflect.DeepEqual(names, columnNames(table)) {
		t.Errorf("%s %s: columns %v, %v", reader, table, names, err)
	}
	want := grid(t, s, table)
	if len(lines)-1 != len(want) {
		t.Fatalf("%s %s: %d rows, want %d", reader, table, len(lines)-1, len(want))
	}
	for i, line := range lines[1:] {
		if format == CSV {
			var row, should []string
			if err := json.Unmarshal(line, &row); err != nil {
				t.Fatal(err)
			}
			for _, v := range want[i] {
				should = append(should, inText(v))
			}
			if row = unguarded(row, Columns(table)); !reflect.DeepEqual(row, should) {
				t.Errorf("%s %s: row %d:\n%.2000q\nwant\n%.2000q", reader, table, i, row, should)
			}
			continue
		}
		var row []any
		if err := json.Unmarshal(line, &row); err != nil || !reflect.DeepEqual(row, want[i]) {
			t.Errorf("%s %s: row %d: %v\n%.2000v\nwant\n%.2000v", reader, table, i, err, row, want[i])
		}
	}
}

// huge returns a reply with an answer of a megabyte, and many different names.
func huge() journal.Entry {
	return &journal.Replied{
		Turn: journal.Turn{Episode: 2, Attempt: 1}, Seat: strings.Repeat("seat ", 1<<15), Label: "word", Agent: "bold",
		Request: &llm.Request{Model: "lab/large", Messages: []llm.Message{llm.User(strings.Repeat("\u4e16\n\",", 1<<17))}}, Response: &llm.Response{Text: strings.Repeat(hostile, 1<<14)},
	}
}

// TestEmptyTables: a table without rows has its columns, if the format can hold them.
func TestEmptyTables(t *testing.T) {
	t.Parallel()
	s := recorded(t, &journal.Begun{Version: 1, Run: "00ff", Kind: "crowd"})
	for _, table := range tables() {
		want := columnNames(table)
		if got := strings.Split(strings.TrimSuffix(string(written(t, s, table, CSV)), "\n"), ","); !reflect.DeepEqual(got, want) {
			t.Errorf("%s as CSV: %v", table, got)
		}
		b := written(t, s, table, Parquet)
		f, err := pq.OpenFile(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range f.Schema().Columns() {
			got = append(got, strings.Join(c, "."))
		}
		if !reflect.DeepEqual(got, want) || f.NumRows() != 0 {
			t.Errorf("%s as Parquet: %d rows of %v", table, f.NumRows(), got)
		}
		if b := written(t, s, table, JSONL); len(b) != 0 {
			t.Errorf("%s as JSON lines: %q", table, b)
		}
	}
}
