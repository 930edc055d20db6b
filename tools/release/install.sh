#!/bin/sh
# Installs Fila's server, command line and console from the files of a release, upgrades them, and removes them.
#
#   sh install.sh --from https://HOST/FOLDER       or a folder of this machine: --from dist
#   sh install.sh --remove
#   --prefix FOLDER                                /opt/fila, if nothing else is said
#
# It takes Python 3.11 or newer with venv (PYTHON=...), and curl for an address. Libraries of other people come from the
# package index that pip uses, each with its hash. The data of a server is never touched, and no running server either:
# PREFIX/bin points to the new version when all of it is there, and the version before it stays.
#
# All of it is one block: a script that was cut off on its way is a syntax error, and does nothing.
{
set -eu

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

# Only what was begun here is taken away again.
undo() {
    [ -z "$work" ] || rm -rf "$work"
    [ -z "$unfinished" ] || rm -rf "$unfinished"
    rmdir "$prefix/versions" "$prefix" 2>/dev/null || true
}

fetch() { # NAME: into $work
    case $from in
        https://* | http://127.0.0.1[:/]* | http://localhost[:/]*)
            curl --fail --silent --show-error --location --proto "=${from%%:*}" -o "$work/$1" "$from/$1" ||
                fail "$from/$1 cannot be fetched; nothing was installed" ;;
        http://*) fail "$from is not encrypted, so anyone on the way could change it: use https://" ;;
        *) cp "$from/$1" "$work/$1" 2>/dev/null || fail "$from/$1 is not there; nothing was installed" ;;
    esac
}

listed() { # PATTERN: the names in SHA256SUMS that fit it, one a line
    sed 's/^[0-9a-f]* [ *]//' "$work/SHA256SUMS" | grep "^$1\$" || true
}

# The wheel for this Python, this processor and this C library.
choose_wheel() {
    python_tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])') ||
        fail "$python does not run; name one with PYTHON=..."
    machine=$(uname -m)
    server=$(listed "fila_server-$word-$python_tag-$python_tag-${word}_$machine\.whl" | head -n 1)
    [ -n "$server" ] || fail "this release has no wheel for $python_tag on $machine, only:" \
        $(listed "fila_server-$word-.*\.whl") "- name another Python with PYTHON=..., or build from source (docs/install.md)"
    libc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/^glibc //') || libc=
    [ -n "$libc" ] || fail "this system has no glibc (musl?): build from source (docs/install.md)"
    oldest=$(echo "$server" | sed 's/.*-manylinux_\([0-9]*\)_\([0-9]*\)_.*/\1.\2/')
    [ "$(printf '%s\n%s\n' "$oldest" "$libc" | sort -V | head -n 1)" = "$oldest" ] ||
        fail "this release needs glibc $oldest or newer, and this system has $libc: build from source (docs/install.md)"
    version=$(echo "$server" | sed 's/^fila_server-\([^-]*\)-.*/\1/')
}

install() {
    python=${PYTHON:-python3}
    command -v "$python" >/dev/null || fail "there is no $python: install Python 3.11 or newer, or name one with PYTHON=..."
    [ ! -e "$prefix/bin" ] || [ -L "$prefix/bin" ] || fail "$prefix/bin was not made by this script: choose another --prefix"
    work=$(mktemp -d)
    fetch SHA256SUMS
    choose_wheel
    new=$prefix/versions/$version
    [ ! -e "$new/complete" ] || fail "Fila $version is in $new already"
    wheels="$server $(listed "fila_mq-$version-py3-none-any\.whl") $(listed "fila_cli-$version-py3-none-any\.whl")"
    for name in server.txt $wheels; do
        fetch "$name"
        grep " [ *]*$name\$" "$work/SHA256SUMS" >> "$work/wanted" || fail "$name is not in SHA256SUMS; nothing was installed"
    done
    (cd "$work" && sha256sum --check --strict --quiet wanted >"$work/why" 2>&1) ||
        fail "a file is not what SHA256SUMS says; nothing was installed: $(tr '\n' ' ' < "$work/why")"

    mkdir -p "$prefix/versions" || fail "$prefix cannot be written to: run this as root, or choose another --prefix"
    rm -rf "$new" # what a run that was killed left there
    unfinished=$new
    "$python" -m venv "$new" >"$work/why" 2>&1 ||
        fail "$python cannot make an environment; nothing was installed: $(tail -n 3 "$work/why" | tr '\n' ' ')"
    "$new/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$work/server.txt" ||
        fail "pip could not install the libraries; nothing was installed"
    "$new/bin/pip" install --quiet --disable-pip-version-check --no-index --find-links "$work" "fila-server==$version" ||
        fail "pip could not install Fila; nothing was installed"
    # Loads each library that the server needs, and reads nobody's settings.
    env -i "$new/bin/fila-server" --config /dev/null config check >/dev/null 2>"$work/why" ||
        fail "the server does not run here; nothing was installed: $(tail -n 1 "$work/why")"
    said=$("$new/bin/fila-server" --version)

    touch "$new/complete"
    before=$(readlink "$prefix/bin" 2>/dev/null | sed 's|versions/\(.*\)/bin|\1|') || before=
    ln -s "versions/$version/bin" "$prefix/bin.new"
    mv -T "$prefix/bin.new" "$prefix/bin"
    unfinished=
    for old in "$prefix"/versions/*; do
        case ${old##*/} in "$version" | "$before") ;; *) rm -rf "$old" ;; esac
    done
    echo "$said is in $prefix/bin"
    [ -z "$before" ] || echo "restart the server to run it; $before stays until the next upgrade"
}

remove() {
    [ -L "$prefix/bin" ] || fail "nothing in $prefix was made by this script"
    rm -rf "$prefix/bin" "$prefix/versions"
    rmdir "$prefix" 2>/dev/null || true
    echo "Fila is gone from $prefix; the data of its servers is where it was"
}

word='[A-Za-z0-9._]*' # what stands between two dashes of a wheel's name
from= prefix=/opt/fila action= work= unfinished=
while [ $# -gt 0 ]; do
    case $1 in
        --from | --prefix) [ $# -gt 1 ] || fail "$1 needs a folder or an address after it" ;;
    esac
    case $1 in
        --from) action=install from=$2; shift ;;
        --prefix) prefix=$2; shift ;;
        --remove) action=remove ;;
        *) fail "there is no $1; write it like: sh install.sh --from FOLDER_OR_ADDRESS [--prefix FOLDER], or --remove" ;;
    esac
    shift
done
case $prefix in /*) ;; *) fail "--prefix is a whole path: it begins with /" ;; esac
[ -n "$action" ] || fail "say where the release is: sh install.sh --from FOLDER_OR_ADDRESS"
trap undo EXIT
trap 'exit 130' INT TERM HUP
"$action"
exit
}
