package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/run/cluster/chain"
	"parley/internal/run/cluster/hub"
	"parley/journal"
)

// Rebuild begins a lost journal again, from a log with Coordinator.Retain. Whoever plays the run next collects the rest.
func Rebuild(ctx context.Context, conn *nats.Conn, run string, into journal.Journal) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return fmt.Errorf("coordinator: %w", err)
	}
	name := hub.Log{Run: run}
	stream, err := js.Stream(ctx, name.Stream())
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrInvalidStreamName):
		return fmt.Errorf("coordinator: the hub has nothing of run %q; parley cluster lists the runs", run)
	case err != nil:
		return fmt.Errorf("coordinator: %w", err)
	}
	about := stream.CachedInfo().Config.Metadata
	if name.Number, err = strconv.ParseInt(about[number], 10, 64); err != nil || about[retained] == "" {
		return fmt.Errorf("coordinator: the hub does not have everything of run %s: it was not begun with --retain, or the hub was lost meanwhile", run)
	}
	j, err := chain.Read(ctx, chain.Config{JetStream: js, Stream: stream, Subject: name.Begun()})
	if err != nil {
		return err
	}
	head, err := j.Head(ctx)
	if err != nil {
		return err
	}
	if head.Begun == nil {
		return fmt.Errorf("coordinator: the hub does not say how run %s was set up", run)
	}
	return into.Append(ctx, head.Begun, &journal.Collected{Log: name.Number})
}

// Logs returns the runs that a hub has a log of.
func Logs(ctx context.Context, conn *nats.Conn) (runs []string, err error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("coordinator: %w", err)
	}
	streams := js.ListStreams(ctx)
	for s := range streams.Info() {
		if name := strings.TrimSuffix(strings.TrimPrefix(s.Config.Name, "P_"), "_LOG"); s.Config.Metadata[number] != "" && s.Config.Name == (hub.Log{Run: name}).Stream() {
			runs = append(runs, name)
		}
	}
	return runs, streams.Err()
}
