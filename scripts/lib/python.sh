# shellcheck shell=bash
# Finds a Python that can run aura. Source it; it defines functions and runs nothing.

AURA_PYTHON_MINIMUM="3.11"

# Prints one line on standard error.
aura_say() { printf '%s\n' "$*" >&2; }

# True when "$1" runs and is new enough and has venv. A pyenv shim may exist and still not run, so it is really started.
aura_python_is_usable() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Prints "3.9.2", or nothing when "$1" does not run.
aura_python_version() {
    "$1" -c 'import sys; print(".".join(map(str, sys.version_info[:3])))' 2>/dev/null
}

# Prints the interpreter to use. AURA_PYTHON names it when set; otherwise the first usable one on PATH.
# Returns 1 after one clear message when there is none.
aura_find_python() {
    local candidate version seen=""
    if [[ -n "${AURA_PYTHON:-}" ]]; then
        if aura_python_is_usable "$AURA_PYTHON"; then
            printf '%s\n' "$AURA_PYTHON"
            return 0
        fi
        version="$(aura_python_version "$AURA_PYTHON" || true)"
        aura_say "error: AURA_PYTHON=$AURA_PYTHON cannot be used (${version:-it does not run})."
        aura_say "hint: aura needs Python $AURA_PYTHON_MINIMUM or newer with its venv module."
        return 1
    fi
    for candidate in python3.13 python3.12 python3.11 python3; do
        if aura_python_is_usable "$candidate"; then
            command -v "$candidate"
            return 0
        fi
        version="$(aura_python_version "$candidate" || true)"
        if [[ -n "$version" ]]; then
            seen="$seen $candidate is $version;"
        fi
    done
    aura_say "error: aura needs Python $AURA_PYTHON_MINIMUM or newer with its venv module. Found:${seen:- no python3 on PATH;}"
    aura_say "hint: install one (Debian: apt-get install python3 python3-venv), or name one with AURA_PYTHON=/path/to/python."
    return 1
}
