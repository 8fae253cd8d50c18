# shellcheck shell=bash
# Makes the project's virtual environment and keeps it up to date. Source it; it defines functions and runs nothing.
#
#   source scripts/lib/venv.sh
#   python="$(aura_ensure_venv "$checkout")"            # runtime dependencies, aura and the client
#   python="$(aura_ensure_venv "$checkout" dev)"        # and the tools that scripts/test needs
#   python="$(aura_ensure_venv "$checkout" dev .venv-x)"
#
# It works from any directory. A second call with nothing changed only compares a stamp and asks no package index.

# shellcheck source=scripts/lib/python.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/python.sh"

readonly AURA_VENV_LOCK_WAIT_S=600 # a first install takes about a minute; a second caller waits for it

# Prints a hash of all that decides what an installed environment holds.
aura_venv_fingerprint() {
    local checkout="$1" extras="$2" file
    {
        printf '%s\n' "$checkout" "$extras"
        for file in setup.cfg pyproject.toml constraints.txt clients/python/{pyproject.toml,setup.cfg,setup.py}; do
            if [[ -f "$checkout/$file" ]]; then
                printf '%s\n' "$file"
                cat -- "$checkout/$file"
            fi
        done
    } | sha256sum | cut -d ' ' -f 1
}

# Installs into the environment at "$2". What pip prints is kept and shown only when it fails.
aura_venv_install() {
    local checkout="$1" venv="$2" extras="$3" log="$2/install.log"
    local pip=("$venv/bin/python" -m pip --disable-pip-version-check --no-input)
    local projects=(--editable "$checkout${extras:+[$extras]}")
    if [[ -f "$checkout/clients/python/pyproject.toml" ]]; then
        projects+=(--editable "$checkout/clients/python")
    fi
    if ! {
        "${pip[@]}" install --constraint "$checkout/constraints.txt" --upgrade pip setuptools &&
            "${pip[@]}" install --constraint "$checkout/constraints.txt" --no-build-isolation "${projects[@]}"
    } >"$log" 2>&1 </dev/null; then
        tail -n 30 -- "$log" >&2
        aura_say "error: installing into ${venv##*/} failed; pip's last lines are above, all of them in $log."
        aura_say "hint: the first run needs a package index that pip can reach. Run the same command again to retry."
        return 1
    fi
}

# Afterwards the environment "$3" (default .venv) in the checkout "$1" holds aura and the client with the extras "$2"
# (none by default; an environment that has "dev" serves callers who want none). Prints the path of its python.
aura_ensure_venv() {
    local checkout="$1" extras="${2:-}" name="${3:-.venv}" base venv wanted made_with lock
    venv="$checkout/$name"
    base="$(aura_find_python)" || return 1
    wanted="$(aura_venv_fingerprint "$checkout" "$extras")"
    exec {lock}>"$checkout/$name.lock" || return 1
    if command -v flock >/dev/null && ! flock --wait "$AURA_VENV_LOCK_WAIT_S" "$lock"; then
        aura_say "error: another process has been preparing $name for $AURA_VENV_LOCK_WAIT_S s."
        return 1
    fi
    # An environment is tied to its path and its Python: one that was copied here or made by another version starts anew.
    made_with="$checkout $(aura_python_version "$base")"
    if [[ "$(cat -- "$venv/aura-made-with" 2>/dev/null)" != "$made_with" ]] || ! aura_python_is_usable "$venv/bin/python"; then
        aura_say "making $name with Python $(aura_python_version "$base")"
        rm -rf -- "$venv"
        "$base" -m venv "$venv" >&2 || return 1
        printf '%s\n' "$made_with" >"$venv/aura-made-with"
    fi
    if [[ "$(cat -- "$venv/aura-installed-${extras:-plain}" 2>/dev/null)" != "$wanted" ]]; then
        aura_say "installing aura${extras:+ with its $extras tools} into $name"
        rm -f -- "$venv"/aura-installed-*
        aura_venv_install "$checkout" "$venv" "$extras" || return 1
        printf '%s\n' "$wanted" >"$venv/aura-installed-${extras:-plain}"
        aura_venv_fingerprint "$checkout" "" >"$venv/aura-installed-plain"
    fi
    exec {lock}>&-
    printf '%s\n' "$venv/bin/python"
}
