package main

import (
	"fmt"
	"time"
)

// What is played where the model takes its time: so many episodes of three steps that the start and the end are a
// small part of it.
const (
	waitingEpisodes = 12_000
	waitingLatency  = time.Second
	waitingWidth    = 512 // of the loop
)

// waitingRollouts measures episodes a second where a model takes a second: parley run with no limit set, beside
// an aiohttp loop with so many tasks, which keeps nothing.
func (b *bench) waitingRollouts() error {
	b.printf("    %d episodes of 3 steps where the model takes %s; parley with default settings; best of three, taken in turn\n", waitingEpisodes, waitingLatency)
	b.printf("    target: at least 1.30 of the loop's episodes a second\n\n")
	s, err := b.environments(waitingLatency)
	if err != nil {
		return err
	}
	defer s.stop()
	loop, recorded := pace{}, pace{}
	for range 3 {
		r, err := b.pythonPeer(peer{name: "aiohttp"}, peerTask{URL: s.url, Conversations: waitingEpisodes, Turns: 3, Width: waitingWidth, Rollouts: true})
		if err == nil && (r.Failed > 0 || r.late) {
			err = fmt.Errorf("%d episodes failed: %s", r.Failed, r.Error)
		}
		if err != nil {
			b.printf("    no aiohttp loop: %v\n\n", err)
			return nil
		}
		loop.add(pace{rate: waitingEpisodes / r.Seconds, cpu: r.CPU * 1e6 / waitingEpisodes})
		one, _, err := b.play(fmt.Sprintf(`kind: rollout
seed: 1
episodes: %d
providers: {lab: {dialect: openai, base_url: %q}}
agents: {x: {model: lab/any}}
lineup: {agent: x}
params: {env: arithmetic, env_params: {problems: 3}, servers: [%q]}
`, waitingEpisodes, s.url+"/v1", s.url), waitingEpisodes)
		if err != nil {
			return err
		}
		recorded.add(one)
	}
	b.printf("    %-34s %12s %14s\n", "client", "episodes/s", "its CPU, each")
	b.printf("    %-34s %12.0f %11.0f µs\n", fmt.Sprintf("aiohttp, %d tasks", waitingWidth), loop.rate, loop.cpu)
	b.printf("    %-34s %12.0f %11.0f µs\n", "parley run, all of it recorded", recorded.rate, recorded.cpu)
	b.printf("    ratio of episodes a second: %.2f\n\n", recorded.rate/loop.rate)
	return nil
}
