#!/bin/sh
# The life of a lock, played with real processes on a file of its own: contend, hand over, kill the holder, lose the lease.
#
#   ./examples/story.sh            builds bandog and plays
#   BANDOG=/path/to/bandog ./examples/story.sh
#
# Ends with "the end" and code 0 if everything went as told.
set -eu
cd "$(dirname "$0")/.."

if [ -z "${BANDOG:-}" ]; then
    cargo build -q -p bandog-cli
    BANDOG=${CARGO_TARGET_DIR:-target}/debug/bandog
fi
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
export BANDOG_STORE="sqlite:$stage/locks.db"

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'the story went wrong: %s\n' "$*" >&2; exit 1; }
# Waits until a file is there: a handshake, with a limit.
await() {
    tries=0
    until [ -e "$1" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 1000 ] || fail "$1 did not appear"
        sleep 0.01
    done
}

# The same for a word in a file.
await_text() {
    await "$1"
    tries=0
    until grep -q "$2" "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 1000 ] || fail "$1 never said $2"
        sleep 0.01
    done
}

say 'One holds the lock, another is told who.'
"$BANDOG" run report --label alice -- sh -c "echo alice works; touch $stage/alice; while [ ! -e $stage/enough ]; do sleep 0.01; done; echo alice is done" &
alice=$!
await "$stage/alice"
code=0
"$BANDOG" run -n report -- echo 'never printed' || code=$?
[ "$code" = 75 ] || fail "busy is 75, not $code"

say 'One waits; the lock is handed over the moment it is released.'
"$BANDOG" run report --label bob -- sh -c 'echo "bob works, after $BANDOG_WAITED_MS ms, under token $BANDOG_TOKEN"; [ "$BANDOG_WAITED_MS" -gt 0 ]' 2>"$stage/bob" &
bob=$!
await_text "$stage/bob" waited
cat "$stage/bob"
touch "$stage/enough"
wait "$alice" || fail 'alice'
wait "$bob" || fail 'bob'

say 'The holder is killed with -9: its child dies with it, and the next one comes when the lease ends.'
"$BANDOG" run report --lease 2s --label carol -- sh -c "echo \$\$ > $stage/carol.tmp; mv $stage/carol.tmp $stage/carol; exec sleep 1000" &
carol=$!
await "$stage/carol"
kill -9 "$carol"
wait "$carol" 2>/dev/null || true
"$BANDOG" run report --label dave -- echo 'dave works'
if kill -0 "$(cat "$stage/carol")" 2>/dev/null; then fail "carol's child is alive while dave works"; fi

say 'The lease is lost (somebody removed the store): the child is stopped, and the code is 90.'
"$BANDOG" run report --lease 1s --label eve -- sh -c "touch $stage/eve; trap 'echo eve cleans up; exit 0' TERM; while :; do sleep 0.05; done" &
eve=$!
await "$stage/eve"
rm -rf "$stage"/locks.db*
code=0
wait "$eve" || code=$?
[ "$code" = 90 ] || fail "lost is 90, not $code"

say 'the end'
