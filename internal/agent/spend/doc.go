// Package spend admits the calls of the model that sessions make, books what they cost, and
// says where budgets stand.
//
// A [Meter] stands between one CLI process and the gateway: it admits each call by the budgets
// that it counts towards, in the transaction that records it, and books its end. [Accounts] are
// what the meters of a replica have in common. Amounts are in micro-USD.
package spend
