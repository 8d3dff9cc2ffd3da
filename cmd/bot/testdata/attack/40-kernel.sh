# The kernel's doors, the terminal, devices and rights.

## mounts (inside)
"$A" door mount mount-proc remount umount pivot_root chroot fsopen open_tree
## namespaces (inside)
"$A" door unshare-user unshare-mount unshare-net setns
## unshare-and-look (inside)
unshare -Urmpf --mount-proc sh -c 'cat /proc/*/environ /proc/*/root"$OUT"/secret.txt' | tr '\0' '\n'
## mount-by-program (inside)
mount -t proc proc /tmp && echo 'DOOR: mount'; mount --bind / /tmp && cat "/tmp$OUT/secret.txt"
## nsenter (inside)
for n in mnt net pid user ipc; do nsenter "--$n=/proc/1/ns/$n" cat "$OUT/secret.txt"; nsenter "--$n=/proc/$PREY/ns/$n" cat "$OUT/secret.txt"; done
## keys (inside)
"$A" door keyctl add_key request_key
## bpf-perf (inside)
"$A" door bpf perf_event_open userfaultfd io_uring_setup
## handles (inside)
"$A" door name_to_handle_at open-by-handle-root fanotify_init; "$A" handle
## modules (inside)
"$A" door init_module kexec_load swapon acct quotactl
## clocks-names (inside)
"$A" door settimeofday sethostname
## log-of-the-kernel (inside)
"$A" door syslog; dmesg | head -1 | grep . && echo 'DOOR: dmesg'
## devices (inside)
"$A" door mknod mknod-disk
for d in /dev/[svx]d[a-z] /dev/nvme0n1 /dev/loop0 /dev/loop-control /dev/kvm /dev/fuse /dev/net/tun /dev/vhost-net /dev/mem /dev/snapshot /dev/mapper/* /dev/dm-0 /dev/nbd0 /dev/uinput /dev/tty1 /dev/vcs /dev/hwrng /dev/rtc0 /dev/watchdog /dev/cpu/0/msr; do
	case $d in /dev/fuse | /dev/net/tun) what=DOOR ;; *) what=BREACH ;; esac # gVisor has these two of its own
	(: <"$d") && echo "$what: $d"
done
## disk-by-node (inside)
mknod /tmp/disk b 254 0 && head -c 4096 /tmp/disk && echo 'BREACH: the disk'; mknod disk b 254 0 && head -c 4096 disk && echo 'BREACH: the disk'; rm -f disk
## clocks-and-priorities (inside)
"$A" door sched-realtime ioprio-realtime nice
## terminal (inside)
"$A" inject; (: </dev/tty) && echo 'BREACH: a controlling terminal'
## no-new-privileges (inside)
grep -q '^NoNewPrivs:[^0-9]*1' /proc/self/status || grep -q gVisor /proc/version || echo 'DOOR: new privileges'; "$A" door prctl-no-new-privs
## capabilities (inside)
grep '^Cap\(Eff\|Prm\|Inh\|Amb\|Bnd\)' /proc/self/status | grep -v -e ':[^0-9]*0*$' && echo 'DOOR: capabilities'; "$A" door capset
## setuid-programs (inside)
for f in su sudo passwd mount umount newgrp chsh pkexec fusermount; do command -v $f; done; cp /bin/cat /tmp/suid && chmod 4755 /tmp/suid && /tmp/suid /etc/shadow; cp /bin/cat ./suid && chmod 6755 ./suid && ./suid /etc/shadow; rm -f suid
## another-user (inside)
"$A" door setuid-nobody setgroups chown
## core-file (inside)
ulimit -c unlimited && [ "$(ulimit -c)" = unlimited ] && echo 'DOOR: core files'; sh -c 'kill -SEGV $$'; ls core* /tmp/core* && echo 'BREACH: a core file'
## personality (inside)
"$A" door personality
## filter (inside)
grep -q '^Seccomp:[^0-9]*2' /proc/self/status || grep -q gVisor /proc/version || echo 'DOOR: no filter'
## sysfs (inside)
ls /sys/class/net/e* /sys/block/* && echo 'DOOR: /sys'; echo 1 >/sys/power/state && echo 'BREACH: /sys'; cat /sys/class/dmi/id/product_uuid && echo 'BREACH: the machine'
## debugfs (inside)
ls /sys/kernel/debug/* /sys/kernel/tracing/* /sys/fs/bpf/* /sys/firmware/efi/efivars/* && echo 'BREACH: debugfs'
