#!/usr/bin/env bash
# Makes the pictures of the terminal in this folder: real shells in tmux on a machine named host-a, captured as text and drawn as SVG.
#
#   docs/captures/make.sh          needs tmux, redis-server and cargo, and a kernel that lets this user have a host name of its own
#   BANDOG=/path/to/bandog docs/captures/make.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/docs/captures
if [[ $(uname -n) != host-a ]]; then
    exec unshare --map-root-user --uts sh -c 'hostname host-a && exec "$@"' - "$here/make.sh" "$@"
fi

cargo build -q --release -p bandog-cli --example draw
if [[ -z ${BANDOG:-} ]]; then
    cargo build -q --release -p bandog-cli
    BANDOG=${CARGO_TARGET_DIR:-target}/release/bandog
fi
draw=${CARGO_TARGET_DIR:-target}/release/examples/draw
stage=/tmp/host-a
mkdir "$stage" "$stage/bin"
ln -s "$(realpath "$BANDOG")" "$stage/bin/bandog"
scene=0
tm() { tmux -u -L "bandog-captures-$$-$scene" -f /dev/null "$@"; }
end() {
    tm kill-server 2>/dev/null || true
    local server
    if server=$(cat "$stage/redis.pid" 2>/dev/null); then kill "$server"; fi
    kill $(jobs -p) 2>/dev/null || true
    while kill -0 "${server:-none}" 2>/dev/null; do sleep 0.05; done
    rm -rf "$stage"
}
trap end EXIT

width=100
# A fresh terminal of so many lines, with a plain shell and a store of its own; a second number makes a second shell below.
open() {
    tm kill-server 2>/dev/null || true
    scene=$((scene + 1))
    store=sqlite:$stage/$scene.db
    tm new-session -d -x "$width" -y "$1" env -i PATH="$stage/bin:$PATH" HOME="$stage" TERM=screen-256color LANG=C.UTF-8 USER=ann \
        BANDOG_STORE="$store" PS1='$ ' sh
    until_shown 0 '$'
    [[ -n ${2:-} ]] || return 0
    tm split-window -d -v -l "$2" env -i PATH="$stage/bin:$PATH" HOME="$stage" TERM=screen-256color LANG=C.UTF-8 USER=ann \
        BANDOG_STORE="$store" PS1='$ ' sh
    until_shown 1 '$'
}
clear() { tm send-keys -t 0 clear Enter && sleep 0.2; }
line() { tm send-keys -t "$1" "$2" Enter; }
# Waits until a pane shows a text.
until_shown() {
    local tries
    for ((tries = 0; tries < 600; tries++)); do
        if tm capture-pane -p -t "$1" | grep -qF -- "$2"; then return; fi
        sleep 0.05
    done
    echo "never shown: $2" >&2
    tm capture-pane -p -t "$1" >&2
    exit 1
}
# A process that holds or waits for a lock of this scene.
run() { env -i PATH="$stage/bin:$PATH" HOME="$stage" BANDOG_STORE="$store" bandog run -q "$@" 2>/dev/null & }
# Waits until so many hold and so many wait for a lock.
until_held() {
    local seen
    until seen=$(env -i HOME="$stage" BANDOG_STORE="$store" "$stage/bin/bandog" show --json "$1" 2>/dev/null) &&
        [[ $(grep -o '"held_ms"' <<<"$seen" | wc -l) == "$2" && $(grep -o '"waited_ms"' <<<"$seen" | wc -l) == "$3" ]]; do sleep 0.05; done
}

# What the panes show, one below the other, without the empty rows at their ends; -e for the colours.
shown() {
    local pane rows
    for pane in $(tm list-panes -F '#{pane_index}'); do
        [[ $pane == 0 ]] || printf '%s---\n' "${1:+$'\033[0m'}"
        rows=$(tm capture-pane -p -t "$pane" | sed -e :a -e '/^[[:space:]]*$/{$d;N;ba' -e '}' | wc -l)
        tm capture-pane ${1:+"$1"} -p -t "$pane" | head -n "$rows"
    done
}
# As text and as a picture.
shoot() {
    shown | sed -e 's/[[:space:]]*$//' >"$here/$1.txt"
    shown -e | "$draw" "$width" "$(wc -l <"$here/$1.txt")" >"$here/$1.svg"
    echo "== $1"
    cat "$here/$1.txt"
}

