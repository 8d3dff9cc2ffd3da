package store

import "time"

// In is the store as it is when it was opened with another time zone, on the same
// connections.
func (s *Store) In(zone *time.Location) *Store {
	other := *s
	other.zone = zone
	return &other
}
