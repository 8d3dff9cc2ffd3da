// Package settings is what people set: deckhand.yaml, which a team agrees on, and
// the environment, which holds secrets, addresses and folders.
//
// It reads and checks both by themselves. Its errors list all that is wrong, with
// the place, and with what to write instead; they never hold a secret. Whether what
// is set is true (the channel is there, the token is valid) is asked by package
// doctor.
package settings
