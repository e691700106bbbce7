//! What is run inside, by any POSIX shell. Nothing is put into the text: everything it needs are arguments.

use sandyard_agent_client::wire::process::ProcessConfig;

/// Looks: `PROGRAM SIZE PORT REPLACE WORKSPACE`. Makes our folder and the workspace, removes what nobody needs any more, and tells what
/// there is, a line each. With `REPLACE` it ends tool servers of ours that are there.
///
/// What is removed is older than any upload takes: what one left that broke off, and programs of other versions that no process
/// runs. Both an agent and a tool server may run from such a file; `exe` alone does not tell, as it is hidden where a process
/// lets nobody trace it.
const LOOK: &str = r#"
program=$1 size=$2 port=$3 replace=$4 workspace=$5 running= taken=
home=${HOME:-}
[ -d "$home" ] || home=$(cd ~ 2>/dev/null && pwd)
folder=$home/.sandyard
mkdir -p -m 700 "$folder" 2>/dev/null && chmod 700 "$folder" 2>/dev/null && [ -w "$folder" ] || folder=
echo "home=$home"
echo "folder=$folder"
echo "machine=$(uname -m)"
[ -n "$folder" ] || exit 0

is_old() { [ -n "$(find "$1" -prune -type f -mmin +10 2>/dev/null)" ]; }
is_ours() {
    case "$1" in ''|*[!0-9]*) return 1 ;; esac
    case "$(tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline")" in
    *"$folder/agent-"*' tool-server --settings '*) return 0 ;;
    esac
    return 1
}

pids=$(cat "$folder"/tools.pid "$folder"/tools-*.pid 2>/dev/null)
if [ "$replace" = yes ]; then
    for place in /proc/[0-9]*; do pids="$pids ${place#/proc/}"; done
fi
for pid in $pids; do
    is_ours "$pid" || continue
    if [ "$replace" = yes ]; then
        kill "$pid" 2>/dev/null
        turns=0
        while is_ours "$pid" && [ $turns -lt 50 ]; do turns=$((turns + 1)); sleep 0.1; done
        # Its words go before its ports do.
        [ ! -d "/proc/$pid" ] || sleep 0.3
        is_ours "$pid" || continue
    fi
    running=$pid
done
[ -z "$running" ] || echo "running=$running"

all=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' '; ls -l /proc/[0-9]*/exe 2>/dev/null)
for file in "$folder"/agent-* "$folder"/tools-*; do
    [ -n "$all" ] && [ "$file" != "$folder/$program" ] && is_old "$file" || continue
    case "$file" in *.pid) ! is_ours "$(cat "$file")" || continue ;; esac
    case "$all" in *"${file##*/}"*) ;; *) rm -f "$file" ;; esac
done

if [ -f "$folder/$program" ] && [ "$(wc -c <"$folder/$program" | tr -d ' ')" = "$size" ]; then echo has_program=yes; fi
if command -v gzip >/dev/null 2>&1; then echo has_gzip=yes; fi
set -- $(df -Pk "$folder" 2>/dev/null | tail -n 1)
[ $# -lt 4 ] || echo "free_kib=$4"

hex=$(printf %04X "$port")
for table in /proc/net/tcp /proc/net/tcp6; do
    [ -r "$table" ] || continue
    while read -r _ local _ state _; do
        case "$local $state" in *":$hex 0A") taken=yes ;; esac
    done <"$table"
done
[ -z "$taken" ] || echo taken=yes

if [ ! -d "$workspace" ] && ! mkdir -m 775 "$workspace" 2>/dev/null; then
    sudo -n mkdir -m 775 "$workspace" 2>/dev/null && sudo -n chown "$(id -u):$(id -g)" "$workspace" 2>/dev/null
fi
[ -d "$workspace" ] && [ -w "$workspace" ] || workspace=$home
echo "workspace=$workspace"
exit 0
"#;

/// Starts: `FOLDER PROGRAM SIZE SETTINGS PART`. `PART` is what was brought in, for `gzip` to unpack if it is called so, or
/// nothing. The settings vanish when callers are taken. Several may be at it: each has its number in a file of its own until it
/// is known who has the ports.
const START: &str = r#"
folder=$1 program=$1/$2 size=$3 settings=$4 part=${5%.gz} packed= log=${4%.json}.log own=${4%.json}.pid
[ "$part" = "$5" ] || packed=$5
umask 077
fail() { rm -f "$part" "$packed" "$settings" "$own" "$log"; echo "$1"; exit 3; }
if [ -n "$packed" ]; then
    gzip -dc <"$packed" >"$part" 2>/dev/null || fail 'what was sent cannot be unpacked: is there room on the disk?'
    rm -f "$packed"
fi
if [ -n "$part" ]; then
    [ "$(wc -c <"$part" | tr -d ' ')" = "$size" ] || fail 'what was sent did not arrive whole'
    chmod 700 "$part" && mv -f "$part" "$program" || fail 'the program cannot be put in its place'
fi
chmod 600 "$settings"
"$program" tool-server --settings "$settings" </dev/null >"$log" 2>&1 &
pid=$!
echo "$pid" >"$own"
turns=0
while [ -e "$settings" ]; do
    stat=
    [ ! -r "/proc/$pid/stat" ] || read -r stat <"/proc/$pid/stat"
    case "$stat" in
    ''|*') Z '*) fail "$(tail -n 5 "$log")" ;;
    esac
    turns=$((turns + 1))
    if [ $turns -gt 200 ]; then kill "$pid"; fail 'it does not begin to listen'; fi
    sleep 0.1
done
mv -f "$log" "$folder/tools.log"
mv -f "$own" "$folder/tools.pid"
"#;

/// The command that looks.
pub(super) fn look(
    program: &str,
    size: u64,
    port: u16,
    replace: bool,
    workspace: &str,
) -> ProcessConfig {
    let replace = if replace { "yes" } else { "no" };
    let (size, port) = (size.to_string(), port.to_string());
    command(LOOK, &[program, &size, &port, replace, workspace])
}

/// The command that starts it.
pub(super) fn start(
    folder: &str,
    program: &str,
    size: u64,
    settings: &str,
    part: Option<&str>,
) -> ProcessConfig {
    let part = part.unwrap_or_default();
    command(START, &[folder, program, &size.to_string(), settings, part])
}

fn command(script: &str, arguments: &[&str]) -> ProcessConfig {
    let mut args = vec!["-c", script, "sandyard"];
    args.extend(arguments);
    ProcessConfig {
        cmd: "/bin/sh".to_owned(),
        args: args.into_iter().map(str::to_owned).collect(),
        ..ProcessConfig::default()
    }
}

#[cfg(test)]
mod tests;
