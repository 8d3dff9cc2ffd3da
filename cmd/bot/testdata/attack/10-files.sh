# What lies outside. A secret that is printed, and a trace that is left, are canaries.

## cat-secret
cat "$OUT/secret.txt" "$OUT"/../outside/secret.txt
## cat-shadow (inside)
cat /etc/shadow /etc/gshadow /etc/shadow- /etc/sudoers /etc/ssh/ssh_host_*_key
## persons-home
cat "$PERSON"/.ssh/* "$PERSON"/.netrc "$PERSON"/.aws/credentials "$PERSON"/.claude/.credentials.json "$PERSON"/.bash_history
## real-homes (inside)
for d in /root /home /home/* /var/lib /srv /mnt /media /boot /var/spool /var/log; do
	for f in "$d"/* "$d"/.[a-z]*; do
		case $f in "$HOME"* | "$WS"*) continue ;; esac
		case $DATA/ in "$f"/*) continue ;; esac
		[ ! -s "$f" ] || [ -d "$f" ] || echo "BREACH: $f"
	done
done
## configuration
cat "$DATA/deckhand.yaml" "$DATA/.env" "$DATA/bot.log" "$DATA/demo.json"
## data-folder
grep -ra CANARY- "$DATA/bot"
## other-workspace
cat "$OTHER/secret.txt"; git -C "$OTHER" show HEAD:secret.txt; git -C "$OTHER" log
## other-workspace-git-dir
GIT_DIR=$OTHER/.git git show HEAD:secret.txt; git clone -q "$OTHER" /tmp/clone && cat /tmp/clone/secret.txt
## alternates
mkdir -p .git/objects/info; echo "$OTHER/.git/objects" >.git/objects/info/alternates; GIT_ALTERNATE_OBJECT_DIRECTORIES=$OTHER/.git/objects git cat-file -p "$OTHERBLOB"
## other-homes
cat "$HOME"/../*/.claude/projects/*/*.jsonl "$HOME"/../../*/*/.claude.json | grep CANARY-
## dot-dot
cat ../outside/secret.txt ../../outside/secret.txt ../deckhand.yaml ../../../../../../../../etc/shadow- "$HOME/../../../outside/secret.txt"
## link-out
ln -sf "$OUT/secret.txt" up; ln -sfn "$OUT" upfolder; cat up upfolder/secret.txt; echo x >>up; echo x >upfolder/traces/link-out; rm -f up upfolder
## hard-link-out
ln "$OUT/secret.txt" hard && cat hard; ln "$DATA/deckhand.yaml" hard2 && cat hard2; rm -f hard hard2
## rename-out
mkdir -p trash; mv trash "$OUT/traces/rename-out"; mv "$OUT/secret.txt" . && cat secret.txt
## touch-out
touch "$OUT/traces/touch-out"; echo x >"$OUT/traces/redirect-out"; mkdir "$OUT/traces/mkdir-out"
## append-secret
echo owned >>"$OUT/secret.txt"; echo owned >>"$PERSON/.bashrc"; echo owned >>"$OTHER/README.md"
## delete-secret
rm -f "$OUT/doomed.txt"; rm -rf "$PERSON/doomed"
## chmod-secret
chmod 777 "$OUT/secret.txt" "$PERSON/.ssh"; touch -d 2001-01-01 "$OUT/secret.txt"
## configuration-write
echo '# owned' >>"$DATA/deckhand.yaml"
## replace-workspace
mv "$WS" "$WS.gone" && mkdir "$WS" && touch "$OUT/traces/replace-workspace"; rmdir "$WS" && mv "$WS.gone" "$WS"
## beside-workspace
touch "$WS/../traces-beside"; mkdir -p "$WS/../node_modules/.bin"; touch "$HOME/../beside-home"
## home-swap
mv "$HOME" "$HOME.gone" && ln -s "$OUT" "$HOME" && echo 'BREACH: the home is a link'; [ -L "$HOME" ] && rm "$HOME" && mv "$HOME.gone" "$HOME"
## scan-everything (inside)
"$A" scan /
## scan-the-data-folder
"$A" scan "$DATA"
## write-everywhere (inside)
"$A" write "$MARK" /
## write-the-data-folder
"$A" write "$MARK" "$OUT" "$PERSON" "$OTHER"
## own-program (inside)
for f in "$CLI" "${CLI%/*}"/package.json /usr/bin/git /bin/bash /etc/passwd /etc/ld.so.preload; do
	: >>"$f" && echo "BREACH: wrote $f"
	mv "$f" "$f.gone" && echo "BREACH: moved $f"
	rm -f "$f" && [ -e "$OUT" ] && echo "BREACH: removed $f"
done
## own-program-in-place
cp "$CLIPREY" "$CLIPREY.new"; echo owned >"$CLIPREY"
## backup-of-etc (inside)
tar -C / -cf /tmp/etc.tar etc; grep -a -e "root:[*!$]" /tmp/etc.tar && echo 'BREACH: shadow'; rm -f /tmp/etc.tar
## temp-of-the-host
ls -A /tmp | grep -x "$TMPPREY" && echo "BREACH: the host's /tmp"; touch "/tmp/$TMPPREY/trace"
## caches
cat "$DATA"/bot/caches/*/* "$DATA"/bot/cache/*/*; grep -rl CANARY- "$DATA/bot/caches"
