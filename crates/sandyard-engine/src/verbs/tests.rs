//! The verbs on a fake kernel, as an ordinary user: every step and every privileged call fails once, and nothing is left.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use sandyard_confine::cgroup::Hierarchy;
use sandyard_core::{SandboxId, SandboxState};
use sandyard_template::{ImportOptions, Owners};
use tempfile::TempDir;

use super::{create, delete, list, pause, resume, start, stop, sweep};
use crate::context::Context;
use crate::error::{EngineError, Result};
use crate::kernel::fake::{Failing, FakeKernel};
use crate::launcher::LauncherConfig;
use crate::layout::DataDir;
use crate::mode::Mode;
use crate::spec::{MountSpec, SandboxInfo, SandboxSpec};
use crate::steps::{Fault, FaultAction, FaultProcess};

const TEMPLATE: &str = "tiny";
const DISK_BYTES: u64 = 1 << 20;
const VOLUME: &str = "data";
/// More steps and calls than any verb has.
const MAX_ATTEMPTS: usize = 100;
const MODES: [Mode; 2] = [Mode::Root, Mode::Rootless { uid: 1, gid: 1 }];

/// A data directory with one template and one volume, on a fake kernel.
struct TestEnv {
    ctx: Context,
    kernel: FakeKernel,
    folder: TempDir,
    /// What is open or on disk before the first sandbox.
    before: Vec<String>,
}

impl TestEnv {
    fn new(mode: Mode) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataDir::new(folder.path().join("data"));
        // As a folder of its own, so that nothing is made outside of it.
        fs::create_dir_all(data.run()).expect("make");
        let config = LauncherConfig {
            data_dir: data.root().to_owned(),
            idle_exit: None,
            allow_faults: true,
            program: PathBuf::new(),
            tools: None,
            memory_reserve: Some(0),
        };
        let kernel = FakeKernel::new();
        let ctx = Context {
            kernel: Box::new(kernel.clone()),
            cgroups: Hierarchy::none(),
            ..Context::new(data, mode, &config).expect("a data directory")
        };
        make_template(&ctx, folder.path());
        make_blank_disk(&ctx);
        make_volume(&ctx);
        let mut env = Self {
            ctx,
            kernel,
            folder,
            before: Vec::new(),
        };
        env.before = env.everything();
        env
    }

    fn create(&self, fault: Option<Fault>) -> Result<SandboxInfo> {
        create::create(&self.ctx, spec(), None, fault)
    }

    fn state(&self, id: &SandboxId) -> SandboxState {
        list::inspect(&self.ctx, id).expect("it is on record").state
    }

    /// What exists beyond what was there before the first sandbox.
    fn leftovers(&self) -> Vec<String> {
        let mut all = self.everything();
        all.retain(|item| !self.before.contains(item));
        all
    }

    /// The same without what a stopped sandbox has: its folder.
    fn leftovers_of_stopped(&self, id: &SandboxId) -> Vec<String> {
        let dir = self.ctx.data.sandbox(id);
        let own = [dir.root().to_owned(), dir.run().to_owned(), dir.lock()];
        let is_own = |item: &String| {
            own.iter()
                .any(|path| item.ends_with(path.to_str().unwrap()))
        };
        let mut leftovers = self.leftovers();
        leftovers.retain(|item| !is_own(item));
        leftovers
    }

    fn everything(&self) -> Vec<String> {
        let data = &self.ctx.data;
        let mut all = self.kernel.objects(self.folder.path());
        for folder in [
            data.sandboxes(),
            data.id_ranges(),
            data.spares(),
            data.trash(),
            data.volumes(),
            data.run(),
        ] {
            all.extend(files(&folder));
        }
        for id in list::ids_in(&data.run()).expect("list") {
            all.extend(files(data.sandbox(&id).run()));
        }
        all
    }

    /// Creates with every privileged call failing in turn, as `failing` says. Returns how many failed.
    fn create_at_every_call(
        &self,
        failing: impl Fn(usize) -> Failing,
        check: impl Fn(usize, &EngineError),
    ) -> usize {
        for call in 1..MAX_ATTEMPTS {
            self.kernel.fail(failing(call));
            let created = self.create(None);
            self.kernel.fail(Failing::Never);
            match created {
                Err(error) => check(call, &error),
                Ok(info) => {
                    delete::delete(&self.ctx, &info.id).expect("delete");
                    assert_eq!(self.leftovers(), Vec::<String>::new());
                    return call - 1;
                }
            }
        }
        panic!("never succeeded");
    }
}

