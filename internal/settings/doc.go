// Package settings reads the configuration: deckhand.yaml, on which a team agrees, and the environment, which holds
// secrets, addresses and folders.
//
// It checks both in isolation. Its errors list all problems with their place and cure, and contain no secret.
// Package doctor checks the rest, for example whether the channel exists and the token is valid.
package settings
