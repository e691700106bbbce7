//! What of the host's `/etc` sandboxes may see: a list, with the reason for each entry. Whatever is not on it stays out.
//!
//! On top of the list, nothing is copied that not everybody on the host may read, nothing that holds a private key, and
//! no link that leads outside of what is shown.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Stat};

/// One entry of the list.
#[derive(Debug)]
pub(super) struct Rule {
    /// Below `/etc`; a trailing `*` stands for the rest of a name directly in it.
    pub(super) path: &'static str,
    /// Names below that stay out, at any depth.
    pub(super) except: &'static [&'static str],
}

const fn rule(path: &'static str) -> Rule {
    Rule { path, except: &[] }
}

/// The list.
pub(super) const ETC: &[Rule] = &[
    // Finding libraries.
    rule("ld.so.conf"),   // the loader's directories, for ldconfig
    rule("ld.so.conf.d"), // the same, per package
    rule("ld.so.cache"),  // what the loader really reads: libraries outside the default directories
    // Finding programs.
    rule("alternatives"), // /usr/bin/editor, java, cc … are links to links in here
    // Trusting servers: public certificates. Private keys are in ssl/private and pki/tls/private, never listed.
    rule("ca-certificates"),
    rule("ca-certificates.conf"),
    rule("ssl/certs"),
    rule("ssl/cert.pem"),
    rule("ssl/openssl.cnf"),
    rule("pki/tls/certs"),
    rule("pki/tls/cert.pem"),
    rule("pki/tls/openssl.cnf"),
    rule("pki/ca-trust/extracted"),
    rule("pki/java"),
    rule("crypto-policies"), // OpenSSL on Fedora refuses to start without
    // Languages whose packages keep their own parts here.
    rule("python3*"),
    rule("perl"),
    rule("java"),
    rule("java-*"),
    Rule {
        path: "maven",
        except: &["settings.xml", "settings-security.xml"],
    }, // mvn needs m2.conf; settings hold passwords
    Rule {
        path: "R",
        except: &["Renviron.site", "Rprofile.site"],
    }, // R's own Renviron; the site's may hold tokens
    rule("texmf"),
    rule("octave.conf"),
    rule("ghostscript"),
    rule("ImageMagick-*"), // policy without which convert refuses formats
    // Terminals, text and manuals.
    rule("terminfo"),
    rule("inputrc"),
    rule("vim"),
    rule("nanorc"),
    rule("groff"),
    rule("manpath.config"),
    rule("man_db.conf"),
    rule("magic"), // file(1)
    rule("magic.mime"),
    rule("mime.types"),
    rule("locale.alias"),
    rule("papersize"),
    // Drawing.
    rule("fonts"), // fontconfig finds no font without
    rule("X11/rgb.txt"),
    rule("X11/app-defaults"),
    rule("glvnd"), // which OpenGL library
    rule("vulkan"),
    rule("OpenCL"),
    rule("gtk-2.0"),
    rule("gtk-3.0"),
    Rule {
        path: "chromium.d",
        except: &["apikeys"],
    }, // flags of Debian's chromium; keys are the host's
    // Numbers and names that libc looks up.
    rule("protocols"),
    rule("services"),
    rule("rpc"),
    rule("netconfig"),
    rule("ethertypes"),
    rule("gai.conf"),
    rule("host.conf"),
    rule("bindresvport.blacklist"),
    // Time of day.
    rule("localtime"),
    rule("timezone"),
    // What system is this?
    rule("os-release"),
    rule("debian_version"),
    rule("lsb-release"),
    rule("redhat-release"),
    rule("fedora-release"),
    rule("system-release"),
    rule("alpine-release"),
    rule("arch-release"),
    rule("SuSE-release"),
    rule("issue"),
    rule("issue.net"),
    rule("dpkg/origins"),
    // Small tools' own.
    rule("adduser.conf"),
    rule("deluser.conf"),
    rule("login.defs"),
    rule("shells"),
    rule("mke2fs.conf"),
    rule("xattr.conf"), // which attributes cp keeps
    rule("libaudit.conf"),
    rule("xml"), // catalogues, without which xmllint asks the network
    rule("sgml"),
];

/// Names that hold credentials wherever they are.
const NEVER: &[&str] = &[
    "private",
    "npmrc",
    ".npmrc",
    "pip.conf",
    "gitconfig",
    ".gitconfig",
    "netrc",
    ".netrc",
    "shadow",
    "gshadow",
    "sudoers",
    "sudoers.d",
    "auth.conf",
    "auth.conf.d",
    "my.cnf",
    ".my.cnf",
    ".pgpass",
    "credentials",
    "secrets",
    "ssh",
];

