// Package dataset reads the rows of datasets for rollouts: JSON, JSON lines, YAML and Parquet,
// told apart by the name of the file.
//
// It promises that every row comes as one JSON value, in the file's order, and that what is
// wrong with a file is told with the line or row. It is not for files beyond memory: a
// dataset becomes part of the run, which is complete without it.
package dataset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/parquet-go/parquet-go"
)

// maxFile is the largest file that is read.
const maxFile = 1 << 30

// Rows returns the rows of a file.
func Rows(path string) ([]json.RawMessage, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("dataset: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("dataset: %s: is no file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("dataset: %s: is larger than %d bytes", path, maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	rows, err := read(strings.ToLower(filepath.Ext(path)), text)
	if err == nil && len(rows) == 0 {
		err = errors.New("has no rows")
	}
	if err != nil {
		return nil, fmt.Errorf("dataset: %s: %w", path, err)
	}
	return rows, nil
}

func read(ext string, text []byte) ([]json.RawMessage, error) {
	switch ext {
	case ".json":
		return fromJSON(text)
	case ".jsonl", ".ndjson":
		return fromLines(text)
	case ".yaml", ".yml":
		b, err := yaml.YAMLToJSON(text)
		if err != nil {
			return nil, err
		}
		return fromJSON(b)
	case ".parquet":
		return fromParquet(text)
	default:
		return nil, errors.New("the name must end in .json, .jsonl, .yaml or .parquet")
	}
}

func fromJSON(text []byte) (rows []json.RawMessage, err error) {
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("want a list of rows: %w", err)
	}
	return rows, nil
}

func fromLines(text []byte) (rows []json.RawMessage, err error) {
	lines := bufio.NewReader(bytes.NewReader(text))
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			if !json.Valid(trimmed) {
				return nil, fmt.Errorf("line %d: is not JSON", n)
			}
			rows = append(rows, trimmed)
		}
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// fromParquet reads a file whose columns are known only to itself. A damaged one may make
// the library panic, which is an error here.
func fromParquet(text []byte) (rows []json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			rows, err = nil, fmt.Errorf("is no Parquet file, or damaged: %v", p)
		}
	}()
	all, err := parquet.Read[any](bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return nil, err
	}
	for i, row := range all {
		b, err := json.Marshal(row)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		rows = append(rows, b)
	}
	return rows, nil
}
