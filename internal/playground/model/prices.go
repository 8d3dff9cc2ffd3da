package model

import "deckhand/internal/price"

// floatCost is the price of one call in USD, by the very steps of the CLI's floating
// point.
func floatCost(p price.Model, u price.Usage) float64 {
	us := u.US
	u.US = false
	times := p.Percent(u) / 100
	// part is n tokens at a price per million. The conversions keep compilers
	// from fusing the multiplications with the additions below.
	part := func(n, perToken int64) float64 {
		return float64(float64(n) / 1e6 * (float64(times*perToken) / 1e3))
	}
	usd := part(u.Input, p.Input) + part(u.Output, p.Output) + part(u.CacheRead, p.CacheRead)
	if u.CacheWrite1h > 0 {
		usd += part(u.CacheWrite1h, p.CacheWrite1h) + part(u.CacheWrite5m, p.CacheWrite5m)
	} else {
		usd += part(u.CacheWrite5m, p.CacheWrite5m)
	}
	if us {
		usd = float64(usd * 1.1)
	}
	return usd + float64(float64(u.WebSearches)*(float64(p.WebSearch)/1e9))
}
