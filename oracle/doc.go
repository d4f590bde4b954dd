// Package oracle proves the wire formats against the vendors' own Go SDKs, both
// ways: their types read our requests, and answers that they read, we read the same.
// It also has the SDKs' clients drive the simulated provider.
//
// It promises to be tests only, in a module of its own, so that nothing else compiles
// the SDKs. It is not for use by any other package.
package oracle
