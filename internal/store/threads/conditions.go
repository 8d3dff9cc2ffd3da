package threads

// asleep is true of a thread t whose next prompt waits for a budget, or for the next attempt to start it.
const asleep = `(` + waitsForBudget + ` OR ` + putOff + `)`

// waitsForBudget is true of a thread t in which a prompt waits for a budget.
const waitsForBudget = `EXISTS (SELECT FROM budget_waits b JOIN inbox w ON w.id = b.inbox_id
	WHERE b.thread_id = t.id AND b.asleep AND b.until > now() AND w.state = 'accepted')`

// putOff is true of a thread t whose next attempt to start is due later.
const putOff = `EXISTS (SELECT FROM inbox o WHERE o.thread_id = t.id AND o.state IN ('accepted', 'running') AND o.next_try > now())`

// Parked is true of a thread t whose turn is parked.
const Parked = `EXISTS (SELECT FROM turns r JOIN turn_rests s ON s.turn_id = r.id
	WHERE r.thread_id = t.id AND r.state = 'running' AND s.asleep)`

// Unheld is true of a thread t that no live replica holds.
const Unheld = `(t.lease_owner IS NULL OR NOT EXISTS (SELECT FROM replicas r WHERE r.id = t.lease_owner AND r.alive))`

// Words is what somebody wrote of the prompt of an inbox row i: the first 1,000 characters, without the context that is put
// before it in brackets, as “[The message to you:]”.
const Words = `left(CASE strpos(reverse(i.prompt), E'\n]:') WHEN 0 THEN i.prompt ELSE right(i.prompt, strpos(reverse(i.prompt), E'\n]:') - 1) END, 1000)`
