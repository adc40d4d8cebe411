#!/usr/bin/env bash
# Makes the pictures of the terminal in this folder: real shells in tmux, two panes side by side, captured as text and drawn as SVG.
#
#   docs/captures/make.sh          needs tmux and cargo
#   BANDOG=/path/to/bandog docs/captures/make.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/docs/captures

if [[ -z ${BANDOG:-} ]]; then
    cargo build -q --release -p bandog-cli
    BANDOG=${CARGO_TARGET_DIR:-target}/release/bandog
fi
stage=$(mktemp -d)
mkdir "$stage/bin"
ln -s "$(realpath "$BANDOG")" "$stage/bin/bandog"
scene=0
tm() { tmux -L "bandog-captures-$$-$scene" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null || true; rm -rf "$stage"' EXIT

width=100
# A fresh terminal of so many lines, with a plain shell and a store of its own.
open() {
    tm kill-server 2>/dev/null || true
    scene=$((scene + 1))
    tm new-session -d -x "$width" -y "$1" env -i PATH="$stage/bin:$PATH" HOME="$stage" TERM=screen-256color \
        BANDOG_STORE="sqlite:$stage/$scene.db" PS1='$ ' sh
    tm split-window -d -v -l "$2" env -i PATH="$stage/bin:$PATH" HOME="$stage" TERM=screen-256color \
        BANDOG_STORE="sqlite:$stage/$scene.db" PS1='$ ' sh
    until_shown 0 '$'
    until_shown 1 '$'
}
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

# Both panes below each other, as text and as a picture.
shoot() {
    {
        tm capture-pane -p -t 0 | sed -e 's/[[:space:]]*$//' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
        echo '---'
        tm capture-pane -p -t 1 | sed -e 's/[[:space:]]*$//' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
    } | sed -e "s/$(uname -n)\\//host-a\\//g" -e "s/\"host\":\"$(uname -n)\"/\"host\":\"host-a\"/g" >"$here/$1.txt"
    draw "$here/$1.txt" >"$here/$1.svg"
    echo "== $1"
    cat "$here/$1.txt"
}

draw() {
    awk -v columns="$width" '
        function escape(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text); return text }
        { rows[NR] = $0 }
        END {
            step = 19; high = NR * step + 28; wide = columns * 8.43 + 32
            printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", wide, high, wide, high
            printf "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#16181d\"/>\n"
            printf "<g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#d8dee9\" xml:space=\"preserve\">\n"
            for (row = 1; row <= NR; row++) {
                at = 14 + row * step - 5
                if (rows[row] == "---") { printf "<line x1=\"0\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#3b4252\"/>\n", wide, at - 5, at - 5; continue }
                colour = "#d8dee9"
                if (rows[row] ~ /^\$ /) colour = "#a3be8c"
                if (rows[row] ~ /^bandog: /) colour = "#ebcb8b"
                printf "<text x=\"16\" y=\"%d\" fill=\"%s\">%s</text>\n", at, colour, escape(rows[row])
            }
            print "</g>\n</svg>"
        }' "$1"
}

echo '== waiting: the second one says who holds the lock, since when, its place and how long it has waited'
open 14 7
line 0 "bandog run nightly -- sh -c 'echo \"\$BANDOG_NAME is mine\"; sleep 4'"
until_shown 0 'nightly is mine'
line 1 "bandog run nightly -- sh -c 'echo \"my turn, after \$BANDOG_WAITED_MS ms\"; sleep 1'"
until_shown 1 'waiting for 2.'
shoot waiting

echo '== handed over: the same terminals when the first one is done'
until_shown 1 'my turn, after 3'
shoot handed-over

echo '== busy: an answer, not a wait'
open 18 13
line 0 "bandog run --label 'nightly report' nightly -- sleep 1000"
sleep 1
line 1 'bandog run -n nightly -- ./report.sh; echo "code $?"'
until_shown 1 'code 75'
line 1 'bandog run -w 0.5 --json nightly -- ./report.sh; echo "code $?"'
until_shown 1 '"event":"busy"'
sleep 0.5
shoot busy

echo '== lost: the store is gone, the command is asked to end, the code says so'
open 14 5
cat >"$stage/report.sh" <<'END'
#!/bin/sh
trap 'echo cleaning up; exit' TERM
echo working
while :; do sleep 0.05; done 2>/dev/null
END
chmod +x "$stage/report.sh"
line 0 "cd; clear; bandog run --lease 2s nightly -- ./report.sh; echo \"code \$?\""
until_shown 0 'working'
line 1 'rm "${BANDOG_STORE#sqlite:}"*'
until_shown 0 'code 90'
shoot lost
