package gateway

import "time"

// SetLimits sets for how long a provider may be silent to nobody, an answer to nobody may
// take in all, and a caller may take nothing of its answer.
func (g *Gateway) SetLimits(silent, alone, taking time.Duration) {
	g.limits = limits{silent, alone, taking}
}
