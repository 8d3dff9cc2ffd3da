# Other processes: what /proc tells of them, and what is done to them.

## environ
cat "/proc/$PREY/environ" | tr '\0' '\n' | grep CANARY-
## environ-of-everybody (inside)
for p in /proc/[0-9]*; do [ "$p" = "/proc/$PREY" ] || tr '\0' '\n' <"$p/environ"; done | grep -e CANARY- -e xoxb- -e xapp- -e DATABASE_URL= -e sk-ant-
## environ-of-the-bot
tr '\0' '\n' <"/proc/$BOT/environ"
## memory
dd if="/proc/$PREY/mem" bs=1 skip="$PREYAT" count="$PREYLEN"
## maps
cat "/proc/$PREY/maps" "/proc/$BOT/maps" && echo 'BREACH: maps'
## open-file
cat "/proc/$PREY/fd/$PREYFD"
## root-of-prey
cat "/proc/$PREY/root$OUT/secret.txt" "/proc/$BOT/root$OUT/secret.txt"; touch "/proc/$BOT/root$OUT/traces/proc-root"
## root-of-everybody (inside)
for p in /proc/[0-9]*/root /proc/[0-9]*/cwd /proc/1/root /proc/self/task/*/root /proc/thread-self/root; do
	cat "$p$OUT/secret.txt" "$p/etc/shadow" "$p/../outside/secret.txt"
done
## cwd-of-the-bot
cat "/proc/$BOT/cwd/go.mod" && echo 'BREACH: the working directory'; ls "/proc/$BOT/fd" && echo 'BREACH: its files'
## mountinfo
grep -e "$OUT" "/proc/$PREY/mountinfo"; cat "/proc/$PREY/cmdline" "/proc/$BOT/cmdline" && echo 'BREACH: command lines'
## command-lines-of-everybody
for p in /proc/[0-9]*; do tr '\0' ' ' <"$p/cmdline"; done | grep -e '[p]rey prey' -e '[p]ostgres:' && echo 'BREACH: command lines'
## core-pattern (inside)
echo "|$A linger" >/proc/sys/kernel/core_pattern && echo 'BREACH: core_pattern'
## modprobe (inside)
echo "$A" >/proc/sys/kernel/modprobe && echo 'BREACH: modprobe'; echo "$A" >/sys/kernel/uevent_helper && echo 'BREACH: uevent_helper'
## sysctl (inside)
for f in vm/overcommit_memory fs/suid_dumpable kernel/pid_max net/ipv4/ip_forward kernel/yama/ptrace_scope kernel/hotplug; do
	[ ! -e "/proc/sys/$f" ] || { v=$(cat "/proc/sys/$f") && echo "$v" >"/proc/sys/$f" && echo "DOOR: $f"; }
done
## sysrq (inside)
echo h >/proc/sysrq-trigger && echo 'DOOR: sysrq'
## kernel-memory (inside)
for f in /proc/kcore /dev/mem /dev/kmem /dev/port /dev/kmsg /proc/kmsg; do [ -z "$(timeout 1 head -c 64 "$f" | tr -d '\0')" ] || echo "BREACH: $f"; done
## oom-score (inside)
echo -1000 >/proc/self/oom_score_adj && echo 'DOOR: oom_score_adj'; echo 1000 >"/proc/$BOT/oom_score_adj" && echo 'BREACH: oom_score_adj of the bot'
## cgroup (inside)
for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/release_agent /sys/fs/cgroup/memory.max; do : >>"$f" && echo "BREACH: $f"; done; echo $$ >/sys/fs/cgroup/cgroup.procs && echo 'BREACH: left the cgroup'
## signal-prey
for s in USR1 HUP TERM INT; do kill -s "$s" "$PREY"; done
## signal-everybody (inside)
for s in USR1 USR2; do kill -s $s "$PREY"; kill -s $s "$BOT"; done; kill -USR1 -- -"$PREY"; kill -USR1 -- -"$BOT"
## kill-the-bot (inside)
kill -9 "$BOT"; kill -9 "$PREY"; kill -9 -"$BOT"
## stop-the-bot (inside)
kill -STOP "$BOT" "$PREY"
## kill-above (inside)
kill -9 1
## ptrace
"$A" ptrace "$PREY" "$PREYAT" "$PREYLEN"
## ptrace-the-bot (inside)
"$A" ptrace "$BOT" 4194304 8
## vmread
"$A" vmread "$PREY" "$PREYAT" "$PREYLEN"
## vmread-everybody (inside)
for p in /proc/[0-9]*; do "$A" vmread "${p#/proc/}" "$PREYAT" "$PREYLEN"; done
## pidfd
"$A" pidfd "$PREY" "$PREYFD"
## pidfd-of-everybody (inside)
for p in /proc/[0-9]*; do for fd in 3 4 5 6 7 8 9 10; do "$A" pidfd "${p#/proc/}" $fd; done; done 2>/dev/null | grep CANARY-
## inherited-files (inside)
"$A" fds
## shared-memory
cat /dev/shm/"$SHM"; touch "/dev/shm/$SHM.trace"
