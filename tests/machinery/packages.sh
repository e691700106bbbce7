# shellcheck shell=bash
# The programs that ./run, ./test and bench/run need, as tests/packages lists them: which are missing, how they are installed,
# and a PATH that has nothing else.

package_list=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/packages

# Prints `PROGRAM PACKAGE` for each program of a group: declared_programs GROUP.
declared_programs() {
    local program package groups
    while read -r program package groups; do
        [[ $program != '#'* && " $groups " == *" $1 "* ]] && echo "$program $package"
    done <"$package_list"
}

# Prints the packages that bring what a group lacks, one per line: missing_packages GROUP.
missing_packages() {
    local program package
    while read -r program package; do
        is_installed "$program" || echo "$package"
    done < <(declared_programs "$1")
}

# Whether a program is where packages put it. One in a home or in /usr/local is not seen by sandboxes, and not by the tests.
is_installed() {
    case $1 in
        /*) compgen -G "$1" >/dev/null ;;
        *) [ -x "/usr/bin/$1" ] || [ -x "/usr/sbin/$1" ] || [ -x "/bin/$1" ] || [ -x "/sbin/$1" ] ;;
    esac
}

# What a person types to install packages.
install_hint() { echo "sudo apt-get install --no-install-recommends $*"; }

# Installs packages and nothing that is only recommended: install_packages LOG PACKAGE…. None of them may start a service.
install_packages() {
    local log=$1 policy=/usr/sbin/policy-rc.d made_policy='' code=0
    shift
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy && made_policy=1
    fi
    # What apt knows may be too old, or nothing.
    apt_install "$@" >"$log" 2>&1 || { apt-get update -q && apt_install "$@"; } >>"$log" 2>&1 || code=1
    [ -z "$made_policy" ] || rm -f $policy
    return $code
}

apt_install() { DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" </dev/null; }

# Fills a folder with links to the programs of Debian's essential packages, of a group's packages and of Rust, for a PATH that
# has nothing else: link_programs FOLDER GROUP. A program that the list does not name is then missed here as anywhere.
link_programs() {
    local folder=$1 program package tool
    local -A of_packages=()
    command -v dpkg-query >/dev/null || return
    local packages=() names=()
    while read -r program package; do
        packages+=("$package")
        # It may have come with another package: npm with nodejs, dockerd with docker-ce.
        [[ $program == /* ]] || names+=("$program")
    done < <(declared_programs "$2")
    mapfile -t -O ${#packages[@]} packages < <(dpkg-query -W -f '${Package} ${Essential}\n' | sed -n 's/ yes$//p')
    # Where /bin is a link to /usr/bin, packages of old still say /bin. One that is not installed is said on standard error.
    while read -r program; do of_packages[$program]=1; done < <(
        dpkg-query -L "${packages[@]}" 2>/dev/null | sed -nE 's,^(/usr)?/(s?bin/[^/]+)$,/usr/\2,p')
    for program in "${names[@]}"; do of_packages[/usr/bin/$program]=1 of_packages[/usr/sbin/$program]=1; done
    local found=()
    for program in /usr/sbin/* /usr/bin/*; do
        is_of "$program" && found+=("$program")
    done
    ln -sf -t "$folder" -- "${found[@]}" || return
    for tool in cargo rustc rustdoc rustfmt rustup cargo-fmt cargo-clippy clippy-driver; do
        program=$(command -v $tool) && ln -sf -- "$program" "$folder/$tool"
    done
    return 0
}

# Whether a file, or one it leads to, is among $of_packages: `awk` leads to `mawk` by way of /etc/alternatives.
is_of() {
    local file=$1 target
    while [ -z "${of_packages[$file]:-}" ]; do
        [ -L "$file" ] || return 1
        target=$(readlink "$file")
        [[ $target == /* ]] || target=${file%/*}/$target
        case $target in /bin/* | /sbin/*) target=/usr$target ;; esac
        file=$target
    done
}