/// Directories that links may lead to: those that are shown, and those a sandbox has of its own.
const LINK_TARGETS: &[&str] = &[
    "/usr",
    "/opt",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/run",
    "/proc",
    "/dev",
    "/tmp",
    "/var/lib",
    "/var/cache",
];

/// Largest file searched for private keys; larger ones are no certificates.
const MAX_SEARCHED_BYTES: i64 = 2 << 20;

impl Rule {
    /// The paths this stands for, given the names directly in `/etc`.
    pub(super) fn expand(&self, names: &[std::ffi::OsString]) -> Vec<PathBuf> {
        match self.path.strip_suffix('*') {
            None => vec![PathBuf::from(self.path)],
            Some(start) => names
                .iter()
                .filter(|name| name.as_bytes().starts_with(start.as_bytes()))
                .map(PathBuf::from)
                .collect(),
        }
    }
}

/// Says whether an entry may be copied: `path` on the host, `path_inside` where it will be.
pub(super) fn may_copy(
    path: &Path,
    path_inside: &Path,
    stat: &Stat,
    link: Option<&[u8]>,
    except: &[&str],
) -> bool {
    let name = path.file_name().unwrap_or_default();
    let is_listed = |list: &[&str]| list.iter().any(|listed| name == OsStr::new(listed));
    if is_listed(except) || is_listed(NEVER) || name.as_bytes().ends_with(b".key") {
        return false;
    }
    // Second names of manual pages: most of `alternatives`, slow to make, and no program needs one.
    if name.as_bytes().ends_with(b".gz") {
        return false;
    }
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => stat.st_mode & 0o005 == 0o005,
        FileType::RegularFile => stat.st_mode & 0o004 != 0 && !holds_private_key(path, stat),
        FileType::Symlink => link.is_some_and(|target| stays_inside(path_inside, target)),
        _ => false,
    }
}

fn holds_private_key(path: &Path, stat: &Stat) -> bool {
    const MARK: &[u8] = b"PRIVATE KEY-----";
    if stat.st_size > MAX_SEARCHED_BYTES {
        return false;
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(MAX_SEARCHED_BYTES as u64).read_to_end(&mut bytes));
    // By line, since keys are text and lines end where they begin.
    read.is_err()
        || bytes
            .split(|byte| *byte == b'\n')
            .any(|line| line.trim_ascii_end().ends_with(MARK))
}

/// Says whether a link, once inside, leads to something shown there.
fn stays_inside(link: &Path, target: &[u8]) -> bool {
    let target = Path::new(OsStr::from_bytes(target));
    let mut resolved = PathBuf::from("/");
    let start = link.parent().unwrap_or(Path::new("/"));
    for part in start.join(target).components() {
        match part {
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir => {
                resolved.pop();
            }
            _ => {}
        }
    }
    LINK_TARGETS.iter().any(|shown| resolved.starts_with(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_must_lead_to_what_is_shown() {
        let link = Path::new("/etc/alternatives/editor");
        for target in ["/usr/bin/vi", "../passwd", "../../usr/bin/vi", "vi"] {
            assert!(stays_inside(link, target.as_bytes()), "{target}");
        }
        for target in [
            "/root/bin/vi",
            "../../home/a/vi",
            "/usr/../srv/x",
            "/",
            "/usrlocal/x",
        ] {
            assert!(!stays_inside(link, target.as_bytes()), "{target}");
        }
    }

    #[test]
    fn nothing_secret_is_on_the_list() {
        for rule in ETC {
            let first = rule.path.split('/').next().unwrap_or_default();
            for secret in [
                "shadow",
                "gshadow",
                "passwd",
                "group",
                "sudoers",
                "ssh",
                "npmrc",
                "pip.conf",
                "gitconfig",
                "apt",
                "krb5.keytab",
                "hosts",
                "hostname",
                "machine-id",
                "fstab",
                "wgetrc",
            ] {
                assert_ne!(first, secret);
            }
            assert!(
                !rule.path.contains("private") && !rule.path.contains(".."),
                "{}",
                rule.path
            );
        }
    }

    #[test]
    fn patterns_stand_for_names_in_etc() {
        let names = ["python3", "python3.11", "python2.7", "perl"].map(Into::into);
        let expanded = rule("python3*").expand(&names);
        assert_eq!(expanded, [Path::new("python3"), Path::new("python3.11")]);
        assert_eq!(rule("perl").expand(&names), [Path::new("perl")]);
    }
}
