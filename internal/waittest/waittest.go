// Package waittest says how long tests wait, in one place. A wait is for an event and
// ends with it: the limit is there only so that a test that waits in vain says for
// what. No test passes or fails by how fast a machine is.
package waittest

import "time"

// Limit bounds every wait of a test. On two cores with a load of 40 the slowest event
// was seen after a minute.
const Limit = 10 * time.Minute
