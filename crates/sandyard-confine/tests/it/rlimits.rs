//! Limits of one process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sandyard_confine::rlimits::{self, Accounting};

use crate::child::{self, message};

#[test]
fn limits_hold_and_apply_never_fails_twice() {
    child::run(|| {
        for _ in 0..2 {
            rlimits::apply(Accounting::Alone).map_err(message)?;
        }
        for (resource, most) in [
            (Resource::Core, 1),
            (Resource::Nice, 0),
            (Resource::Rtprio, 0),
            (Resource::Memlock, 8 << 20),
            (Resource::Nofile, 65_536),
            (Resource::Msgqueue, 819_200),
            (Resource::Sigpending, 2048),
        ] {
            let now = getrlimit(resource);
            if now.maximum.is_none_or(|maximum| maximum > most) || now.current != now.maximum {
                return Err(format!("{resource:?}: {now:?}"));
            }
        }
        Ok(())
    });
}

#[test]
fn host_that_forbids_raising_keeps_its_limit() {
    child::run(|| {
        let low = Rlimit {
            current: Some(100),
            maximum: Some(256),
        };
        setrlimit(Resource::Nofile, low).map_err(message)?;
        // SAFETY: plain numbers; the child has one thread. An ordinary user may not raise.
        if unsafe { libc::setuid(65534) } != 0 {
            return Err(message(std::io::Error::last_os_error()));
        }
        rlimits::apply(Accounting::Alone).map_err(message)?;
        match getrlimit(Resource::Nofile).current {
            Some(256) => Ok(()),
            other => Err(message(other)),
        }
    });
}

#[test]
fn sandboxes_that_are_counted_together_get_a_smaller_share_each() {
    child::run(|| {
        rlimits::apply(Accounting::Together).map_err(message)?;
        for (resource, most) in [(Resource::Msgqueue, 102_400), (Resource::Sigpending, 256)] {
            let now = getrlimit(resource);
            if now.maximum.is_none_or(|maximum| maximum > most) {
                return Err(format!("{resource:?}: {now:?}"));
            }
        }
        Ok(())
    });
}
