//! The scripts that run in a sandbox, in any POSIX shell. All values are arguments; none is inserted into the text.

use sandyard_agent_client::wire::process::ProcessConfig;

/// Inspects: `PROGRAM SIZE PORT REPLACE WORKSPACE`. Creates the folder and the workspace, removes unused files, and prints the
/// facts, one per line. With `REPLACE` it ends running tool servers of this installation.
///
/// Removed files are older than any upload takes: incomplete uploads, and programs of other versions that no process runs. Both an
/// agent and a tool server may run from such a file. `exe` alone is not enough, because it is hidden for processes that cannot be
/// traced.
const INSPECT: &str = r#"
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
        # Its arguments disappear before its ports do.
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

/// Starts: `FOLDER PROGRAM SIZE SETTINGS PART`. `PART` is the file that was sent, packed if it ends with `.gz`, or empty. The tool
/// server removes the settings when it listens. Several servers may start one at once: each has its own number in its file names
/// until it is clear which one has the ports.
const START: &str = r#"
folder=$1 program=$1/$2 size=$3 settings=$4 part=${5%.gz} packed= log=${4%.json}.log own=${4%.json}.pid
[ "$part" = "$5" ] || packed=$5
umask 077
fail() { rm -f "$part" "$packed" "$settings" "$own" "$log"; echo "$1"; exit 3; }
if [ -n "$packed" ]; then
    gzip -dc <"$packed" >"$part" 2>/dev/null || fail 'the program cannot be unpacked: is the disk full?'
    rm -f "$packed"
fi
if [ -n "$part" ]; then
    [ "$(wc -c <"$part" | tr -d ' ')" = "$size" ] || fail 'the program did not arrive complete'
    chmod 700 "$part" && mv -f "$part" "$program" || fail 'the program cannot be moved to its folder'
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
    if [ $turns -gt 200 ]; then kill "$pid"; fail 'it does not listen on its port'; fi
    sleep 0.1
done
mv -f "$log" "$folder/tools.log"
mv -f "$own" "$folder/tools.pid"
"#;

/// The command that inspects.
pub(super) fn inspect(
    program: &str,
    size: u64,
    port: u16,
    replace: bool,
    workspace: &str,
) -> ProcessConfig {
    let replace = if replace { "yes" } else { "no" };
    let (size, port) = (size.to_string(), port.to_string());
    command(INSPECT, &[program, &size, &port, replace, workspace])
}

/// The command that starts the tool server.
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