/// The entries of a folder, but for locks that are shared by all sandboxes and volumes.
fn files(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_none_or(|extension| extension != "lock"))
        .map(|path| path.display().to_string())
}

fn spec() -> SandboxSpec {
    let mut spec = SandboxSpec {
        template: TEMPLATE.to_owned(),
        mounts: vec![MountSpec {
            volume: VOLUME.to_owned(),
            path: "/mnt/data".to_owned(),
        }],
        ..SandboxSpec::default()
    };
    spec.limits.disk_bytes = DISK_BYTES.max(16 << 20);
    spec
}

fn fail_step(step: usize) -> Option<Fault> {
    Some(Fault {
        process: FaultProcess::Worker,
        step: step as u32,
        action: FaultAction::Fail,
    })
}

fn make_template(ctx: &Context, folder: &Path) {
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("etc")).expect("make");
    let options = ImportOptions {
        add_user: false,
        ..ImportOptions::new(Owners::Current)
    };
    let imported = ctx.templates.import_tree(TEMPLATE, &tree, options);
    imported.expect("import");
}

/// An image that no file system is on: the fake kernel does not look.
fn make_image(image: &Path) {
    fs::create_dir_all(image.parent().expect("a folder")).expect("make");
    let made = File::create(image).and_then(|file| file.set_len(DISK_BYTES));
    made.expect("an image");
}

fn make_blank_disk(ctx: &Context) {
    let size = spec().limits.disk_bytes.to_string();
    make_image(&ctx.data.blanks().join(size).join("master.img"));
}

fn make_volume(ctx: &Context) {
    let root = ctx.data.volumes().join(VOLUME);
    make_image(&crate::volume::image_in(&root));
    fs::create_dir(crate::volume::folder_in(&root)).expect("make");
}

#[test]
fn a_sandbox_lives_through_all_verbs_and_leaves_nothing() {
    for mode in MODES {
        let env = TestEnv::new(mode);
        let ctx = &env.ctx;
        let id = env.create(None).expect("create").id;
        assert_eq!(env.state(&id), SandboxState::Running);
        pause::pause(ctx, &id).expect("pause");
        assert_eq!(env.state(&id), SandboxState::Paused);
        resume::resume(ctx, &id).expect("resume");
        stop::stop(ctx, &id).expect("stop");
        assert_eq!(env.state(&id), SandboxState::Stopped);
        assert_eq!(
            env.leftovers_of_stopped(&id),
            Vec::<String>::new(),
            "{mode:?}"
        );
        start::start(ctx, &id, None).expect("start");
        sweep::sweep(ctx).expect("sweep");
        assert_eq!(env.state(&id), SandboxState::Running);
        delete::delete(ctx, &id).expect("delete");
        assert_eq!(env.leftovers(), Vec::<String>::new(), "{mode:?}");
    }
}

#[test]
fn a_create_makes_the_privileged_calls_in_this_order() {
    let env = TestEnv::new(Mode::Root);
    env.create(None).expect("create");
    let calls = [
        "create cgroup",
        "clone",
        "map ids",
        "join cgroup",
        // The disk, then the volume.
        "attach loop",
        "mount ext4",
        "attach loop",
        "mount ext4",
        "open user namespace",
        "shift owners",
        "clone mount",
        "shift owners",
    ];
    assert_eq!(env.kernel.calls(), calls);
}

#[test]
fn a_create_that_fails_at_any_step_leaves_nothing() {
    for mode in MODES {
        let env = TestEnv::new(mode);
        let failed = (1..MAX_ATTEMPTS).take_while(|step| {
            let Err(error) = env.create(fail_step(*step)) else {
                return false;
            };
            assert_eq!(error.cleanup, Vec::<String>::new(), "step {step}");
            assert_eq!(
                env.leftovers(),
                Vec::<String>::new(),
                "step {step}: {error}"
            );
            true
        });
        let failed = failed.count();
        assert!(failed >= 15, "{mode:?} has only {failed} steps");
    }
}

