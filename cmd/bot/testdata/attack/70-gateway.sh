# The way to the model: what else it would lead to. A secret in an answer, a hit of the
# harness's listeners and a word of the playground's own pages are canaries.

## the-model-answers
b='{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":"say: nothing"}]}'
printf 'POST /v1/messages HTTP/1.1\r\nHost: model.invalid\r\n%sX-Api-Key: %s\r\nAnthropic-Version: 2023-06-01\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' "$TOKENHEADER" "$ANTHROPIC_API_KEY" ${#b} "$b" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET" >answer
head -c 2000 answer; grep -q '^HTTP/1.. 200' answer && echo 'PROOF: the way is open'; rm -f answer
## other-paths
for p in / /v1/models /v1/files /v1/organizations /v1/messages/batches /v1/messages/../models /v1/messages%2f..%2fmodels /_control/bill /_control/messages /api/auth.test /v1/oauth/hello '/v1/messages?x=y' //v1/models /v1/messages/; do
	printf 'GET %s HTTP/1.1\r\nHost: model.invalid\r\n%sConnection: close\r\n\r\n' "$p" "$TOKENHEADER" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET" | grep -e '^HTTP/1.. 2' -e CANARY- && echo "BREACH: $p"
done
## other-methods
for m in GET PUT DELETE PATCH OPTIONS TRACE; do printf '%s /v1/messages HTTP/1.1\r\nHost: model.invalid\r\n%sConnection: close\r\n\r\n' $m "$TOKENHEADER" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET" | grep '^HTTP/1.. 2' && echo "BREACH: $m"; done
## connect
printf 'CONNECT 127.0.0.1:%s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n%s\r\nconnect' "$TCP" "$TCP" "$TOKENHEADER" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET"
## absolute-address
printf 'POST http://127.0.0.1:%s/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n%sContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}' "$TCP" "$TCP" "$TOKENHEADER" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET"
## host-header
for h in "127.0.0.1:$TCP" "localhost:$TCP" "x@127.0.0.1:$TCP"; do printf 'POST /v1/messages HTTP/1.1\r\nHost: %s\r\nX-Forwarded-Host: %s\r\nForwarded: host=%s\r\n%sContent-Length: 2\r\nConnection: close\r\n\r\n{}' "$h" "$h" "$h" "$TOKENHEADER" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET"; done
## address-in-path
for p in "//127.0.0.1:$TCP/v1/messages" "/@127.0.0.1:$TCP/v1/messages" "/http://127.0.0.1:$TCP/v1/messages" "/v1/messages#@127.0.0.1:$TCP" "/\\127.0.0.1:$TCP"; do printf 'POST %s HTTP/1.1\r\nHost: model.invalid\r\n%sContent-Length: 2\r\nConnection: close\r\n\r\n{}' "$p" "$TOKENHEADER" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET"; done
## upgrade
printf 'GET /v1/messages HTTP/1.1\r\nHost: model.invalid\r\n%sConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n' "$TOKENHEADER" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET" | grep '^HTTP/1.. 101' && echo 'BREACH: an upgrade'
## smuggled-length
printf 'POST /v1/messages HTTP/1.1\r\nHost: model.invalid\r\n%sContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: x\r\n%s\r\n' "$TOKENHEADER" "$TOKENHEADER" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET" | grep -e '"data"' -e '^HTTP/1.. 2' && echo 'BREACH: smuggled'
## smuggled-header
printf 'POST /v1/messages HTTP/1.1\r\nHost: model.invalid\r\n%sX-A: b\nX-Api-Key: x\rTransfer-Encoding : chunked\r\nContent-Length: 60\r\n\r\n0\r\n\r\nGET /_control/bill HTTP/1.1\r\nHost: x\r\n\r\n' "$TOKENHEADER" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET" | grep '^HTTP/1.. 2' && echo 'BREACH: smuggled'
## no-token
for t in '' 'X-Deckhand-Token: 00\r\n' 'X-Deckhand-Token: \r\n' 'x-deckhand-token:\r\nX-Deckhand-Token: a\r\n'; do printf "POST /v1/messages HTTP/1.1\r\nHost: model.invalid\r\n${t}Content-Length: 2\r\nConnection: close\r\n\r\n{}" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET" | grep '^HTTP/1.. 2' && echo 'BREACH: without a token'; done
## own-key
for h in 'X-Api-Key: sk-ant-attacker' 'Authorization: Bearer attacker'; do printf 'POST /v1/messages HTTP/1.1\r\nHost: model.invalid\r\n%s%s\r\nContent-Type: application/json\r\nContent-Length: 96\r\nConnection: close\r\n\r\n{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":"say: nothing"}]}' "$TOKENHEADER" "$h" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET" | grep '^HTTP/1.. 2' && echo "BREACH: an attacker's key"; done
## mcp-of-the-provider
b='{"model":"claude-haiku-4-5","max_tokens":9,"mcp_servers":[{"type":"url","url":"http://127.0.0.1:'$TCP'","name":"x"}],"messages":[{"role":"user","content":"say: nothing"}]}'
printf 'POST /v1/messages HTTP/1.1\r\nHost: model.invalid\r\n%sX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' "$TOKENHEADER" "$ANTHROPIC_API_KEY" ${#b} "$b" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET" | grep '^HTTP/1.. 2' && echo 'BREACH: the provider fetches'
## page-of-the-provider
b='{"model":"claude-haiku-4-5","max_tokens":9,"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}],"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"http://127.0.0.1:'$TCP'/x"}}]}]}'
printf 'POST /v1/messages HTTP/1.1\r\nHost: model.invalid\r\n%sX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' "$TOKENHEADER" "$ANTHROPIC_API_KEY" ${#b} "$b" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET" | grep '^HTTP/1.. 2' && echo 'BREACH: the provider fetches'
## key-in-errors
for b in '{' '{"model":"none"}' '[]' '"x"' '{"model":"claude-haiku-4-5","max_tokens":-1,"messages":"error: 401"}'; do printf 'POST /v1/messages HTTP/1.1\r\nHost: model.invalid\r\n%sX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' "$TOKENHEADER" "$ANTHROPIC_API_KEY" ${#b} "$b" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET"; done
## environment
env; set
## other-sessions
for s in "$DATA"/bot/gateway/*/model; do [ "$s" = "$ANTHROPIC_UNIX_SOCKET" ] || "$A" reach "$s" unix "$s"; done
## socket-swap
mv "$ANTHROPIC_UNIX_SOCKET" "$ANTHROPIC_UNIX_SOCKET.old" && echo 'BREACH: moved'; rm -f "$ANTHROPIC_UNIX_SOCKET" && [ ! -e "$ANTHROPIC_UNIX_SOCKET" ] && echo 'BREACH: removed'; ln -s "$OUT/socket" "${ANTHROPIC_UNIX_SOCKET%/*}/other" && echo 'BREACH: planted'
