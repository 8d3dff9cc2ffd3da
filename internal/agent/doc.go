// Package agent turns chat threads into Claude Code sessions: one worker per
// live thread takes the thread's prompts one by one, runs them through the CLI,
// has every tool call decided before it runs, and writes what each turn cost to
// the ledger. It knows nothing of Slack: it shows turns and asks questions
// through a [Frontend], and learns from an [Authoriser] who may decide.
//
// The [Supervisor] owns the workers and each worker owns its process. A worker
// is one goroutine with a mailbox; whatever a person or another replica wants
// of a thread is a message in it. Its states:
//
//	cold ──prompt──► waiting ──a slot──► starting ──initialized──► ready ──prompt──► running
//	running ──can_use_tool──► awaiting ──decision──► running
//	running ──a grant covers a call──► checking ──its giver is checked──► running
//	awaiting ──ParkAfter, or its slot is needed──► parked (a row) ──decision──► waiting
//	running, awaiting, checking ──stop, expired──► stopping ──result──► ready
//	running ──result──► ready ──idle──► hibernating ──process gone──► cold (a row, nothing else)
//	any ──process ends──► cold; a running turn ends as failed
//	any ──lease lost──► gone, without another write
//
// They are derived, not stored, but for parked (see parking.go): awaiting, for one, is a turn
// that runs while approvals are open. awaiting, checking and stopping take all that a running turn takes, waiting
// and starting a stop and a lost lease; hibernating, which is bounded, takes nothing until
// it is over.
//
// Every state and every event:
//
//	                      cold     wait     start    ready    run      await    check    stop     parked   hibern
//	hook: allow           ·        ·        ·        =        =        =        =        =        ·        ·
//	hook: deny            ·        ·        ·        =        =        =        =        =        ·        ·
//	hook: ask             ·        ·        ·        =        =        =        =        =        ·        ·
//	hook: granted         ·        ·        ·        =        =        =        =        =        ·        ·
//	can_use_tool          ·        ·        ·        =        await    =        =        =        ·        ·
//	can_use_tool: deny    ·        ·        ·        =        =        =        =        =        ·        ·
//	allowed               ·        ·        ·        ·        ·        run      ·        =        run      ·
//	denied                ·        ·        ·        ·        ·        run      ·        =        run      ·
//	allowed elsewhere     ·        ·        ·        ·        ·        run      ·        =        run      ·
//	expired               ·        ·        ·        ·        ·        ready    ·        run      cold     ·
//	cancelled: hook       ·        ·        ·        ·        ·        ·        run      ·        ·        ·
//	cancelled: ask        ·        ·        ·        ·        ·        run      ·        =        ·        ·
//	looked up: yes        ·        ·        ·        ·        ·        ·        run      ·        ·        ·
//	looked up: no         ·        ·        ·        ·        ·        ·        run      ·        ·        ·
//	looked up: late       ·        ·        ·        ·        ·        ·        run      ·        ·        ·
//	grant revoked         ·        ·        ·        ·        ·        ·        run      ·        ·        ·
//	host: allow           ·        ·        ·        =        =        =        =        =        ·        ·
//	host: deny            ·        ·        ·        =        =        =        =        =        ·        ·
//	host: ask             ·        ·        ·        =        await    =        =        =        ·        ·
//	host: granted         ·        ·        ·        =        =        =        =        =        ·        ·
//	prompt                run      =        =        run      =        =        =        =        =        =
//	prompt, no slot       wait     ·        ·        ·        ·        ·        ·        ·        ·        ·
//	prompt, nothing left  =        ·        ·        =        ·        ·        ·        ·        ·        ·
//	prompt, admins asked  =        ·        ·        cold     ·        ·        ·        ·        ·        ·
//	admins asked, stop    =        ·        ·        cold     ·        ·        ·        ·        ·        ·
//	admins asked, raised  run      ·        ·        run      ·        ·        ·        ·        ·        ·
//	admins asked, left    =        ·        ·        cold     ·        ·        ·        ·        ·        ·
//	admins asked, a day   run      ·        ·        run      ·        ·        ·        ·        ·        ·
//	admins asked, restart =        ·        ·        cold     ·        ·        ·        ·        ·        ·
//	admins asked, unbegun ·        ·        ·        =        =        run      run      run      ·        ·
//	wake                  =        =        =        =        =        =        =        =        =        =
//	stop                  =        cold     cold     =        ready    ready    ready    =        cold     =
//	over budget           ·        ·        ·        =        ready    ready    ready    ready    ·        ·
//	result                ·        ·        ·        =        ready    ready    ready    run      ·        ·
//	result: failed        ·        ·        ·        =        ready    ready    ready    run      ·        ·
//	silence               ·        ·        ·        =        cold     cold     cold     run      ·        ·
//	StopTimeout           ·        ·        ·        ·        ·        ·        ·        run      ·        ·
//	a slot is free        ·        run      ·        ·        ·        ·        ·        ·        ·        ·
//	started               ·        ·        run      ·        ·        ·        ·        ·        ·        ·
//	no answer in time     ·        ·        cold     ·        ·        ·        ·        ·        ·        ·
//	no answer, stop       ·        ·        cold     ·        ·        ·        ·        ·        ·        ·
//	no answer, tried again·        ·        run      ·        ·        ·        ·        ·        ·        ·
//	no answer for long    ·        ·        cold     ·        ·        ·        ·        ·        ·        ·
//	no workspace          ·        cold     ·        ·        ·        ·        ·        ·        ·        ·
//	hibernate asked       ·        =        =        cold     =        parked   =        =        ·        =
//	idle                  ·        ·        ·        cold     ·        ·        ·        ·        ·        ·
//	hibernated            ·        ·        ·        ·        ·        ·        ·        ·        ·        cold
//	database away         =        =        =        =        =        parked   run      cold     =        =
//	lease lost            gone     gone     gone     gone     gone     gone     gone     gone     =        =
//	shutdown              =        cold     cold     cold     cold     parked   cold     cold     =        =
//	exit                  ·        ·        cold     cold     cold     cold     cold     run      ·        cold
//	exit: id in use       ·        ·        run      cold     cold     cold     cold     run      ·        cold
//
// = stays, · cannot be.
//
// The gateway reads a model's call to its end even after its process has exited. Until the call is booked
// the cold thread keeps its lease. Prompts and stops still reach it; a stop cuts the call.
//
// Security. A tool runs only after a decision that is committed: a policy rule's
// (see package policy) or a person's, bound to the SHA-256 of the exact input. Every
// tool call passes our PreToolUse callback, so nothing that lies in a repository
// can allow itself anything; the CLI reads no settings, and its
// environment is an allow-list (see package place).
package agent