#[test]
fn a_create_whose_nth_privileged_call_fails_leaves_nothing() {
    for mode in MODES {
        let env = TestEnv::new(mode);
        let failed = env.create_at_every_call(Failing::Nth, |call, error| {
            assert_eq!(error.cleanup, Vec::<String>::new(), "call {call}");
            assert_eq!(
                env.leftovers(),
                Vec::<String>::new(),
                "call {call}: {error}"
            );
        });
        assert!(failed >= 4, "{mode:?} has only {failed} calls");
    }
}

#[test]
fn a_sweep_removes_what_failing_undos_have_left() {
    for mode in MODES {
        let env = TestEnv::new(mode);
        env.create_at_every_call(
            |call| Failing::From(call..),
            |call, error| {
                sweep::sweep(&env.ctx).expect("sweep");
                assert_eq!(
                    env.leftovers(),
                    Vec::<String>::new(),
                    "call {call}: {error}"
                );
            },
        );
    }
}

#[test]
fn a_start_that_fails_anywhere_leaves_a_stopped_sandbox_that_can_be_started() {
    for mode in MODES {
        let env = TestEnv::new(mode);
        let ctx = &env.ctx;
        let id = env.create(None).expect("create").id;
        stop::stop(ctx, &id).expect("stop");
        let check_stopped = |what: &str, number: usize| {
            assert_eq!(env.state(&id), SandboxState::Stopped, "{what} {number}");
            assert_eq!(
                env.leftovers_of_stopped(&id),
                Vec::<String>::new(),
                "{what} {number}"
            );
        };
        for step in 1..MAX_ATTEMPTS {
            if start::start(ctx, &id, fail_step(step)).is_ok() {
                break;
            }
            check_stopped("step", step);
        }
        stop::stop(ctx, &id).expect("stop");
        for call in 1..MAX_ATTEMPTS {
            env.kernel.fail(Failing::Nth(call));
            let started = start::start(ctx, &id, None);
            let has_failed = env.kernel.calls().len() >= call;
            env.kernel.fail(Failing::Never);
            match started {
                Ok(_) if !has_failed => break,
                // A call that is no reason to give up.
                Ok(_) => drop(stop::stop(ctx, &id).expect("stop")),
                Err(_) => check_stopped("call", call),
            }
        }
        assert_eq!(env.state(&id), SandboxState::Running);
        delete::delete(ctx, &id).expect("delete");
        assert_eq!(env.leftovers(), Vec::<String>::new());
    }
}

#[test]
fn a_delete_that_fails_at_any_privileged_call_can_be_repeated() {
    for mode in MODES {
        let env = TestEnv::new(mode);
        for call in 1..=4 {
            let id = env.create(None).expect("create").id;
            env.kernel.fail(Failing::Nth(call));
            let _ = delete::delete(&env.ctx, &id);
            env.kernel.fail(Failing::Never);
            delete::delete(&env.ctx, &id).expect("delete");
            // What was put aside while no process could be made is removed by the next sweep.
            sweep::sweep(&env.ctx).expect("sweep");
            assert_eq!(env.leftovers(), Vec::<String>::new(), "call {call}");
        }
    }
}

#[test]
fn the_reason_of_a_stop_is_known_from_the_end_of_the_first_process_on() {
    const REASON: &str = "it wrote more than its disk limit";
    for mode in MODES {
        let env = TestEnv::new(mode);
        let mut has_failed_afterwards = false;
        for call in 1..=8 {
            let id = env.create(None).expect("create").id;
            env.kernel.fail(Failing::Nth(call));
            let stopped = stop::stop_because(&env.ctx, &id, REASON);
            env.kernel.fail(Failing::Never);
            let info = list::inspect(&env.ctx, &id).expect("it is on record");
            if info.state == SandboxState::Stopped {
                has_failed_afterwards |= stopped.is_err();
                assert_eq!(info.reason.as_deref(), Some(REASON), "call {call}");
            }
            let info = stop::stop_because(&env.ctx, &id, REASON).expect("stop");
            assert_eq!(info.reason.as_deref(), Some(REASON), "call {call}");
            delete::delete(&env.ctx, &id).expect("delete");
        }
        assert!(has_failed_afterwards || mode != Mode::Root, "{mode:?}");
    }
}
