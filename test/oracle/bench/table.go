package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// page is the document that shows the measurements, as seen from the folder of the module.
const page = "../../docs/reference/benchmarks.md"

// updateTable writes rows into a table of the page, which is between two comments that name it. A row replaces the one
// with the same last cell; the others stay. about replaces the line above the table, unless it is empty.
func updateTable(name, about string, rows []string) error {
	return changePage(func(text string) (string, error) { return withRows(text, name, about, rows) })
}

// replaceTable writes all that is between the two comments that name a table of the page.
func replaceTable(name string, lines []string) error {
	return changePage(func(text string) (string, error) {
		before, _, after, err := cutTable(text, name)
		return before + strings.Join(lines, "\n") + "\n" + after, err
	})
}

func changePage(change func(text string) (string, error)) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	changed, err := change(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(changed), 0o644)
}

// cutTable returns the text of a page in three parts: up to the comment before a table, the table, and the rest.
func cutTable(text, name string) (before, inside, after string, err error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	before, rest, ok := strings.Cut(text, begin)
	inside, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", "", fmt.Errorf("has no %q followed by %q", strings.TrimSpace(begin), end)
	}
	return before + begin, inside, end + after, nil
}

// withRows returns the text of a page with other rows in one of its tables.
func withRows(text, name, about string, rows []string) (string, error) {
	before, inside, after, err := cutTable(text, name)
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimRight(inside, "\n"), "\n")
	head := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "|---") })
	if head < 1 {
		return "", fmt.Errorf("has no table named %s", name)
	}
	if about != "" {
		lines = slices.Concat([]string{about, ""}, lines[head-1:])
		head = 3
	}
	for _, row := range rows {
		i := slices.IndexFunc(lines[head+1:], func(l string) bool { return key(l) == key(row) })
		if i < 0 {
			lines = append(lines, row)
		} else {
			lines[head+1+i] = row
		}
	}
	return before + strings.Join(lines, "\n") + "\n" + after, nil
}

// key is the last cell of a row.
func key(row string) string {
	cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
	return strings.TrimSpace(cells[len(cells)-1])
}

// tableRow returns a row of a table.
func tableRow(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |" }
