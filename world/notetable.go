package world

// NoteTable is a table of what the notes of episodes say, such as the orders of games. Export puts the columns run, episode, cell
// and deal before its own.
type NoteTable struct {
	// Name is a lower-case word. The names calls, episodes, messages, scores, labels and all are taken.
	Name string
	// Doc says what a row is.
	Doc     string
	Columns []NoteColumn
	// Rows returns the rows of an episode that ended. A cell has the type of its column, or is nil if there is no value.
	Rows func(p Played, notes []Note) [][]any
}

// NoteColumn is a column of a NoteTable.
type NoteColumn struct {
	Name string
	Type NoteType
	Doc  string
}

// NoteType is the type of a column.
type NoteType string

// The types of columns, and the Go types of their cells.
const (
	NoteText    NoteType = "text"    // string
	NoteInteger NoteType = "integer" // int
	NoteDouble  NoteType = "double"  // float64
	NoteBoolean NoteType = "boolean" // bool
)
