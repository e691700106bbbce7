# shellcheck shell=bash
# The sections of ./test that are more than one command. Each is a function; its exit code and its output tell the
# result. A function of kind `steps` prints `ok WHAT` or `not ok WHAT` for each thing it checked.

ok() { printf 'ok %s\n' "$*"; }
not_ok() { printf 'not ok %s\n' "$*"; }

# Runs a command and reports it as one step.
step() {
    local what=$1
    shift
    if "$@"; then ok "$what"; else not_ok "$what"; fi
}

# --- what the tests need -----------------------------------------------------------------------------------------

# Installs what is missing. Says what it cannot do; never goes on as if the tests could then pass.
prepare() {
    local missing=() packages=()
    command -v cargo >/dev/null || missing+=("cargo (install Rust from https://rustup.rs)")
    command -v python3 >/dev/null || packages+=(python3)
    python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
    command -v git >/dev/null || packages+=(git)
    command -v unshare >/dev/null || packages+=(util-linux)
    command -v mkfs.ext4 >/dev/null || packages+=(e2fsprogs)
    command -v newuidmap >/dev/null || packages+=(uidmap)
    local program
    for program in g++ gdb strace; do command -v $program >/dev/null || packages+=($program); done
    command -v node >/dev/null || packages+=(nodejs)
    command -v npm >/dev/null || packages+=(npm)
    # Sandboxes have this host's /usr, so what tests run inside must be there and not somewhere in a home.
    [ -x /usr/bin/pip3 ] || packages+=(python3-pip)
    command -v ip >/dev/null || packages+=(iproute2)
    command -v ping >/dev/null || packages+=(iputils-ping)
    command -v curl >/dev/null || packages+=(curl)
    command -v redis-server >/dev/null || packages+=(redis-server)
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || packages+=(postgresql)
    if [ ${#packages[@]} -gt 0 ]; then
        install_packages "${packages[@]}" || missing+=("packages ${packages[*]} (sudo apt-get install ${packages[*]})")
    fi
    for component in fmt clippy; do
        cargo "$component" --version >/dev/null 2>&1 && continue
        rustup component add "${component/fmt/rustfmt}" >&2 || missing+=("cargo $component")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        printf 'missing: %s\n' "${missing[@]}"
        return 1
    fi
    local free
    free=$(df --output=avail -BG "$CARGO_TARGET_DIR" | tr -dc '0-9')
    [ "${free:-99}" -ge 12 ] || echo "only $free GiB of disk are free: a run from nothing takes about 12"
    [ "$(id -u)" -eq 0 ] || echo "not root: the sections that need root will be counted as failed"
    traces | sort >"${logs:?}/leaks.before"
    return 0
}

install_packages() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -qy "$@" >"$logs/apt.log" 2>&1 && return
    apt-get update -q >>"$logs/apt.log" 2>&1
    apt-get install -qy "$@" >>"$logs/apt.log" 2>&1
}

must_be_root() {
    [ "$(id -u)" -eq 0 ] && return
    not_ok "$1: needs root"
    return 1
}

# --- sections ----------------------------------------------------------------------------------------------------

doc() { RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --no-deps --document-private-items; }

# All but what needs the real kernel, which has a section of its own.
workspace_tests() {
    local code=0
    cargo test --workspace --exclude sandyard-engine --no-fail-fast || code=1
    cargo test --package sandyard-engine --lib --bins --no-fail-fast || code=1
    return $code
}

privileged_tests() {
    must_be_root "privileged engine tests" || return
    cargo test --package sandyard-engine --test it --no-fail-fast
}

# The official SDK against the agent: sdk NAME REQUIREMENT. Its virtual environment is kept from run to run.
sdk() {
    local venv=$CARGO_TARGET_DIR/venvs/$1 requirement=$2
    [ -x "$venv/bin/pip" ] || python3 -m venv --clear "$venv" || return
    # Without a network the newest version known here still counts; the version is the first line of the log.
    "$venv/bin/pip" install --quiet --upgrade --disable-pip-version-check \
        "$requirement" --requirement tests/sdk/requirements.txt ||
        "$venv/bin/python" -c 'import e2b, pytest, pytest_timeout' || return
    "$venv/bin/pip" list --disable-pip-version-check 2>/dev/null | grep '^e2b '
    cargo build --quiet --package sandyard-agent --bin sandyard-agent || return
    SANDYARD_AGENT=$(ls "$CARGO_TARGET_DIR"/*/debug/sandyard-agent) \
        "$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=5 tests/sdk
}

# Tests against a running server: server_tests DIRECTORY [PYTEST OPTION…]. All of them share a virtual environment.
server_tests() {
    must_be_root "tests in tests/$1" || return
    local directory=$1 venv=$CARGO_TARGET_DIR/venvs/server
    shift
    python_venv "$venv" tests/harness/requirements.txt 'import httpx, pytest, pytest_timeout, trustme, websockets' || return
    with_program "$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=5 "$@" "tests/$directory"
}

# The official Python SDK against a running server: e2b_tests NAME REQUIREMENT, in plain HTTP.
e2b_tests() {
    must_be_root "tests of E2B's SDK" || return
    e2b_venv "$1" "$2" || return
    with_program "$E2B_PYTHON" -m pytest -q -p no:cacheprovider --durations=5 tests/e2b
}

# The same with a domain and TLS; names below the domain are known to the tests alone.
e2b_domain_tests() {
    must_be_root "tests of E2B's SDK" || return
    e2b_venv "$1" "$2" || return
    with_program "$E2B_PYTHON" tests/harness/resolver.py sbx.test -- \
        "$E2B_PYTHON" -m pytest -q -p no:cacheprovider --durations=5 --domain sbx.test tests/e2b
}

# Fifty sandboxes at once for two minutes.
e2b_load_tests() {
    must_be_root "load tests of E2B's SDK" || return
    e2b_venv newest e2b || return
    with_program "$E2B_PYTHON" -m pytest -q -p no:cacheprovider tests/e2b_load
}

# The official JavaScript SDK, in both modes.
e2b_js_tests() {
    must_be_root "tests of E2B's SDK" || return
    e2b_venv newest e2b && e2b_node_modules || return
    with_program "$E2B_PYTHON" tests/e2b_js/run.py "$E2B_NODE_MODULES"
}

# The interpreter's server by itself.
interpreter_tests() {
    local venv=$CARGO_TARGET_DIR/venvs/interpreter
    python_venv "$venv" tests/interpreter/requirements.txt 'import ipykernel, pytest, pytest_timeout' || return
    "$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=5 tests/interpreter
}

# The interpreter's SDKs against its template, which is built when what it is made from has changed.
e2b_interpreter_tests() {
    must_be_root "tests of the code interpreter" || return
    local venv=$CARGO_TARGET_DIR/venvs/e2b-interpreter template=$CARGO_TARGET_DIR/templates/code-interpreter-v1.tar.gz
    python_venv "$venv" tests/e2b_interpreter/requirements.txt 'import e2b_code_interpreter, pytest, pytest_timeout' || return
    e2b_node_modules || return
    mkdir -p "${template%/*}" && templates/code-interpreter/build -o "$template" || return
    TEMPLATE=$template NODE_MODULES=$E2B_NODE_MODULES with_program \
        "$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=5 tests/e2b_interpreter
}

# Makes a virtual environment with one version of the SDK, kept from run to run; $E2B_PYTHON is its Python.
e2b_venv() {
    local venv=$CARGO_TARGET_DIR/venvs/e2b-$1
    E2B_PYTHON=$venv/bin/python
    [ -x "$venv/bin/pip" ] || python3 -m venv --clear "$venv" || return
    # Without a network the newest version known here still counts; the version is in the log.
    "$venv/bin/pip" install --quiet --upgrade --disable-pip-version-check \
        "$2" --requirement tests/e2b/requirements.txt || "$E2B_PYTHON" -c 'import e2b, httpx, pytest, pytest_timeout' || return
    "$venv/bin/pip" list --disable-pip-version-check 2>/dev/null | grep '^e2b '
}

# Fetches the newest JavaScript SDKs; $E2B_NODE_MODULES is where they are.
e2b_node_modules() {
    local place=$CARGO_TARGET_DIR/node/e2b
    E2B_NODE_MODULES=$place/node_modules
    mkdir -p "$place"
    npm install --silent --no-audit --no-fund --prefix "$place" e2b@latest @e2b/code-interpreter@latest ||
        [ -d "$E2B_NODE_MODULES/e2b" ] || return
    grep '"version"' "$E2B_NODE_MODULES"/e2b/package.json "$E2B_NODE_MODULES"/@e2b/code-interpreter/package.json
}

# Generated requests against the published OpenAPI document.
api_fuzz() {
    must_be_root "fuzzing the API" || return
    local venv=$CARGO_TARGET_DIR/venvs/api-fuzz
    python_venv "$venv" tests/fuzz_api/requirements.txt 'import httpx, pytest, pytest_timeout, schemathesis' || return
    "$venv/bin/pip" list --disable-pip-version-check 2>/dev/null | grep '^schemathesis '
    with_program "$venv/bin/python" -m pytest -q -p no:cacheprovider tests/fuzz_api
}

# Makes a virtual environment, kept from run to run: python_venv PLACE REQUIREMENTS IMPORTS. Without a network what is there
# still counts.
python_venv() {
    [ -x "$1/bin/pip" ] || python3 -m venv --clear "$1" || return
    "$1/bin/pip" install --quiet --upgrade --disable-pip-version-check --requirement "$2" || "$1/bin/python" -c "$3"
}

# Runs a command with $SANDYARD naming the program just built.
with_program() {
    cargo build --quiet --package sandyard || return
    SANDYARD=$(ls "$CARGO_TARGET_DIR"/*/debug/sandyard) "$@"
}

# What the README promises: a fresh clone, one command, 42; as root and as an ordinary user.
newcomer() {
    must_be_root newcomer || return
    # One fixed place, so that Cargo recognises the crates of the last run instead of building them anew.
    local place=/var/tmp/sandyard-newcomer guest=sandyard-guest
    # shellcheck disable=SC2064 # The names are known now and local variables are gone when the trap runs.
    trap "newcomer_leave $place $guest" EXIT
    newcomer_leave $place $guest
    mkdir -m 755 $place && useradd --create-home --home-dir $place/home --shell /bin/bash $guest || return
    # Git refuses a checkout owned by somebody else unless told; the newcomer's own clone would be his.
    printf '[safe]\n\tdirectory = *\n' >$place/gitconfig
    export GIT_CONFIG_GLOBAL=$place/gitconfig

    [ -z "$(git status --porcelain)" ] || echo "note: uncommitted changes are not part of the clone"
    step "root clones" git clone --quiet "$PWD" $place/checkout
    step "root: 42" prints_42 $place/checkout/run

    # The guest cannot use root's toolchain, so he is given the program that was just built, as ./run would find it.
    local program
    program=$(cd "$CARGO_TARGET_DIR" && ls ./*/release/sandyard)
    (cd "$CARGO_TARGET_DIR" && mkdir $place/target && cp --parents "$program" sandyard-run.stamp $place/target)
    step "guest clones" as_guest $guest git clone --quiet $place/checkout $place/home/sandyard
    step "guest, own clone: 42" prints_42 as_guest $guest $place/home/sandyard/run
    step "guest, root's clone: 42" prints_42 as_guest $guest $place/checkout/run
}

prints_42() {
    local printed
    printed=$("$@" run -- python3 -c 'print(6*7)')
    [ "$printed" = 42 ] || { printf 'standard output was: %q\n' "$printed"; return 1; }
}

as_guest() {
    local guest=$1 place=/var/tmp/sandyard-newcomer
    shift
    (cd $place/home && exec runuser -u "$guest" -- env -i HOME=$place/home USER="$guest" PATH=/usr/local/bin:/usr/bin:/bin \
        CARGO_TARGET_DIR=$place/target GIT_CONFIG_GLOBAL="$GIT_CONFIG_GLOBAL" "$@")
}

# Ends all processes of a user: asked first, so that a launcher can tidy up.
end_all_of() {
    local signal
    for signal in TERM KILL; do
        pkill -$signal -u "$1"
        timeout 10 bash -c "while pgrep -u $1 >/dev/null; do sleep 0.1; done" && return
    done
}

# Takes the guest, his processes and the clones away.
newcomer_leave() {
    if id "$2" >/dev/null 2>&1; then
        end_all_of "$2"
        userdel "$2"
    fi
    rm -rf "$1"
}

# The program tries to break out of its own sandbox, on this host; kind `grade`.
escape() {
    must_be_root escape || return
    ./run selftest --escape
}

# The same as an ordinary user with nothing but what every user has: fewer limits, but no way out either.
escape_user() {
    must_be_root "escape as an ordinary user" || return
    local place=/var/tmp/sandyard-escape uid=54399 program
    rm -rf $place
    cargo build --quiet --release --package sandyard || return
    program=$(ls "$CARGO_TARGET_DIR"/*/release/sandyard)
    mkdir -m 755 $place && install -o $uid -g $uid -m 755 "$program" $place/sandyard && install -d -o $uid -g $uid $place/data || return
    local code=0
    setpriv --reuid=$uid --regid=$uid --clear-groups -- env -i HOME=$place PATH=/usr/bin:/bin \
        $place/sandyard --data-dir $place/data selftest --escape || code=1
    end_all_of $uid
    rm -rf $place
    return $code
}

# Every fuzz target for a few seconds; each is a step.
fuzz_targets() {
    fuzz/run 10 2>&1 | sed -e 's/^fuzz: \(.*\) ok$/ok \1/' -e 's/^fuzz: \(.* FAILED\)/not ok \1/'
    return "${PIPESTATUS[0]}"
}

# --- nothing may be left behind ----------------------------------------------------------------------------------

# Everything on this host that bears our name: mounts, cgroups, processes, loop devices, folders in memory, network namespaces.
traces() {
    awk '/sandyard/ && !/sandyard-newcomer/ { print "mount", $5 }' /proc/self/mountinfo
    find /sys/fs/cgroup -type d -name '*sandyard*' -printf 'cgroup %p\n' 2>/dev/null
    local exe program
    for exe in /proc/[0-9]*/exe; do
        program=$(readlink "$exe") || continue
        case ${program% (deleted)} in
            */sandyard | */sandyard-agent | */sandyard-launcher | */sandyard-probe)
                echo "process ${exe//[^0-9]/}: $(tr '\0' ' ' <"${exe%exe}cmdline" | cut -c 1-150)" ;;
        esac
    done
    grep -ls sandyard /sys/block/loop*/loop/backing_file | sed 's/^/loop device /'
    find /run /dev/shm -maxdepth 1 -name 'sandyard-*' -printf 'folder %p\n' 2>/dev/null
    find /run/netns -name '*sandyard*' -printf 'network namespace %p\n' 2>/dev/null
    ! id -u sandyard-guest >/dev/null 2>&1 || echo "user sandyard-guest"
}

leaks() {
    local left kind deadline=$((SECONDS + 90))
    # A launcher that was started for a command goes by itself after a minute with nothing to do.
    while left=$(traces | sort | comm -23 - "$logs/leaks.before"); [ -n "$left" ] && [ $SECONDS -lt $deadline ]; do
        sleep 1
    done
    [ -z "$left" ] || printf '%s\n' "$left"
    for kind in mount cgroup process 'loop device' folder 'network namespace' user; do
        if grep -q "^$kind " <<<"$left"; then not_ok "no $kind left"; else ok "no $kind left"; fi
    done
}
