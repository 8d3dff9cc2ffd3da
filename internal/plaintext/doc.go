// Package plaintext is about text as people see it: which of its characters they cannot see
// or may take for others, how wide it is, where it may be cut, and how it becomes one line
// that calls nobody. It knows no markup.
package plaintext
