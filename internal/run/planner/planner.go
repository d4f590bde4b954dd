// Package planner makes the plans that any kind can be played by: every cell of a matrix, cells until a score is known
// precisely enough, several plans at once, and a plan that continues a recorded run.
//
// What it promises: plans are pure folds over outcomes, as world.Plan demands. All cells have the same deals, and each
// plan gives every cell its first repetition before the second.
//
// It plays nothing (package engine does) and reads no plan files (package config does).
package planner
