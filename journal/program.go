package journal

import (
	"fmt"
	"strings"

	"parley/llm"
	"parley/world"
)

// programSuffix ends the strands of programs. Those of worlds end with a number.
const programSuffix = "/program/"

// ProgramStrand returns the strand of the calls that a program makes while it answers a call of a turn. Each is a turn of
// it. No world has a strand of this name.
func ProgramStrand(at Turn, index int) string {
	return fmt.Sprintf("%s%d.%d%s", at.Strand, at.Turn, index, programSuffix)
}

// OfProgram reports whether a strand is one of a program.
func OfProgram(strand string) bool { return strings.HasSuffix(strand, programSuffix) }

// ByProgram reports whether the model of a request says that a program answered it.
func ByProgram(model string) bool {
	provider, _ := llm.SplitModel(model)
	return provider == world.ProgramProvider
}
