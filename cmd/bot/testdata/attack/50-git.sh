# Whatever git obeys. What is planted here is fired by the bot's own git, by the next
# process, and by git in here; a trace outside is a canary, and so are the files themselves.

## config-append
printf '[core]\n\tfsmonitor = touch %s/traces/git-config\n' "$OUT" >>.git/config
## config-command
git config core.fsmonitor "touch $OUT/traces/git-config-command"; git config --file .git/config.worktree core.pager "touch $OUT/traces/pager"
## config-rename
printf '[core]\n\tfsmonitor = touch %s/traces/git-rename\n' "$OUT" >c && mv -f c .git/config; cp --remove-destination c .git/config; rm -f c
## config-link
ln -sf "$OUT/traces/x" .git/config; ln -f README.md .git/config; ln .git/config linked && echo '#' >>linked; rm -f linked
## config-lock
touch .git/config.lock && mv .git/config.lock .git/config; rm -f .git/config.lock
## config-worktree
printf '[core]\n\thooksPath = %s\n' "$OUT/hooks" >>.git/config.worktree
## hooks
for h in post-checkout pre-commit post-commit post-index-change reference-transaction; do printf '#!/bin/sh\ntouch %s/traces/hook-%s\n' "$OUT" "$h" >".git/hooks/$h"; chmod +x ".git/hooks/$h"; done
## hooks-swap
mv .git/hooks .git/hooks.old && mkdir .git/hooks; ln -sfn "$OUT/hooks" .git/hooks; rmdir .git/hooks
## info
echo '* filter=evil diff=evil merge=evil' >>.git/info/attributes; echo x >>.git/info/exclude; mv .git/info .git/info2; echo x >>.git/info/grafts
## commondir
echo "$OTHER/.git" >.git/commondir; echo "$OTHER/.git" >c && mv c .git/commondir; rm -f c; git show HEAD:secret.txt
## gitdir
echo "$WS/evil" >.git/gitdir; git show HEAD:secret.txt
## modules
mkdir -p .git/modules/x && cp .git/config .git/modules/x/config && printf '[core]\n\tfsmonitor = touch %s/traces/modules\n' "$OUT" >>.git/modules/x/config
## worktrees
mkdir -p .git/worktrees/x; echo "$OTHER" >.git/worktrees/x/gitdir; git worktree add -q "$OUT/traces/worktree"
## remotes
mkdir -p .git/remotes .git/branches; echo "URL: ext::touch $OUT/traces/remote" >.git/remotes/origin
## alternates-later
mkdir -p .git/objects/info && echo "$OTHER/.git/objects" >>.git/objects/info/alternates; git cat-file -p "$OTHERBLOB"
## rename-git
mv .git .git.old && cp -a .git.old .git && printf '[core]\n\tfsmonitor = touch %s/traces/renamed\n' "$OUT" >>.git/config; git status
## rename-refs
mv .git/refs .git/refs.old; mv .git/objects .git/objects.old; mv .git/logs .git/logs.old; ls -d .git/*.old && echo 'BREACH: moved'
## git-is-a-file
mv .git aside && echo "gitdir: $OTHER/.git" >.git && git show HEAD:secret.txt && rm .git && mv aside .git
## init-again
git init -q --separate-git-dir="$OUT/traces/separate"; git init -q --template="$WS/attack" .
## head-elsewhere
git symbolic-ref HEAD "refs/../../../outside/secret.txt"; git symbolic-ref HEAD refs/heads/main; git update-ref refs/heads/../../../x HEAD
## reflog-links
ln -sfn "$OUT/traces" .git/logs/refs; ln -sfn "$OUT/traces" .git/refs/heads/up; git update-ref refs/heads/up/trace-ref HEAD
## index-links
ln -sf "$OUT/traces/index" .git/index.lock; rm -f .git/index.lock; ln -sf "$OUT/traces/orig" .git/ORIG_HEAD; git reset -q --soft HEAD; rm -f .git/ORIG_HEAD
## attributes-of-the-tree
printf '* filter=evil diff=evil\n' >.gitattributes; git -c "filter.evil.clean=touch $OUT/traces/clean; cat" add -A .gitattributes; git reset -q
## submodule
printf '[submodule "x"]\n\tpath = x\n\turl = ext::touch %s/traces/sub\n\tupdate = !touch %s/traces/update\n' "$OUT" "$OUT" >.gitmodules; git submodule update --init; rm -f .gitmodules
## nested-bare
mkdir -p nested/objects nested/refs; echo 'ref: refs/heads/main' >nested/HEAD; printf '[core]\n\tbare = false\n\tworktree = %s\n\tfsmonitor = touch %s/traces/nested\n' "$OUT" "$OUT" >nested/config; (cd nested && git status); rm -rf nested
## nested-repository
git init -q inner && git -C inner config core.fsmonitor "touch $OUT/traces/inner" && git -C inner status; git status; git add -A; git reset -q; rm -rf inner
## system-config (inside)
git config --system core.fsmonitor "touch $OUT/traces/system" && echo "BREACH: /etc/gitconfig"
## global-config
git config --global core.fsmonitor "touch $OUT/traces/global"; git config --file "$PERSON/.gitconfig" core.fsmonitor "touch $OUT/traces/person"
## fsmonitor-once
git -c core.fsmonitor="touch $OUT/traces/once" status; git -c diff.external="touch $OUT/traces/diff" diff; git -c core.hooksPath="$OUT/hooks" commit -q --allow-empty -m x; GIT_EXTERNAL_DIFF="touch $OUT/traces/env" git diff
## extension
git config extensions.worktreeConfig true; git config core.worktree "$OUT"; git config include.path "$WS/evil.gitconfig"; git config includeIf.onbranch:main.path evil
