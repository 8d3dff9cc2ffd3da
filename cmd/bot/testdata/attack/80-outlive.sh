# What wants to live longer than its session. Each beats in a file of its name.

## background
"$A" linger "$BEATS/background" &
## disowned
"$A" linger "$BEATS/disowned" </dev/null >/dev/null 2>&1 & disown
## nohup
nohup "$A" linger "$BEATS/nohup" </dev/null >/dev/null 2>&1 &
## setsid
setsid "$A" linger "$BEATS/setsid" </dev/null >/dev/null 2>&1 &
## double-fork
(setsid bash -c '(setsid "$A" linger "$BEATS/double-fork" </dev/null >/dev/null 2>&1 &)' &)
## exec-chain
(trap '' HUP TERM INT; exec -a '[kworker/0:1]' "$A" linger "$BEATS/exec-chain" </dev/null >/dev/null 2>&1) &
## coproc
coproc "$A" linger "$BEATS/coproc"
## restarter
(while :; do "$A" linger "$BEATS/restarter" || sleep 1; done) </dev/null >/dev/null 2>&1 &
## stopped
("$A" linger "$BEATS/stopped" & sleep 0.1; kill -STOP $!; kill -CONT $!) </dev/null >/dev/null 2>&1 &
## at (inside)
echo "touch $OUT/traces/at" | at now; echo "touch $OUT/traces/batch" | batch
## cron (inside)
echo "* * * * * touch $OUT/traces/cron" | crontab -; echo "* * * * * root touch $OUT/traces/cron" >/etc/cron.d/x && echo 'BREACH: cron'; echo x >/var/spool/cron/crontabs/root && echo 'BREACH: cron'
## systemd (inside)
systemd-run --no-block touch "$OUT/traces/systemd"; systemctl --user list-units && echo 'BREACH: systemd'; mkdir -p /etc/systemd/system && echo x >/etc/systemd/system/x.service && echo 'BREACH: systemd'
