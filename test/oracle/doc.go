// Package oracle checks the wire formats against the vendors' Go SDKs: the SDKs read our requests without loss,
// and both sides read the same from an answer. It also runs the SDKs' clients against the simulated provider
// and the gateway. The readers of docker compose and Kubernetes check the files that the documents show.
//
// It has only tests, in a separate module, so that nothing else compiles the SDKs. No other package uses it.
package oracle
