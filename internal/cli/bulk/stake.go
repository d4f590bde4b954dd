package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"parley/internal/cli/exit"
	"parley/internal/kit/files"
	"parley/llm"
)

// staked ends the name of the file that has one record: of what the calls in flight can cost.
const staked = ".open"

// Expose makes durable what the calls in flight can cost: see budget.Budget. A process that is killed leaves it behind.
func (o *outFile) Expose(_ context.Context, worst llm.Money) error {
	line, err := stakeOf(worst)
	if err != nil {
		return err
	}
	return files.Replace(o.path+staked, 0o600, line)
}

func stakeOf(worst llm.Money) ([]byte, error) {
	return (&Record{ID: json.RawMessage("null"), Error: &llm.Error{
		Kind: llm.KindCanceled, Message: "the process was killed: the most that its calls in flight can cost", Metadata: llm.Metadata{Cost: worst},
	}}).bytes()
}

// collect moves the record that a killed process left behind to the second file, so that its cost counts for good.
func (o *outFile) collect(ctx context.Context) error {
	const maxStaked = 4096
	line, err := files.Read(ctx, o.path+staked, maxStaked)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var old oldRecord
	if err == nil {
		old, err = readRecord(line)
	}
	if err != nil {
		return exit.Usagef("%s: %w; it should say what calls in flight can cost. If you move the file away, --budget does not count them", o.path+staked, err)
	}
	if line, err = stakeOf(old.cost); err != nil {
		return err
	}
	f, _, _, err := o.openStale(os.O_CREATE)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Remove(o.path + staked) // if it is still there after a power failure, it counts twice
}

// unstake removes the record of calls in flight: all of them have their own.
func (o *outFile) unstake() error {
	if err := os.Remove(o.path + staked); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