echo '== waiting: the second one says who holds the lock, since when, its place and how long it has waited'
open 14 7
line 0 "bandog run nightly -- sh -c 'echo \"\$BANDOG_NAME is mine\"; sleep 4'"
until_shown 0 'nightly is mine'
line 1 "bandog run nightly -- sh -c 'echo \"my turn, after \$BANDOG_WAITED_MS ms\"; sleep 1'"
until_shown 1 'waited 2.'
shoot waiting

echo '== handed over: the same terminals when the first one is done'
until_shown 1 'my turn, after 3'
shoot handed-over

echo '== busy: an answer, not a wait'
open 24 17
line 0 "bandog run --label 'nightly report' nightly -- sleep 1000"
sleep 1
line 1 'bandog run -n nightly -- ./report.sh; echo "code $?"'
until_shown 1 'code 75'
shoot busy

echo '== lost: the store is gone, the command is asked to end, the code says so'
open 20 5
cat >"$stage/report.sh" <<'SCRIPT'
#!/bin/sh
trap 'echo cleaning up; exit' TERM
echo working
while :; do sleep 0.05; done 2>/dev/null
SCRIPT
chmod +x "$stage/report.sh"
line 0 "cd; clear; bandog run --lease 2s nightly -- ./report.sh; echo \"code \$?\""
until_shown 0 'working'
line 1 'rm "${BANDOG_STORE#sqlite:}"*'
until_shown 0 'code 90'
shoot lost

echo '== ls and show: who holds what'
open 30
run --label report.sh nightly-report -- sleep 1000
until_held nightly-report 1 0
run --label report.sh nightly-report -- sleep 1000
until_held nightly-report 1 1
run --label deploy.sh --fair nightly-report -- sleep 1000
run --label train.py --of 4 --permits 2 gpu -- sleep 1000
run --label train.py --of 4 gpu -- sleep 1000
run --label web --shared config -- sleep 1000
run --label web --shared config -- sleep 1000
run --label pg_dump backup:orders -- sleep 1000
until_held nightly-report 1 2
until_held gpu 2 0
until_held config 2 0
until_held backup:orders 1 0
line 0 'bandog ls'
until_shown 0 'WAITERS'
shoot ls
clear
line 0 'bandog show nightly-report'
until_shown 0 'last granted'
shoot show

echo '== break: what, why, and a yes'
clear
line 0 "bandog break nightly-report --reason 'stuck since midnight'"
until_shown 0 '[y/N]'
line 0 'y'
until_shown 0 'given up after'
line 0 'bandog show nightly-report'
until_shown 0 'asked to give up  '
shoot break

echo '== top: the whole screen'
width=80
open 24
run --label report.sh nightly-report -- sleep 1000
until_held nightly-report 1 0
run --label deploy.sh nightly-report -- sleep 1000
run --label train.py --of 4 --permits 2 gpu -- sleep 1000
run --label pg_dump backup:orders -- sleep 1000
for length in 0.3 0.7 0.5; do
    (while [[ -d $stage ]]; do run --label import.py import -- sleep $length && wait $!; done) &
done
until_held nightly-report 1 1
line 0 'bandog top --every 0.2 --alert-hold 8s'
until_shown 0 'held for'
sleep 2
shoot top
tm send-keys -t 0 q
width=100

echo '== doctor and bench, on a server that was set up in a hurry'
redis-server --port 0 --unixsocket "$stage/redis.sock" --save '' --dir "$stage" --daemonize yes --pidfile "$stage/redis.pid" \
    --maxmemory 100mb --maxmemory-policy allkeys-lru --timeout 20 >/dev/null
open 44
line 0 "export BANDOG_STORE=redis+unix://$stage/redis.sock"
clear
line 0 'bandog doctor'
until_shown 0 ' wrong'
shoot doctor
clear
line 0 'bandog bench --yes --for 2s'
until_shown 0 'figures of one machine'
shoot bench
